package board

import (
	"encoding/json"
	"testing"
)

func (w *world) payload(card, kind string) map[string]any {
	w.t.Helper()
	var p map[string]any
	if err := json.Unmarshal(w.lastEvent(card, kind).Payload, &p); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// SUP-14, SUP-17, SUP-18, SUP-20, M-10: a session counts as lost when it was
// missing for the grace, at the earliest two graces after its launch; the card
// is started again and goes on with the session.
func TestSessionLost(t *testing.T) {
	w := agents(t)
	id := w.add("x", func(c *Card) { c.Assignee = "claude" })
	r := w.started(id)
	w.after(10)
	w.report(r.ID, Report{Kind: ReportMissing, Ago: 5_000})
	since := w.now - 5_000
	if got := GetRun(w.v, r.ID); got.MissingSince != since {
		t.Fatalf("missing since %d", got.MissingSince)
	}
	seq := w.v.Seq()
	w.after(1)
	if res := w.ask(Actor{Kind: ActorNode, Node: "n-atlas"}, VReport, Report{Kind: ReportMissing, Run: r.ID}); res.Err != nil {
		t.Fatal(res.Err)
	}
	if GetRun(w.v, r.ID).MissingSince != since || w.v.Seq() != seq {
		t.Fatal("missing is set once, and no news is not written") // SUP-17, SUP-22
	}
	w.now = r.Launched + 2*r.Grace - 1
	w.due()
	w.status(id, "running")
	w.after(0.001)
	w.due()
	w.status(id, "ready")
	p := w.payload(id, "session_lost")
	if p["session_id"] != r.SessionID || p["machine"] != "atlas" || p["mode"] != "fresh" || p["seen"] != true || p["never_came_up"] != false || p["losses"] != 1.0 {
		t.Fatalf("%v", p)
	}
	if c := w.card(id); c.Failures != 0 || c.LastOutcome != "reclaimed" {
		t.Fatalf("%+v", c)
	}
	w.gone(r.ID)
	if next := w.claimed(id); next.Mode != ModeResume || next.SessionID != r.SessionID {
		t.Fatalf("%+v", next)
	}
}

// SUP-17: it shows life again: nothing of its missing counts.
func TestSessionIsBack(t *testing.T) {
	w := agents(t)
	id := w.add("x", func(c *Card) { c.Assignee = "claude" })
	r := w.started(id)
	w.after(200)
	w.report(r.ID, Report{Kind: ReportMissing})
	w.after(59)
	w.report(r.ID, Report{Kind: ReportSeen})
	w.after(1000)
	w.due()
	w.status(id, "running")
	if len(w.dues(DueLost)) != 0 || GetRun(w.v, r.ID).MissingSince != 0 {
		t.Fatal("its missing still counts")
	}
}

// SUP-13, SUP-15, SUP-21, M-10, INV-01: without a reading of its machine there is
// no verdict, and the time that the machine was away or not read does not count.
func TestNoReadingNoLoss(t *testing.T) {
	w := agents(t)
	id := w.add("x", func(c *Card) { c.Assignee = "claude" })
	r := w.started(id)
	w.after(200)
	w.report(r.ID, Report{Kind: ReportMissing})
	up := w.nodes["n-atlas"]
	w.nodes["n-atlas"] = Reading{State: NodeUnknown}
	w.after(61)
	w.due()
	w.status(id, "running")
	w.nodes["n-atlas"] = up
	w.after(59)
	w.due()
	w.status(id, "running") // counted anew

	w.nodes["n-atlas"] = Reading{State: NodeOffline}
	if res := w.ask(Platform(), VNodeState, NodeState{Node: "n-atlas", State: NodeOffline}); res.Err != nil {
		t.Fatal(res.Err)
	}
	w.after(500)
	w.due()
	w.status(id, "running")
	w.nodes["n-atlas"] = up
	if res := w.ask(Platform(), VNodeState, NodeState{Node: "n-atlas", State: NodeOnline}); res.Err != nil {
		t.Fatal(res.Err)
	}
	if got := GetRun(w.v, r.ID); got.MissingSince != w.now {
		t.Fatalf("missing for %d ms", w.now-got.MissingSince)
	}
	w.after(59)
	w.due()
	w.status(id, "running")
	w.after(1)
	w.due()
	w.status(id, "ready")
}

// SUP-18, SUP-20, RSP-09: a fresh pane of which nobody ever saw a sign of life is a failure.
func TestNeverCameUp(t *testing.T) {
	w := agents(t)
	id := w.add("x", func(c *Card) { c.Assignee = "claude-pane" })
	r := w.started(id)
	if GetRun(w.v, r.ID).SeenAt != 0 {
		t.Fatal("a pane's terminal is no sign of life of its program")
	}
	w.after(60)
	w.report(r.ID, Report{Kind: ReportMissing})
	w.after(60)
	w.due()
	if p := w.payload(id, "session_lost"); p["never_came_up"] != true || p["seen"] != false {
		t.Fatalf("%v", p)
	}
	if c := w.card(id); c.LastOutcome != "crashed" || c.Failures != 1 {
		t.Fatalf("%+v", c)
	}
}

// SES-11, SUP-19: a resume that was lost without a sign of life is not tried once
// more; the next start tells the workflow that the session cannot go on.
func TestUnresumable(t *testing.T) {
	w := agents(t)
	id := w.add("x", func(c *Card) { c.Assignee = "claude-pane" })
	r := w.idlePaneOf(id)
	w.exited(r.ID, 0)
	w.must(id, "unblock", manager)
	r = w.started(id)
	if r.Mode != ModeResume {
		t.Fatalf("%+v", r)
	}
	w.after(60)
	w.report(r.ID, Report{Kind: ReportMissing})
	w.after(60)
	w.due()
	if rec := GetSlot(w.v, id, "worker"); !rec.NotResumable {
		t.Fatalf("%+v", rec)
	}
	w.gone(r.ID)
	if err := w.start(id); err != nil {
		t.Fatal(err)
	}
	if c := w.card(id); c.Status != "blocked" || w.payload(id, "spawn_failed")["resume_failed"] != true {
		t.Fatalf("%+v", c)
	}
}

// M-10: the third loss of the same session within an hour counts as a failure; an
// hour later, and for another session, the count begins anew.
func TestThirdLoss(t *testing.T) {
	w := agents(t)
	id := w.add("x", func(c *Card) { c.Assignee = "claude" })
	lose := func() *Card {
		t.Helper()
		r := w.started(id)
		w.after(120)
		w.report(r.ID, Report{Kind: ReportMissing, Ago: 70_000})
		w.due()
		w.gone(r.ID)
		return w.card(id)
	}
	for n := 1; n <= 3; n++ {
		c := lose()
		if p := w.payload(id, "session_lost"); p["losses"] != float64(n) || (c.Failures == 1) != (n == 3) {
			t.Fatalf("loss %d: %v, %d failures", n, p["losses"], c.Failures)
		}
	}
	w.after(3600)
	if lose(); w.payload(id, "session_lost")["losses"] != 1.0 {
		t.Fatal("losses of an hour ago count")
	}
	if res := w.ask(person, VForget, Forget{Card: id}); res.Err != nil {
		t.Fatal(res.Err)
	}
	if lose(); w.payload(id, "session_lost")["losses"] != 1.0 {
		t.Fatal("losses of another session count")
	}
}

// SUP-07, RSP-09: a headless session over its stale limit of which nothing was
// heard for an hour is stale, which is no failure; a word takes it back.
func TestStale(t *testing.T) {
	w := newWorld(t, commands)
	w.params("web", `{"stale":7200}`)
	id := w.add("x", func(c *Card) { c.Assignee = "agent" })
	r := w.started(id)
	w.after(3601)
	w.report(r.ID, Report{Kind: ReportQuiet, Ago: 3_600_000})
	w.after(3598)
	w.due()
	w.status(id, "running") // not old enough
	w.report(r.ID, Report{Kind: ReportHeard})
	w.after(10)
	w.due()
	w.status(id, "running")
	w.report(r.ID, Report{Kind: ReportQuiet, Ago: 3_599_000})
	w.due()
	w.status(id, "running") // not quiet for long enough
	w.after(1)
	w.due()
	if c := w.card(id); c.Status != "ready" || c.LastOutcome != "stale" || c.Failures != 0 {
		t.Fatalf("%+v", c)
	}
	if p := w.payload(id, "stale"); p["timeout_seconds"] != 7200.0 || p["pid"] != 7.0 {
		t.Fatalf("%v", p)
	}
}

// SUP-06, SUP-03, SUP-24: over its runtime, strictly; what nobody takes is offered again and holds up no other observation.
func TestTimedOut(t *testing.T) {
	w := newWorld(t, "version: 1\nname: o\nextends: default\nparams: {timing: false}\non: {timed_out: [{guard: params.timing, target: '{{ run.source }}', do: [{end_run: timed_out}, record_failure]}]}\nprofiles: {sh: {harness: command, args: [true]}}\n")
	id := w.add("x", func(c *Card) { c.Assignee, c.MaxRuntime = "sh", opt(60) })
	r := w.started(id)
	w.now = r.Claimed + 60_000
	w.due()
	if len(w.dues(DueRun)) != 1 || w.dues(DueRun)[0].At != w.now+1 {
		t.Fatal("the limit itself is not over the limit")
	}
	w.after(0.001)
	seq := w.v.Seq()
	w.due()
	w.status(id, "running")
	if d := w.dues(DueRun); len(d) != 1 || d[0].At != w.now+offerAgain || w.v.Seq() != seq+1 {
		t.Fatalf("%+v", d)
	}
	w.report(r.ID, Report{Kind: ReportMissing, Ago: 60_000})
	w.params("web", `{"timing":true}`)
	w.after(30)
	w.due()
	if c := w.card(id); c.LastOutcome != "timed_out" || c.Failures != 1 || w.payload(id, "timed_out")["limit_seconds"] != 60.0 {
		t.Fatalf("%+v", c)
	}
}

// INV-10, RUN-08, SUP-01: what a node saw of a run that is not current, or never came up, is refused and writes nothing.
func TestObservationsOfAnEndedRun(t *testing.T) {
	w := agents(t)
	id := w.add("x", func(c *Card) { c.Assignee = "claude" })
	r := w.started(id)
	w.must(id, "reclaim", manager)
	node := Actor{Kind: ActorNode, Node: "n-atlas"}
	for _, kind := range []string{ReportSeen, ReportMissing, ReportQuiet, ReportHeard, ReportIdle, ReportBusy} {
		refused(t, w.ask(node, VReport, Report{Kind: kind, Run: r.ID}).Err, "superseded", r.ID)
	}
	refused(t, w.ask(Actor{Kind: ActorNode, Node: "n-brick"}, VReport, Report{Kind: ReportSeen, Run: r.ID}).Err, "", "not on brick")
}
