package board

import (
	"encoding/json"
	"strings"
	"testing"
)

// world is a small fleet in memory: a board, nodes, cards, and a clock that the test moves.
type world struct {
	t     testing.TB
	v     *MemView
	ws    *Workflows
	now   int64
	nodes map[string]Reading
}

// remembered keeps compiled workflows from test to test: it is safe to share, and what it holds is compared with the view's.
var remembered = NewWorkflows()

const t0 = int64(1_800_000_000_000)

var (
	manager = Actor{Kind: ActorPerson, Role: "manager", Name: "ann@atlas"}
	member  = Actor{Kind: ActorPerson, Role: "member", Name: "ben@atlas"}
	viewer  = Actor{Kind: ActorPerson, Role: "viewer", Name: "cat@atlas"}
)

func asRun(id string) Actor { return Actor{Kind: ActorRun, Name: id, Run: id} }

// newWorld has board web (prefix web, default workflow unless a YAML is given) and node atlas, always on, four slots.
func newWorld(t testing.TB, yaml string) *world {
	t.Helper()
	w := &world{t: t, v: NewMemView(), ws: remembered, now: t0, nodes: map[string]Reading{}}
	w.write(func(x *tx) *Error {
		x.putFleet(&Fleet{ID: "f1", Era: 1})
		return nil
	})
	w.board("web", yaml)
	w.node("atlas", 4)
	return w
}

// commands is a board whose profiles run plain commands: what this version can start.
const commands = `
version: 1
name: web
extends: default
profiles:
  sh: {harness: command, args: [sh, -c, 'sh "$MUSTER_BODY"']}
  agent: {harness: command, verdict: explicit, args: [agent, '{{ prompt }}']}
  rev: {harness: command, verdict: explicit, args: [review]}
`

func (w *world) board(slug, yaml string) {
	w.t.Helper()
	w.write(func(x *tx) *Error {
		b := &Board{Slug: slug, Prefix: slug, Created: w.now}
		if yaml != "" {
			b.Workflow = 1
			x.put(TWorkflow, WorkflowKey(slug, 1), &WorkflowDoc{Board: slug, Version: 1, Source: []byte(yaml)})
		}
		x.putBoard(b)
		x.write(Op{Table: TPrefix, Key: slug, Val: []byte(slug)})
		return nil
	})
	if _, err := w.ws.Of(w.v, GetBoard(w.v, slug)); err != nil {
		w.t.Fatalf("board %s: %v", slug, err)
	}
}

func (w *world) node(name string, slots int64) {
	w.write(func(x *tx) *Error {
		x.putNode(&Node{ID: "n-" + name, Name: name, Slots: slots, State: NodeOnline})
		return nil
	})
	w.nodes["n-"+name] = Reading{State: NodeOnline, Slots: slots, Pressure: "normal"}
}

func (w *world) edit(name string, fn func(n *Node)) {
	w.write(func(x *tx) *Error {
		n := GetNode(x, "n-"+name)
		fn(n)
		x.putNode(n)
		return nil
	})
}

// params sets a board's own parameters.
func (w *world) params(slug, js string) {
	w.write(func(x *tx) *Error {
		b := GetBoard(x, slug)
		b.Params = []byte(js)
		x.putBoard(b)
		return nil
	})
}

func (w *world) env() *Env {
	return &Env{Now: w.now, Seq: w.v.Seq() + 1, Workflows: w.ws, Nodes: func(id string) Reading {
		if r, ok := w.nodes[id]; ok {
			return r
		}
		return Reading{State: NodeUnknown}
	}}
}

// try runs fn in a transaction that counts only when it succeeds.
func (w *world) try(fn func(x *tx) *Error) *Error {
	x := newTx(w.v, &Request{Actor: manager}, w.env())
	if err := fn(x); err != nil {
		return err
	}
	txn := x.txn()
	w.v.Apply(&txn)
	return nil
}

func (w *world) write(fn func(x *tx) *Error) {
	w.t.Helper()
	if err := w.try(fn); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) after(seconds float64) { w.now += int64(seconds * 1000) }

// add files a card by a manager; fn may change it before it is stored.
func (w *world) add(title string, fn func(c *Card), after ...string) string {
	w.t.Helper()
	return w.addBy("web", manager, title, fn, nil, after...)
}

func (w *world) addBy(slug string, by Actor, title string, fn func(c *Card), payload map[string]any, after ...string) (id string) {
	w.t.Helper()
	w.write(func(x *tx) *Error {
		b := GetBoard(x, slug)
		c := x.mintCard(b)
		c.Title, c.Creator, id = title, by, c.ID
		if fn != nil {
			fn(c)
		}
		x.putCard(c)
		for _, p := range after {
			if err := x.addLink(c.ID, p); err != nil {
				return err
			}
		}
		if err := x.initial(b, c, payload); err != nil {
			return err
		}
		x.putCard(c)
		return nil
	})
	return id
}

