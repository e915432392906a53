package scheduler

import (
	"slices"

	"muster/board"
)

// maxStarts bounds the starts of one round that are on their way at a time.
const maxStarts = 256

// plan looks at what changed, and at what waits for room when room may have come free.
func (l *Loop) plan(r *Round) (starts []Start, reasons []board.CardReason) {
	for _, t := range []*timers{l.timers, l.backoff} {
		for _, card := range t.due(r.Time) {
			l.dirty[card] = true
		}
	}
	if l.roomAt > 0 && l.roomAt <= r.Time {
		l.free, l.roomAt = true, 0
	}
	if len(l.dirty) == 0 && !l.free {
		return nil, nil
	}
	_ = l.cfg.Store.View(func(v board.View) error {
		nodes := frozen(l.cfg.Contacts.State)
		in := Input{View: v, Workflows: l.cfg.Workflows, Nodes: nodes, Now: r.Time, Fleet: l.fleet, Aside: l.asides.of(v, l.room, r.Time, nodes)}
		l.passBy(in)
		fresh := l.refresh(in, &reasons)
		l.room.Try()
		starts = l.walk(in, r, fresh, &reasons)
		l.room.Undo() // what is started comes by the feed
		return nil
	})
	return starts, reasons
}

// refresh reads the changed cards anew and gives those that could start.
func (l *Loop) refresh(in Input, reasons *[]board.CardReason) (fresh []*Candidate) {
	ids := make([]string, 0, len(l.dirty))
	for id := range l.dirty {
		ids = append(ids, id)
	}
	cards := map[string]*board.Card{}            // read once, unless there are many
	for _, id := range ids[:len(ids):len(ids)] { // a card that was finished: those that wait for it
		c := board.GetCard(in.View, id)
		if len(cards) < 1000 {
			cards[id] = c
		}
		if c != nil && board.Finished(c.Stored) {
			for _, child := range board.Children(in.View, id) {
				if !l.dirty[child] {
					ids = append(ids, child)
				}
			}
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	clear(l.dirty)
	l.count(len(ids))
	for _, id := range ids {
		l.queue.remove(id)
		l.timers.remove(id)
		if l.backoff.at[id] > in.Now {
			continue
		}
		c, read := cards[id]
		if !read {
			c = board.GetCard(in.View, id)
		}
		cand, wait := look(in, l.room, c)
		switch {
		case cand != nil:
			fresh = append(fresh, cand)
		default:
			if wait != nil && wait.Until > 0 {
				l.timers.set(id, wait.Until)
			}
			l.wait(c, wait, reasons)
		}
	}
	l.queue.add(fresh)
	return fresh
}

// walk goes through the queue in order and starts what can start. When nothing
// came free only the fresh ones are tried; a signature that was refused for want
// of room is not tried again in the same round.
func (l *Loop) walk(in Input, r *Round, fresh []*Candidate, reasons *[]board.CardReason) (starts []Start) {
	free := l.free
	l.free = false
	if len(fresh) == 0 && (!free || len(l.queue.cards) == 0) {
		return nil
	}
	full, tried := map[string]*Wait{}, map[string]bool{}
	step := func(cand *Candidate) bool {
		if len(starts) >= maxStarts {
			l.free = true // the next round goes on
			return false
		}
		tried[cand.Card] = true
		l.count(1)
		s, w := try(in, l.room, cand)
		switch {
		case s != nil:
			starts = append(starts, *s)
			l.queue.remove(cand.Card)
		case w == nil:
			l.queue.remove(cand.Card)
		default:
			l.parked(cand, w, full)
			r.queue(cand.Card, w)
			l.wait(board.GetCard(in.View, cand.Card), w, reasons)
		}
		return true
	}
	slices.SortFunc(fresh, before)
	isFull := func(sig string) bool { return full[sig] != nil }
	if free {
		l.queue.all(isFull, step)
	} else {
		for _, cand := range fresh {
			if !isFull(cand.sig) && !step(cand) {
				break
			}
		}
	}
	for _, cand := range fresh { // not tried, because the first of its signature was refused: for the same reason
		if w := full[cand.sig]; w != nil && !tried[cand.Card] {
			l.wait(board.GetCard(in.View, cand.Card), &Wait{Card: cand.Card, Check: w.Check, Text: w.Text}, reasons)
		}
	}
	for sig, w := range full {
		l.tellLine(in, l.queue.lines[sig], w, reasons)
	}
	return starts
}

// toldAhead is how many cards of a line are told what their first waits for.
const toldAhead = 200

// tellLine tells the next in a line when the check that holds its first has
// changed: they were not tried. Who stands further behind is told on coming nearer.
func (l *Loop) tellLine(in Input, x *line, w *Wait, reasons *[]board.CardReason) {
	if x == nil {
		return
	}
	if x.said != w.Check {
		x.said, x.told = w.Check, 0
	}
	ahead := min(len(x.cards), toldAhead)
	if x.told >= ahead/2 && x.told > 0 {
		return
	}
	l.queue.sort(x)
	for _, cand := range x.cards[x.told:ahead] {
		if c := board.GetCard(in.View, cand.Card); c != nil && c.Waits.Check != w.Check {
			l.wait(c, &Wait{Card: cand.Card, Check: w.Check, Text: w.Text}, reasons)
		}
	}
	x.told = ahead
}

// parked notes what a candidate that was not started waits for.
func (l *Loop) parked(cand *Candidate, w *Wait, full map[string]*Wait) {
	switch {
	case w.room:
		full[cand.sig] = w
		l.roomAt = earliest(l.roomAt, w.Until)
	case w.Until > 0:
		l.timers.set(cand.Card, w.Until)
		l.queue.remove(cand.Card)
	}
}

// maxReason is how much of a reason is written, less than what the board keeps: one
// that it cut off would never be the one that stands, and be written again without end.
const maxReason = 290

// wait notes a changed reason; one that stands already is not written again.
func (l *Loop) wait(c *board.Card, w *Wait, reasons *[]board.CardReason) {
	if c == nil {
		return
	}
	x := board.CardReason{Card: c.ID}
	if w != nil {
		x.Check, x.Text = w.Check, clip(w.Text, maxReason)
	}
	if c.Waits.Check != x.Check || c.Waits.Text != x.Text && x.Check != "" {
		*reasons = append(*reasons, x)
	}
}
