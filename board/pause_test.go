package board

import (
	"encoding/json"
	"testing"
)

var byAnn = Actor{Kind: ActorPerson, Name: "ann", Node: "n-atlas"}

// through sends a request through Exec and applies what comes of it.
func (w *world) through(a Actor, verb string, args any, place string) *Error {
	w.t.Helper()
	b, err := json.Marshal(args)
	if err != nil {
		w.t.Fatal(err)
	}
	txn, res := Exec(w.v, &Request{Verb: verb, Actor: a, Args: b, Place: place}, w.env())
	if !txn.Empty() {
		w.v.Apply(&txn)
	}
	return res.Err
}

const everyCap = `
version: 1
name: web
extends: default
params: {reviewer: rev, running: null, board: null, machine: null, profile: null, harness: null, model: null, card: null, starts: null, kept: null}
harnesses: {agent: {headless: {fresh: [agent], resume: [agent, again]}, session: minted}}
profiles: {sh: {harness: command, args: [true]}, ag: {harness: agent}, rev: {harness: command, verdict: explicit, args: [true]}}
dispatch:
  capacity:
    - {description: f, counts: runs, scope: fleet, max: params.running}
    - {description: b, counts: cards, scope: board, max: params.board}
    - {description: m, counts: sessions, scope: machine, max: params.machine, reserve: {for: {status: reviewing}, slots: params.kept}}
    - {description: a, counts: runs, scope: assignee, max: params.profile}
    - {description: h, counts: runs, scope: harness, max: params.harness}
    - {description: o, counts: turns, scope: model, max: params.model}
    - {description: c, counts: cards, scope: card, max: params.card}
    - {description: s, counts: starts, scope: machine, max: params.starts}
`

// waysIn are the ways in which a card comes to a run. Each asks as it does in a
// fleet; prepare is what happened before.
var waysIn = []struct {
	name    string
	prepare func(w *world, id string)
	ask     func(w *world, id string) *Error
}{
	{"planner", nil, byPlan},
	{"manual", nil, func(w *world, id string) *Error { return w.through(byAnn, VStart, Start{Card: id}, "n-atlas") }},
	{"manual by force", nil, func(w *world, id string) *Error {
		return w.through(byAnn, VStart, Start{Card: id, Force: true, Why: "now"}, "n-atlas")
	}},
	{"deferred", func(w *world, id string) { // it was refused before, and nothing is kept of that
		w.ok(VPause, Pause{Why: "x"})
		refused(w.t, byPlan(w, id), "pause", "")
		w.ok(VResume, Pause{})
	}, byPlan},
	{"resumed", func(w *world, id string) { // its session goes on
		w.set(id, func(c *Card) { c.Assignee = "ag" })
		w.requeue(id)
	}, byPlan},
	{"adopted", nil, func(w *world, id string) *Error {
		return w.ask(byAnn, VAdopt, Adopt{Card: id}, vouch("s-1", func(v *Vouch) { v.Harness = "agent" })).Err
	}},
	{"requeued", (*world).requeue, byPlan},
}

func byPlan(w *world, id string) *Error {
	return w.through(Platform(), VStart, Start{Card: id, Node: "n-atlas"}, "")
}

// requeue takes a card's run away, so that it waits anew.
func (w *world) requeue(id string) {
	r := w.started(id)
	w.must(id, "reclaim", manager)
	w.gone(r.ID)
}