// fire sends an event; the platform's observations are about the card's run.
func (w *world) fire(card, event string, by Actor, payload ...any) (*move, *Error) {
	p := map[string]any{}
	for i := 0; i+1 < len(payload); i += 2 {
		p[payload[i].(string)] = payload[i+1]
	}
	return w.firing(card, firing{Event: event, Actor: by, Payload: p})
}

func (w *world) firing(card string, f firing) (m *move, err *Error) {
	err = w.try(func(x *tx) (err *Error) {
		c := GetCard(x, card)
		if c == nil {
			return Errorf(NotFound, "no card %s", card)
		}
		if f.Actor.Kind == ActorPlatform && FleetEvent(f.Event) && f.Event != "promote" && f.Run == nil && c.Run != "" {
			f.Run = GetRun(x, c.Run)
		}
		m, err = x.fire(GetBoard(x, c.Board), c, f)
		return err
	})
	return m, err
}

func (w *world) must(card, event string, by Actor, payload ...any) *Card {
	w.t.Helper()
	if _, err := w.fire(card, event, by, payload...); err != nil {
		w.t.Fatalf("%s %s: %v (%s)", card, event, err, err.Hint)
	}
	return w.card(card)
}

// start claims a card on atlas for the platform.
func (w *world) start(card string) *Error {
	_, err := w.firing(card, firing{Event: "start", Actor: Platform(), Start: &startCtx{Node: "n-atlas"}})
	return err
}

func (w *world) claimed(card string) *Run {
	w.t.Helper()
	if err := w.start(card); err != nil {
		w.t.Fatalf("start %s: %v (%s)", card, err, err.Hint)
	}
	return GetRun(w.v, w.card(card).Run)
}

// started is a start whose node has launched it.
func (w *world) started(card string) *Run {
	w.t.Helper()
	if err := w.start(card); err != nil {
		w.t.Fatalf("start %s: %v (%s)", card, err, err.Hint)
	}
	return w.launched(GetRun(w.v, w.card(card).Run))
}

// report is what a run's node says, as Exec takes it.
func (w *world) report(run string, a Report) {
	w.t.Helper()
	w.write(func(x *tx) *Error {
		a.Run = run
		x.req.Actor = Actor{Kind: ActorNode, Node: GetRun(x, run).Node}
		x.req.Args = jsonOf(a)
		_, err := report(x)
		return err
	})
}

// launched reports a start as taken and launched.
func (w *world) launched(r *Run) *Run {
	w.t.Helper()
	w.report(r.ID, Report{Kind: ReportTaken})
	w.report(r.ID, Report{Kind: ReportLaunched, PID: 7})
	return GetRun(w.v, r.ID)
}

// gone reports that nothing of a run lives any more.
func (w *world) gone(run string) {
	w.t.Helper()
	w.report(run, Report{Kind: ReportGone})
}

// exit reports the end of a card's session by itself.
func (w *world) exit(card string, code int64) *Card {
	w.t.Helper()
	w.report(w.card(card).Run, Report{Kind: ReportExited, Code: &code})
	return w.card(card)
}

func (w *world) card(id string) *Card {
	w.t.Helper()
	c := GetCard(w.v, id)
	if c == nil {
		w.t.Fatalf("no card %s", id)
	}
	return c
}

func (w *world) status(id, want string) {
	w.t.Helper()
	if c := w.card(id); c.Status != want {
		w.t.Fatalf("card %s is %s, want %s", id, c.Status, want)
	}
}

func (w *world) events(card string) (kinds []string) {
	CardEvents(w.v, w.card(card), func(e *Event) bool {
		kinds = append([]string{e.Kind}, kinds...)
		return true
	})
	return kinds
}

func (w *world) lastEvent(card, kind string) (found *Event) {
	w.t.Helper()
	CardEvents(w.v, w.card(card), func(e *Event) bool {
		if e.Kind == kind {
			found = e
		}
		return found == nil
	})
	if found == nil {
		w.t.Fatalf("card %s has no event %q: %v", card, kind, w.events(card))
	}
	return found
}

func (w *world) orders(kind string) (list []*Order) {
	EachOrder(w.v, "", func(o *Order) bool {
		if o.Kind == kind {
			list = append(list, o)
		}
		return true
	})
	return list
}

func (w *world) dues(kind string) (list []*Due) {
	EachDue(w.v, 1<<62, func(_ string, d *Due) bool {
		if d.Kind == kind {
			list = append(list, d)
		}
		return true
	})
	return list
}

func (w *world) spec(run *Run) (s StartSpec) {
	w.t.Helper()
	o := GetOrder(w.v, run.Node, run.Order)
	if o == nil {
		w.t.Fatalf("run %s has no start order", run.ID)
	}
	if err := json.Unmarshal(o.Spec, &s); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// refused checks a refusal's class and words.
func refused(t testing.TB, err *Error, check, words string) {
	t.Helper()
	if err == nil {
		t.Fatalf("it was taken; want a refusal %q", check)
	}
	if err.Check != check || !strings.Contains(err.Message+" "+err.Hint, words) {
		t.Fatalf("refused with check %q: %s (%s); want check %q with %q", err.Check, err.Message, err.Hint, check, words)
	}
}

func opt(n int64) *int64 { return &n }
