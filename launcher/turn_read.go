package launcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"muster/board"
	"muster/board/lease"
	"muster/launcher/tmux"
)

// awaited is a text that was typed, and until when its program may show that it has read it.
type awaited struct {
	text
	mark string
	by   time.Time
}

// asks tells that a program waits for a person, or for the end of a limit: nothing is typed into that.
func (st *paneState) asks() bool {
	switch st.Turn.Turn {
	case board.TurnPermission, board.TurnQuestion, board.TurnLimit:
		return true
	}
	return false
}

// hasRead tells whether a session's program has shown that it took a text.
func (n *run) hasRead(body string) bool {
	st, ok := n.paneOf()
	return ok && st.Turn.Heard.has(markOf(tmux.Text(body)))
}

// awaitReading waits, where the program has hooks, for its word that it has read what was typed. Without any, that tmux
// has passed it on is all that is known. It is not typed again in any case.
func (r *Reconciler) awaitReading(n *run, t text, err error) {
	st, ok := n.paneOf()
	switch {
	case err != nil:
		n.typing = false
		r.log.Warn("a text is not known to be delivered", "run", n.id, "err", err)
		r.typedText(n, t, typedUnknown, fmt.Sprintf("it could not be typed whole: %v", err))
	case !ok || st.Turn.Turn == "":
		n.typing = false
		r.typedText(n, t, typedUnknown, "it was typed; nothing shows that it was read")
	default:
		n.awaits = &awaited{text: t, mark: markOf(tmux.Text(t.body)), by: time.Now().Add(r.cfg.evidence)}
		r.Wake()
	}
}

// reads ends the wait for a program's word about a text.
func (r *Reconciler) reads(n *run, st *paneState) {
	a := n.awaits
	if a == nil {
		return
	}
	left := time.Until(a.by)
	switch {
	case st.Turn.Heard.has(a.mark):
		n.awaits, n.typing = nil, false
		r.typedText(n, a.text, typedDelivered, "")
	case left <= 0:
		n.awaits, n.typing = nil, false
		r.log.Warn("a text was typed, and its program does not show that it read it", "run", n.id)
		r.typedText(n, a.text, typedUnknown, "it was typed, and its program does not show that it read it")
	default:
		n.lookAgain(left)
	}
}

// keepsWaiting notes that a text waits because its pane does not take it.
func (n *run) keepsWaiting(why error) {
	if n.waits.IsZero() {
		n.waits = time.Now()
	}
	n.deafWhy = why.Error()
}

// takesAgain notes that a pane took a text.
func (n *run) takesAgain(r *Reconciler) {
	n.waits, n.deafWhy = time.Time{}, ""
	if n.isDeaf {
		n.isDeaf = false
		r.fileNotes([]*item{r.note(n.id, &board.Report{Kind: board.ReportHears, Run: n.id})})
	}
}

// tellDeaf answers a report when a text has waited too long for a pane that asks nobody anything: a person should look.
func (r *Reconciler) tellDeaf(n *run, st *paneState) []*item {
	if n.waits.IsZero() || n.isDeaf || st.asks() || !r.orders.Entry(n.id).Filed.Has(lease.ActLaunched) {
		return nil
	}
	if left := r.cfg.deaf - time.Since(n.waits); left > 0 {
		n.lookAgain(left)
		return nil
	}
	n.isDeaf = true
	return []*item{r.note(n.id, &board.Report{Kind: board.ReportDeaf, Run: n.id, Error: "a text waits: " + n.deafWhy})}
}

// lookForChoice looks, once for each state of a pane, whether a program without hooks stands at a choice that a person
// has to make. False: it is being looked at.
func (r *Reconciler) lookForChoice(n *run, news int) (known bool) {
	if n.spec.Ready == "" || r.cfg.panes == nil || n.looked == news {
		return true
	}
	if n.typing {
		return false
	}
	n.typing = true // the screen is not looked at twice, and nothing is typed meanwhile
	link, ready := n.link, n.spec.Ready
	r.wg.Go(func() {
		ctx, cancel := context.WithTimeout(r.ctx, typeWait)
		defer cancel()
		_, err := r.takesText(ctx, link, ready)
		r.post(func() {
			n.typing, n.looked, n.choice, n.takes = false, news, errors.Is(err, errChoice), err == nil
			r.Wake()
		})
	})
	return false
}
