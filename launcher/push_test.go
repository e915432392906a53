package launcher

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/board"
)

// Invariant 3, M-12: a stop that comes before the start wins; nothing is executed.
func TestVoidBeatsItsStart(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	n.set(func() { n.contact = time.Hour }) // it may not start yet
	run := n.start("sh", ": > ran")
	must(t, n.event(board.CardOfRun(run), "cancel"))
	n.set(func() { n.contact = 0 })
	n.Contact()
	r := n.gone(run)
	if r.Gone != board.GoneVoid || r.Launched != 0 {
		t.Errorf("gone %q, launched %d; want void and never", r.Gone, r.Launched)
	}
	if exists(filepath.Join(n.cfg.Dir, "runs", run, fileProc)) {
		t.Error("the run was executed")
	}
	if got := n.reports(run); !slices.Equal(got, []string{board.ReportGone}) {
		t.Errorf("reports %v, want gone alone", got)
	}
}

// M-12: a push is enough to start; one of an older term, or of another node, is none.
func TestPushStartsAheadOfTheState(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	other := newNode(t, nil)
	push := func(term uint64, node string) string {
		run := other.start("sh", "exit 0")
		var o board.Order
		must(t, other.view(func(v board.View) error {
			board.EachOrder(v, testNode, func(x *board.Order) bool { o = *x; return x.Run != run })
			return nil
		}))
		o.Node = node
		n.Push(term, o)
		return run
	}
	other.set(func() { other.contact = time.Hour })
	late, strange, good := push(0, testNode), push(1, "another"), push(1, testNode)
	eventually(t, "the exit of the pushed run", func() bool {
		e := ReadExitMust(filepath.Join(n.cfg.Dir, "runs", good))
		return e != nil && e.Code != nil && *e.Code == 0
	})
	for _, run := range []string{late, strange} {
		if exists(filepath.Join(n.cfg.Dir, "runs", run)) {
			t.Errorf("run %s was started", run)
		}
	}
}

// Architecture §3: a node without a fresh contact starts nothing.
func TestNoStartWithoutFreshContact(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	n.set(func() { n.contact = 11 * time.Second })
	run := n.start("sh", "exit 0")
	n.ask(func() {
		n.round()
		if e := n.orders.Entry(run); e.Mark != 0 || e.Filed != 0 {
			t.Errorf("without a fresh contact the order was taken: %+v", e)
		}
		if why := n.runs[run].why; !strings.Contains(why, "contact") {
			t.Errorf("it waits for %q", why)
		}
	})
	n.set(func() { n.contact = 9 * time.Second })
	n.Contact()
	n.gone(run)
}

// The leader's executor pushes orders before it answers: a push waits for nothing
// that the loop does, and is not lost by that.
func TestPushWaitsForNothing(t *testing.T) {
	t.Parallel()
	n, other := newNode(t, nil), newNode(t, nil)
	run := other.start("sh", "exit 0")
	var o board.Order
	must(t, other.view(func(v board.View) error {
		board.EachOrder(v, testNode, func(x *board.Order) bool { o = *x; return x.Run != run })
		return nil
	}))
	free, pushed := make(chan struct{}), make(chan struct{})
	n.post(func() { <-free }) // the loop is at a slow disk
	go func() { n.Push(1, o); close(pushed) }()
	select {
	case <-pushed:
	case <-time.After(slow):
		t.Error("the push waits for the loop")
	}
	close(free)
	eventually(t, "the folder of the pushed run", func() bool { return exists(filepath.Join(n.cfg.Dir, "runs", run)) })
}
