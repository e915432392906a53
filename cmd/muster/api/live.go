package api

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"muster/board"
)

const (
	liveEvery = 5 * time.Second       // how often readings, which are no state, are looked at, and the reader is told that this node lives
	liveFleet = time.Second           // the fleet at a glance is told at most so often
	livePace  = 15 * time.Millisecond // between two messages, for who draws them; the first of a quiet time waits for nothing
)

// Change names one record of the state that was written.
type Change struct {
	Table board.Table
	Key   string
}

// Taker is a [Sub] that says what has changed: the keys since the last Take, in
// no order; all means that everything is to be read again.
type Taker interface {
	Sub
	Take() (keys []Change, all bool)
}

// You is who a live view is shown to, and what it may do.
type You struct {
	Name  string `json:"name"`
	Role  string `json:"role"`            // manager, member or viewer
	Board string `json:"board,omitempty"` // the one board it sees; "" for all
	Node  string `json:"node"`            // name of the node that answers
}

// LiveCard is a card with the session that works on it.
type LiveCard struct {
	Card
	Session *Session `json:"session,omitempty"`
}

// LiveStatus is a column.
type LiveStatus struct {
	Name   string `json:"name"`
	Stored string `json:"stored"`
	Run    bool   `json:"run,omitempty"` // something is executed while a card is here
}

// LiveBoard is a board whole; what comes after it are [LiveCards].
type LiveBoard struct {
	Board
	You     You          `json:"you"`
	Columns []LiveStatus `json:"columns"`
	List    []LiveCard   `json:"list"`
}

// LiveCards is what has changed: cards as they are now, and those that are not on the board any more.
type LiveCards struct {
	List []LiveCard `json:"list"`
	Gone []string   `json:"gone,omitempty"`
}

var liveAsks = asks{"board": anyText}

// liveView is one reader of a board.
type liveView struct {
	h    *handler
	who  caller
	slug string
	sub  Sub
	w    http.ResponseWriter
	rc   *http.ResponseController

	node      string // name of this node
	you       You
	all       bool            // the board is to be told whole
	record    bool            // the board's own record was written: with each new card it is, for its id
	lastBoard string          // what was told of it, without its cards
	cards     map[string]bool // to be told
	needs     bool
	fleet     bool
	fleetSent time.Time
	lastFleet string
}

