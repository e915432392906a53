package board

import (
	"encoding/json"
	"maps"
	"strings"

	"muster/board/workflow"
)

// firing is an event on its way to a card.
type firing struct {
	Event   string
	Actor   Actor
	Payload map[string]any
	Force   bool // of a start: passes validators, caps and pause; never guards, drain, ESTOP, an occupied slot or a current run (M-14)
	Why     string
	Start   *startCtx // of a start that is placed
	Run     *Run      // the run an observation is about; changed in place when the workflow ends it

	depth int  // of a promotion that another transition caused
	left  *int // promotions this transaction may still cause
}

// startCtx is where a start is placed, and by whose profile ("": the role's).
type startCtx struct {
	Node    string // id
	Profile string
	Attach  *Vouch // of adopt: the session that is there already
	Slot    string // and the slot that it is to be in, "" the workflow's
}

// move is what a firing did. Event is nil when the transition does nothing at
// all: then nothing was written (a wait that lasts is offered again and again).
type move struct {
	From, To string
	Event    *Event
	Run      *Run   // claimed or ended by it
	Told     []Told // whom it was told to, and who could not be told
}

// Bounds of one firing.
const (
	maxPayload    = 64 << 10
	maxComment    = 64 << 10
	maxBody       = 256 << 10
	maxTitle      = 1 << 10
	maxPromotions = 50 // in one transaction; the others follow by due times
	maxDepth      = 4  // of promotions that cause promotions
	maxCreated    = 100
)

// step is one firing under way.
type step struct {
	t   *tx
	wf  *workflow.Workflow
	b   *Board
	c   *Card
	f   firing
	s   *Scope
	run *Run // the card's run when the event came, or the one claimed

	from, to  string
	ev        *Event
	claim     *claim
	instead   string   // profile that the claim's stands in for
	attention bool     // set by this firing: it outlives the change of status
	children  bool     // promote the cards that wait for this one
	promote   []string // other cards to offer a promotion
	whom      []string // who is told of this event, at the end
	told      []Told   // and who was
	stored    string   // how the card's status was stored when the event came
	touched   bool     // an action changed something
}

// fire lets the workflow decide what an event does to a card, and does it: all
// of it, or an error and nothing that counts (the caller drops the
// transaction). The card is changed in place and stored.
//
// The error's Check is NoTransition when no transition took the event (WFL-08,
// WFL-09); every refusal has a text for people.
func (t *tx) fire(b *Board, c *Card, f firing) (*move, *Error) {
	fl, err := t.flow(b)
	if err != nil {
		return nil, err
	}
	if err := t.carry(b, c, f.Run); err != nil {
		return nil, err
	}
	st := &step{t: t, wf: fl.wf, b: b, c: c, f: f, from: c.Status, to: c.Status, stored: c.Stored}
	if err := st.begin(fl); err != nil {
		return nil, err
	}
	roles, err := st.sender()
	if err != nil {
		return nil, err
	}
	tr, err := st.choose(roles)
	if err != nil {
		return nil, err
	}
	if tr.Target == nil && len(tr.Do) == 0 {
		t.took(tr)
		return &move{From: st.from, To: st.to}, nil
	}
	payload, err := st.payload()
	if err != nil {
		return nil, err
	}
	st.ev = t.eventLater(c, Event{Kind: f.Event, Actor: st.f.Actor, Payload: payload})
	if st.run != nil {
		st.ev.Run = st.run.ID
	}
	if err := st.act(tr); err != nil {
		return nil, err
	}
	if err := st.settle(); err != nil {
		return nil, err
	}
	t.took(tr)
	out := &move{From: st.from, To: st.to, Event: st.ev, Run: st.run, Told: st.told}
	if st.claim != nil && st.claim.goes.lost != "" {
		if err := st.lost(); err != nil {
			return nil, err
		}
		out.To = st.c.Status
	}
	return out, nil
}

func (t *tx) took(tr *workflow.Transition) {
	if t.env.Took != nil {
		t.env.Took(tr)
	}
}

// begin builds the scope and holds the observed run against the card's.
func (st *step) begin(fl *flow) *Error {
	if st.f.Why != "" {
		p := maps.Clone(st.f.Payload)
		if p == nil {
			p = map[string]any{}
		}
		if _, said := p["why"]; !said {
			p["why"] = st.f.Why
		}
		st.f.Payload = p
	}
	for k, v := range st.f.Payload {
		st.f.Payload[k] = plainValue(v)
	}
	if st.f.left == nil {
		left := maxPromotions
		st.f.left = &left
	}
	if r := st.f.Run; r != nil {
		if r.ID != st.c.Run {
			return Errorf(Conflict, "run %s is not the run of card %s any more", r.ID, st.c.ID).WithCheck("superseded")
		}
		st.run = r
	} else if st.c.Run != "" {
		st.run = GetRun(st.t, st.c.Run)
	}
	st.s = newScope(st.t, st.t.env.Workflows, fl, st.b, st.c, st.t.env.Now, st.t.env.Nodes)
	st.s.From(st.f.Actor, st.f.Payload)
	st.s.run = st.run
	if p := st.f.Start; p != nil && p.Node != "" {
		n := GetNode(st.t, p.Node)
		if n == nil {
			return Errorf(NotFound, "card %s: there is no node %s to start it on", st.c.ID, p.Node).WithCheck("machine")
		}
		st.s.At(n, st.reading(n), 0)
		st.s.started = nil // counted when it is read
	}
	return nil
}

func (st *step) reading(n *Node) Reading {
	if st.t.env.Nodes == nil {
		return Reading{State: NodeUnknown}
	}
	return st.t.env.Nodes(n.ID)
}

