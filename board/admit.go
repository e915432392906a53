package board

import (
	"fmt"
	"math"

	"muster/board/rule"
)

// Candidate is a start that asks for room. Status and Stored are those the card would enter.
type Candidate struct {
	Card, Board, Node, Slot  string
	Profile, Harness, Model  string
	Status, Stored, Role     string
	Surface, Account, Source string
}

// held is the row that a start of the candidate would add.
func (c *Candidate) held(now int64) *Held {
	return &Held{Card: c.Card, Board: c.Board, Node: c.Node, Slot: c.Slot, Profile: c.Profile, Harness: c.Harness, Model: c.Model,
		Status: c.Status, Stored: c.Stored, Role: c.Role, Surface: c.Surface, Account: c.Account, Since: now}
}

// counts says that the cap counts the row at all.
func (c *capCount) counts(r *Room, h *Held) bool {
	switch c.cap.Counts {
	case "runs":
		if h.Ended && c.cap.Scope != "machine" {
			return false
		}
	case "cards":
		if h.Ended {
			return false
		}
	case "turns":
		if h.Idle { // until its node tells that it is idle, a session counts (SES-21)
			return false
		}
	}
	return c.applies(r, h)
}

// applies: where matches, and unless does not (CAP-04). A cap of scope board
// counts its own board only; others count by what they are grouped by.
func (c *capCount) applies(r *Room, h *Held) bool {
	if c.cap.Scope == "board" && h.Board != c.board {
		return false
	}
	get := r.value(h)
	return c.cap.Where.Matches(get) && (len(c.cap.Unless) == 0 || !c.cap.Unless.Matches(get))
}

// binds says that candidates of a board are held by the cap (M-13).
func (c *capCount) binds(board string) bool { return c.board == board || fleetWide(c.cap) }

// elsewhere says that the cap stands in another board's file only.
func (c *capCount) elsewhere(board string) bool { return c.board != board && !c.shared }

// group is what the cap counts together.
func (c *capCount) group(h *Held) string {
	switch c.cap.Scope {
	case "board":
		return h.Board
	case "machine":
		return h.Node
	case "assignee":
		return h.Profile
	case "harness":
		return h.Harness
	case "model":
		return h.Model
	case "card":
		return h.Card
	}
	return ""
}

// value is what a filter sees of a counted thing (CAP-03). A machine is known by
// its name.
func (r *Room) value(h *Held) func(key string) any {
	return func(key string) any {
		switch key {
		case "dispatch":
			return !h.Manual
		case "card":
			return h.Card
		case "board":
			return h.Board
		case "machine":
			return orElse(r.names[h.Node], h.Node)
		case "assignee":
			return h.Profile
		case "status":
			return h.Status
		case "stored":
			return h.Stored
		case "model":
			return h.Model
		case "harness":
			return h.Harness
		case "slot":
			return h.Slot
		}
		return nil
	}
}

// Admit says whether the candidate has a place under every cap that binds it.
// The scope is the candidate's: planned node and profile. The first refusal is
// returned, with Check "cap" and a text for people (CAP-12); until is the board
// time, ms, at which a full round lets go, 0 where only an end makes room.
func (r *Room) Admit(s *Scope, cand *Candidate) (refusal *Error, until int64) {
	return r.admit(s, cand, true)
}

