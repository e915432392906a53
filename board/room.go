package board

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"muster/board/workflow"
)

// Room counts what the caps of a fleet count, and says whether a start has a
// place (CAP-12). Everything in it is derived from the state: [NewRoom] reads a
// view whole, [Room.Change] follows it key by key, and both come to the same.
// What a round has decided and the state does not have yet is taken between
// [Room.Try] and [Room.Undo].
//
// A session that is not gone keeps its place in every cap that counts sessions,
// and in those that count runs of a machine; in other caps of runs a run counts
// until it has its verdict (M-35). A start counts for its round, whatever became
// of it (CAP-22, M-15).
//
// A Room is used by one goroutine.
type Room struct {
	ws     *Workflows
	rows   map[string]*Held            // sessions that are not gone, by run
	began  map[string]*Held            // starts of the last [maxRound], by run
	cards  map[string]int              // rows of a card
	nodes  map[string]map[string]*Held // rows of a node, by run
	starts map[string][]int64          // starts on a node, times in order
	names  map[string]string           // of nodes, by id
	boards map[string]boardCaps
	caps   []*capCount
	waits  waiting

	trying bool
	undo   []func()
}

// boardCaps is what of a board decides about its caps.
type boardCaps struct {
	flow     *flow
	workflow uint64
	params   string
	archived bool
}

// capCount is one cap with what it counts, by group.
type capCount struct {
	cap    *workflow.Cap
	board  string         // in whose file it stands
	shared bool           // in the file of other boards too, the same way: it counts once
	params map[string]any // of that board
	round  int64          // for starts: how long one counts, ms
	slots  bool           // it counts sessions of the dispatcher: a place is a card's slot (CAP-14)
	groups map[string]*group
}

// group is what a cap counts together.
type group struct {
	rows  int
	cards map[string]int // rows of a card
	slots map[string]int // rows of a card's slot
	times []int64        // of starts, in order
}

// NewRoom counts what a view holds. Caps of scope machine and fleet bind the
// candidates of every board, whichever board's file they stand in (M-13).
func NewRoom(v View, ws *Workflows) *Room {
	r := &Room{ws: ws, rows: map[string]*Held{}, began: map[string]*Held{}, cards: map[string]int{}, nodes: map[string]map[string]*Held{},
		starts: map[string][]int64{}, names: map[string]string{}}
	EachNode(v, func(n *Node) bool { r.names[n.ID] = n.Name; return true })
	r.load(v)
	EachHeld(v, "", func(h *Held) bool { r.set(h.Run, h); return true })
	scan(v, TStart, "", "", func(_ string, h *Held) bool { r.begin(h.Run, h); return true })
	return r
}

// Change reads one key of the state anew. Others than those that caps depend on
// are ignored.
func (r *Room) Change(v View, t Table, key string) {
	switch t {
	case THeld:
		r.set(key, GetHeld(v, key))
	case TStart:
		r.begin(RunOfStart(key), read[Held](v, TStart, key))
	case TCard:
		r.waits.set(key, GetCard(v, key))
	case TNode:
		n := GetNode(v, key)
		if name, was := nameOf(n), r.names[key]; name != was { // filters may name it
			r.back(func() { r.names[key] = was })
			r.names[key] = name
			r.reload(v)
		}
	case TBoard:
		if was, now := r.boards[key], r.capsOf(v, GetBoard(v, key)); was != now {
			r.reload(v)
		}
	case TWorkflow:
		r.reload(v)
	}
}

// Watched tells whether [Room.Change] depends on a table.
func Watched(t Table) bool {
	switch t {
	case THeld, TStart, TCard, TNode, TBoard, TWorkflow:
		return true
	}
	return false
}

func nameOf(n *Node) string {
	if n == nil {
		return ""
	}
	return n.Name
}

// Try begins what [Room.Undo] takes back.
func (r *Room) Try() { r.trying = true }

// Undo takes back everything since Try, so that the room is the state's again.
func (r *Room) Undo() {
	r.trying = false
	for _, fn := range slices.Backward(r.undo) {
		fn()
	}
	clear(r.undo)
	r.undo = r.undo[:0]
}

