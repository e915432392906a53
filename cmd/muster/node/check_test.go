package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/mesh"
	"muster/raftstore"
)

// `muster check` of a stopped node looks at all that the node is: key, name, store and log must belong together, and
// what is missing is said with what the next start would make of it. It changes nothing.
func TestCheckFolder(t *testing.T) {
	n := open(t, testConfig(t, "atlas"))
	dir := n.cfg.Data
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	look := func() string {
		r, err := raftstore.Check(filepath.Join(dir, "raft"))
		if err != nil {
			r = nil
		}
		return strings.Join(CheckFolder(dir, r).Faults, "|")
	}
	if got := look(); got != "" || !IsFolder(dir) {
		t.Fatalf("a sound folder: %q", got)
	}
	other := t.TempDir()
	if _, err := mesh.LoadOrCreateIdentity(other); err != nil {
		t.Fatal(err)
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		what       string
		harm, mend func()
		want       string
	}{
		{"no key", func() { move(file("node.key"), file("k")) }, func() { move(file("k"), file("node.key")) }, "node.key is missing"},
		{"no node.json", func() { move(file("node.json"), file("j")) }, func() { move(file("j"), file("node.json")) }, "node.json is missing"},
		{"another's key", func() { move(file("node.key"), file("k")); move(filepath.Join(other, "node.key"), file("node.key")) },
			func() { move(file("k"), file("node.key")) }, "one of them was copied here"},
		{"no log", func() { move(file("raft/log"), file("l")) }, func() { move(file("l"), file("raft/log")) }, "the log is missing: at its next start"},
		{"no store", func() { move(file("raft"), file("r")) }, func() { move(file("r"), file("raft")) }, "the log is missing: at its next start"},
	} {
		tc.harm()
		if got := look(); !strings.Contains(got, tc.want) || strings.Contains(got, "|") {
			t.Errorf("%s: %q, want one fault with %q", tc.what, got, tc.want)
		}
		tc.mend()
	}
	b, err := os.ReadFile(file("node.json"))
	if err != nil {
		t.Fatal(err)
	}
	for with, want := range map[string]string{"{": "is broken", strings.Replace(string(b), n.mem.Store, "other1", 1): "one of them is an older copy"} {
		if err := os.WriteFile(file("node.json"), []byte(with), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := look(); !strings.Contains(got, want) {
			t.Errorf("node.json %.20q: %q, want %q", with, got, want)
		}
	}
}
