package board

import (
	"fmt"
	"math"

	"muster/board/rule"
	"muster/board/workflow"
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

// Room counts what the caps of a fleet count, and says whether a start has a
// place (CAP-12). It is built once for a round of planning, or for one claim;
// [Room.Take] adds what was started, so that later candidates see it.
//
// A session that is not gone keeps its place in every cap that counts sessions,
// and in those that count runs of a machine; in other caps of runs a run counts
// until it has its verdict (M-35).
type Room struct {
	now  int64
	caps []*capCount
	held []*Held
}

// capCount is one cap with what it counts, by group.
type capCount struct {
	cap    *workflow.Cap
	board  string         // in whose file it stands
	shared bool           // in the file of other boards too, the same way: it counts once
	params map[string]any // of that board
	since  int64          // for starts: those from this time on count
	groups map[string]*group
}

type group struct {
	n     int64
	cards map[string]bool
}

// NewRoom counts what a view holds. Caps of scope machine and fleet bind the
// candidates of every board, whichever board's file they stand in (M-13).
func NewRoom(v View, ws *Workflows, now int64) *Room {
	r := &Room{now: now}
	EachHeld(v, "", func(h *Held) bool {
		r.held = append(r.held, h)
		return true
	})
	same := map[string][]*capCount{}
	EachBoard(v, func(b *Board) bool {
		if f := ws.flow(v, b.Slug, b.Workflow, b.Params); f.err == nil && !b.Archived {
			r.addCaps(b, f, same)
		}
		return true
	})
	for _, h := range r.held {
		r.count(h)
	}
	return r
}

// addCaps adds the caps of a board. Those of scope machine and fleet that
// another board has in the same words are counted once.
func (r *Room) addCaps(b *Board, f *flow, same map[string][]*capCount) {
	key := f.wf.Version() + string(b.Params)
	first, seen := same[key]
	for i := range f.wf.Dispatch.Capacity {
		c := &f.wf.Dispatch.Capacity[i]
		if seen && fleetWide(c) {
			first[i].shared = true
			continue
		}
		r.caps = append(r.caps, &capCount{cap: c, board: b.Slug, params: f.params, since: r.now - roundOf(f.params) + 1, groups: map[string]*group{}})
	}
	if !seen {
		same[key] = r.caps[len(r.caps)-len(f.wf.Dispatch.Capacity):]
	}
}

// fleetWide: the cap binds candidates of every board.
func fleetWide(c *workflow.Cap) bool { return c.Scope == "machine" || c.Scope == "fleet" }

// roundOf is how long a start counts in `starts` and tick.local_started, in ms (M-15).
func roundOf(params map[string]any) int64 {
	if n, ok := number64(params["round"]); ok {
		return ms(n)
	}
	return 60_000
}

// Take counts a start.
func (r *Room) Take(c *Candidate) {
	h := c.held(r.now)
	r.held = append(r.held, h)
	r.count(h)
}

func (r *Room) count(h *Held) {
	for _, c := range r.caps {
		if !c.counts(h) {
			continue
		}
		key := c.group(h)
		g := c.groups[key]
		if g == nil {
			g = &group{cards: map[string]bool{}}
			c.groups[key] = g
		}
		switch c.cap.Counts {
		case "sessions", "turns", "starts":
			g.n++
		default: // runs and cards: one place a card
			if !g.cards[h.Card] {
				g.n++
			}
		}
		g.cards[h.Card] = true
	}
}

// counts says that the cap counts the row at all.
func (c *capCount) counts(h *Held) bool {
	switch c.cap.Counts {
	case "runs":
		if h.Ended && c.cap.Scope != "machine" {
			return false
		}
	case "cards":
		if h.Ended {
			return false
		}
	case "starts":
		if h.Since < c.since {
			return false
		}
	}
	return c.applies(h)
}

// applies: where matches, and unless does not (CAP-04). A cap of scope board
// or narrower counts its own board only, unless it counts by profile, harness or model.
func (c *capCount) applies(h *Held) bool {
	if c.cap.Scope == "board" && h.Board != c.board {
		return false
	}
	get := func(key string) any { return heldValue(h, key) }
	return c.cap.Where.Matches(get) && (len(c.cap.Unless) == 0 || !c.cap.Unless.Matches(get))
}

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

// heldValue is what a filter sees of a counted thing (CAP-03).
func heldValue(h *Held, key string) any {
	switch key {
	case "dispatch":
		return !h.Manual
	case "card":
		return h.Card
	case "board":
		return h.Board
	case "machine":
		return h.Node
	case "assignee", "profile":
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
	case "surface":
		return h.Surface
	case "role":
		return h.Role
	case "account":
		return h.Account
	}
	return nil
}

// Started is the number of starts on a node in the last round: tick.local_started (M-15).
// It counts sessions that are not gone yet.
func (r *Room) Started(node string, round int64) (n int64) {
	for _, h := range r.held {
		if h.Node == node && h.Since > r.now-round {
			n++
		}
	}
	return n
}

// Admit says whether the candidate has a place under every cap that binds it.
// The scope is the candidate's: planned node and profile. The first refusal is
// returned, with Check "cap" and a text for people.
func (r *Room) Admit(s *Scope, cand *Candidate) *Error {
	row := cand.held(r.now)
	for _, c := range r.caps {
		if c.board != cand.Board && !fleetWide(c.cap) {
			continue
		}
		if !c.applies(row) {
			continue
		}
		limit, ok, err := c.max(s)
		if err != nil {
			return ruleError(fmt.Sprintf("cap %q", c.cap.Description), err)
		}
		if !ok {
			continue // EXP-11: no number, no cap
		}
		var n int64
		if g := c.groups[c.group(row)]; g != nil {
			if g.cards[cand.Card] && c.cap.Counts != "starts" {
				continue // it has its place already (CAP-13)
			}
			n = g.n
		}
		if float64(n) >= limit {
			return c.refusal(s, row, n, limit, cand.Board)
		}
	}
	return nil
}

// max is the cap's maximum in the candidate's scope, with the parameters of the board it stands in.
func (c *capCount) max(s *Scope) (float64, bool, error) {
	e := c.cap.Max
	if v, constant := e.Constant(); constant {
		return constantNumber(e, v)
	}
	if c.board == s.board.Slug {
		return s.Number(e)
	}
	theirs := s.copy()
	theirs.params = c.params
	return theirs.Number(e)
}

func constantNumber(e *rule.Expr, v any) (float64, bool, error) {
	if n, ok := v.(float64); ok {
		return n, true, nil
	}
	return e.Number(nil)
}

func (c *capCount) refusal(s *Scope, row *Held, n int64, limit float64, board string) *Error {
	counted := c.cap.Counts
	if counted == "starts" {
		counted = "starts this round"
	}
	what := ""
	switch c.cap.Scope {
	case "machine":
		what = s.nodeName(row.Node) + " is full"
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
	text := fmt.Sprintf("card %s: %s (%d of %v %s", row.Card, what, n, math.Max(limit, 0), counted)
	if c.cap.Description != "" {
		text += "; cap: " + c.cap.Description
	}
	if c.board != board && !c.shared {
		text += ", of board " + c.board
	}
	return Errorf(Refused, "%s)", text).WithCheck("cap").WithHint("see: muster why %s", row.Card)
}

func (s *Scope) nodeName(id string) string {
	if n := GetNode(s.view, id); n != nil && n.Name != "" {
		return n.Name
	}
	return id
}
