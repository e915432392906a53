package board

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// WFL-19, WFL-20, RUN-01..04, M-04, M-12: a start is one transaction that
// writes the run, its place, its order, its due times and the claimed event.
func TestClaimWritesTheRun(t *testing.T) {
	w := newWorld(t, commands)
	id := w.add("do it", func(c *Card) { c.Assignee, c.MaxRuntime = "sh", opt(90) })
	seq := w.v.Seq()
	r := w.claimed(id)
	if w.v.Seq() != seq+1 {
		t.Fatal("more than one transaction")
	}
	c := w.card(id)
	if c.Status != "running" || c.Run != r.ID || c.Runs != 1 || r.ID != id+".1" {
		t.Fatalf("card %+v run %s", c, r.ID)
	}
	if r.State != RunClaimed || r.Status != "running" || r.Source != "ready" || r.Role != "implementer" || r.Slot != "worker" || r.Node != "n-atlas" ||
		r.Epoch != seq+1 || r.Era != 1 || r.Claimed != w.now || r.Expires != w.now+900_000 || r.Verd != "exit" {
		t.Fatalf("run %+v", r)
	}
	h := GetHeld(w.v, r.ID)
	if h == nil || h.Card != id || h.Node != "n-atlas" || h.Profile != "sh" || h.Status != "running" || h.Stored != "running" || h.Slot != "worker" || h.Ended {
		t.Fatalf("held %+v", h)
	}
	o := GetOrder(w.v, r.Node, r.Order)
	if o == nil || o.Kind != OrderStart || o.State != OrderPending || o.Run != r.ID || o.Seq != r.Epoch || o.Era != 1 || o.Expires != r.Expires {
		t.Fatalf("order %+v", o)
	}
	if d := w.dues(DueClaim); len(d) != 1 || d[0].At != r.Expires || d[0].Key != r.ID {
		t.Fatalf("claim expiry %v", d)
	}
	if d := w.dues(DueRun); len(d) != 1 || d[0].At != w.now+90_001 {
		t.Fatalf("runtime limit %v", d)
	}
	var p struct {
		Lock    string
		Expires int64
		RunID   string `json:"run_id"`
		Source  string `json:"source_status"`
	}
	e := w.lastEvent(id, "claimed")
	if err := json.Unmarshal(e.Payload, &p); err != nil {
		t.Fatal(err)
	}
	if want := "f1/1/" + jsonNumber(seq+1) + "/" + r.ID; p.Lock != want || w.spec(r).Lock != want {
		t.Fatalf("lock %q, in the order %q, want %q", p.Lock, w.spec(r).Lock, want)
	}
	if p.RunID != r.ID || p.Source != "ready" || p.Expires != r.Expires/1000 || e.Run != r.ID {
		t.Fatalf("claimed event %+v", p)
	}
}

func jsonNumber(n uint64) string { b, _ := json.Marshal(n); return string(b) }

