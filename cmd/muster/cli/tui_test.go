package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"
)

// Where nothing can be drawn, tui says so, and what to do instead; nothing is asked of a node.
func TestTUINeedsATerminal(t *testing.T) {
	for _, c := range []struct {
		term string
		args []string
		code int
		want []string
	}{
		{"dumb", []string{"tui"}, ExitFailed, []string{"TERM=dumb", "hint: set TERM", "muster board show --watch"}},
		{"xterm", []string{"tui"}, ExitFailed, []string{"needs a terminal", "ssh -t"}},
		{"xterm", []string{"tui", "--json"}, ExitUsage, []string{"muster events -f --json"}},
		{"xterm", []string{"tui", "extra"}, ExitUsage, []string{"use: muster tui"}},
	} {
		var out, bad bytes.Buffer
		env := func(name string) string { return map[string]string{"TERM": c.term, "HOME": t.TempDir()}[name] }
		code := Main(context.Background(), c.args, IO{In: strings.NewReader(""), Out: &out, Err: &bad, Env: env, Now: time.Now}, Deps{})
		for _, x := range c.want {
			if text := out.String() + bad.String(); code != c.code || !strings.Contains(text, x) {
				t.Errorf("TERM=%s muster %v: exit %d, %q; want %d, %q", c.term, c.args, code, text, c.code, x)
			}
		}
	}
}
