package mesh

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/hashicorp/memberlist"
)

// wireFixture are the bytes of testdata/wire-1.txt by name: what the first version says on the wire. Lines are never changed.
func wireFixture(t *testing.T) map[string][]byte {
	t.Helper()
	f, err := os.Open("testdata/wire-1.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m := map[string][]byte{}
	for s := bufio.NewScanner(f); s.Scan(); {
		name, text, ok := strings.Cut(s.Text(), " ")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		if m[name], err = hex.DecodeString(text); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return m
}

// architecture.md §9: what the first version says on the wire is understood by every later one, and what a later one adds
// is passed over: greetings, frames, and what gossip carries.
func TestWireOfTheFirstVersion(t *testing.T) {
	old := wireFixture(t)
	said := greeting{Fleet: "f1", Text: "1-abc", Addrs: []string{"192.0.2.1:7100"}}
	for name, want := range map[string]greeting{"greeting": said, "greeting-and-more": said, "refusal": {Fleet: "f1", Text: "2-def", Refused: "not listed"}} {
		if g, err := readGreeting(bytes.NewReader(old[name])); err != nil || !reflect.DeepEqual(g, want) {
			t.Errorf("%s: %+v, %v", name, g, err)
		}
	}
	var b bytes.Buffer
	if err := writeGreeting(&b, said); err != nil || !bytes.Equal(b.Bytes(), old["greeting"]) {
		t.Errorf("this version says %x (%v)", b.Bytes(), err)
	}
	fr, err := readFrame(bytes.NewReader(old["request"]))
	if err != nil || fr.kind != kindRequest || fr.id != 7 {
		t.Fatalf("request: %+v, %v", fr, err)
	}
	if _, method, body, err := parseRequest(fr.payload); err != nil || method != "contact" || string(body) != "{}" {
		t.Errorf("request: %q %q, %v", method, body, err)
	}
	if fr, err = readFrame(bytes.NewReader(old["failure"])); err != nil || fr.kind != kindFailure || fr.id != 7 {
		t.Fatalf("failure: %+v, %v", fr, err)
	}
	if got := parseFailure(fr.payload); got.Code != "busy" || got.Text != "starting" {
		t.Errorf("failure: %+v", got)
	}
	if got := wire(t, outFrame{kind: kindRequest, id: 7, left: 15_000, word: "contact", body: []byte("{}")}); !bytes.Equal(got, old["request"]) {
		t.Errorf("this version asks with %x", got)
	}
	if m := parseMeta(old["meta"]); !reflect.DeepEqual(m, meta{Name: "atlas", Generation: 3, Addrs: []string{"192.0.2.1:7100"}}) {
		t.Errorf("meta: %+v", m)
	}
	if m, ok := parseNote(old["note"]); !ok || m.Left != "n1" {
		t.Errorf("note: %+v", m)
	}
}

// Whatever gossip carries is a word or nothing, of what it may be at most (T3, invariant 27).
func FuzzGossip(f *testing.F) {
	for _, s := range []string{"", "{}", `{"left":"n"}`, `{"n":"atlas","g":1,"a":["1.2.3.4:5",":","x:y","[::1]:1"]}`, `{"a":[[[[`, `{"g":-1}`, strings.Repeat("[", 600)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, ok := parseNote(b); ok && (len(b) > 256 || m.Left == "") {
			t.Fatal("a note that is none")
		}
		if len(b) > memberlist.MetaMaxSize {
			return
		}
		m := parseMeta(b)
		if len(m.Addrs) > len(b) || !reflect.DeepEqual(m.Addrs, validAddrs(m.Addrs)) {
			t.Fatalf("addresses %q", m.Addrs)
		}
	})
}