// startedOn is the number of starts on a node after a moment, ms (M-15).
func startedOn(v View, node string, after int64) (n int64) {
	scan(v, TStart, "", StartKey(after+1, ""), func(_ string, h *Held) bool {
		if h.Node == node {
			n++
		}
		return true
	})
	return n
}

// choose takes the first transition that admits the sender and whose guard
// holds; then its validators refuse, or its target is where the card goes.
func (st *step) choose(roles []string) (*workflow.Transition, *Error) {
	tr, err := st.s.pick(st.f.Event, roles)
	if err != nil {
		return nil, err
	}
	if tr == nil {
		return nil, st.noTransition(roles)
	}
	if err := st.validate(tr); err != nil {
		return nil, err
	}
	st.to, err = st.s.target(tr)
	return tr, err
}

func (st *step) validate(tr *workflow.Transition) *Error {
	if st.f.Force && st.f.Event == st.wf.Dispatch.Start {
		if st.f.Actor.Role != "manager" || st.f.Why == "" {
			return Errorf(Refused, "card %s: only a manager forces a start, and says why", st.c.ID).WithCheck("sender")
		}
		return nil
	}
	err, _ := st.s.validate(tr)
	return err
}

func (st *step) payload() ([]byte, *Error) {
	p := st.f.Payload
	if st.f.Force {
		p = maps.Clone(p)
		if p == nil {
			p = map[string]any{}
		}
		p["force"] = true
	}
	if len(p) == 0 {
		return nil, nil
	}
	raw, err := json.Marshal(p)
	if err != nil {
		return nil, Errorf(Invalid, "event %q: its payload is no JSON: %v", st.f.Event, err)
	}
	if len(raw) > maxPayload {
		return nil, Errorf(Exhausted, "event %q: its payload has %d bytes, more than %d", st.f.Event, len(raw), maxPayload)
	}
	return raw, nil
}

// act does the transition's actions, moves the card, and does what the entered status adds.
func (st *step) act(tr *workflow.Transition) *Error {
	if err := st.doAll(tr.Do); err != nil {
		return err
	}
	for moves := 0; st.to != st.c.Status; moves++ {
		if moves > 1 { // the breaker may send a card on once, from the actions of the status it entered
			return Errorf(Refused, "card %s: event %q: the entered statuses send it on and on", st.c.ID, st.f.Event).WithCheck("target")
		}
		c := st.c
		c.Previous, c.Status, c.Stored = c.Status, st.to, st.wf.StoredAs(st.to)
		c.Waits = Reason{}
		st.dropHook()
		if !st.attention {
			c.Attention = Reason{}
		}
		if c.Stored == "done" {
			c.Blocks = nil
		}
		st.s.forget()
		if err := st.doAll(st.wf.Statuses[st.to].Enter); err != nil {
			return err
		}
	}
	return nil
}

func (st *step) doAll(list []workflow.Action) *Error {
	for _, a := range list {
		st.touched = false
		if err := st.do(a); err != nil {
			return err
		}
		if st.touched {
			st.s.forget()
		}
	}
	return nil
}

// settle stores what the firing decided, and offers the promotions it caused.
func (st *step) settle() *Error {
	c, t := st.c, st.t
	if st.claim != nil {
		if err := st.writeClaim(); err != nil {
			return err
		}
	}
	if has := c.Run != ""; has != st.wf.HasRun(c.Status) {
		if has {
			return Errorf(Refused, "card %s: event %q would leave %q with its run going on; the workflow must end it (end_run)", c.ID, st.f.Event, c.Status).WithCheck("run_status")
		}
		return Errorf(Refused, "card %s: event %q would enter %q without a run; the workflow must claim one", c.ID, st.f.Event, c.Status).WithCheck("run_status")
	}
	switch st.f.Event {
	case "promote", "unblock", "reclaim", "reopen":
		c.LastFree = t.env.Now
	}
	if c.Status != st.from {
		st.ev.From, st.ev.To = st.from, c.Status
	}
	st.tookPart()
	st.answered()
	st.mailEnds()
	t.awaitReview(st.b, st.s.flow, c)
	t.put(TEvent, st.ev.ID, st.ev)
	t.putCard(c)
	st.offer()
	st.notify()
	return nil
}

// initial gives a new card its status (BRD-13). Its links must be written
// before, for parents_done; the caller stores the card afterwards and then
// offers its promotion with [tx.promote].
func (t *tx) initial(b *Board, c *Card, payload map[string]any) *Error {
	return t.initialBy(b, c, c.Creator, payload)
}

func (t *tx) initialBy(b *Board, c *Card, by Actor, payload map[string]any) *Error {
	fl, err := t.flow(b)
	if err != nil {
		return err
	}
	s := newScope(t, t.env.Workflows, fl, b, c, t.env.Now, t.env.Nodes).From(by, payload)
	status, rerr := s.Render(fl.wf.Initial)
	if rerr != nil {
		return ruleError("board "+b.Slug+": initial", rerr)
	}
	status = strings.TrimSpace(status)
	if fl.wf.Statuses[status] == nil {
		return Errorf(Refused, "board %s: initial gives %q, which is no status of its workflow", b.Slug, status).WithCheck("target")
	}
	if fl.wf.HasRun(status) {
		return Errorf(Refused, "board %s: a new card cannot begin in %q, which has a run", b.Slug, status).WithCheck("target")
	}
	c.Status, c.Stored = status, fl.wf.StoredAs(status)
	if c.StartAfter > t.env.Now {
		t.putDue(c.StartAfter, DueCard, c.ID)
	}
	return nil
}
