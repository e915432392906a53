package launcher

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"muster/launcher/tmux"
)

// watcherT is a person's terminal that shows a pane.
type watcherT struct {
	tty  *os.File
	over chan struct{}
	mu   sync.Mutex
	seen strings.Builder
}

func (n *testNodeT) attach(run string, readOnly bool) *watcherT {
	n.t.Helper()
	dir, argv := n.tmux().Client(run, readOnly, false)
	if !readOnly { // as a person does who uses tmux by hand
		argv = []string{argv[0], "-S", "s", "attach-session", "-t", "=" + tmux.Name(run) + ":"}
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, []string{"TERM=xterm", "PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"}
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 30, Cols: 100})
	must(n.t, err)
	must(n.t, syscall.SetNonblock(int(tty.Fd()), true)) // else its end waits for who reads it, who waits for something to read
	w := &watcherT{tty: tty, over: make(chan struct{})}
	go func() {
		defer close(w.over)
		b := make([]byte, 4096)
		for {
			k, err := tty.Read(b)
			w.mu.Lock()
			w.seen.Write(b[:k])
			w.mu.Unlock()
			if err != nil {
				_ = cmd.Wait()
				return
			}
		}
	}()
	n.t.Cleanup(func() { tty.Close() })
	return w
}

func (w *watcherT) sees(t *testing.T, text string) {
	t.Helper()
	eventually(t, text+" on the person's screen", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return strings.Contains(w.seen.String(), text)
	})
}

// A person looks at a pane and types into it, another only looks; the key that the
// status line shows leaves it running, also in the middle of a paste.
func TestAttach(t *testing.T) {
	t.Parallel()
	n := paneNode(t)
	file := filepath.Join(t.TempDir(), "read")
	run := n.start("pane", "stty raw -echo; echo HELLO; exec cat > "+file)
	n.logHas(run, "HELLO")
	w, r := n.attach(run, false), n.attach(run, true)
	w.sees(t, "HELLO")
	w.sees(t, "Ctrl-]")
	w.sees(t, run)
	r.sees(t, "read only")
	_, err := io.WriteString(r.tty, "not this")
	must(t, err)
	_, err = io.WriteString(w.tty, "\x02:\x03\x04 all of it\x1b[A")
	must(t, err)
	n.reads(file, "\x02:\x03\x04 all of it\x1b[A")
	_, err = io.WriteString(r.tty, "\x1d") // to a look of the node's it is no key
	must(t, err)
	r.tty.Close()
	wait(t, "the end of the second look", r.over)
	done := make(chan error, 1)
	go func() { done <- n.tmux().Paste(t.Context(), n.pane(run).ID, []byte(strings.Repeat("x", 100<<10))) }()
	_, err = io.WriteString(w.tty, "\x1d")
	must(t, err)
	wait(t, "the end of the look", w.over)
	must(t, <-done)
	n.reads(file, "\x02:\x03\x04 all of it\x1b[A"+strings.Repeat("x", 100<<10))
	if n.fleet.run(run).Gone != "" || !alive(int(n.fleet.run(run).PID)) {
		t.Error("the session ended when nobody looked any more")
	}
}
