package launcher

import (
	"time"

	"muster/board"
)

// moved is how a pane moved, by the clock of who looks.
type moved struct {
	quiet time.Duration // how long it has been quiet, 0: it is not
	moves time.Duration // how long it has not been, 0: it is
	said  time.Duration // how long ago its hooks said something last
	typed bool          // its node has typed something since
}

// doing is what a pane's session is doing, as far as its keeper tells it. A program that asks a person does so until a
// hook says more: its pane may move all the while (Claude Code's dialog blinks). One that its hooks say is in a turn
// moves its pane: when that has been quiet for stillAfter, its user broke the turn off, which no hook tells. Of a
// program that tells the ends of turns only (Codex), and of one without hooks, the pane tells the rest: quiet for
// idleAfter it is idle. An empty turn is no news; next is when to look again by the clock, 0: not.
func (st *paneState) doing(m moved) (turn, says string, until int64, next time.Duration) {
	t := &st.Turn
	switch {
	case t.Turn == board.TurnBusy && st.Quiet && m.quiet >= stillAfter:
		return board.TurnIdle, "", 0, 0
	case t.Turn == board.TurnBusy && st.Quiet:
		return t.Turn, "", 0, stillAfter - m.quiet
	case t.Turn != "" && !t.Ends:
		return t.Turn, t.Says, t.Until, 0
	case t.Ends && m.typed && (!st.Quiet || m.quiet < idleAfter):
		if st.Quiet {
			next = idleAfter - m.quiet
		}
		return board.TurnBusy, "", 0, next
	case t.Ends && !m.typed && m.said-m.quiet < busyAfter: // what it shows with the end of its turn
		if !st.Quiet {
			next = busyAfter - m.said
		}
		return t.Turn, "", 0, next
	case !st.Shown && !st.Quiet:
		return "", "", 0, 0
	case st.Quiet && m.quiet < idleAfter:
		return "", "", 0, idleAfter - m.quiet
	case st.Quiet:
		return board.TurnIdle, "", 0, 0
	}
	moves := m.moves
	if t.Ends {
		moves = min(moves, m.said)
	}
	if moves < busyAfter {
		return "", "", 0, busyAfter - moves
	}
	return board.TurnBusy, "", 0, 0
}

// How long a pane whose program has no hooks is quiet until it counts as idle, and moves until it counts as busy: a
// line now and then is no turn. How long one that is in a turn, or asks, is quiet until that is doubted: programs show
// how long they have been at work.
const (
	idleAfter  = 20 * time.Second
	busyAfter  = 4 * time.Second
	stillAfter = time.Minute
)

// byPane tells that it is the pane's stillness that calls a program idle, and no hook: a question looks the same (of
// Codex, which tells the ends of turns only, every one but what it shows with such an end).
func (m *moved) byPane(t *turnState) bool {
	return t.Turn == "" || t.Ends && (m.typed || m.said-m.quiet >= busyAfter)
}

// asksNoMore finds that a program does not ask any more, although no hook has said so: its user broke the question off.
// Its pane has been quiet for a while then, and its screen waits for text. False: it is being looked at.
func (r *Reconciler) asksNoMore(n *run, st *paneState, quietFor time.Duration) (known bool) {
	if !st.asks() || st.Turn.Turn == board.TurnLimit {
		n.unasked = ""
		return true
	}
	question := st.Turn.Turn + "\n" + st.Turn.Says
	if n.unasked != question && st.Quiet {
		if quietFor < stillAfter {
			n.lookAgain(stillAfter - quietFor)
			return true
		}
		if !r.lookForChoice(n, st.News) {
			return false
		}
		if n.takes && n.looked == st.News {
			n.unasked = question
		}
	}
	if n.unasked == question {
		st.Turn.Turn, st.Turn.Says, st.Turn.At = board.TurnIdle, "", 0
	}
	return true
}