// M-03, DSP-09, RUN-08, BRD-11, M-16, M-35: the executor checks every start again, whatever the plan said.
func TestClaimChecksEverythingAgain(t *testing.T) {
	for _, c := range []struct {
		name, check, words string
		forced             bool // force passes it
		set                func(w *world, id string)
	}{
		{"another run", NoTransition, "running", false, func(w *world, id string) { w.started(id) }},
		{"paused board", "pause", "ann", true, func(w *world, id string) {
			w.write(func(x *tx) *Error {
				b := GetBoard(x, "web")
				b.PausedAt, b.PausedBy, b.PausedWhy = 1, "ann", "holiday"
				x.putBoard(b)
				return nil
			})
		}},
		{"paused fleet", "pause", "power", true, func(w *world, id string) {
			w.write(func(x *tx) *Error {
				f := GetFleet(x)
				f.PausedAt, f.PausedBy, f.PausedWhy = 1, "ann", "power"
				x.putFleet(f)
				return nil
			})
		}},
		{"draining node", "drain", "draining", false, func(w *world, id string) { w.edit("atlas", func(n *Node) { n.Draining = true }) }},
		{"node that left", "machine", "left", false, func(w *world, id string) { w.edit("atlas", func(n *Node) { n.State = NodeLeft }) }},
		{"ESTOP", "estop", "ESTOP", false, func(w *world, id string) { w.nodes["n-atlas"] = Reading{State: NodeOnline, Slots: 4, Estop: true} }},
		{"full node", "cap", "atlas is full (0 of 0 sessions", true, func(w *world, id string) { w.nodes["n-atlas"] = Reading{State: NodeOnline, Slots: 0} }},
		{"another machine is named", "machine", "named by the card", false, func(w *world, id string) {
			w.node("brick", 1)
			w.set(id, func(c *Card) { c.Machine = "brick" })
		}},
		{"the board has a home", "machine", "home", false, func(w *world, id string) {
			w.node("brick", 1)
			w.write(func(x *tx) *Error {
				b := GetBoard(x, "web")
				b.Home = "brick"
				x.putBoard(b)
				return nil
			})
		}},
		{"nobody is to work it", "unassigned", "assigned to no profile", false, func(w *world, id string) { w.set(id, func(c *Card) { c.Assignee = "" }) }},
		{"no such profile", "profile", "sh", false, func(w *world, id string) { w.set(id, func(c *Card) { c.Assignee = "sj" }) }},
		{"the harness is not there", "harness", "claude-code", false, func(w *world, id string) { w.set(id, func(c *Card) { c.Assignee = "claude" }) }},
		{"a pane", "surface", "pane", false, func(w *world, id string) { w.set(id, func(c *Card) { c.Assignee = "claude-pane" }) }},
		{"archived board", "archived", "archived", false, func(w *world, id string) {
			w.write(func(x *tx) *Error {
				b := GetBoard(x, "web")
				b.Archived = true
				x.putBoard(b)
				return nil
			})
		}},
		{"a session that is not gone", "session_not_gone", "still stopping", false, func(w *world, id string) {
			w.started(id)
			w.must(id, "reclaim", manager)
		}},
		{"what it waits for", "validator", "waits on cards", true, func(w *world, id string) {
			p := w.add("parent", nil)
			w.write(func(x *tx) *Error { return x.addLink(id, p) })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, commands)
			id := w.add("x", func(c *Card) { c.Assignee = "sh" })
			c.set(w, id)
			seq, runs := w.v.Seq(), w.card(id).Runs
			refused(t, w.start(id), c.check, c.words)
			if w.v.Seq() != seq {
				t.Fatal("a refused start wrote something")
			}
			_, err := w.firing(id, firing{Event: "start", Actor: manager, Force: true, Why: "I must", Start: &startCtx{Node: "n-atlas"}})
			if c.forced != (err == nil) {
				t.Fatalf("forced: %v", err)
			}
			if c.forced && (w.card(id).Runs != runs+1 || !GetRun(w.v, w.card(id).Run).Forced) {
				t.Fatal("the forced run is not marked")
			}
		})
	}
}

// set changes a stored card.
func (w *world) set(id string, fn func(c *Card)) {
	w.write(func(x *tx) *Error {
		c := GetCard(x, id)
		fn(c)
		x.putCard(c)
		return nil
	})
}

