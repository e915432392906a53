package scheduler

import (
	"fmt"
	"slices"
	"strings"

	"muster/board"
)

// naive counts caps in its own way: it knows the caps as the test drew them, not
// as the product read them, and goes through all rows of the state for each
// question. Of the product it uses what is not about caps: which start a card
// plans, its validators, and what a machine is.
type naive struct {
	caps   []xcap
	most   map[string]int // params.most of a board; negative: it has none
	starts []started      // that the executor took
}

// xcap is a cap as it was drawn.
type xcap struct {
	board, counts, scope string
	where, unless        []xkey
	max                  string // a number, host.slots, profile.capacity or params.most
	reserve              string // the status places are kept for, "" for none
	slots                int
}

// xkey is one key of a filter with the values that match.
type xkey struct {
	key    string
	values []string
	list   bool // written as a list: no place of a dispatcher's slot (CAP-16)
}

// started is a start, with when it was claimed, ms.
type started struct {
	row board.Held
	at  int64
}

// capacities are those of the profiles of [capYAML].
var capacities = map[string]int{"two": 2, "none": 0}

const roundMS = 60_000 // params.round, which the boards leave as it is

func (c *xcap) String() string {
	return fmt.Sprintf("%s's %s of %s, where %v unless %v, max %s, reserve %q %d", c.board, c.counts, c.scope, c.where, c.unless, c.max, c.reserve, c.slots)
}

func (c *xcap) fleetWide() bool { return c.scope == "machine" || c.scope == "fleet" }

func (c *xcap) binds(board string) bool { return c.fleetWide() || c.board == board }

func word(h *board.Held, key string) string {
	switch key {
	case "dispatch":
		return fmt.Sprint(!h.Manual)
	case "machine":
		return strings.TrimPrefix(h.Node, "n-")
	}
	return map[string]string{"assignee": h.Profile, "status": h.Status, "harness": h.Harness, "model": h.Model, "slot": h.Slot, "board": h.Board}[key]
}

func matches(filter []xkey, h *board.Held) bool {
	for _, k := range filter {
		if !slices.Contains(k.values, word(h, k.key)) {
			return false
		}
	}
	return true
}

// concerns says that the cap is about such a row: its board, where and unless.
func (c *xcap) concerns(h *board.Held) bool {
	if c.scope == "board" && h.Board != c.board {
		return false
	}
	return matches(c.where, h) && (len(c.unless) == 0 || !matches(c.unless, h))
}

// together says that the cap counts two rows in one group.
func (c *xcap) together(a, b *board.Held) bool {
	switch c.scope {
	case "machine":
		return a.Node == b.Node
	case "assignee":
		return a.Profile == b.Profile
	case "harness":
		return a.Harness == b.Harness
	case "model":
		return a.Model == b.Model
	case "card":
		return a.Card == b.Card
	}
	return true // fleet; of scope board only its own rows come here
}

// counted are the rows that the cap counts in the group of one (M-35: a run until
// its verdict, on its machine until its session is gone; a session until it is gone).
func (c *xcap) counted(rows []*board.Held, like *board.Held) (list []*board.Held) {
	for _, h := range rows {
		over := h.Ended && (c.counts == "cards" || c.counts == "runs" && c.scope != "machine")
		if !over && c.concerns(h) && c.together(h, like) {
			list = append(list, h)
		}
	}
	return list
}

// startsOf are the starts of the last round that count in the group of a row.
func (n *naive) startsOf(c *xcap, like *board.Held, now int64) (k int) {
	for i := range n.starts {
		if s := &n.starts[i]; s.at > now-roundMS && c.concerns(&s.row) && c.together(&s.row, like) {
			k++
		}
	}
	return k
}

func (n *naive) startsOn(node string, now int64) (k int64) {
	for _, s := range n.starts {
		if s.row.Node == node && s.at > now-roundMS {
			k++
		}
	}
	return k
}

// size is how much of the cap is taken in the group of a row.
func (n *naive) size(c *xcap, rows []*board.Held, like *board.Held, now int64) int {
	if c.counts == "starts" {
		return n.startsOf(c, like, now)
	}
	list := c.counted(rows, like)
	if c.counts == "sessions" || c.counts == "turns" {
		return len(list)
	}
	return len(cardsOf(list))
}

func cardsOf(rows []*board.Held) map[string]bool {
	cards := map[string]bool{}
	for _, h := range rows {
		cards[h.Card] = true
	}
	return cards
}

// limit is the cap's maximum for such a row; ok is false where it has none.
func (n *naive) limit(c *xcap, like *board.Held, x board.Reading) (limit int, ok bool) {
	switch c.max {
	case "host.slots":
		return int(x.Slots), true
	case "profile.capacity":
		limit, ok = capacities[like.Profile]
		return limit, ok
	case "params.most":
		limit = n.most[c.board]
		return limit, limit >= 0
	}
	_, _ = fmt.Sscan(c.max, &limit)
	return limit, true
}

// keeps: the card has its place in the count already (CAP-13, CAP-14, CAP-16).
func (c *xcap) keeps(rows []*board.Held, like *board.Held) bool {
	if c.counts == "starts" {
		return false
	}
	slots := c.counts == "sessions" && slices.ContainsFunc(c.where, func(k xkey) bool { return k.key == "dispatch" && !k.list })
	return slices.ContainsFunc(c.counted(rows, like), func(h *board.Held) bool { return h.Card == like.Card && (!slots || h.Slot == like.Slot) })
}

