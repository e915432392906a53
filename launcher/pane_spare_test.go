package launcher

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// P4b: after the first session in a pane another pane waits, with its keeper, and serves the next one. It is in no
// list, ends with its tmux server and with its node, and where it is dead a pane is opened as ever.
func TestPaneInAdvance(t *testing.T) {
	t.Parallel()
	n := paneNode(t)
	spare := func() (pid int) {
		t.Helper()
		eventually(t, "a pane in advance", func() bool {
			k := n.Reconciler.cfg.Runner.(*Keepers) // of the node's life now
			k.mu.Lock()
			defer k.mu.Unlock()
			if k.sparePane != nil {
				pid = k.sparePane.pane.PID
			}
			return pid != 0
		})
		return pid
	}
	one := n.start("pane", "echo up; exec sleep 1000")
	n.showsLife(one)
	waits := spare()
	if list, err := n.tmux().Panes(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	two := n.start("pane", "stty size; exec sleep 1000")
	n.logHas(two, "50 200")
	p, err := ReadProc(filepath.Join(n.cfg.Dir, "runs", two))
	if must(t, err); p.Keeper != waits || n.pane(two) == nil || n.pane(two).PID != waits || n.pane(two).ID != p.Pane {
		t.Errorf("keeper %d, pane %+v, want the one that waited, %d", p.Keeper, n.pane(two), waits)
	}
	w := n.attach(two, false) // found by its name, as a person looks for it
	w.sees(t, "50 200")
	w.sees(t, two)
	must(t, w.tty.Close())

	waits = spare()
	must(t, syscall.Kill(waits, syscall.SIGKILL))
	three := n.start("pane", "echo up; exec sleep 1000")
	n.logHas(three, "up")
	waits = spare()
	must(t, syscall.Kill(tmuxPID(t, n), syscall.SIGTERM))
	eventually(t, "its end with its server", func() bool { return !alive(waits) })
	n.gone(three)
	four := n.start("pane", "echo up; exec sleep 1000")
	n.logHas(four, "up")
	waits = spare()
	must(t, n.Close())
	eventually(t, "its end with its node", func() bool { return !alive(waits) })
	if name := p.Pane; !strings.HasPrefix(name, "%") {
		t.Errorf("recorded as pane %q", name)
	}
	n.open()
}

// P4b: a start that finds the next pane in the making waits for it, and only one does.
func TestStartWaitsForThePaneInTheMaking(t *testing.T) {
	t.Parallel()
	k := &Keepers{warmed: make(chan struct{})}
	got := make(chan *sparePane, 1)
	go func() { got <- k.nextPane(t.Context()) }()
	eventually(t, "a start that waits", func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.awaited
	})
	if s := k.nextPane(t.Context()); s != nil {
		t.Errorf("a second start was given %+v", s)
	}
	made := &sparePane{}
	k.mu.Lock()
	k.sparePane = made
	close(k.warmed)
	k.warmed = nil
	k.mu.Unlock()
	if s := <-got; s != made {
		t.Errorf("the first start was given %+v", s)
	}
	if s := k.nextPane(t.Context()); s != nil {
		t.Errorf("a pane was given twice: %+v", s)
	}
}
