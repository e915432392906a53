package board

import (
	"fmt"
	"slices"
	"strings"

	"muster/board/rule"
	"muster/board/workflow"
)

// PlanStartAs plans a start by somebody else than the platform: the same as
// [Scope.PlanStart], with the transitions that this sender may take, and with the
// profile that the sender names, if it names one.
func (s *Scope) PlanStartAs(a Actor, profile string) (*StartPlan, *Error) {
	roles := []string{a.Role}
	if a.Kind == ActorPerson && a.Role == "" {
		roles = []string{"manager"} // its role is found by Exec, from the state; a plan for too much is refused there
		a.Role = "manager"
	}
	s.From(a, nil)
	return s.planStart(roles, profile)
}

// Round is how long a start counts in `starts` and tick.local_started, in ms (M-15).
func (s *Scope) Round() int64 { return roundOf(s.params) }

// recheck is how soon a wait that depends on time in a way nobody can compute is
// looked at again (architecture.md §8), ms.
const recheck = 30_000

// turns is the earliest board time, ms, at which one of the expressions may give
// another answer by time alone; 0 when none reads the time.
func (s *Scope) turns(exprs ...*rule.Expr) (at int64) {
	for _, e := range exprs {
		reads := slices.ContainsFunc(e.Reads(), func(r rule.Read) bool { return r.Name == "now" })
		for _, th := range s.Thresholds(e) {
			if th.Of != "now" {
				continue
			}
			reads = false
			if m := int64(th.Value*1000) + 1; m > s.now && (at == 0 || m < at) {
				at = m
			}
		}
		if m := s.now + recheck; reads && (at == 0 || m < at) {
			at = m
		}
	}
	return at
}

// TurnsAt is when a card that nothing starts may become startable by time alone,
// ms; 0: it does not.
func (s *Scope) TurnsAt() int64 {
	var guards []*rule.Expr
	for _, tr := range s.wf.Transitions(s.card.Status, s.wf.Dispatch.Start) {
		guards = append(guards, tr.Guard)
	}
	return s.turns(guards...)
}

// EligibleAt is when a start that is not eligible on the planned node may become
// so by time alone, ms: with the end of a start's round, where that is asked for.
func (s *Scope) EligibleAt(r *Room) int64 {
	e := s.wf.Dispatch.Eligible
	at := s.turns(e)
	if s.node != nil && slices.ContainsFunc(e.Reads(), func(r rule.Read) bool { return r.Name == "tick.local_started" || r.Name == "tick" }) {
		list, round := r.starts[s.node.ID], s.Round()
		if i := len(list) - int(since(list, s.now-round)); i < len(list) {
			if end := list[i] + round; at == 0 || end < at {
				at = end
			}
		}
	}
	return at
}

// Alike is what decides about a planned start's room: candidates of which it is
// equal are refused alike, so that the first refusal speaks for all of them.
func (r *Room) Alike(s *Scope, p *StartPlan) string {
	ref, _ := s.Bound(p.Profile)
	parts := []string{s.board.Slug, s.card.Status, p.Target, p.Profile.Name, p.Slot, ref, s.Candidate(p, "").Model, folderOf(s.card, p.Profile)}
	own := r.cards[s.card.ID] > 0 // it may have its place already (CAP-13)
	exprs := []*rule.Expr{s.wf.Dispatch.Eligible, p.Profile.Requires, p.Profile.Prefer}
	for _, q := range s.Fallbacks(p) {
		ref, _ := s.Bound(q)
		parts = append(parts, q.Name, ref, s.card.Model, folderOf(s.card, q))
		exprs = append(exprs, q.Requires, q.Prefer)
	}
	for _, c := range r.caps {
		if !c.binds(s.board.Slug) {
			continue
		}
		own = own || c.cap.Scope == "card" || c.cap.Where.Has("card") || c.cap.Unless.Has("card")
		exprs = append(exprs, c.cap.Max)
		if c.cap.Reserve != nil {
			own = own || c.cap.Reserve.For.Has("card")
			exprs = append(exprs, c.cap.Reserve.Slots)
		}
	}
	for _, e := range exprs {
		for _, read := range e.Reads() {
			switch name, member, _ := strings.Cut(read.Name, "."); {
			case name != "card" && name != "run":
			case member == "":
				own = true
			case read.Name == "card.status", read.Name == "card.stored":
			default:
				parts = append(parts, fmt.Sprint(s.readValue(read.Name)))
			}
		}
	}
	if own {
		parts = append(parts, s.card.ID)
	}
	return strings.Join(parts, "\x00")
}

// memoryLag is how long a session needs until what it takes shows in a machine's
// free memory, about; ms.
const memoryLag = 15_000

// FitsMemory holds the memory of a profile against what the planned node has
// available, less what starts there have asked for that its reading cannot show
// yet. Without a fresh reading nothing is held back (INV-01, M-15).
func (s *Scope) FitsMemory(p *workflow.Profile, r *Room) *Error {
	x := s.reading
	if p.Memory <= 0 || x == nil || x.State != NodeOnline || x.FreeMB <= 0 || x.AgeMS >= oldReading {
		return nil
	}
	var promised int64
	for _, h := range r.nodes[s.node.ID] {
		if f := r.boards[h.Board].flow; f != nil && f.err == nil && h.Since > s.now-x.AgeMS-memoryLag {
			if q := f.wf.Profile(h.Profile); q != nil {
				promised += q.Memory
			}
		}
	}
	if free := x.FreeMB<<20 - promised; free < p.Memory {
		return Errorf(Refused, "card %s: %s has %d MB available (%d MB of it promised to starts), and profile %q takes %d", s.card.ID, s.node.Name, x.FreeMB, promised>>20, p.Name, p.Memory>>20).
			WithCheck("memory")
	}
	return nil
}

func (s *Scope) nodeName(id string) string {
	if n := GetNode(s.view, id); n != nil && n.Name != "" {
		return n.Name
	}
	return id
}