// WFL-16: a start without a placed node claims nothing.
func TestStartNeedsAMachine(t *testing.T) {
	w := newWorld(t, commands)
	id := w.add("x", func(c *Card) { c.Assignee = "sh" })
	_, err := w.fire(id, "start", manager)
	refused(t, err, "start", "machine")
	w.set(id, func(c *Card) { c.Assignee = "" }) // what is said first is what a person can do about
	_, err = w.firing(id, firing{Event: "start", Actor: manager, Start: &startCtx{}})
	refused(t, err, "unassigned", "assigned to no profile")
	w.set(id, func(c *Card) { c.Assignee = "sh" })
	_, err = w.firing(id, firing{Event: "start", Actor: manager, Start: &startCtx{}})
	refused(t, err, "start", "machine")
	_, err = w.firing(id, firing{Event: "start", Actor: manager, Start: &startCtx{Node: "n-none"}})
	refused(t, err, "machine", "n-none")
	_, err = w.firing(id, firing{Event: "start", Actor: member, Force: true, Why: "x", Start: &startCtx{Node: "n-atlas"}})
	refused(t, err, NoTransition, "")
	_, err = w.firing(id, firing{Event: "start", Actor: manager, Force: true, Start: &startCtx{Node: "n-atlas"}})
	refused(t, err, "sender", "why")
}

// WFL-12, WFL-13, DSP-08, INV-17: a role is played by its expression's profile,
// else by the card's assignee; who is chosen is assigned in the same transaction, and a refusal assigns nobody.
func TestRolesAreResolvedAtTheClaim(t *testing.T) {
	w := newWorld(t, commands)
	w.params("web", `{"default_assignee":"agent"}`)
	id := w.add("x", nil)
	w.nodes["n-atlas"] = Reading{State: NodeOnline}
	refused(t, w.start(id), "cap", "")
	if w.card(id).Assignee != "" {
		t.Fatal("a refused start assigned somebody")
	}
	w.nodes["n-atlas"] = Reading{State: NodeOnline, Slots: 1}
	r := w.started(id)
	if r.Profile != "agent" || w.card(id).Assignee != "agent" {
		t.Fatalf("profile %q, assignee %q", r.Profile, w.card(id).Assignee)
	}
	if e := w.lastEvent(id, "assigned"); string(e.Payload) != `{"assignee":"agent","source":"role implementer"}` {
		t.Fatalf("assigned %s", e.Payload)
	}
	w.must(id, "request_review", asRun(r.ID), "summary", "s")
	w.gone(r.ID)
	w.params("web", `{"default_assignee":"agent","reviewer":"rev"}`)
	r = w.started(id)
	if r.Profile != "rev" || r.Role != "reviewer" || r.Slot != "reviewer" || r.Source != "review" || w.card(id).Status != "reviewing" {
		t.Fatalf("review run %+v", r)
	}
	if w.card(id).Assignee != "agent" {
		t.Fatal("the reviewer took the card over")
	}
	o := newWorld(t, "version: 1\nname: o\nextends: default\nroles: {implementer: null}\nprofiles: {sh: {harness: command, args: [true]}}\n")
	other := o.add("x", func(c *Card) { c.Assignee = "sh" })
	if r := o.started(other); r.Profile != "sh" {
		t.Fatalf("unlisted role played by %q", r.Profile)
	}
}

// BRD-16, BRD-17, EXP-11, M-35, M-36: limits are evaluated once, at the claim; zero
// runtime is none; a lease stands only where the machine is always on.
func TestLimitsAreFixedAtTheClaim(t *testing.T) {
	w := newWorld(t, commands)
	id := w.add("x", func(c *Card) { c.Assignee, c.MaxRuntime = "sh", opt(60) })
	r := w.started(id)
	if r.Runtime != 60_000 || r.Stale != 14_400_000 || r.Grace != 60_000 || r.Kill != 5_000 || r.Leave != 120_000 || r.Lease != 600_000 {
		t.Fatalf("limits %+v", r)
	}
	if s := w.spec(r); s.Lease != 600_000 || s.Kill != 5_000 || s.Leave != 120_000 || s.Grace != 60_000 {
		t.Fatalf("limits in the order %+v", s)
	}
	first := w.card(id).Started
	w.set(id, func(c *Card) { c.MaxRuntime = opt(0) })
	if GetRun(w.v, r.ID).Runtime != 60_000 {
		t.Fatal("an edit of the card changed its run")
	}
	w.edit("atlas", func(n *Node) { n.Battery = true })
	w.after(100)
	w.exit(id, 1)
	second := w.started(id)
	if second.Runtime != 0 || second.Lease != 0 {
		t.Fatalf("runtime %d lease %d on a laptop", second.Runtime, second.Lease)
	}
	if w.card(id).Started != first {
		t.Fatal("the second claim moved started_at")
	}
	if len(w.dues(DueRun)) != 0 {
		t.Fatal("no limit, but a due time")
	}
	w.edit("atlas", func(n *Node) { n.Labels = map[string]string{"always-on": "true"} })
	if n := GetNode(w.v, "n-atlas"); !AlwaysOn(n) {
		t.Fatal("the label does not count")
	}
	w.edit("atlas", func(n *Node) { n.Battery, n.Labels = false, map[string]string{"always-on": "false"} })
	if n := GetNode(w.v, "n-atlas"); AlwaysOn(n) {
		t.Fatal("the label does not count against it")
	}
}

