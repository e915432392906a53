package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"muster/board"
)

// rig is a leader without Raft: the real Exec on a state in memory, a feed, a
// contact table that the test sets, and a board time that follows the (fake) clock.
type rig struct {
	t      testing.TB
	mu     sync.Mutex
	v      *board.MemView
	ws     *board.Workflows
	began  time.Time
	subs   []*rigFeed
	sm     sync.Mutex // states and heard: what the contact table would say
	states map[string]board.Reading
	heard  map[string]time.Time // last answer to a node
	loop   *Loop
	asked  []string // verbs the loop has asked for
	num    map[string]uint64

	condemned atomic.Int64 // nodes that get no answer now
	refuse    string       // verb that the executor does not take
	held      board.HeldTable
	before    func(verb string) // what happens between a plan and its request
	startsOn  map[string][]int64
	perRound  int // starts of a round on one machine, 0: not checked

	// watch sees each transaction of the executor before it is in the state; without it
	// the caps of the board shell are checked.
	watch func(req *board.Request, res *board.Result, pre, post board.View, env *board.Env)
}

// remembered keeps compiled workflows from test to test: it is safe to share.
var remembered = board.NewWorkflows()

const t0 = int64(1_800_000_000_000)

type rigFeed struct {
	mu   sync.Mutex
	c    chan struct{}
	keys []Key
	all  bool
}

func (f *rigFeed) C() <-chan struct{} { return f.c }
func (f *rigFeed) Close()             {}
func (f *rigFeed) Take() ([]Key, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k, a := f.keys, f.all
	f.keys, f.all = nil, false
	return k, a
}

func newRig(t testing.TB, yaml string, nodes ...string) *rig {
	t.Helper()
	r := &rig{t: t, v: board.NewMemView(), ws: remembered, began: time.Now(), states: map[string]board.Reading{}, heard: map[string]time.Time{}, num: map[string]uint64{}}
	r.must(board.Platform(), board.VFleetInit, board.FleetInit{ID: "f", EraTag: "t", Node: board.NodeUp{ID: "n-" + nodes[0], Name: nodes[0], Slots: 2, Harnesses: []string{"command", "claude-code"}}})
	r.online(nodes[0])
	for _, n := range nodes[1:] {
		r.person(board.VTokenCreate, board.TokenCreate{ID: board.HashSecret(n), Role: "node", TTL: 60})
		r.must(board.Actor{Kind: board.ActorNode, Node: "n-" + n}, board.VNodeJoin, board.NodeJoin{Node: board.NodeUp{ID: "n-" + n, Name: n, Slots: 2, Harnesses: []string{"command", "claude-code"}}, Secret: n})
		r.online(n)
	}
	if yaml != "" {
		r.person(board.VBoardApply, board.BoardApply{Board: "default", YAML: yaml})
	}
	return r
}

const shell = `
version: 1
name: default
extends: default
profiles:
  sh: {harness: command, args: [sh, -c, 'true']}
  named: {parent: sh, placement: named}
  git: {parent: sh, requires: '"git" in machine.tools'}
  east: {parent: sh, prefer: 'machine.name == "borea" ? 1 : 0'}
  two: {parent: sh, capacity: 2}
  none: {parent: sh, capacity: 0}
`

func (r *rig) online(name string) {
	r.set("n-"+name, board.Reading{State: board.NodeOnline, Slots: 2, Pressure: "normal"})
	r.hear("n-" + name)
}

func (r *rig) now() int64 { return t0 + time.Since(r.began).Milliseconds() }

// Do executes a request.
func (r *rig) Do(_ context.Context, req *board.Request) board.Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, req.Verb)
	if req.Verb == board.VGone && r.condemned.Load() == 0 {
		r.t.Error("a session is counted gone by lease while its node may still be answered")
	}
	if r.before != nil {
		r.before(req.Verb)
	}
	if req.Verb == r.refuse {
		return board.Result{Err: board.Errorf(board.Exhausted, "not now")}
	}
	env := &board.Env{Now: max(r.now(), r.v.Time()), Seq: r.v.Seq() + 1, Workflows: r.ws, Nodes: r.state, Term: 1, Held: &r.held}
	batch := board.NewOverlay(r.v)
	txn, res := board.Exec(batch, req, env)
	if !txn.Empty() {
		batch.Apply(&txn)
	}
	if r.watch != nil {
		r.watch(req, &res, r.v, batch, env)
	}
	if !txn.Empty() {
		r.v.Apply(&txn)
		if r.watch == nil {
			r.noCapExceeded(req, &res)
		}
		for _, f := range r.subs {
			f.mu.Lock()
			for _, op := range txn.Ops {
				if Wants(op.Table, op.Key) {
					f.keys = append(f.keys, Key{op.Table, op.Key})
				}
			}
			f.mu.Unlock()
			select {
			case f.c <- struct{}{}:
			default:
			}
		}
	}
	return res
}