// back notes how a change is taken back.
func (r *Room) back(fn func()) {
	if r.trying {
		r.undo = append(r.undo, fn)
	}
}

// Take counts a start at now, ms. A session that the card has in that slot goes
// on under the new run: it is not counted twice (CAP-19).
func (r *Room) Take(c *Candidate, now int64) {
	h := c.held(now)
	h.Run = "+" + c.Card + "/" + c.Slot
	for run, old := range r.nodes[c.Node] {
		if old.Card == c.Card && old.Slot == c.Slot && !old.Manual {
			r.set(run, nil)
		}
	}
	r.set(h.Run, h)
	r.begin(h.Run, h)
}

// set puts the row of a run in the place of the one it had; nil: there is none.
func (r *Room) set(run string, h *Held) {
	old := r.rows[run]
	if old == nil && h == nil {
		return
	}
	r.back(func() { r.set(run, old) })
	if old != nil {
		r.count(old, -1)
	}
	if h == nil {
		delete(r.rows, run)
		return
	}
	r.rows[run] = h
	r.count(h, 1)
}

func (r *Room) count(h *Held, by int) {
	add(r.cards, h.Card, by)
	if by > 0 {
		if r.nodes[h.Node] == nil {
			r.nodes[h.Node] = map[string]*Held{}
		}
		r.nodes[h.Node][h.Run] = h
	} else if delete(r.nodes[h.Node], h.Run); len(r.nodes[h.Node]) == 0 {
		delete(r.nodes, h.Node)
	}
	for _, c := range r.caps {
		if c.cap.Counts != "starts" && c.counts(r, h) {
			c.count(c.group(h), h, by)
		}
	}
}

// add counts in a map that holds no zeros.
func add[K comparable](m map[K]int, key K, by int) {
	if m[key] += by; m[key] == 0 {
		delete(m, key)
	}
}

func (c *capCount) count(key string, h *Held, by int) {
	g := c.groups[key]
	if g == nil {
		g = &group{cards: map[string]int{}, slots: map[string]int{}}
		c.groups[key] = g
	}
	g.rows += by
	add(g.cards, h.Card, by)
	add(g.slots, SlotKey(h.Card, h.Slot), by)
	if g.rows == 0 {
		delete(c.groups, key)
	}
}

// begin puts a start of the last hour in the place of the one under that run; nil: there is none.
func (r *Room) begin(run string, h *Held) {
	old := r.began[run]
	if old == nil && h == nil || old != nil && h != nil && old.Since == h.Since {
		return
	}
	r.back(func() { r.begin(run, old) })
	if old != nil {
		delete(r.began, run)
		r.start(old, false)
	}
	if h != nil {
		r.began[run] = h
		r.start(h, true)
	}
}

func (r *Room) start(h *Held, put bool) {
	if r.starts[h.Node] = moments(r.starts[h.Node], h.Since, put); len(r.starts[h.Node]) == 0 {
		delete(r.starts, h.Node)
	}
	for _, c := range r.caps {
		c.start(r, h, put)
	}
}

func (c *capCount) start(r *Room, h *Held, put bool) {
	if c.cap.Counts != "starts" || !c.applies(r, h) {
		return
	}
	key := c.group(h)
	g := c.groups[key]
	if g == nil {
		g = &group{}
		c.groups[key] = g
	}
	if g.times = moments(g.times, h.Since, put); len(g.times) == 0 {
		delete(c.groups, key)
	}
}

// moments puts a time into a list in order, or takes one out.
func moments(list []int64, at int64, put bool) []int64 {
	i, found := slices.BinarySearch(list, at)
	switch {
	case put:
		return slices.Insert(list, i, at)
	case found:
		return slices.Delete(list, i, i+1)
	}
	return list
}

// since is the number of times after a moment.
func since(list []int64, after int64) int64 {
	i, _ := slices.BinarySearch(list, after+1)
	return int64(len(list) - i)
}