// A limit that is negative or no number keeps the card waiting with a reason, and a lease leaves time before TERM.
func TestLimitsThatMakeNoSense(t *testing.T) {
	const yaml = "version: 1\nname: o\nextends: default\nparams: {p: null}\nstatuses: {running: {run: {limits: {stale: params.p, lease: 2, kill: 5}}}}\nprofiles: {sh: {harness: command, args: [true]}}\n"
	w := newWorld(t, yaml)
	id := w.add("x", func(c *Card) { c.Assignee = "sh" })
	w.params("web", `{"p":-1}`)
	refused(t, w.start(id), "expression", "negative")
	w.params("web", `{"p":"soon"}`)
	refused(t, w.start(id), "expression", "number")
	w.params("web", `{"p":""}`)
	if r := w.started(id); r.Stale != 0 || r.Lease != 2000 || r.Kill != 1000 {
		t.Fatalf("stale %d lease %d kill %d", r.Stale, r.Lease, r.Kill)
	}
}

// WFL-15, EXP-09, BRD-14, BRD-15, LAU-02, LAU-03, LAU-13, M-24: the order is complete in itself.
func TestStartSpecIsComplete(t *testing.T) {
	w := newWorld(t, `
version: 1
name: web
extends: default
statuses: {running: {run: {skills: [b, c], session: 'work-{{ card.kind }}'}}}
profiles:
  tool:
    harness: command
    model: small
    args: [tool, '--model={{ profile.model }}', '{{ prompt }}', '{{ brief }}', '{{ card.title }}']
    env: {PLAIN: 'card {{ card.id }}', TOKEN: {from: MY_TOKEN}}
    workspace: {kind: worktree, repo: app}
`)
	parent := w.add("first", func(c *Card) { c.Assignee = "tool" })
	w.must(parent, "complete", manager, "summary", "it was easy")
	id := w.addBy("web", manager, "second $(rm -rf /)", func(c *Card) {
		c.Assignee, c.Model, c.Kind, c.Skills, c.Tenant, c.Branch = "tool", "large", "doc", []string{"a", "b"}, "acme", "topic"
	}, nil, parent)
	w.write(func(x *tx) *Error { x.putBody(id, "the body"); return nil })
	w.must(id, "comment", manager, "text", "mind the gap")
	r := w.started(id)
	s := w.spec(r)
	if s.Run != r.ID || s.Card != id || s.Board != "web" || s.Role != "implementer" || s.Profile != "tool" || s.Slot != "work-doc" || s.Model != "large" ||
		s.Workspace != "worktree:app" || s.Body != "the body" || s.Mode != "fresh" || s.Surface != "headless" || s.LaunchKey == "" {
		t.Fatalf("spec %+v", s)
	}
	for _, want := range []string{"You work card " + id + ": second", "the body", "mind the gap", "It builds on", parent + " (done): first",
		"muster request-review", "Skills pinned to this card: a, b, c"} {
		if !strings.Contains(s.Prompt, want) {
			t.Errorf("the prompt misses %q:\n%s", want, s.Prompt)
		}
	}
	if want := []string{"tool", "--model=large", s.Prompt, BriefPath, "second $(rm -rf /)"}; !slices.Equal(s.Argv, want) {
		t.Fatalf("argv %q", s.Argv)
	}
	if s.Env["PLAIN"] != "card "+id || s.EnvFrom["TOKEN"] != "MY_TOKEN" || s.Env["MUSTER_TENANT"] != "acme" || s.Env["MUSTER_BRANCH"] != "topic" || s.Env["MUSTER_SKILLS"] != "a,b,c" {
		t.Fatalf("env %v from %v", s.Env, s.EnvFrom)
	}
	var x SpecExtra
	if err := json.Unmarshal(s.Extra, &x); err != nil || x.Exit["75"] != "rate_limit" || x.Prompt != "file" {
		t.Fatalf("extra %s %v", s.Extra, err)
	}
	w.set(id, func(c *Card) { c.Workspace = "dir:/srv" })
	if got := workspaceOf(w.card(id), w.flow("web").wf.Profile("tool")); got != "dir:/srv" {
		t.Fatalf("workspace %q", got)
	}
}

