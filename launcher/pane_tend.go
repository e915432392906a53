package launcher

import (
	"time"

	"muster/board"
	"muster/board/lease"
)

// paned is a [Session] whose keeper tells of its pane.
type paned interface {
	pane() paneState
	noted() <-chan struct{}
}

// pane is the state of the pane; its moment is by this process's clock.
func (l *link) pane() paneState {
	st := l.notes.state()
	l.mu.Lock()
	defer l.mu.Unlock()
	if st.Turn.At != 0 {
		st.Turn.At = st.Turn.At.Add(-l.ahead)
	}
	return st
}

func (l *link) noted() <-chan struct{} { return l.notes.changed }

// followPane has the loop look again whenever there is news of a pane.
func (r *Reconciler) followPane(link Session) {
	p, ok := link.(paned)
	if !ok {
		return
	}
	r.wg.Add(1)
	go func() {
		defer r.wg.Done()
		for {
			select {
			case <-p.noted():
				r.Wake()
			case <-link.Done():
				return
			case <-r.stop:
				return
			}
		}
	}()
}

// paneOf is the state of the pane that carries a run; false when none does.
func (n *run) paneOf() (paneState, bool) {
	p, ok := n.link.(paned)
	if !ok || n.spec == nil || n.spec.Surface != surfacePane || n.link.PID() == 0 {
		return paneState{}, false
	}
	return p.pane(), true
}

// tendPanes does what the sessions with a terminal need besides starting and ending.
func (r *Reconciler) tendPanes(s *seen) {
	r.forgetTexts(s)
	var files []*item
	for _, n := range r.runs {
		st, ok := n.paneOf()
		if !ok {
			continue
		}
		e := r.orders.Entry(n.id)
		if st.Shown && !n.shown && e.Filed.Has(lease.ActLaunched) && !e.Filed.Has(lease.ActExited) {
			n.shown = true
			files = append(files, r.note(n.id, &board.Report{Kind: board.ReportSeen, Run: n.id}))
		}
		r.tellTurn(n, &st)
		r.reads(n, &st)
		files = append(files, r.tellDeaf(n, &st)...)
		files = append(files, r.typeTexts(n, st, s)...)
	}
	r.fileNotes(files)
}

// note is an item that tells something of a run besides its orders.
func (r *Reconciler) note(run string, rep *board.Report) *item {
	return &item{Run: run, Act: actNote, Report: rep, Boot: BootID(), At: r.cfg.Now(), Wall: time.Now().UnixMilli()}
}

// fileNotes puts items into the outbox, synced.
func (r *Reconciler) fileNotes(files []*item) {
	if len(files) == 0 {
		return
	}
	var changes []change
	for _, it := range files {
		changes = append(changes, change{file: it})
		if d := it.Delivered; d != nil {
			changes = append(changes, change{typed: d.Order, state: d.State})
		}
	}
	if err := r.write(changes); err != nil {
		r.broken(err)
		return
	}
	for _, it := range files {
		r.box.add(it)
	}
}