func (r *Room) admit(s *Scope, cand *Candidate, reserves bool) (*Error, int64) {
	if err, until := Cooling(s.view, cand, s.now); err != nil {
		return err, until
	}
	row := cand.held(s.now)
	for _, c := range r.caps {
		if !c.binds(cand.Board) || !c.applies(r, row) {
			continue
		}
		limit, ok, err := c.number(s, c.cap.Max)
		if err != nil {
			if c.elsewhere(cand.Board) {
				continue // another board's mistake holds up its own cards only (invariant 22)
			}
			return ruleError(fmt.Sprintf("cap %q", c.cap.Description), err), 0
		}
		if !ok {
			continue // EXP-11: no number, no cap
		}
		g := c.groups[c.group(row)]
		if c.keeps(g, row) {
			continue
		}
		n := c.size(g, s.now)
		if float64(n) >= limit {
			return c.refusal(r, row, n, limit, ""), c.letsGo(g, n, limit)
		}
		if !reserves || c.cap.Reserve == nil {
			continue
		}
		kept, err := r.kept(s, c, g, row, limit-float64(n))
		if err != nil {
			if c.elsewhere(cand.Board) {
				continue
			}
			return ruleError(fmt.Sprintf("cap %q: reserve", c.cap.Description), err), 0
		}
		if float64(n) >= limit-kept {
			return c.refusal(r, row, n, limit, fmt.Sprintf(", %v kept for %s", kept, c.cap.Reserve.For)), c.letsGo(g, n, limit-kept)
		}
	}
	return nil, 0
}

// size is what the cap counts in a group now.
func (c *capCount) size(g *group, now int64) int64 {
	if g == nil {
		return 0
	}
	switch c.cap.Counts {
	case "starts":
		return since(g.times, now-c.round)
	case "sessions", "turns":
		return int64(g.rows)
	}
	return int64(len(g.cards)) // runs and cards: one place a card
}

// keeps is the rule of CAP-13: a card that has its place in the count already is
// not held back by it. Where the cap counts sessions of the dispatcher the place
// is the slot's: a review in another slot is another session (CAP-14, CAP-16).
// A start is never one of those before it.
func (c *capCount) keeps(g *group, row *Held) bool {
	switch {
	case g == nil || c.cap.Counts == "starts":
		return false
	case c.slots:
		return g.slots[SlotKey(row.Card, row.Slot)] > 0
	}
	return g.cards[row.Card] > 0
}

// letsGo is when a full round of starts has a place again: with the end of the
// oldest of those that are too many.
func (c *capCount) letsGo(g *group, n int64, limit float64) int64 {
	if c.cap.Counts != "starts" || g == nil || limit < 1 {
		return 0
	}
	over := n - int64(math.Ceil(limit)) // so many more than may stay must go besides one
	at := int64(len(g.times)) - n + over
	if at < 0 || at >= int64(len(g.times)) {
		return 0
	}
	return g.times[at] + c.round
}

// number evaluates a maximum or a number of slots in the candidate's scope, with
// the parameters of the board the cap stands in.
func (c *capCount) number(s *Scope, e *rule.Expr) (float64, bool, error) {
	if v, constant := e.Constant(); constant {
		if n, ok := v.(float64); ok {
			return n, true, nil
		}
		return e.Number(nil)
	}
	if c.board == s.board.Slug {
		return s.Number(e)
	}
	theirs := s.copy()
	theirs.params = c.params
	return theirs.Number(e)
}

func (c *capCount) refusal(r *Room, row *Held, n int64, limit float64, kept string) *Error {
	counted := c.cap.Counts
	if counted == "starts" {
		counted = "starts this round"
	}
	what := ""
	switch c.cap.Scope {
	case "machine":
		what = orElse(r.names[row.Node], row.Node) + " is full"
	case "assignee":
		what = fmt.Sprintf("profile %q is full", row.Profile)
	case "harness":
		what = fmt.Sprintf("harness %q is full", row.Harness)
	case "model":
		what = fmt.Sprintf("model %q is full", row.Model)
	case "board":
		what = fmt.Sprintf("board %q is full", row.Board)
	case "card":
		what = fmt.Sprintf("card %s is full", row.Card)
	default:
		what = "the fleet is full"
	}
	text := fmt.Sprintf("card %s: %s (%d of %v %s%s", row.Card, what, n, math.Max(limit, 0), counted, kept)
	if c.cap.Description != "" {
		text += "; cap: " + c.cap.Description
	}
	if c.elsewhere(row.Board) {
		text += ", of board " + c.board
	}
	return Errorf(Refused, "%s)", text).WithCheck("cap").WithHint("see: muster why %s", row.Card)
}