// DoAll implements Store.
func (r *rig) DoAll(ctx context.Context, reqs []*board.Request) (results []board.Result) {
	for _, req := range reqs {
		results = append(results, r.Do(ctx, req))
	}
	return results
}

// View implements Store.
func (r *rig) View(fn func(board.View) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fn(r.v)
}

// set is what the contact table says of a node from now on; hear is an answer to it.
func (r *rig) set(id string, x board.Reading) {
	r.sm.Lock()
	defer r.sm.Unlock()
	r.states[id] = x
}

func (r *rig) hear(id string) {
	r.sm.Lock()
	defer r.sm.Unlock()
	r.heard[id] = time.Now()
}

func (r *rig) state(id string) board.Reading {
	r.sm.Lock()
	defer r.sm.Unlock()
	if s, ok := r.states[id]; ok {
		return s
	}
	return board.Reading{State: board.NodeUnknown}
}

// rigContacts is the rig as Contacts.
type rigContacts struct{ r *rig }

func (c rigContacts) State(id string) board.Reading { return c.r.state(id) }

func (c rigContacts) GoneIn(node string, lease time.Duration) (time.Duration, bool) {
	if lease <= 0 {
		return 0, false
	}
	if c.r.state(node).State == board.NodeOnline {
		c.r.hear(node) // who is online was just answered
	}
	c.r.sm.Lock()
	defer c.r.sm.Unlock()
	return time.Until(c.r.heard[node].Add(lease + 5*time.Second)), true
}

func (c rigContacts) Condemn(node string, lease time.Duration) bool {
	d, ok := c.GoneIn(node, lease)
	c.r.condemned.Add(1)
	return ok && d <= 0
}

func (c rigContacts) Acquit(string) { c.r.condemned.Add(-1) }

func (rigContacts) Next([]string) (time.Duration, bool) { return 0, false }

func (r *rig) must(a board.Actor, verb string, args any) map[string]any {
	r.t.Helper()
	b, err := json.Marshal(args)
	if err != nil {
		r.t.Fatal(err)
	}
	res := r.Do(context.Background(), &board.Request{Actor: a, Verb: verb, Args: b})
	if res.Err != nil {
		r.t.Fatalf("%s: %v", verb, res.Err)
	}
	m := map[string]any{}
	_ = json.Unmarshal(res.Data, &m)
	return m
}

func (r *rig) person(verb string, args any) map[string]any {
	r.t.Helper()
	var node string
	_ = r.View(func(v board.View) error {
		board.EachNode(v, func(n *board.Node) bool { node = n.ID; return false })
		return nil
	})
	return r.must(board.Actor{Kind: board.ActorPerson, Name: "ann", Node: node}, verb, args)
}

func (r *rig) add(profile string, more ...func(*board.CardAdd)) string {
	r.t.Helper()
	title := "card"
	a := board.CardAdd{CardFields: board.CardFields{Title: &title}}
	if profile != "" {
		a.Assignee = &profile
	}
	for _, fn := range more {
		fn(&a)
	}
	return r.person(board.VCardAdd, a)["id"].(string)
}

func priority(n int64) func(*board.CardAdd) { return func(a *board.CardAdd) { a.Priority = &n } }
func machine(m string) func(*board.CardAdd) { return func(a *board.CardAdd) { a.Machine = &m } }
func after(ids ...string) func(*board.CardAdd) {
	return func(a *board.CardAdd) { a.After = ids }
}

func (r *rig) report(node string, rep board.Report) {
	r.t.Helper()
	r.num[node]++
	b, _ := json.Marshal(rep)
	res := r.Do(context.Background(), &board.Request{Actor: board.Actor{Kind: board.ActorNode, Node: node}, Verb: board.VReport, Args: b, Journal: "j" + node, Number: r.num[node]})
	if res.Err != nil && res.Err.Check != "superseded" {
		r.t.Fatalf("report %s: %v", rep.Kind, res.Err)
	}
}

// launch answers a run's order as its node would.
func (r *rig) launch(run *board.Run) {
	r.t.Helper()
	r.report(run.Node, board.Report{Kind: board.ReportTaken, Run: run.ID})
	r.report(run.Node, board.Report{Kind: board.ReportLaunched, Run: run.ID, PID: 1})
}

func (r *rig) exit(run *board.Run, code int64) {
	r.t.Helper()
	r.report(run.Node, board.Report{Kind: board.ReportExited, Run: run.ID, Code: &code})
}

