package launcher

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"muster/board"
	"muster/launcher/tmux"
)

// paneNode is a node whose panes are on a tmux server of this test's own.
func paneNode(t *testing.T) *testNodeT {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("needs tmux: sessions in panes")
	}
	return newNode(t, nil)
}

func (n *testNodeT) tmux() *tmux.Server { return n.Reconciler.cfg.panes }

// endTmux ends the tmux server of a data folder, when one was started. Before its
// node is closed it would be started again.
func endTmux(t *testing.T, data string) {
	dir := filepath.Join(data, "tmux")
	if !exists(filepath.Join(dir, "s")) {
		return
	}
	cmd := exec.Command("tmux", "-S", "s", "kill-server") // answered when its socket is gone
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil && !strings.Contains(string(out), "no server") {
		t.Errorf("the tmux server of the test: %v: %s", err, out)
	}
}

// tmuxPID is the process of the node's tmux server; 1<<30 without one.
func tmuxPID(t *testing.T, n *testNodeT) int {
	t.Helper()
	pid := 1 << 30
	cmd := exec.Command("tmux", "-S", "s", "display-message", "-p", "#{pid}")
	cmd.Dir = filepath.Join(n.cfg.Dir, "tmux")
	if out, err := cmd.Output(); err == nil {
		_, _ = fmt.Sscan(string(out), &pid)
	}
	return pid
}

// pane is the one pane of a run, as tmux has it; nil without one.
func (n *testNodeT) pane(run string) *tmux.Pane {
	n.t.Helper()
	list, err := n.tmux().Panes(context.Background())
	must(n.t, err)
	for _, p := range list {
		if p.Key == run {
			return &p
		}
	}
	return nil
}

func (n *testNodeT) logHas(run, text string) {
	n.t.Helper()
	eventually(n.t, fmt.Sprintf("%q in the log of %s", text, run), func() bool {
		b, _ := os.ReadFile(filepath.Join(n.cfg.Dir, "runs", run, fileLog))
		return strings.Contains(string(b), text)
	})
}

// PAN-01: a session with a pane has a terminal, in a pane of muster's own server; its
// log, its code and its end are told like any other's.
func TestPaneSession(t *testing.T) {
	t.Parallel()
	n := paneNode(t)
	file := filepath.Join(t.TempDir(), "go")
	run := n.start("pane", `tty; stty size; echo "TERM=$TERM TMUX=$TMUX"; until [ -e `+file+` ]; do sleep 0.05; done; exit 3`)
	n.launched(run)
	n.logHas(run, "TERM=screen-256color TMUX=\r\n")
	n.logHas(run, "50 200\r\n")
	n.logHas(run, "/dev/")
	p := n.pane(run)
	r := n.fleet.run(run)
	if p == nil || r.Session.Pane != p.ID || r.Surface != "pane" || r.PID == 0 || int(r.PID) == p.PID {
		t.Fatalf("pane %+v, run in pane %q as pid %d; want a keeper in the pane and the session below it", p, r.Session.Pane, r.PID)
	}
	screen, err := n.tmux().Screen(t.Context(), p.ID)
	if err != nil || !strings.Contains(screen, "TERM=screen-256color") {
		t.Errorf("the pane shows %q, %v", screen, err)
	}
	if !n.InKeeperTree(int(r.PID)) {
		t.Error("a process of a pane counts as a person's")
	}
	must(t, os.WriteFile(file, nil, 0o600))
	if r := n.gone(run); r.Gone != board.GoneReport || r.ExitCode == nil || *r.ExitCode != 3 || r.Outcome != "crashed" {
		t.Errorf("gone by %q, code %v, outcome %q; want report, 3, crashed", r.Gone, r.ExitCode, r.Outcome)
	}
	eventually(t, "its pane to close", func() bool { return n.pane(run) == nil })
}

