package board

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster/board/workflow"
)

// maxLook bounds how many waiting cards are looked at for one question whether a
// place is kept: a claim must not cost what a full plan costs.
const maxLook = 200

// kept is how many places of a cap are kept for others than the candidate
// (CAP-15..18): all of the reserve's slots as soon as one card waits that it is
// for, that is in the same group and has no place in the count yet. free is what
// the cap has left: a reserve that changes nothing is not looked into.
func (r *Room) kept(s *Scope, c *capCount, g *group, row *Held, free float64) (float64, error) {
	res := c.cap.Reserve
	if res.For.Matches(r.value(row)) {
		return 0, nil
	}
	slots, ok, err := c.number(s, res.Slots)
	if err != nil || !ok || slots <= 0 || free > slots { // CAP-17: no number is none
		return 0, err
	}
	if r.waits.any(s.view, c, func(card string) bool { return r.keptFor(s, c, g, row, card) }) {
		return slots, nil
	}
	return 0, nil
}

// keptFor says whether a waiting card keeps a place of the cap from the row.
func (r *Room) keptFor(s *Scope, c *capCount, g *group, row *Held, id string) bool {
	if id == row.Card || g != nil && g.cards[id] > 0 {
		return false
	}
	card := GetCard(s.view, id)
	if card == nil || card.Run != "" {
		return false
	}
	b := GetBoard(s.view, card.Board)
	if b == nil {
		return false
	}
	theirs, err := NewScope(s.view, s.ws, b, card, s.now, s.nodes)
	if err != nil {
		return false
	}
	p, refusal := theirs.PlanStart()
	if refusal != nil || r.rows["+"+id+"/"+p.Slot] != nil {
		return false
	}
	h := theirs.Candidate(p, row.Node).held(s.now)
	if !c.applies(r, h) || !c.cap.Reserve.For.Matches(r.value(h)) || c.group(h) != c.group(row) {
		return false
	}
	if c.cap.Scope != "machine" {
		return true
	}
	if ref, _ := theirs.Bound(p.Profile); ref != "" { // it waits for its machine, and for no other
		n, err := FindNode(s.view, ref)
		return err == nil && n.ID == row.Node
	}
	return r.couldStart(theirs, p, row.Node)
}

// couldStart says whether a planned start would be taken by a node now, but for
// what is kept there. A card that is not bound keeps places only where it could
// start: else one that can start nowhere would block every machine (M-13).
func (r *Room) couldStart(s *Scope, p *StartPlan, node string) bool {
	n := GetNode(s.view, node)
	if n == nil || s.nodes == nil {
		return false
	}
	reading := s.nodes(node)
	if reading.State != NodeOnline || StillHeld(s.view, s.card, p.Slot) != nil {
		return false
	}
	if by, _ := Paused(s.view, s.board); by != "" {
		return false
	}
	s.At(n, reading, r.Started(node, s.Round(), s.now)).Playing(p.Profile)
	if s.Fits(p.Profile) != nil || s.Eligible() != nil {
		return false
	}
	if refusal, _ := r.admit(s, s.Candidate(p, node), false); refusal != nil {
		return false
	}
	refusal, _ := s.Check(p)
	return refusal == nil
}

// Eligible holds what the workflow says of a start on the planned node (DSP-04,
// DSP-05): the scope is wider than a guard's, with profile, machine and readings.
func (s *Scope) Eligible() *Error {
	e := s.wf.Dispatch.Eligible
	ok, err := s.Holds(e)
	switch {
	case err != nil:
		return Errorf(Refused, "card %s: eligible: %v", s.card.ID, err).WithCheck("eligible")
	case ok:
		return nil
	}
	text := "card " + s.card.ID + ": not eligible now (" + clip(e.Source(), 120)
	for _, read := range e.Reads() { // the values that people ask for first
		switch read.Name {
		case "host.memory_pressure", "tick.local_started":
			text += "; " + read.Name + " is " + fmt.Sprint(s.readValue(read.Name))
		}
	}
	return Errorf(Refused, "%s)", text).WithCheck("eligible")
}

// readValue is the value of a name in the scope, nil when it has none.
func (s *Scope) readValue(name string) any {
	rec, member, _ := strings.Cut(name, ".")
	s.member(rec, member)
	if m, ok := s.vars[rec].(map[string]any); ok {
		return m[member]
	}
	return nil
}

// Paused says who has paused the fleet or the board, and why; "" when neither is (M-16).
func Paused(v View, b *Board) (by, text string) {
	if f := GetFleet(v); f != nil && f.PausedAt != 0 {
		return orElse(f.PausedBy, "somebody"), "the fleet is paused by " + f.PausedBy + ": " + f.PausedWhy
	}
	if b.PausedAt != 0 {
		return orElse(b.PausedBy, "somebody"), "board " + b.Slug + " is paused by " + b.PausedBy + ": " + b.PausedWhy
	}
	return "", ""
}

