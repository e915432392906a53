package launcher

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/creack/pty"

	"muster/launcher/tmux"
)

// surfacePane is a session with a terminal; every other is headless.
const surfacePane = "pane"

// terminal is what stands between tmux and a session that has a pane: a terminal
// of the keeper's own. So its output is in the log like any other's, and its tree,
// its deadline and its end are the keeper's as they are of every session.
type terminal struct {
	outer  *os.File // of tmux: this process's standard input
	master *os.File
	slave  *os.File // the session's, until it has started
	server int      // pid of the tmux server
	hung   atomic.Bool
	read   chan struct{} // closed when nothing comes of the session any more
	notes  *notes
	ended  chan bool // after a hang-up: whether it was the server that ended
}

// openTerminal makes the session's terminal when it is to have one. The keeper
// stands in a pane then.
func (k *keeper) openTerminal() error {
	if k.spec.Surface != surfacePane {
		return nil
	}
	t := &terminal{outer: os.Stdin, server: os.Getppid(), read: make(chan struct{}), ended: make(chan bool, 1), notes: newNotes()}
	if err := makeRaw(t.outer); err != nil {
		return fmt.Errorf("its keeper does not stand in a pane: %w", err)
	}
	var err error
	if t.master, t.slave, err = pty.Open(); err != nil {
		return fmt.Errorf("no terminal: %w", err)
	}
	t.resize()
	k.term = t
	return nil
}

// slaveOf is what the session gets for its standard streams; nil without a pane.
func (k *keeper) slaveOf() *os.File {
	if k.term == nil {
		return nil
	}
	return k.term.slave
}

// resize gives the session's terminal the size that tmux gives the pane.
func (t *terminal) resize() {
	if err := pty.InheritSize(t.outer, t.master); err != nil && !t.hung.Load() {
		fmt.Fprintln(os.Stderr, "size of the pane:", err) // into keeper.log
	}
}

// join begins to pass on what is typed and what is printed. The slave is let go of:
// when the session has too, its output has an end.
func (t *terminal) join() error {
	log, err := os.OpenFile(fileLog, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	t.slave.Close()
	go t.take()
	go t.notes.attend(t.read)
	go func() {
		defer close(t.read)
		defer log.Close()
		t.print(log)
	}()
	return nil
}

// take passes on what is typed, until this process ends or the pane does.
func (t *terminal) take() {
	b := make([]byte, 32<<10)
	var typed tmux.Bytes
	for {
		n, err := t.outer.Read(b)
		if _, werr := t.master.Write(typed.Read(b[:n])); err != nil || werr != nil {
			return
		}
	}
}

// print copies the session's output into its log and to tmux until there is no more.
// A log that cannot be written holds the session up no more than a pane that is gone.
func (t *terminal) print(log io.Writer) {
	b := make([]byte, 32<<10)
	var screen shown
	for deaf := false; ; { // the hang-up's signal may come after this sees it, and must find it untold
		n, err := t.master.Read(b)
		_, _ = log.Write(b[:n])
		if screen.by(b[:n]) {
			notify(t.notes.out)
		}
		if n > 0 && !deaf {
			_, err := t.outer.Write(b[:n])
			deaf = err != nil
		}
		if err != nil {
			return
		}
	}
}

// drainWait bounds how long the last output is waited for: a process outside of
// the tree may hold the terminal, and tmux may not take what is printed.
const drainWait = 500 * time.Millisecond

// signalled is a signal that the keeper of a pane gets beside those of every keeper.
func (k *keeper) signalled(s os.Signal) {
	t := k.term
	switch {
	case t == nil:
	case s == syscall.SIGWINCH:
		t.resize()
	case s == syscall.SIGHUP && !t.hung.Swap(true) && !k.ending && k.main == nil:
		k.closed = true
		go func() { t.ended <- os.Getppid() != t.server || ends(t.server, drainWait) }()
		k.end(k.spec.Kill, "its pane was closed")
	}
}

// hangUp tells a session what a terminal tells that goes away: a shell that people
// type at ends of that, and not of TERM. Its process is not reaped, so the pid is its own.
func (k *keeper) hangUp() {
	if k.term != nil && k.main == nil {
		_ = syscall.Kill(k.tree.pid, syscall.SIGHUP)
	}
}

// endTerminal waits for the last output, and says in the exit record what became of
// the pane: closed by a person, or taken along by the end of its server.
func (k *keeper) endTerminal(e *Exit) *Exit {
	t := k.term
	if t == nil {
		return e
	}
	select {
	case <-t.read:
	case <-time.After(drainWait):
	}
	if k.closed {
		if e.Closed = !<-t.ended; !e.Closed {
			e.Error, e.Terminal = "its terminal's server (tmux) ended, and the session with it", true
		}
	}
	return e
}

// fileCall is the socket at which a node waits for the keeper that tmux starts for it.
const fileCall = "n.sock"

// callNode tells the node that waits for this keeper, if one does, that it is there:
// as fast as the connection that the node makes for a headless session's keeper.
func (k *keeper) callNode() {
	c, err := net.Dial("unix", fileCall)
	if err != nil {
		return // nobody waits (any more): found by its socket
	}
	k.hub.add(c, bufio.NewReader(c))
}

// errNoCall: tmux has started a keeper, and it did not come.
var errNoCall = errors.New("its keeper did not come up in its pane")

// paneID is the pane that this keeper stands in, "" without one.
func (k *keeper) paneID() string {
	if k.term == nil {
		return ""
	}
	return os.Getenv("TMUX_PANE")
}

// join begins to pass on what is typed and printed, when there is a terminal.
func (k *keeper) join() error {
	if k.term == nil {
		return nil
	}
	return k.term.join()
}