// moment is what a question is asked about: a state, the readings, a board time.
type moment struct {
	*naive
	view  board.View
	ws    *board.Workflows
	nodes func(string) board.Reading
	now   int64
	rows  []*board.Held
}

func (n *naive) at(v board.View, ws *board.Workflows, nodes func(string) board.Reading, now int64) *moment {
	return &moment{naive: n, view: v, ws: ws, nodes: nodes, now: now, rows: heldRows(v)}
}

func heldRows(v board.View) (rows []*board.Held) {
	board.EachHeld(v, "", func(h *board.Held) bool { rows = append(rows, h); return true })
	return rows
}

// noRoom names the cap that has no place for a row, "" when all have.
func (m *moment) noRoom(row *board.Held, reserves bool) string {
	for i := range m.caps {
		c := &m.caps[i]
		if !c.binds(row.Board) || !c.concerns(row) || c.keeps(m.rows, row) {
			continue
		}
		limit, ok := m.limit(c, row, m.nodes(row.Node))
		if !ok {
			continue
		}
		n := m.size(c, m.rows, row, m.now)
		kept := 0
		if reserves && c.reserve != "" && row.Status != c.reserve && m.keptIn(c, row) {
			kept = c.slots
		}
		if n >= limit-kept {
			return fmt.Sprintf("%d of %d (%d kept) in %s", n, limit, kept, c)
		}
	}
	return ""
}

// keptIn says whether a card waits that places of the cap are kept for from the row.
func (m *moment) keptIn(c *xcap, row *board.Held) (yes bool) {
	board.EachCard(m.view, nil, func(w *board.Card) bool {
		if w.ID == row.Card || w.Run != "" || !c.binds(w.Board) || c.counts != "starts" && cardsOf(c.counted(m.rows, row))[w.ID] {
			return true
		}
		p := m.plan(w)
		if p == nil {
			return true
		}
		h := p.row(row.Node)
		if h.Status != c.reserve || !c.concerns(h) || !c.together(h, row) {
			return true
		}
		if c.scope != "machine" {
			yes = m.taken(p)
		} else if bound, _ := p.scope.Bound(p.start.Profile); bound != "" {
			yes = bound == strings.TrimPrefix(row.Node, "n-") || bound == row.Node
		} else {
			yes = m.could(w, row.Node, false)
		}
		return !yes
	})
	return yes
}

// planned is a card's start, on no machine yet.
type planned struct {
	scope *board.Scope
	start *board.StartPlan
	board *board.Board
	card  *board.Card
}

// plan is the start that the platform may plan for a waiting card; nil: none.
func (m *moment) plan(c *board.Card) *planned {
	b := board.GetBoard(m.view, c.Board)
	if c.Run != "" || c.Stored == "archived" || b == nil {
		return nil
	}
	s, err := board.NewScope(m.view, m.ws, b, c, m.now, m.nodes)
	if err != nil {
		return nil
	}
	p, refusal := s.PlanStart()
	if refusal != nil {
		return nil
	}
	return &planned{s, p, b, c}
}

func (p *planned) row(node string) *board.Held {
	c := p.scope.Candidate(p.start, node)
	return &board.Held{Card: c.Card, Board: c.Board, Node: node, Slot: c.Slot, Profile: c.Profile, Harness: c.Harness, Model: c.Model, Status: c.Status, Stored: c.Stored}
}

// taken says whether some machine would take the start if there were room.
func (m *moment) taken(p *planned) (yes bool) {
	board.EachNode(m.view, func(n *board.Node) bool {
		if m.forbidden(p.board, n) == "" {
			p.scope.At(n, m.nodes(n.ID), 0).Playing(p.start.Profile)
			yes = p.scope.Fits(p.start.Profile) == nil
		}
		return !yes
	})
	return yes
}

// could says whether a waiting card could start on a node now.
func (m *moment) could(c *board.Card, node string, reserves bool) bool {
	p := m.plan(c)
	n := board.GetNode(m.view, node)
	if p == nil || n == nil || m.forbidden(p.board, n) != "" || board.StillHeld(m.view, c, p.start.Slot) != nil {
		return false
	}
	if cooling, _ := board.Cooling(m.view, p.scope.Candidate(p.start, node), m.now); cooling != nil {
		return false
	}
	p.scope.At(n, m.nodes(node), m.startsOn(node, m.now)).Playing(p.start.Profile)
	if p.scope.Fits(p.start.Profile) != nil || p.scope.Eligible() != nil || m.noRoom(p.row(node), reserves) != "" {
		return false
	}
	refusal, _ := p.scope.Check(p.start)
	return refusal == nil
}

// forbidden is what forbids any start of a board on a node: contact, ESTOP, drain, pause.
func (m *moment) forbidden(b *board.Board, n *board.Node) string {
	x := m.nodes(n.ID)
	f := board.GetFleet(m.view)
	switch {
	case x.State != board.NodeOnline:
		return n.Name + " is " + x.State
	case x.Estop:
		return "ESTOP on " + n.Name
	case n.Draining:
		return n.Name + " is draining"
	case f != nil && f.PausedAt != 0:
		return "the fleet is paused"
	case b.PausedAt != 0:
		return b.Slug + " is paused"
	}
	return ""
}

// earlier says that a card comes before another one in the order of the default workflow.
func earlier(a, b *board.Card) bool {
	key := func(c *board.Card) [3]int64 {
		var review int64
		if c.Status == "review" {
			review = 1
		}
		return [3]int64{review, -c.Priority, c.Created}
	}
	x, y := key(a), key(b)
	if x != y {
		return slices.Compare(x[:], y[:]) < 0
	}
	return a.ID < b.ID
}