// M-14, M-16, DSP-16, LAU-04, CAP-05: the table of DESIGN.md: which way in is held by
// what. The executor holds them all, whatever the leader has planned before.
func TestWaysIn(t *testing.T) {
	const force, adopted = "manual by force", "adopted"
	everybody := []string{"planner", "manual", force, "deferred", "resumed", adopted, "requeued"}
	cap := func(board, params string) func(w *world, _ string) {
		return func(w *world, _ string) {
			if board != "web" {
				w.board(board, everyCap)
			}
			w.params(board, params)
		}
	}
	for _, x := range []struct {
		name, check string
		free        []string // the ways that are not held by it
		set         func(w *world, card string)
	}{
		{"cap of the fleet", "cap", []string{force, adopted}, cap("web", `{"running":0}`)},
		{"cap of the board", "cap", []string{force, adopted}, cap("web", `{"board":0}`)},
		{"cap of the machine", "cap", []string{force, adopted}, cap("web", `{"machine":0}`)},
		{"cap of the assignee", "cap", []string{force, adopted}, cap("web", `{"profile":0}`)},
		{"cap of the harness", "cap", []string{force, adopted}, cap("web", `{"harness":0}`)},
		{"cap of the model", "cap", []string{force, adopted}, cap("web", `{"model":0}`)},
		{"cap of the card", "cap", []string{force, adopted}, cap("web", `{"card":0}`)},
		{"cap of starts", "cap", []string{force, adopted}, cap("web", `{"starts":0}`)},
		{"another board's cap", "cap", []string{force, adopted}, cap("ops", `{"running":0}`)},
		{"reserve", "cap", []string{force, adopted}, func(w *world, _ string) {
			w.params("web", `{"machine":1,"kept":1}`)
			id := w.add("r", nil)
			w.set(id, func(c *Card) { c.Status, c.Stored = "review", "review" })
		}},
		{"rate limit of the account", "cooldown", []string{force, adopted}, func(w *world, id string) {
			w.set(id, func(c *Card) { c.Assignee = "ag" })
			w.write(func(x *tx) *Error { x.coolFor("machine/n-atlas/agent", 60_000); return nil })
		}},
		{"respawn guard", "blocker_auth", []string{force, adopted}, func(w *world, id string) {
			r := w.started(id)
			w.must(id, "exited", Platform(), "code", int64(1), "error", "HTTP 403")
			w.gone(r.ID)
		}},
		{"pause of the fleet", "pause", []string{force}, func(w *world, _ string) { w.ok(VPause, Pause{Why: "upgrade"}) }},
		{"pause of the board", "pause", []string{force}, func(w *world, _ string) { w.ok(VPause, Pause{Board: "web", Why: "upgrade"}) }},
		{"drain", "drain", nil, func(w *world, _ string) { w.ok(VDrain, Drain{Node: "atlas", Why: "moves"}) }},
		{"ESTOP", "estop", []string{adopted}, func(w *world, _ string) { // it governs launches, and nothing is launched
			r := w.nodes["n-atlas"]
			r.Estop = true
			w.nodes["n-atlas"] = r
		}},
		{"guard", NoTransition, nil, func(w *world, id string) { w.set(id, func(c *Card) { c.Status, c.Stored = "blocked", "blocked" }) }},
		{"current run", "", nil, func(w *world, id string) { w.started(id) }},
		{"occupied slot", "session_not_gone", nil, func(w *world, id string) {
			w.started(id)
			w.must(id, "cancel", manager)
			w.must(id, "reopen", manager)
		}},
		{"another board's pause", "", everybody, func(w *world, _ string) { w.board("ops", ""); w.ok(VPause, Pause{Board: "ops", Why: "x"}) }},
		{"eligible", "", everybody, func(w *world, _ string) { // it is the plan's: see TestPlanWaysIn
			r := w.nodes["n-atlas"]
			r.Pressure = "critical"
			w.nodes["n-atlas"] = r
		}},
	} {
		for _, way := range waysIn {
			t.Run(x.name+"/"+way.name, func(t *testing.T) {
				w := newWorld(t, everyCap)
				id := w.add("x", func(c *Card) { c.Assignee = "sh" })
				if way.prepare != nil {
					way.prepare(w, id)
				}
				w.after(120) // a round is over
				x.set(w, id)
				err := way.ask(w, id)
				if contains(x.free, way.name) {
					r := LastRun(w.v, w.card(id))
					if err != nil || r == nil || r.Forced != (way.name == force) || (r.Mode == ModeResume) != (way.name == "resumed") {
						t.Fatalf("%v; run %+v; forced runs are marked, and no others", err, r)
					}
					return
				}
				if err == nil || x.check != "" && err.Check != x.check {
					t.Fatalf("got %v (check %q), want a refusal by %q", err, err.check(), x.check)
				}
			})
		}
	}
}

