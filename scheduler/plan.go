package scheduler

import (
	"cmp"
	"slices"
	"strings"

	"muster/board"
	"muster/board/rule"
)

// Input is what a plan is made from.
type Input struct {
	View      board.View
	Workflows *board.Workflows
	Nodes     func(id string) board.Reading
	Now       int64 // board time, ms

	Fleet []*board.Node // the node list of View, when it is known already
	// Aside tells which nodes are passed by until when (ms) because they refuse
	// what they are given; nil: none.
	Aside func(node string) (until int64, why string)
	// Later tells until when (ms) a card is not tried, because its starts were
	// refused for no reason that a plan sees; nil, or 0: it is.
	Later func(card string) (until int64)
	// Rank is a candidate's place among those of its board that wait, from 1, as the loop has them; nil: they are counted.
	Rank func(c *Candidate) int
}

// frozen asks for each node once: one plan is made of one reading of it (M-31).
func frozen(nodes func(string) board.Reading) func(string) board.Reading {
	seen := map[string]board.Reading{}
	return func(id string) board.Reading {
		r, ok := seen[id]
		if !ok {
			r = nodes(id)
			seen[id] = r
		}
		return r
	}
}

// fleet is the node list, in order of ids.
func (in Input) fleet() []*board.Node {
	if in.Fleet != nil {
		return in.Fleet
	}
	return nodesOf(in.View)
}

// Candidate is a card that could start, with its place in the queue.
type Candidate struct {
	Card  string
	board string
	keys  []any // values of the board's order
	desc  []bool
	since int64
	// sig is what decides about room: cards of one signature are refused alike, so
	// that the first refusal of a full cap speaks for the rest of them.
	sig string
}

// before is the order of the queue: the board's keys, then age, then id (DSP-01, EXP-12, M-23).
func before(a, b *Candidate) int {
	for i := range min(len(a.keys), len(b.keys)) {
		c := rule.Compare(a.keys[i], b.keys[i])
		if a.desc[i] {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(a.since, b.since), strings.Compare(a.Card, b.Card))
}

// Start is a decision to start a card on a node: Status is the one it is in,
// Target the one it enters (MEM-06).
type Start struct {
	Card, Node, Status, Target, Role, Profile, Surface string
	Instead                                            string // profile that Profile stands in for, which is under a limit wherever it could work
}

// Wait is why a card does not start now. Until is when time alone may change it
// (ms), 0 when it does not.
type Wait struct {
	Card, Check, Text string
	Until             int64
	room              bool // it waits for room or for a machine, not for itself
}

// look reads one card afresh: a candidate, a wait that only its own change or
// time can end, or neither when its status starts nothing.
func look(in Input, room *board.Room, c *board.Card) (*Candidate, *Wait) {
	if c == nil || c.Run != "" || c.Stored == "archived" {
		return nil, nil
	}
	b := board.GetBoard(in.View, c.Board)
	if b == nil || b.Archived {
		return nil, nil
	}
	s, err := board.NewScope(in.View, in.Workflows, b, c, in.Now, in.Nodes)
	if err != nil { // a poisoned board holds up its own cards only (invariant 22)
		return nil, &Wait{Card: c.ID, Check: "workflow", Text: err.Error()}
	}
	if !s.Workflow().Startable(c.Status) {
		return nil, nil
	}
	p, refusal := s.PlanStart()
	if refusal != nil {
		return nil, &Wait{Card: c.ID, Check: refusal.Check, Text: bare(refusal.Message), Until: s.TurnsAt()}
	}
	cand := &Candidate{Card: c.ID, board: b.Slug, since: c.Created}
	for _, k := range s.Workflow().Dispatch.Order {
		v, err := s.Eval(k.Expr)
		if err != nil {
			return nil, &Wait{Card: c.ID, Check: "order", Text: err.Error()}
		}
		cand.keys, cand.desc = append(cand.keys, v), append(cand.desc, k.Desc)
	}
	cand.sig = room.Alike(s, p)
	return cand, nil
}

// try finds out whether a candidate can start now, with what this round has
// started already taken into account. The order of the checks is DSP-07's.
func try(in Input, room *board.Room, cand *Candidate) (*Start, *Wait) {
	wait := func(check, text string, room bool, until int64) (*Start, *Wait) {
		return nil, &Wait{Card: cand.Card, Check: check, Text: bare(text), room: room, Until: until}
	}
	c := board.GetCard(in.View, cand.Card)
	b := board.GetBoard(in.View, cand.board)
	if c == nil || b == nil || c.Run != "" {
		return nil, nil
	}
	if in.Later != nil {
		if until := in.Later(c.ID); until > in.Now {
			return wait(orElse(c.Waits.Check, "refused"), orElse(c.Waits.Text, "its start was refused")+"; it is tried again then", false, until)
		}
	}
	if by, text := board.Paused(in.View, b); by != "" {
		return wait("pause", text, true, 0)
	}
	s, err := board.NewScope(in.View, in.Workflows, b, c, in.Now, in.Nodes)
	if err != nil {
		return wait("workflow", err.Error(), false, 0)
	}
	p, refusal := s.PlanStart()
	if refusal != nil {
		return wait(refusal.Check, refusal.Message, false, s.TurnsAt())
	}
	if err := board.StillHeld(in.View, c, p.Slot); err != nil {
		return wait(err.Check, err.Message, false, 0)
	}
	node, why := place(in, s, p, room)
	instead := ""
	if node == nil && why.everywhere {
		if q, n := standIn(in, s, p, room, &why); n != nil {
			p, node, instead = q, n, p.Profile.Name
		}
	}
	if node == nil {
		return wait(why.Check, why.Text, true, why.Until)
	}
	if refusal, until := s.Check(p); refusal != nil {
		return wait(refusal.Check, refusal.Message, false, until)
	}
	room.Take(s.Candidate(p, node.ID), in.Now)
	return &Start{Card: c.ID, Node: node.ID, Status: c.Status, Target: p.Target, Role: p.Role, Profile: p.Profile.Name, Surface: p.Profile.Surface, Instead: instead}, nil
}

// Plan is a whole round from nothing: every card of the state, in order, each
// tried. The loop does the same over its index; tests hold the two against each other.
func Plan(in Input) (starts []Start, waits []Wait) { return plan(in, false) }

// plan is [Plan]. With alike, cards that are refused alike for want of room are
// told what the first of them met, as the loop tells them. It changes nothing (MEM-05).
func plan(in Input, alike bool) (starts []Start, waits []Wait) {
	room := board.NewRoom(in.View, in.Workflows)
	in.Fleet = in.fleet()
	var cands []*Candidate
	board.EachCard(in.View, nil, func(c *board.Card) bool {
		cand, wait := look(in, room, c)
		if wait != nil {
			waits = append(waits, *wait)
		}
		if cand != nil {
			cands = append(cands, cand)
		}
		return true
	})
	slices.SortFunc(cands, before)
	full := map[string]*Wait{}
	for _, cand := range cands {
		if w := full[cand.sig]; w != nil {
			waits = append(waits, Wait{Card: cand.Card, Check: w.Check, Text: w.Text, Until: w.Until})
			continue
		}
		s, w := try(in, room, cand)
		if s != nil {
			starts = append(starts, *s)
		} else if w != nil {
			waits = append(waits, *w)
			if alike && w.room {
				full[cand.sig] = w
			}
		}
	}
	return starts, waits
}
