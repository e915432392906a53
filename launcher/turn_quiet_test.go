package launcher

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"muster/board"
)

// P12: panes in which nothing happens wake nobody: once they are told to be idle, their node has nothing that it would
// look at again by the clock, and their keepers have told nothing more.
func TestQuietPanesWakeNobody(t *testing.T) {
	t.Parallel()
	n := paneNode(t)
	var runs []string
	for i := range 4 {
		runs = append(runs, n.start("pane", fmt.Sprintf("echo %d; exec sleep 1000", i)))
	}
	for _, run := range runs {
		n.showsLife(run)
	}
	must(t, n.Close())
	hour := time.Now().Add(-time.Hour)
	for _, run := range runs {
		must(t, os.Chtimes(filepath.Join(n.cfg.Dir, "runs", run, fileLog), hour, hour))
	}
	n.open()
	for _, run := range runs {
		n.turn(run, board.TurnIdle)
	}
	var last string
	eventually(t, "a node at rest", func() bool {
		rest := true
		n.ask(func() {
			last = ""
			for id, x := range n.runs {
				if st, ok := x.paneOf(); !ok || !st.Quiet || !x.again.IsZero() || x.typing || x.awaits != nil {
					rest = false
					last += fmt.Sprintf("%s again %v ", id, x.again)
				}
			}
			rest = rest && n.Reconciler.flushAt.IsZero()
		})
		return rest
	})
	if last != "" {
		t.Error(last)
	}
}
