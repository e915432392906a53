package board

import (
	"fmt"
	"slices"
	"strings"

	"muster/board/rule"
)

// Bounds of how many waiting cards are looked at for one question whether a place
// is kept: a claim must not cost what a full plan costs. Cards that name another
// machine are not looked at, and those that last waited for room come first; so
// what keeps no place although it could start waits behind two hundred of its own
// board, status and machine that all last waited for room, and can not start.
const (
	maxLook  = 200 // of one place
	maxLooks = 1000
)

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
	nowhere := map[string]bool{} // starts alike that no machine would take now
	if r.waits.any(s.view, c, row, func(card string) bool { return r.keptFor(s, c, g, row, card, nowhere) }) {
		return slots, nil
	}
	return 0, nil
}

// keptFor says whether a waiting card keeps a place of the cap from the row.
func (r *Room) keptFor(s *Scope, c *capCount, g *group, row *Held, id string, nowhere map[string]bool) bool {
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
		alike := r.Alike(theirs, p)
		if !nowhere[alike] {
			nowhere[alike] = !theirs.fitsSomewhere(p)
		}
		return !nowhere[alike]
	}
	if ref, _ := theirs.Bound(p.Profile); ref != "" { // it waits for its machine, and for no other
		n, err := FindNode(s.view, ref)
		return err == nil && n.ID == row.Node
	}
	return r.couldStart(theirs, p, row.Node)
}

// fitsSomewhere says whether some machine would take a planned start if it had room for it: one that no machine takes, or
// whose board is paused, would keep a place of the fleet or its board from everybody for nothing (invariant 22). Without
// readings nothing is known against it.
func (s *Scope) fitsSomewhere(p *StartPlan) (yes bool) {
	if s.nodes == nil {
		return true
	}
	if by, _ := Paused(s.view, s.board); by != "" {
		return false
	}
	EachNode(s.view, func(n *Node) bool {
		if x := s.nodes(n.ID); x.State == NodeOnline {
			yes = s.At(n, x, 0).Playing(p.Profile).Fits(p.Profile) == nil
		}
		return !yes
	})
	return yes
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
	if s.Fits(p.Profile) != nil || s.Eligible() != nil || r.FolderFree(s, p.Profile) != nil {
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
	return Errorf(Refused, "card %s: not eligible now: %s (%s)", s.card.ID, strings.Join(s.valuesOf(e), ", "), clip(e.Source(), 120)).WithCheck("eligible")
}

// valuesOf are what an expression reads, with their values, but for what changes
// from moment to moment: a reason that stands is not written again.
func (s *Scope) valuesOf(e *rule.Expr) (list []string) {
	for _, read := range e.Reads() {
		switch read.Name {
		case "now", "host.load", "host.free_mb", "machine.age":
			continue
		}
		if text := clip(fmt.Sprintf("%s is %v", read.Name, s.readValue(read.Name)), 60); !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return list
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
