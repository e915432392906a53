package launcher

import (
	"fmt"
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
	if known := r.asksNoMore(n, st, quietFor); !known {
		return
	}
	m := moved{quiet: quietFor, moves: movesFor, said: max(r.cfg.Now().Sub(st.Turn.At), 0), typed: n.typedAt > st.Turn.At}
	turn, says, until, next := st.doing(m)
	if next > 0 {
		n.lookAgain(next)
	}
	if turn == board.TurnIdle && m.byPane(&st.Turn) {
		if known := r.lookForChoice(n, st.News); !known {
			return
		}
		if n.choice {
			turn, says = board.TurnPermission, "it asks to choose; see its pane"
		}
	}
	key := turnKey(turn, says, until)
	if turn == "" || n.saw == key || !r.lookForSession(n, key) {
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
		if ago = m.said; st.Turn.Ends && st.Quiet {
			ago = min(ago, quietFor)
		}
	} else if rep.Kind == board.ReportBusy {
		ago = 0
	}
	rep.Session = n.found
	n.saw = key
	it := r.note(n.id, rep)
	it.At, it.Wall = it.At.Add(-ago), it.Wall-ago.Milliseconds()
	r.fileNotes([]*item{it})
}

// turnKey tells what was told last from news; a limit whose end moves is news.
func turnKey(turn, says string, until int64) string { return fmt.Sprint(turn, "\n", says, "\n", until) }

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

// lookForSession looks, once for each thing that is told of a session whose id is not known, whether its program has
// told it by now: a pane that is kept does not end. It reads files, beside the loop. False: it is being looked for.
func (r *Reconciler) lookForSession(n *run, key string) (known bool) {
	if n.spec.SessionID != "" || n.spec.SessionKey == "" || n.found != "" || n.sought == key {
		return true
	}
	if n.seeking {
		return false
	}
	n.seeking = true
	x := run{dir: n.dir, spec: n.spec}
	r.wg.Go(func() {
		id := x.told()
		r.post(func() {
			n.seeking, n.sought, n.found = false, key, id
			r.Wake()
		})
	})
	return false
}
