package node

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"muster/board"
)

// Whatever its owner writes: what the machine is limited to, or an error, which takes nothing; never half of it.
func FuzzOwnFile(f *testing.F) {
	for _, s := range []string{"", "# nothing\n", "boards: [web]\nharnesses: [command]\nattach: read\nlocal: viewer\n", "attach: all", "run_as: x", "boards: web",
		"boards: [web]\n---\nboards: [other]\n", "a: &a [1]\nb: *a", "\x00", "boards: [[web]]", "local: manager\nlocal: none\n", "repos: {x: /y}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := parseOwn(b)
		if err != nil {
			if o.Attach != "" || o.Local != "" || len(o.Boards)+len(o.Harnesses)+len(o.Repos) > 0 {
				t.Fatalf("an error with limits: %+v", o)
			}
			return
		}
		if !slices.Contains(localRoles, o.Local) || o.RunAs != "" || o.Attach != "" && o.Attach != attachWrite && o.Attach != attachRead && o.Attach != attachNone {
			t.Fatalf("%q: %+v", b, o)
		}
	})
}

// What stands in a second document, or in more than the file may have, is not passed over.
func TestOwnFileIsReadWhole(t *testing.T) {
	for text, want := range map[string]string{
		"attach: read\n---\nboards: [web]\n":          "more than one document",
		"# " + strings.Repeat("x", ownMax):            "at most",
		"attach: read\nbords: [web]\n":                "bords",
		"attach: read # and nothing else\n# at all\n": "",
	} {
		if _, err := parseOwn([]byte(text)); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

// What peers say, a contact, a hello, an order, is read or refused (invariant 27).
func FuzzPeerWords(f *testing.F) {
	for _, m := range []any{contactMsg{Seq: 1, Addrs: []string{"192.0.2.1:7100"}, Alarms: []string{"x"}}, helloMsg{Addrs: []string{"x"}}, orderMsg{Term: 2, Order: []byte{1, 2, 3}},
		logMsg{Run: "d-1.1", Max: -1}, map[string]any{"reading": map[string]any{"slots": -1, "load": 1e308}}} {
		b, err := json.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"order":"AAECAwQF"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = decoded(b, func(m contactMsg) (any, error) { return m.Reading, nil })
		_, _ = decoded(b, func(m helloMsg) (any, error) { return helloAns{Nodes: []peerID{{Addrs: m.Addrs}}}, nil })
		_, _ = decoded(b, func(m logMsg) (any, error) { return min(max(m.Max, 1), 1<<20), nil })
		_, _ = decoded(b, func(m orderMsg) (any, error) {
			return board.DecodeOrder(m.Order), nil
		})
	})
}