// capsOf reads what of a board decides about its caps.
func (r *Room) capsOf(v View, b *Board) boardCaps {
	if b == nil {
		return boardCaps{archived: true}
	}
	return boardCaps{flow: r.ws.flow(v, b.Slug, b.Workflow, b.Params), workflow: b.Workflow, params: string(b.Params), archived: b.Archived}
}

// load reads the caps of all boards, and what waits for a place that one of them keeps.
func (r *Room) load(v View) {
	r.boards, r.caps = map[string]boardCaps{}, nil
	same := map[string][]*capCount{}
	EachBoard(v, func(b *Board) bool {
		x := r.capsOf(v, b)
		r.boards[b.Slug] = x
		if x.flow.err == nil && !b.Archived {
			r.addCaps(b, x.flow, same)
		}
		return true
	})
	if r.waits = (waiting{room: r, loaded: r.waits.loaded}); r.waits.loaded {
		r.waits.load(v)
	}
}

// reload counts everything anew under other caps.
func (r *Room) reload(v View) {
	boards, caps, waits := r.boards, r.caps, r.waits
	r.back(func() { r.boards, r.caps, r.waits = boards, caps, waits })
	r.load(v)
	for _, h := range r.rows {
		for _, c := range r.caps {
			if c.cap.Counts != "starts" && c.counts(r, h) {
				c.count(c.group(h), h, 1)
			}
		}
	}
	for _, h := range r.began {
		for _, c := range r.caps {
			c.start(r, h, true)
		}
	}
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
		r.caps = append(r.caps, &capCount{cap: c, board: b.Slug, params: f.params, round: roundOf(f.params), groups: map[string]*group{},
			slots: c.Counts == "sessions" && c.Where.Dispatched()})
	}
	if !seen {
		same[key] = r.caps[len(r.caps)-len(f.wf.Dispatch.Capacity):]
	}
}

// fleetWide: the cap binds candidates of every board.
func fleetWide(c *workflow.Cap) bool { return c.Scope == "machine" || c.Scope == "fleet" }

// maxRound bounds how long a start counts in its round, in ms: so long it is remembered.
const maxRound = 3600_000

// roundOf is how long a start counts in `starts` and tick.local_started, in ms (M-15).
func roundOf(params map[string]any) int64 {
	if n, ok := number64(params["round"]); ok {
		return min(ms(n), maxRound)
	}
	return 60_000
}

// Started is the number of starts on a node in the round (ms) before now:
// tick.local_started (M-15). It counts what ended within the round too.
func (r *Room) Started(node string, round, now int64) int64 {
	return since(r.starts[node], now-round)
}

// Held is the number of sessions on a node that are not gone, with those that were taken.
func (r *Room) Held(node string) int64 { return int64(len(r.nodes[node])) }

// OfCard says whether a card has a session that is not gone.
func (r *Room) OfCard(card string) bool { return r.cards[card] > 0 }

// Row is the session of a run, nil when it is gone. Do not change it.
func (r *Room) Row(run string) *Held { return r.rows[run] }

// EachOn goes through the sessions on a node, in order of their runs. Do not change them.
func (r *Room) EachOn(node string, fn func(*Held)) {
	for _, run := range slices.Sorted(maps.Keys(r.nodes[node])) {
		fn(r.nodes[node][run])
	}
}

// dump is all that a room counts, for comparison with another one.
func (r *Room) dump() map[string]any {
	out := map[string]any{}
	for i, c := range r.caps {
		for key, g := range c.groups {
			out[cmp.Or(c.cap.Description, "cap")+" of "+c.board+strconv.Itoa(i)+" "+key] = []any{g.rows, g.cards, g.slots, g.times}
		}
	}
	out["cards"], out["starts"], out["names"] = r.cards, r.starts, r.names
	for at, list := range r.waits.cards {
		out[fmt.Sprintf("waiting in %+v", at)] = list
	}
	for node, rows := range r.nodes {
		out["on "+node] = slices.Sorted(maps.Keys(rows))
	}
	return out
}