// live shows a board as it is, then what changes, as SSE: `board`, `cards`,
// `fleet` (a Status), `needs` (Needs) and `alive`. Who comes back is told
// everything again, so nothing is missed and no cursor is kept (TestLive).
func (h *handler) live(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if p := recover(); p != nil {
			h.log.Error("panic in a live view", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	c, err := h.caller(r)
	if err == nil {
		err = h.mayRead(r, &c)
	}
	if err == nil {
		err = liveAsks.check(r)
	}
	l := &liveView{h: h, who: c, slug: orElse(r.URL.Query().Get("board"), orElse(c.board, "default")), w: w, rc: http.NewResponseController(w), cards: map[string]bool{}}
	if err == nil {
		err = c.sees(l.slug)
	}
	if err == nil {
		err = h.look(r.Context(), func(v board.View) error { _, err := findBoard(v, l.slug); return err })
	}
	if err != nil {
		h.denied(c, err)
		send(w, nil, unread, err, "")
		return
	}
	_, l.node = h.b.Self()
	l.sub = h.b.Subscribe(livesOn) // before the first reading: nothing falls between
	defer l.sub.Close()
	l.follow(r)
}

// livesOn are the tables that a live view shows something of.
func livesOn(t board.Table, _ string) bool {
	switch t {
	case board.TFleet, board.TBoard, board.TCard, board.TText, board.TRun, board.THeld, board.TLink, board.TNode, board.TNeed, board.TDelivery:
		return true
	}
	return false
}

func (l *liveView) follow(r *http.Request) {
	ctx := r.Context()
	l.w.Header().Set("Content-Type", "text/event-stream")
	l.w.Header().Set("Cache-Control", "no-store")
	l.w.WriteHeader(http.StatusOK)
	l.take() // a new subscription begins with all, which is told anyway
	l.all, l.needs, l.fleet = true, true, true
	tick := time.NewTicker(liveEvery)
	defer tick.Stop()
	pace := time.NewTimer(0)
	defer pace.Stop()
	paced := (<-chan time.Time)(nil)
	changed := l.sub.C()
	for {
		if paced == nil {
			wrote, err := l.tell(ctx)
			if err != nil {
				return
			}
			if wrote || l.fleet {
				pace.Reset(l.wait())
				paced = pace.C
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
			l.take()
		case <-paced:
			paced = nil
		case <-tick.C:
			if l.h.mayRead(r, &l.who) != nil { // what it came with has ended: it is told so when it comes back
				return
			}
			l.fleet = true
			if l.alive(ctx) != nil {
				return
			}
		}
	}
}

// wait is how long nothing more is told.
func (l *liveView) wait() time.Duration {
	if l.fleet && !l.all && !l.needs && len(l.cards) == 0 {
		return max(livePace, time.Until(l.fleetSent.Add(liveFleet)))
	}
	return livePace
}

// take notes what has changed.
func (l *liveView) take() {
	t, ok := l.sub.(Taker)
	if !ok {
		l.all, l.needs, l.fleet = true, true, true
		return
	}
	keys, all := t.Take()
	if all {
		l.all, l.needs, l.fleet = true, true, true
	}
	for _, k := range keys {
		switch k.Table {
		case board.TFleet, board.TNode:
			l.fleet = true
		case board.TBoard:
			l.fleet, l.record = true, l.record || k.Key == l.slug
		default:
			l.fleet = l.fleet || k.Table == board.THeld
			l.needs = l.needs || k.Table == board.TNeed
			for part := range strings.SplitSeq(k.Key, "/") {
				id, _, _ := strings.Cut(part, ".")
				if l.cards[id] = true; k.Table != board.TLink {
					break
				}
			}
		}
	}
}

// tell writes what is noted.
func (l *liveView) tell(ctx context.Context) (wrote bool, err error) {
	if l.record && !l.all {
		if l.all, err = l.another(ctx); err != nil {
			return false, err
		}
		l.record = false
	}
	if l.all {
		clear(l.cards)
		l.all, l.record, wrote = false, false, true
		err = l.board(ctx)
	} else if len(l.cards) > 0 {
		wrote, err = l.some(ctx)
		clear(l.cards)
	}
	if err == nil && l.needs && !l.who.bound() {
		l.needs, wrote = false, true
		err = l.attention(ctx)
	}
	if err == nil && l.fleet && !l.who.bound() && time.Since(l.fleetSent) >= liveFleet {
		l.fleet, l.fleetSent, wrote = false, time.Now(), true
		err = l.status(ctx)
	}
	if l.who.bound() {
		l.needs, l.fleet = false, false
	}
	if err == nil && wrote {
		err = l.rc.Flush()
	}
	return wrote, err
}

func (l *liveView) board(ctx context.Context) error {
	x := LiveBoard{List: []LiveCard{}, Columns: []LiveStatus{}}
	f, err := l.h.b.Read(ctx, false, func(v board.View) error {
		b, err := findBoard(v, l.slug)
		if err != nil {
			return err
		}
		x.Board, l.you = BoardOf(v, b, true), l.youIn(v)
		l.lastBoard = identity(BoardOf(v, b, false))
		x.You = l.you
		if w, err := l.h.flows.Of(v, b); err == nil {
			x.Profiles = slices.Sorted(maps.Keys(w.Profiles))
			for _, name := range w.Order {
				x.Columns = append(x.Columns, LiveStatus{Name: name, Stored: w.StoredAs(name), Run: w.HasRun(name)})
			}
		}
		board.EachCard(v, b, func(c *board.Card) bool {
			if c.Stored != "archived" {
				x.List = append(x.List, liveCardOf(v, c))
			}
			return true
		})
		return nil
	})
	if err != nil {
		return err
	}
	return l.write("board", x, f)
}

func (l *liveView) some(ctx context.Context) (wrote bool, err error) {
	x := LiveCards{List: []LiveCard{}}
	f, err := l.h.b.Read(ctx, false, func(v board.View) error {
		b, err := findBoard(v, l.slug)
		if err != nil {
			return err
		}
		for id := range l.cards {
			switch c := board.GetCard(v, id); {
			case c == nil && board.PrefixOfCard(id) == b.Prefix, c != nil && c.Board == l.slug && c.Stored == "archived":
				x.Gone = append(x.Gone, id)
			case c != nil && c.Board == l.slug:
				x.List = append(x.List, liveCardOf(v, c))
			}
		}
		return nil
	})
	if err != nil || len(x.List)+len(x.Gone) == 0 {
		return false, err
	}
	return true, l.write("cards", x, f)
}

func liveCardOf(v board.View, c *board.Card) LiveCard {
	x := LiveCard{Card: CardOf(v, c)}
	if c.Run == "" {
		return x
	}
	if h := board.GetHeld(v, c.Run); h != nil {
		s := sessionOf(v, h)
		x.Session = &s
	}
	return x
}

func (l *liveView) attention(ctx context.Context) error {
	x := Needs{List: []Need{}}
	f, err := l.h.b.Read(ctx, false, func(v board.View) error {
		board.EachNeed(v, nil, func(n *board.Need) bool { x.List = append(x.List, needOf(v, n)); return true })
		return nil
	})
	if err != nil {
		return err
	}
	return l.write("needs", x, f)
}

// status is told when it says something new; ages and times of readings are nothing new.
func (l *liveView) status(ctx context.Context) error {
	s, f, err := status(ctx, l.h.b, false)
	if err != nil {
		return err
	}
	same := *s
	same.Seq, same.Hash, same.Time = 0, "", time.Time{}
	same.Nodes = append([]Node(nil), s.Nodes...)
	for i := range same.Nodes {
		same.Nodes[i].AgeS = nil
	}
	raw, err := json.Marshal(same)
	if err != nil {
		return err
	}
	if string(raw) == l.lastFleet {
		return nil
	}
	l.lastFleet = string(raw)
	return l.write("fleet", s, f)
}

// alive tells how old what this node knows is: one that hears of no leader shows what was.
func (l *liveView) alive(ctx context.Context) error {
	f, err := l.h.b.Read(ctx, false, func(v board.View) error {
		if x := l.youIn(v); x != l.you { // its role was changed: everything that depends on it is told anew
			l.all = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := l.write("alive", struct{}{}, f); err != nil {
		return err
	}
	return l.rc.Flush()
}

func (l *liveView) youIn(v board.View) You {
	y := You{Name: l.who.actor.Address(), Role: l.who.role, Board: l.who.board, Node: l.node}
	if n := board.GetNode(v, l.who.actor.Node); l.h.door == DoorUser && n != nil {
		y.Role = n.SocketRole()
	}
	return y
}

func (l *liveView) write(kind string, data any, f Fresh) error {
	_, body := answerOf(data, f, nil, "")
	_ = l.rc.SetWriteDeadline(time.Now().Add(streamWrite))
	_, err := fmt.Fprintf(l.w, "event: %s\ndata: %s\n", kind, body) // the body ends with a line's end
	return err
}
