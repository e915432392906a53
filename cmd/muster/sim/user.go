package sim

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/cmd/muster/history"
)

// op is what the models know of what a user did.
type op = history.Op

// asked is a request and its last outcome.
type asked struct {
	req  board.Request
	seq  uint64
	code board.Code // "" is done
	open bool
	none bool // certainly not executed
}

// user is a person at the doors of all machines.
type user struct {
	f    *Fleet
	n    int
	rng  *rand.Rand
	seen map[string]uint64 // highest Seq read at a process's door
	all  *cards
}

// cards are known to every user.
type cards struct {
	mu  sync.Mutex
	ids []string
}

func (c *cards) add(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids = append(c.ids, id)
}

// one is some card, rather a young one; "" while there is none.
func (c *cards) one(rng *rand.Rand) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ids) == 0 {
		return ""
	}
	recent := min(len(c.ids), 12)
	return c.ids[len(c.ids)-1-rng.IntN(recent)]
}

func (f *Fleet) user(n int, all *cards) *user {
	return &user{f: f, n: n, rng: rand.New(rand.NewPCG(f.cfg.Seed, uint64(1000+n))), seen: map[string]uint64{}, all: all}
}

// request is what a manager asks at a door.
func request(door api.Backend, verb string, args any) board.Request {
	b, err := json.Marshal(args)
	if err != nil {
		panic(err) // of this package's own types
	}
	id, name := door.Self()
	return board.Request{ID: door.MintID(), Verb: verb, Args: b, Actor: board.Actor{Kind: board.ActorPerson, Role: "manager", Name: "ann@" + name, Node: id}}
}

// life is what a user does until the end.
func (u *user) life(over *atomic.Bool) {
	for i := 0; !over.Load(); i++ {
		u.act(i)
		_ = pass(context.Background(), time.Duration(100+u.rng.IntN(900))*time.Millisecond)
	}
}

func (u *user) fire(card, event string, payload map[string]any) outcome {
	return u.ask(board.VEvent, board.FireEvent{Card: card, Event: event, Payload: payload})
}

// outcome is what a user knows after all tries.
type outcome struct {
	asked
	data json.RawMessage
}

func (o outcome) done() bool { return o.code == "" && !o.open && !o.none }

// look reads the state of some node that is up.
func (u *user) look(fn func(v board.View)) {
	if doors := u.f.doors(); len(doors) > 0 {
		_, _ = doors[u.rng.IntN(len(doors))].Read(context.Background(), false, func(v board.View) error { fn(v); return nil })
	}
}

// ask asks until there is an outcome or patience ends: each try through another door, under the same id.
func (u *user) ask(verb string, args any) outcome {
	out := outcome{asked: asked{none: true}}
	for try := range 8 {
		m := u.f.machines[u.rng.IntN(len(u.f.machines))]
		p := m.up()
		if p == nil || !p.ready.Load() {
			_ = pass(context.Background(), 150*time.Millisecond)
			continue
		}
		door := p.node.Backend()
		if out.req.Verb == "" {
			out.req = request(door, verb, args)
			out.req.Vouch = u.vouch(door, verb, args)
			u.f.count("request")
		} else {
			id, name := door.Self()
			out.req.Actor.Name, out.req.Actor.Node = "ann@"+name, id
			u.f.count("request tried again through another node")
		}
		out.req.Retry = out.open
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(500+u.rng.IntN(5000))*time.Millisecond)
		at := time.Now()
		res := door.Do(ctx, out.req)
		cancel()
		switch {
		case p.ctx.Err() != nil: // who asks a process that died gets no answer
			out.open, out.none = true, false
		case out.req.ID == "" && (res.Err == nil || res.Err.Code != board.Unavailable):
			u.f.bug("%s without an id was answered: %v", verb, res.Err)
			return out
		case out.req.ID == "":
			u.f.count("request without an id is not taken")
			return out
		case res.Err == nil:
			out.seq, out.data, out.open, out.none = res.Seq, res.Data, false, false
			u.answered(out.req, at, &res)
			u.f.keep(out.asked)
			return out
		case res.Err.Code == board.UnknownOutcome && res.Err.Check == board.CheckBelow:
			u.f.count("request below the horizon")
			u.f.keep(out.asked)
			return out
		case res.Err.Code == board.UnknownOutcome:
			out.open, out.none = true, false
		case res.Err.Code != board.Unavailable:
			out.seq, out.code, out.open, out.none = res.Seq, res.Err.Code, false, false
			u.answered(out.req, at, &res)
			u.f.keep(out.asked)
			return out
		}
		_ = pass(context.Background(), time.Duration(50+u.rng.IntN(300)*(try+1))*time.Millisecond)
	}
	if out.open {
		u.f.count("request of unknown outcome")
	}
	u.f.keep(out.asked)
	return out
}

