package launcher

import (
	"os"
	"path/filepath"
	"testing"
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