// PAN, SUP-10: what may become of a pane, and what is said of it.
func TestOddEndsOfPanes(t *testing.T) {
	t.Parallel()
	wait := `trap "" TERM; echo up; while :; do sleep 0.1; done`
	for _, c := range []struct {
		name, script    string
		do              func(n *testNodeT, run string) error
		status, outcome string
		reason          string
	}{
		{"exits in its first moment", "exit 1", nil, "ready", "crashed", ""},
		{"its window is closed by its user", wait, func(n *testNodeT, run string) error {
			return n.tmux().Kill(context.Background(), n.pane(run).ID)
		}, "blocked", "blocked", "closed"},
		{"its window is closed while it prints", `trap "" TERM; exec yes on and on`, func(n *testNodeT, run string) error {
			return n.tmux().Kill(context.Background(), n.pane(run).ID)
		}, "blocked", "blocked", "closed"},
		{"the tmux server is killed", wait, func(n *testNodeT, _ string) error {
			return syscall.Kill(tmuxPID(n.t, n), syscall.SIGKILL)
		}, "ready", "reclaimed", ""},
		{"the tmux server ends", wait, func(n *testNodeT, _ string) error {
			return syscall.Kill(tmuxPID(n.t, n), syscall.SIGTERM)
		}, "ready", "reclaimed", ""},
		{"its keeper is killed", wait, func(n *testNodeT, run string) error {
			return syscall.Kill(n.pane(run).PID, syscall.SIGKILL)
		}, "ready", "crashed", ""},
		{"it is cancelled", wait, func(n *testNodeT, run string) error {
			return n.event(board.CardOfRun(run), "cancel")
		}, "cancelled", "cancelled", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := paneNode(t)
			n.t = t
			run := n.start("pane", c.script)
			if c.do != nil {
				n.showsLife(run)
				must(t, c.do(n, run))
			}
			r := n.gone(run)
			card := n.card(r.Card)
			if card.Status != c.status || r.Outcome != c.outcome || !strings.Contains(card.BlockReason, c.reason) {
				t.Errorf("card %s (%s), run %s (%s); want %s, %s", card.Status, card.BlockReason, r.Outcome, r.Error, c.status, c.outcome)
			}
			if alive(int(r.PID)) {
				t.Error("its program lives")
			}
			eventually(t, "its pane to close", func() bool { return n.pane(run) == nil })
		})
	}
}

// PAN-04: who writes to a pane that is gone may see that before the signal comes; the
// signal is the end all the same.
func TestHangUpComesAfterAFailedWrite(t *testing.T) {
	r, w, err := os.Pipe()
	must(t, err)
	_, err = w.WriteString("the last words")
	must(t, errors.Join(err, w.Close()))
	defer r.Close()
	outer, err := os.Open(os.DevNull) // takes no write
	must(t, err)
	defer outer.Close()
	k := &keeper{spec: &Spec{}, term: &terminal{master: r, outer: outer, notes: newNotes(), ended: make(chan bool, 1), server: os.Getppid()}}
	k.term.print(io.Discard)
	k.signalled(syscall.SIGHUP)
	<-k.term.ended
	if !k.closed || !k.ending {
		t.Error("the hang-up was taken for one that had been told")
	}
}

// showsLife waits until the node has told that the program shows life.
func (n *testNodeT) showsLife(run string) {
	n.t.Helper()
	eventually(n.t, "a sign of life of "+run, func() bool { return n.fleet.run(run).SeenAt != 0 })
}

// A node that is started anew finds its panes and goes on with them.
func TestPanesOutliveTheNode(t *testing.T) {
	t.Parallel()
	n := paneNode(t)
	file := filepath.Join(t.TempDir(), "go")
	run := n.start("pane", `echo up; until [ -e `+file+` ]; do sleep 0.05; done; echo went on; exit 0`)
	n.showsLife(run)
	must(t, n.Close())
	n.open()
	eventually(t, "the pane to be adopted", func() bool { return n.InKeeperTree(int(n.fleet.run(run).PID)) })
	must(t, os.WriteFile(file, nil, 0o600))
	if r := n.gone(run); r.Outcome != "completed" || r.ExitCode == nil {
		t.Errorf("outcome %q, %s", r.Outcome, r.Error)
	}
	n.logHas(run, "went on")
}

// A pane that is made small or large makes the session's terminal so.
func TestPaneIsResized(t *testing.T) {
	t.Parallel()
	n := paneNode(t)
	run := n.start("pane", `trap 'stty size' WINCH; echo up; while :; do sleep 0.05; done`)
	n.logHas(run, "up")
	for _, size := range []string{"20 5", "300 100"} {
		var w, h string
		_, _ = fmt.Sscan(size, &w, &h)
		cmd := exec.Command("tmux", "-S", "s", "resize-window", "-t", "="+tmux.Name(run)+":", "-x", w, "-y", h)
		cmd.Dir = filepath.Join(n.cfg.Dir, "tmux")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		n.logHas(run, h+" "+w+"\r\n")
	}
}

// Many at once, and two whose names begin alike: each has a pane of its own.
func TestManyPanesAtOnce(t *testing.T) {
	t.Parallel()
	n := paneNode(t)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			run, err := n.file("pane", fmt.Sprintf("echo number %d of 50; exit 0", i))
			if err != nil {
				t.Error(err)
				return
			}
			eventually(t, "the end of "+run, func() bool { return n.fleet.run(run).Gone != "" })
			b, _ := os.ReadFile(filepath.Join(n.cfg.Dir, "runs", run, fileLog))
			if want := fmt.Sprintf("number %d of 50\r\n", i); string(b) != want {
				t.Errorf("log of %s: %q, want %q", run, b, want)
			}
		})
	}
	wg.Wait()
}