func (r *rig) card(id string) *board.Card {
	var c *board.Card
	_ = r.View(func(v board.View) error { c = board.GetCard(v, id); return nil })
	return c
}

// current are the current runs, in order of their cards' ids.
func (r *rig) current() (runs []*board.Run) {
	_ = r.View(func(v board.View) error {
		board.EachCard(v, nil, func(c *board.Card) bool {
			if c.Run != "" {
				runs = append(runs, board.GetRun(v, c.Run))
			}
			return true
		})
		return nil
	})
	return runs
}

func (r *rig) input() Input {
	in := Input{View: r.v, Workflows: r.ws, Nodes: r.state, Now: max(r.now(), r.v.Time())}
	if r.loop != nil { // what it remembers of nodes that refuse is its own
		in.Aside = r.loop.asides.of(r.v, board.NewRoom(r.v, r.ws), in.Now, r.state)
	}
	return in
}

// lead starts the loop in a bubble; it ends with the test.
func (r *rig) lead(ctx context.Context) {
	f := &rigFeed{c: make(chan struct{}, 1), all: true}
	f.c <- struct{}{}
	r.mu.Lock()
	r.subs = append(r.subs, f)
	r.mu.Unlock()
	r.loop = New(Config{Store: r, Feed: f, Contacts: rigContacts{r}, Workflows: r.ws, Now: r.now})
	go r.loop.Run(ctx)
	synctest.Wait()
}

// inBubble runs a test with a loop in fake time.
func inBubble(t *testing.T, yaml string, nodes []string, fn func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		r := newRig(t, yaml, nodes...)
		defer func() { cancel(); synctest.Wait() }()
		r.lead(ctx)
		fn(r)
		r.noOvercommit()
	})
}

// noOvercommit checks at the end of every test: no machine holds more than its slots (invariant 21).
func (r *rig) noOvercommit() {
	r.t.Helper()
	if n := r.condemned.Load(); n != 0 {
		r.t.Errorf("%d nodes are left without answers", n)
	}
	_ = r.View(func(v board.View) error { r.overcommit(v); return nil })
}

// noCapExceeded checks every cap of the rig's board after a transaction.
func (r *rig) noCapExceeded(req *board.Request, res *board.Result) {
	r.overcommit(r.v)
	if req.Verb == board.VStart && res.Err == nil {
		var a struct{ Machine string }
		_ = json.Unmarshal(res.Data, &a)
		if r.startsOn == nil {
			r.startsOn = map[string][]int64{}
		}
		r.startsOn[a.Machine] = append(r.startsOn[a.Machine], r.v.Time())
		n := 0
		for _, at := range r.startsOn[a.Machine] {
			if at > r.v.Time()-60_000 {
				n++
			}
		}
		if r.perRound > 0 && n > r.perRound {
			r.t.Errorf("%d starts on %s within a round of at most %d", n, a.Machine, r.perRound)
		}
	}
}

// overcommit holds what is held against the slots of each machine and the
// capacity of each profile (invariant 21).
func (r *rig) overcommit(v board.View) {
	held, runs := map[string]int64{}, map[string]int64{}
	board.EachHeld(v, "", func(h *board.Held) bool {
		if run := board.GetRun(v, h.Run); run != nil && !run.Forced {
			held[h.Node]++
			if !h.Ended {
				runs[h.Profile]++
			}
		}
		return true
	})
	board.EachNode(v, func(n *board.Node) bool {
		if held[n.ID] > n.Slots {
			r.t.Errorf("%s holds %d sessions of %d slots", n.Name, held[n.ID], n.Slots)
		}
		return true
	})
	for profile, most := range map[string]int64{"two": 2, "none": 0} {
		if runs[profile] > most {
			r.t.Errorf("profile %s has %d runs of %d", profile, runs[profile], most)
		}
	}
}

func starts(list []Start) string {
	s := ""
	for _, x := range list {
		s += fmt.Sprintf("%s@%s ", x.Card, x.Node)
	}
	return s
}

// What the state holds, read under its lock: the loop may be at work.
func (r *rig) run(id string) (x *board.Run) {
	_ = r.View(func(v board.View) error { x = board.GetRun(v, id); return nil })
	return x
}

func (r *rig) node(id string) (x *board.Node) {
	_ = r.View(func(v board.View) error { x = board.GetNode(v, id); return nil })
	return x
}

func (r *rig) heldRow(id string) (x *board.Held) {
	_ = r.View(func(v board.View) error { x = board.GetHeld(v, id); return nil })
	return x
}

// count is how often the loop has asked for a verb.
func (r *rig) count(verb string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.asked {
		if x == verb {
			n++
		}
	}
	return n
}
