package cli

import (
	"strings"
	"testing"
)

// attach is for people at a terminal; it has no JSON.
func TestAttachIsForTerminals(t *testing.T) {
	w := newWorld(t, story())
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{1, "attach needs a terminal", []string{"attach", "d-1"}},
		{2, "it has no --json", []string{"attach", "d-1", "--json"}},
		{1, "shell needs a terminal", []string{"shell", "atlas"}},
	} {
		out, err, code := w.run(c.args...)
		if code != c.code || !strings.Contains(out+err, c.want) {
			t.Errorf("%q: exit %d, %q; want %d, %q", c.args, code, out+err, c.code, c.want)
		}
	}
}
