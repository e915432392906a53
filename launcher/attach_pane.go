package launcher

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// paneLook bounds how long a person's tmux may take to say what is in a pane.
const paneLook = 3 * time.Second

// paneProcess is what runs in the foreground of a pane of the person's own tmux server, which is asked and never told
// anything. A name is tmux's own: %3, work:1.0, the name of a session.
func paneProcess(ctx context.Context, name string) (int, error) {
	if strings.HasPrefix(name, "-") || strings.ContainsAny(name, "\n\x00") || len(name) > 200 {
		return 0, fmt.Errorf("%q names no tmux pane", name)
	}
	ctx, cancel := context.WithTimeout(ctx, paneLook)
	defer cancel()
	out, err := exec.CommandContext(ctx, "tmux", "display-message", "-p", "-t", name, "#{pane_pid}").CombinedOutput()
	said := strings.TrimSpace(string(out))
	pid, perr := strconv.Atoi(said)
	switch {
	case err == nil && perr == nil:
		return foreground(pid)
	case err == nil || said == "": // a pane that is not there is no error to it
		return 0, fmt.Errorf("your tmux has no pane %q", name)
	}
	return 0, fmt.Errorf("your tmux has no pane %q: %s", name, said)
}