// changes are the verbs that never leave the state as it was when they are done.
var changes = map[string]bool{board.VCardAdd: true, board.VCardEdit: true, board.VCardPut: true, board.VEvent: true, board.VStart: true, board.VMove: true, board.VAdopt: true,
	board.VCardLink: true, board.VSend: true, board.VAgentFork: true, board.VImportBegin: true, board.VImportEnd: true}

// answered notes an answer that will be the same for every later copy: what was done, or the refusal of a marked retry.
func (u *user) answered(req board.Request, at time.Time, res *board.Result) {
	if res.Err != nil && !req.Retry || !changes[req.Verb] {
		return // of a first copy a refusal is not written, and of what changes nothing nothing is
	}
	o := op{User: u.n, Kind: "copy", Card: req.ID, Text: "done " + string(res.Data), Call: at, Ret: time.Now()}
	if res.Err != nil {
		o.Text = "refused: " + string(res.Err.Code)
	}
	u.f.mu.Lock()
	defer u.f.mu.Unlock()
	u.f.ops = append(u.f.ops, o)
}

// again sends one more copy of a request: its answer is the one that was given, and one that nobody knew is known now.
func (u *user) again(a *asked) {
	door := u.f.doors()[u.rng.IntN(len(u.f.doors()))]
	id, name := door.Self()
	req := a.req
	req.Retry, req.Actor.Name, req.Actor.Node = true, "ann@"+name, id
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	at := time.Now()
	res := door.Do(ctx, req)
	switch {
	case res.Err == nil || res.Err.Code != board.Unavailable && res.Err.Code != board.UnknownOutcome:
		u.answered(req, at, &res)
	case res.Err.Check != board.CheckBelow:
		u.f.bug("request %s (%s) has no outcome at %s after everything was healed: %v", req.ID, req.Verb, name, res.Err)
		u.f.describe()
	}
	if a.open {
		u.f.count("unknown outcome asked for again")
	}
}

func (f *Fleet) keep(a asked) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, a)
}

// record keeps what the models look at.
func (u *user) record(o op, got outcome) {
	if got.none {
		return
	}
	o.Ret, o.Open, o.Refused = time.Now(), got.open, got.code != ""
	u.f.mu.Lock()
	defer u.f.mu.Unlock()
	u.f.ops = append(u.f.ops, o)
}

// read is a consistent read of a card, at any door.
func (u *user) read(card string) bool {
	doors := u.f.doors()
	if len(doors) == 0 {
		return false
	}
	o := op{User: u.n, Kind: "read", Card: card, Call: time.Now()}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	door := doors[u.rng.IntN(len(doors))]
	fresh, err := door.Read(ctx, true, func(v board.View) error {
		o.Text, o.Prio = CardText(v, card)
		return nil
	})
	if err != nil {
		u.f.count("consistent read without an answer")
		return false
	}
	u.f.count("consistent read")
	u.back(life(door), fresh.Index)
	o.Ret = time.Now()
	u.f.mu.Lock()
	defer u.f.mu.Unlock()
	u.f.ops = append(u.f.ops, o)
	return true
}

// CardText is what the models know of a card: what users said, in order, and its priority.
func CardText(v board.View, card string) (said string, prio int64) {
	c := board.GetCard(v, card)
	if c == nil {
		return "", 0
	}
	var list []string
	board.EachComment(v, c, func(m *board.Comment) bool {
		if strings.HasPrefix(m.Body, "u") {
			list = append(list, m.Body)
		}
		return true
	})
	slices.Sort(list)
	return strings.Join(list, " "), c.Priority
}

// glance is a local read.
func (u *user) glance() {
	doors := u.f.doors()
	if len(doors) == 0 {
		return
	}
	door := doors[u.rng.IntN(len(doors))]
	fresh, err := door.Read(context.Background(), false, func(board.View) error { return nil })
	if err == nil {
		u.f.count("local read")
		u.back(life(door), fresh.Index)
	}
}

// life names one process of a node.
func life(door api.Backend) string {
	id, _ := door.Self()
	return id + door.Info().Started.String()
}

// back holds a process's reads against each other: they never go back.
func (u *user) back(process string, index uint64) {
	if was := u.seen[process]; index < was {
		u.f.bug("a read goes back: Seq %d after %d", index, was)
	}
	u.seen[process] = index
}
