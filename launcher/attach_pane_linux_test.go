package launcher

import (
	"os/exec"
	"strings"
	"testing"

	"muster/board"
)

// SES-24: a session in a pane of the person's own tmux is named by that pane: what its terminal's keys go to is meant,
// and not the shell that it was started from.
func TestPaneOfAPerson(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("needs tmux: a pane of a person's own")
	}
	t.Setenv("TMUX_TMPDIR", t.TempDir()) // its server, and not the one of who runs this test
	t.Setenv("TMUX", "")
	own := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("tmux", append([]string{"-f", "/dev/null"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	id := own("new-session", "-d", "-P", "-F", "#{pane_id}", "-s", "work", "-x", "80", "-y", "24", "--", "sh", "-i")
	t.Cleanup(func() { own("kill-server") })
	other := own("split-window", "-d", "-P", "-F", "#{pane_id}", "-t", "=work:", "--", "sleep", "1000")
	own("send-keys", "-t", id, "sleep 1001", "Enter")
	for name, is := range map[string]string{id: "1001", "work": "1001", "=work:": "1001", "work:0.0": "1001", other: "1000", "work:0.1": "1000"} {
		eventually(t, name, func() bool {
			pid, err := paneProcess(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			p, err := ownProcess(pid)
			return err == nil && strings.Join(p.args, " ") == "sleep "+is
		})
	}
	for name, words := range map[string]string{"nowhere": "no pane", "%99": "no pane", "-t": "names no tmux pane", "a\nb": "names no tmux pane"} {
		if pid, err := paneProcess(t.Context(), name); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: process %d, %v", name, pid, err)
		}
	}
	n := &Reconciler{ctx: t.Context()}
	if _, err := n.find(board.Adopt{PID: 4, Pane: "work"}); err == nil || !strings.Contains(err.Error(), "which?") {
		t.Error(err)
	}
}