// waiting are the cards that places may be kept for: those at rest in a status
// from which a start may lead to what the reserve of a cap is for. They are read
// when they are first asked for, and followed from then on.
type waiting struct {
	room   *Room
	loaded bool
	at     map[string]place
	cards  map[place][]string // in order, so that every reading asks them alike
	may    map[place]bool
}

// place is where cards wait.
type place struct{ board, status string }

// Index reads what places may be kept for, so that [Room.Change] follows it.
func (r *Room) Index(v View) { r.waits.load(v) }

func (w *waiting) load(v View) {
	w.loaded, w.at, w.cards, w.may = true, map[string]place{}, map[place][]string{}, map[place]bool{}
	if !slices.ContainsFunc(w.room.caps, func(c *capCount) bool { return c.cap.Reserve != nil }) {
		return
	}
	EachGlance(v, nil, func(g *Glance) bool { w.put(g); return true })
}

// set follows a card; nil: it is not there.
func (w *waiting) set(id string, c *Card) {
	if !w.loaded {
		return
	}
	was, had := w.at[id]
	if w.room.trying {
		w.room.back(func() {
			w.drop(id)
			if had {
				w.insert(id, was)
			}
		})
	}
	w.drop(id)
	if c != nil {
		w.put(c.glance())
	}
}

func (w *waiting) put(c *Glance) {
	if !c.Current && !Finished(c.Stored) {
		if at := (place{c.Board, c.Status}); w.watched(at) {
			w.insert(c.ID, at)
		}
	}
}

func (w *waiting) insert(id string, at place) {
	list := w.cards[at]
	if i, found := slices.BinarySearch(list, id); !found {
		w.cards[at] = slices.Insert(list, i, id)
	}
	w.at[id] = at
}

func (w *waiting) drop(id string) {
	at, had := w.at[id]
	if !had {
		return
	}
	list := w.cards[at]
	if i, found := slices.BinarySearch(list, id); found {
		w.cards[at] = slices.Delete(list, i, i+1)
	}
	delete(w.at, id)
}

// any asks for each card that places of the cap may be kept for, until one says yes.
func (w *waiting) any(v View, c *capCount, ask func(card string) bool) bool {
	if !w.loaded {
		w.load(v)
		if w.room.trying { // what was read holds changes that are taken back
			w.room.back(func() { w.loaded = false })
		}
	}
	looks := 0
	for _, at := range slices.SortedFunc(maps.Keys(w.cards), place.compare) {
		if !c.binds(at.board) || !w.mayBeFor(c, at) {
			continue
		}
		for _, card := range w.cards[at] {
			if looks++; looks > maxLook {
				return false
			}
			if ask(card) {
				return true
			}
		}
	}
	return false
}

func (p place) compare(q place) int {
	if p.board != q.board {
		return strings.Compare(p.board, q.board)
	}
	return strings.Compare(p.status, q.status)
}

// watched says whether some cap may keep a place for cards that wait there.
func (w *waiting) watched(at place) bool {
	may, known := w.may[at]
	if !known {
		may = slices.ContainsFunc(w.room.caps, func(c *capCount) bool { return c.cap.Reserve != nil && c.binds(at.board) && w.mayBeFor(c, at) })
		w.may[at] = may
	}
	return may
}

// mayBeFor says whether a start of a card that waits there may enter a status
// that the reserve is for; only what the file alone decides is looked at.
func (w *waiting) mayBeFor(c *capCount, at place) bool {
	f := w.room.boards[at.board].flow
	if f == nil || f.err != nil {
		return false
	}
	for _, tr := range f.wf.Transitions(at.status, f.wf.Dispatch.Start) {
		if tr.Target == nil || !tr.Admits("platform") || f.never(at.status, tr.Guard) {
			continue
		}
		targets, open := tr.Target.Outcomes()
		if open || slices.ContainsFunc(targets, func(to string) bool { return statusMatches(f.wf, c.cap.Reserve.For, to) }) {
			return true
		}
	}
	return false
}

// statusMatches holds the parts of a filter that a status decides against one.
func statusMatches(wf *workflow.Workflow, filter workflow.Filter, status string) bool {
	for _, m := range filter {
		switch m.Key {
		case "status":
			if !slices.Contains(m.Any, any(status)) {
				return false
			}
		case "stored":
			if !slices.Contains(m.Any, any(wf.StoredAs(status))) {
				return false
			}
		}
	}
	return true
}
