package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/board"
)

// Who waits on Done hears of a start that failed as well, however early; a second Close does no harm.
func TestDoneAfterAFailedOpen(t *testing.T) {
	cfg := testConfig(t, "atlas")
	if err := os.WriteFile(cfg.Data, nil, 0o600); err != nil { // no folder
		t.Fatal(err)
	}
	n, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Open(t.Context()); err == nil {
		t.Fatal("a node opened in a file")
	}
	select {
	case <-n.Done():
	case <-time.After(5 * time.Second):
		t.Fatal("Done is open after Open failed")
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if n.spawn(func() { t.Error("it acts after its end") }) {
		t.Fatal("a stopped node spawns")
	}
}

// What could not be put away in order is told by Close, each time: the next start finds an unclean folder.
func TestCloseTellsWhatFailed(t *testing.T) {
	n := open(t, testConfig(t, "atlas"))
	if err := os.RemoveAll(filepath.Join(n.cfg.Data, "raft")); err != nil {
		t.Fatal(err)
	}
	err := n.Close()
	if err == nil || !strings.Contains(err.Error(), "close store") {
		t.Fatalf("closing without a folder: %v", err)
	}
	if again := n.Close(); again == nil || again.Error() != err.Error() {
		t.Fatalf("the second Close says %v, the first said %v", again, err)
	}
}

// Close waits for all that acts: what it spawned ends before the state closes.
func TestCloseWaitsForWhatActs(t *testing.T) {
	n := open(t, testConfig(t, "atlas"))
	ended := make(chan struct{})
	if !n.spawn(func() {
		<-n.ctx.Done()
		_ = n.store.View(func(board.View) error { return nil }) // the state must still be there
		close(ended)
	}) {
		t.Fatal("an open node does not spawn")
	}
	n.Close()
	select {
	case <-ended:
	default:
		t.Fatal("Close returned while something acts")
	}
}

// A machine that was stopped gets nothing from then on, though its last contact is still fresh: what it was given would
// wait until the claim expires.
func TestStoppedNodeGetsNothing(t *testing.T) {
	a := open(t, testConfig(t, "atlas"))
	a.testDo(t, board.VBoardApply, board.BoardApply{Board: "default", YAML: shell})
	b := a.joined(t, "borea", func(c *Config) { c.Replica = true })
	a.until(t, "borea is heard of", func() bool { return a.lease.State(string(b.ident.ID)).State == board.NodeOnline })
	b.Close()
	if got := a.lease.State(string(b.ident.ID)).State; got == board.NodeOnline {
		t.Errorf("a machine that was stopped is %s", got)
	}
	for range 4 {
		card := a.testAdd(t, "one of a few at once", "sleep 1")
		if c := a.waitStatus(t, card, "running"); c != nil {
			_ = a.store.View(func(v board.View) error {
				if r := board.LastRun(v, c); r.Node == string(b.ident.ID) {
					t.Errorf("%s is given to a machine that was stopped", r.ID)
				}
				return nil
			})
		}
	}
}