func (w *world) flow(slug string) *flow {
	b := GetBoard(w.v, slug)
	return w.ws.flow(w.v, b.Slug, b.Workflow, b.Params)
}

// A start that carries too much is refused with what to do, not cut short.
func TestStartSpecIsBounded(t *testing.T) {
	w := newWorld(t, "version: 1\nname: o\nextends: default\nprofiles: {sh: {harness: command, args: [echo, '{{ card.body }}', '{{ card.body }}']}}\n")
	id := w.add("x", func(c *Card) { c.Assignee = "sh" })
	w.write(func(x *tx) *Error { x.putBody(id, strings.Repeat("long ", 40<<10)); return nil })
	refused(t, w.start(id), "spec", "shorten")
	w.write(func(x *tx) *Error { x.putBody(id, strings.Repeat("long ", 20<<10)); return nil })
	if s := w.spec(w.claimed(id)); len(s.Body) != 100<<10 || len(s.Prompt) > 20<<10 {
		t.Fatalf("body %d prompt %d", len(s.Body), len(s.Prompt))
	}
}

// INV of purity: the same view, request and environment give the same bytes; a
// minted session id is a function of the claim.
func TestClaimIsDeterministic(t *testing.T) {
	w := newWorld(t, commands)
	w.edit("atlas", func(n *Node) { n.Harnesses = []string{"command", "claude-code"} })
	id := w.add("x", func(c *Card) { c.Assignee = "claude" })
	var first []Op
	for i := range 3 {
		x := newTx(w.v, &Request{Actor: Platform()}, w.env())
		if _, err := x.fire(GetBoard(x, "web"), GetCard(x, id), firing{Event: "start", Actor: Platform(), Start: &startCtx{Node: "n-atlas"}}); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = x.out
		} else if !slices.EqualFunc(first, x.out, func(a, b Op) bool {
			return a.Table == b.Table && a.Key == b.Key && a.Delete == b.Delete && string(a.Val) == string(b.Val)
		}) {
			t.Fatal("the same start gave other bytes")
		}
	}
	r := w.started(id)
	if s := w.spec(r); len(s.SessionID) != 36 || s.SessionID != r.SessionID || !slices.Contains(s.Argv, s.SessionID) {
		t.Fatalf("session id %q, argv %q", s.SessionID, s.Argv)
	}
	if other := w.started(w.add("y", func(c *Card) { c.Assignee = "claude" })); other.SessionID == r.SessionID {
		t.Fatalf("two claims, one session id %q", r.SessionID)
	}
}
