package launcher

import (
	"os"
	"path/filepath"
	"time"

	"muster/board"
	"muster/board/lease"
)

// tellTurn files what a pane's session is doing when that is news. Nothing is told of one that nobody attends to any
// more, and nothing is looked at again while nothing changes.
func (r *Reconciler) tellTurn(n *run, st *paneState) {
	if e := r.orders.Entry(n.id); !e.Filed.Has(lease.ActLaunched) || e.Filed.Has(lease.ActExited) {
		return
	}
	now := time.Now()
	quietFor, movesFor := n.moves(st, now)
	turn, says, until, next := st.doing(quietFor, movesFor)
	if next > 0 {
		n.lookAgain(next)
	}
	if turn == board.TurnIdle && st.Turn.Turn == "" {
		if known := r.lookForChoice(n, st.News); !known {
			return
		}
		if n.choice {
			turn, says = board.TurnPermission, "it asks to choose; see its pane"
		}
	}
	key := turn + "\n" + says
	if turn == "" || n.saw == key {
		return
	}
	rep := &board.Report{Kind: board.ReportIdle, Run: n.id}
	switch turn {
	case board.TurnBusy:
		rep.Kind = board.ReportBusy
	case board.TurnPermission, board.TurnQuestion, board.TurnLimit:
		rep.For, rep.Text, rep.ResetAt = turn, says, until
	}
	ago := quietFor
	if st.Turn.At != 0 && turn == st.Turn.Turn {
		ago = max(r.cfg.Now().Sub(st.Turn.At), 0)
	} else if rep.Kind == board.ReportBusy {
		ago = 0
	}
	if n.spec.SessionID == "" {
		rep.Session = n.told() // it may be known by now, and a pane that is kept does not end
	}
	n.saw = key
	it := r.note(n.id, rep)
	it.At, it.Wall = it.At.Add(-ago), it.Wall-ago.Milliseconds()
	r.fileNotes([]*item{it})
}

// moves is since when a pane is quiet, or is not. How long it had been quiet when this node met it, its log tells.
func (n *run) moves(st *paneState, now time.Time) (quietFor, movesFor time.Duration) {
	if !st.Quiet {
		n.quietAt = time.Time{}
		if n.moveAt.IsZero() {
			n.moveAt = now
		}
		return 0, now.Sub(n.moveAt)
	}
	n.moveAt = time.Time{}
	if n.quietAt.IsZero() {
		n.quietAt = now.Add(-paneQuiet)
		if f, err := os.Stat(filepath.Join(n.keptDir(), fileLog)); err == nil && f.ModTime().Before(n.quietAt) {
			n.quietAt = f.ModTime()
		}
	}
	return now.Sub(n.quietAt), 0
}
