package launcher

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"muster/board"
)

// SES-01: a harness that makes its session's id itself tells it in its output, as
// the member of a JSON line; anything else there is passed over.
func TestSessionIDFromOutput(t *testing.T) {
	for _, c := range []struct{ key, log, want string }{
		{"thread_id", "warning: slow\n{\"type\":\"x\"}\n{\"type\":\"thread.started\",\"thread_id\":\"t-1\"}\n{\"thread_id\":\"t-2\"}\n", "t-1"},
		{"thread_id", "{\"thread_id\":7}\n{broken\n[\"thread_id\"]\n", ""},
		{"", "{\"thread_id\":\"t-1\"}\n", ""},
	} {
		n := &run{dir: t.TempDir(), spec: &Spec{SessionKey: c.key}}
		if err := os.WriteFile(filepath.Join(n.dir, fileLog), []byte(c.log), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := n.told(); got != c.want {
			t.Errorf("%q tells %q, want %q", c.log, got, c.want)
		}
	}
	if got := (&run{dir: t.TempDir(), spec: &Spec{SessionKey: "x"}}).told(); got != "" {
		t.Errorf("no output tells %q", got)
	}
}

// SES-01: a program that tells nothing on its output keeps its session in a file: the
// one of its folder that was written since it began. Of two of them none is taken.
func TestSessionIDFromItsFile(t *testing.T) {
	home := filepath.Join(t.TempDir(), "a[b")
	write := func(name, first string) string {
		t.Helper()
		path := filepath.Join(home, "sessions", "1", name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(first+"\n{}\n"), 0o600))
		return path
	}
	meta := func(id, dir string) string { return `{"payload":{"id":"` + id + `","cwd":"` + dir + `"}}` }
	old := write("old.jsonl", meta("old", "/w"))
	n := &run{dir: t.TempDir(), spec: &Spec{SessionKey: "thread_id", Dir: "/w", Env: []string{"X=" + home, "REL=here"},
		Sessions: &board.SpecFiles{Paths: []string{"$REL/*", "$UNSET/*", "$X/sessions/*/*.jsonl"}, ID: "payload.id", Dir: "payload.cwd"}}}
	if got := n.told(); got != "" {
		t.Errorf("before it began: %q", got)
	}
	must(t, os.WriteFile(filepath.Join(n.dir, fileProc), []byte("{}"), 0o600))
	began, err := os.Stat(filepath.Join(n.dir, fileProc))
	must(t, err)
	must(t, os.Chtimes(old, time.Time{}, began.ModTime().Add(-time.Second)))
	write("other.jsonl", meta("other", "/elsewhere"))
	write("broken.jsonl", "{broken")
	write("half.jsonl", `{"payload":{"cwd":"/w"}}`)
	if got := n.told(); got != "" {
		t.Errorf("none of them is its own: %q", got)
	}
	write("mine.jsonl", meta("mine", "/w"))
	if got := n.told(); got != "mine" {
		t.Errorf("its file tells %q", got)
	}
	dir := filepath.Join(home, "sessions", "1")
	must(t, os.Chtimes(dir, time.Time{}, began.ModTime().Add(-time.Hour)))
	if got := n.told(); got != "" {
		t.Errorf("a folder of before it began was looked through: %q", got)
	}
	write("another.jsonl", meta("another", "/w"))
	if got := n.told(); got != "" {
		t.Errorf("of two it takes %q", got)
	}
}