// coolFor puts an account under a limit.
func (t *tx) coolFor(account string, ms int64) {
	t.put(TCool, account, &Cooldown{Account: account, What: account, Until: t.env.Now + ms})
}

func (e *Error) check() string {
	if e == nil {
		return ""
	}
	return e.Check
}

func (w *world) ok(verb string, args any) {
	w.t.Helper()
	if err := w.through(byAnn, verb, args, ""); err != nil {
		w.t.Fatalf("%s: %v", verb, err)
	}
}

// M-16: a pause and a drain say who, when and why; they are a manager's; ending
// them lets starts in again; what runs goes on.
func TestPauseAndDrain(t *testing.T) {
	w := newWorld(t, everyCap)
	running := w.started(w.add("r", func(c *Card) { c.Assignee = "sh" }))
	id := w.add("x", func(c *Card) { c.Assignee = "sh" })
	refused(t, w.through(byAnn, VPause, Pause{}, ""), "", "says why")
	refused(t, w.through(byAnn, VPause, Pause{Board: "none", Why: "x"}, ""), "", "none")
	w.ok(VPause, Pause{Why: "upgrade"})
	if f := GetFleet(w.v); f.PausedBy != "ann@atlas" || f.PausedWhy != "upgrade" || f.PausedAt != w.now {
		t.Fatalf("paused by %q at %d: %q", f.PausedBy, f.PausedAt, f.PausedWhy)
	}
	refused(t, w.start(id), "pause", "the fleet is paused by ann@atlas: upgrade")
	before := w.v.Seq()
	w.ok(VPause, Pause{Why: "upgrade"})
	if w.v.Seq() != before {
		t.Fatal("the same pause again writes something")
	}
	w.ok(VResume, Pause{})
	w.ok(VPause, Pause{Board: "web", Why: "release"})
	refused(t, w.start(id), "pause", "board web is paused by ann@atlas: release")
	w.ok(VResume, Pause{Board: "web"})
	w.ok(VDrain, Drain{Node: "atlas", Why: "moves"})
	if n := GetNode(w.v, "n-atlas"); !n.Draining || n.DrainBy != "ann@atlas" || n.DrainWhy != "moves" || n.DrainAt != w.now {
		t.Fatalf("%+v", n)
	}
	refused(t, w.start(id), "drain", "atlas is draining")
	if r := GetRun(w.v, running.ID); r.Stop != "" || r.State == RunEnded {
		t.Fatal("a drain ends what runs")
	}
	w.ok(VDrain, Drain{Node: "atlas", EndSessions: true, Why: "moves"})
	if r := GetRun(w.v, running.ID); r.Stop == "" || r.Outcome != "reclaimed" || w.card(running.Card).Failures != 0 {
		t.Fatalf("--end-sessions: stop %q, outcome %q, %d failures", r.Stop, r.Outcome, w.card(running.Card).Failures)
	}
	w.ok(VDrain, Drain{Node: "atlas", End: true})
	if n := GetNode(w.v, "n-atlas"); n.Draining || n.DrainBy != "" || n.DrainWhy != "" || n.DrainAt != 0 {
		t.Fatalf("%+v", n)
	}
	w.started(id)
	w.edit("atlas", func(n *Node) { n.Local = "member" })
	refused(t, w.through(byAnn, VPause, Pause{Why: "x"}, ""), CheckRole, "member")
	refused(t, w.through(byAnn, VDrain, Drain{Node: "atlas"}, ""), CheckRole, "member")
}
