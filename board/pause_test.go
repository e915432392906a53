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
profiles: {sh: {harness: command, args: [true]}, rev: {harness: command, verdict: explicit, args: [true]}}
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

// M-14, M-16, DSP-16, CAP-05: the table of DESIGN.md: which way in is held by what.
// The executor holds them all, whatever the leader has planned before.
func TestWaysIn(t *testing.T) {
	const all, force = "all", "but by force"
	for _, x := range []struct {
		name, holds, check string
		set                func(w *world, card string)
	}{
		{"cap of the fleet", force, "cap", func(w *world, _ string) { w.params("web", `{"running":0}`) }},
		{"cap of the board", force, "cap", func(w *world, _ string) { w.params("web", `{"board":0}`) }},
		{"cap of the machine", force, "cap", func(w *world, _ string) { w.params("web", `{"machine":0}`) }},
		{"cap of the profile", force, "cap", func(w *world, _ string) { w.params("web", `{"profile":0}`) }},
		{"cap of the harness", force, "cap", func(w *world, _ string) { w.params("web", `{"harness":0}`) }},
		{"cap of the model", force, "cap", func(w *world, _ string) { w.params("web", `{"model":0}`) }},
		{"cap of the card", force, "cap", func(w *world, _ string) { w.params("web", `{"card":0}`) }},
		{"cap of starts", force, "cap", func(w *world, _ string) { w.params("web", `{"starts":0}`) }},
		{"another board's cap", force, "cap", func(w *world, _ string) { w.board("ops", everyCap); w.params("ops", `{"running":0}`) }},
		{"reserve", force, "cap", func(w *world, _ string) {
			w.params("web", `{"machine":1,"kept":1}`)
			id := w.add("r", nil)
			w.set(id, func(c *Card) { c.Status, c.Stored = "review", "review" })
		}},
		{"pause of the fleet", force, "pause", func(w *world, _ string) { w.ok(VPause, Pause{Why: "upgrade"}) }},
		{"pause of the board", force, "pause", func(w *world, _ string) { w.ok(VPause, Pause{Board: "web", Why: "upgrade"}) }},
		{"respawn guard", force, "rate_limit", func(w *world, id string) {
			r := w.started(id)
			w.must(id, "exited", Platform(), "code", int64(75))
			w.gone(r.ID)
		}},
		{"drain", all, "drain", func(w *world, _ string) { w.ok(VDrain, Drain{Node: "atlas", Why: "moves"}) }},
		{"ESTOP", all, "estop", func(w *world, _ string) {
			r := w.nodes["n-atlas"]
			r.Estop = true
			w.nodes["n-atlas"] = r
		}},
		{"guard", all, NoTransition, func(w *world, id string) { w.set(id, func(c *Card) { c.Status, c.Stored = "blocked", "blocked" }) }},
		{"current run", all, "", func(w *world, id string) { w.started(id) }},
		{"occupied slot", all, "session_not_gone", func(w *world, id string) {
			w.started(id)
			w.must(id, "cancel", manager)
			w.must(id, "reopen", manager)
		}},
		{"another board's pause", "nobody", "", func(w *world, _ string) { w.board("ops", ""); w.ok(VPause, Pause{Board: "ops", Why: "x"}) }},
		{"eligible", "nobody", "", func(w *world, _ string) {
			r := w.nodes["n-atlas"]
			r.Pressure = "critical"
			w.nodes["n-atlas"] = r
		}},
	} {
		for _, way := range []string{"planner", "manual", "by force"} {
			t.Run(x.name+"/"+way, func(t *testing.T) {
				w := newWorld(t, everyCap)
				id := w.add("x", func(c *Card) { c.Assignee = "sh" })
				x.set(w, id)
				var err *Error
				switch way {
				case "planner":
					err = w.through(Platform(), VStart, Start{Card: id, Node: "n-atlas"}, "")
				case "manual":
					err = w.through(byAnn, VStart, Start{Card: id}, "n-atlas")
				default:
					err = w.through(byAnn, VStart, Start{Card: id, Force: true, Why: "now"}, "n-atlas")
				}
				if held := x.holds == all || x.holds == force && way != "by force"; !held {
					if err != nil {
						t.Fatalf("refused: %v", err)
					}
					if r := LastRun(w.v, w.card(id)); r == nil || r.Forced != (way == "by force") {
						t.Fatalf("run %+v; forced runs are marked, and no others", r)
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
	if f := GetFleet(w.v); f.PausedBy != "ann" || f.PausedWhy != "upgrade" || f.PausedAt != w.now {
		t.Fatalf("paused by %q at %d: %q", f.PausedBy, f.PausedAt, f.PausedWhy)
	}
	refused(t, w.start(id), "pause", "the fleet is paused by ann: upgrade")
	before := w.v.Seq()
	w.ok(VPause, Pause{Why: "upgrade"})
	if w.v.Seq() != before {
		t.Fatal("the same pause again writes something")
	}
	w.ok(VResume, Pause{})
	w.ok(VPause, Pause{Board: "web", Why: "release"})
	refused(t, w.start(id), "pause", "board web is paused by ann: release")
	w.ok(VResume, Pause{Board: "web"})
	w.ok(VDrain, Drain{Node: "atlas", Why: "moves"})
	if n := GetNode(w.v, "n-atlas"); !n.Draining || n.DrainBy != "ann" || n.DrainWhy != "moves" || n.DrainAt != w.now {
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
	refused(t, w.through(byAnn, VPause, Pause{Why: "x"}, ""), "", "member")
	refused(t, w.through(byAnn, VDrain, Drain{Node: "atlas"}, ""), "", "member")
}
