package board

import (
	"slices"
	"strings"
	"testing"
)

// SUP-01: what the fleet sees of runs is judged while fleet and board are paused, too: a pause holds back starts only.
func TestSupervisionGoesOnWhilePaused(t *testing.T) {
	w := agents(t)
	over := w.add("over its runtime", func(c *Card) { c.Assignee, c.MaxRuntime = "claude", opt(60) })
	lost := w.add("missing", func(c *Card) { c.Assignee = "claude" })
	ends := w.add("ends", func(c *Card) { c.Assignee = "sh" })
	w.started(over)
	missing := w.started(lost)
	w.started(ends)
	for _, slug := range []string{"", "web"} {
		if res := w.ask(person, VPause, Pause{Board: slug, Why: "holiday"}); res.Err != nil {
			t.Fatal(res.Err)
		}
	}
	w.report(missing.ID, Report{Kind: ReportMissing})
	w.after(1000)
	w.due()
	w.exit(ends, 0)
	for id, want := range map[string]string{over: "timed_out", lost: "reclaimed", ends: "completed"} {
		if c := w.card(id); c.LastOutcome != want || c.Run != "" {
			t.Errorf("%s: outcome %q, run %q; want %q and none", c.Title, c.LastOutcome, c.Run, want)
		}
	}
}

// SUP-02: a finding is said by the platform; one that no transition takes writes nothing, one that the workflow fails on
// is shown on its card, once, and is offered again like the other.
func TestFindingThatFailsIsShown(t *testing.T) {
	w := newWorld(t, `
version: 1
name: o
extends: default
params: {where: nowhere}
on:
  timed_out: [{target: '{{ params.where }}', do: [{end_run: timed_out}]}]
  machine_offline: [{guard: payload.seconds > 60, target: '{{ params.where }}', do: [{end_run: reclaimed}]}]
profiles: {sh: {harness: command, args: [true]}}
`)
	id := w.add("x", func(c *Card) { c.Assignee, c.MaxRuntime = "sh", opt(60) })
	other := w.add("y", func(c *Card) { c.Assignee = "sh" })
	w.started(id)
	run := w.started(other)
	away := func(seconds float64) Result {
		return w.ask(Platform(), VObserve, Observe{Run: run.ID, Event: "machine_offline", Payload: map[string]any{"seconds": seconds}})
	}
	seq := w.v.Seq()
	refused(t, away(10).Err, NoTransition, "")
	if w.v.Seq() != seq {
		t.Fatal("what no transition takes wrote something")
	}
	w.after(61)
	w.due()
	away(61)
	for card, check := range map[string]string{id: "timed_out", other: "machine_offline"} {
		if a := w.card(card).Attention; a.Check != check || !strings.Contains(a.Text, `"nowhere" is no status`) {
			t.Errorf("%s: shown is %+v, want %s", card, a, check)
		}
	}
	since := w.card(id).Attention.Since
	w.after(30)
	w.due()
	seq = w.v.Seq()
	away(91)
	if w.card(id).Attention.Since != since || w.v.Seq() != seq {
		t.Error("it is shown anew each time")
	}
	w.params("web", `{"where":"ready"}`)
	w.after(30)
	w.due()
	if c := w.card(id); c.Status != "ready" || c.LastOutcome != "timed_out" || c.Attention.Check != "" || w.lastEvent(id, "timed_out").Actor.Kind != ActorPlatform {
		t.Errorf("with a workflow that can: %s, outcome %q, attention %+v", c.Status, c.LastOutcome, c.Attention)
	}
}

// SUP-08: of a session that lives, and of which its node tells nothing, nothing is concluded, however long it lasts.
func TestALiveSessionIsLeftAlone(t *testing.T) {
	w := agents(t)
	id := w.add("x", func(c *Card) { c.Assignee = "claude" })
	r := w.started(id)
	before := w.events(id)
	for range 40 {
		w.after(86400)
		w.due()
	}
	if c := w.card(id); c.Run != r.ID || !slices.Equal(w.events(id), before) {
		t.Fatalf("%s, run %q: %v", c.Status, c.Run, w.events(id))
	}
}

// SUP-25, BRD-16: the limits are those of the status that was entered, evaluated for the card at the claim; what is not
// given is none.
func TestLimitsOfTheStatus(t *testing.T) {
	w := newWorld(t, `
version: 1
name: o
extends: default
statuses:
  running: {run: {limits: {runtime: 'card.priority * 10', stale: null, age: 3600, grace: 7, kill: 3, leave: 9, lease: null}}}
profiles: {sh: {harness: command, args: [true]}}
`)
	id := w.add("x", func(c *Card) { c.Assignee, c.Priority = "sh", 12 })
	r := w.started(id)
	if r.Runtime != 120_000 || r.Stale != 0 || r.Session.Age != 3600_000 || r.Grace != 7_000 || r.Kill != 3_000 || r.Leave != 9_000 || r.Lease != 0 {
		t.Fatalf("%+v", r)
	}
	w.set(id, func(c *Card) { c.Priority = 1 })
	w.after(11)
	w.due()
	w.status(id, "running")
}

// SUP-18, SUP-20: a session that is gone without anybody having seen its end (a reboot) is lost at once: no failure, until
// the third time within an hour, and the next start takes it up again.
func TestUnseenEndIsALoss(t *testing.T) {
	w := agents(t)
	id := w.add("x", func(c *Card) { c.Assignee = "claude" })
	for n := int64(1); n <= 3; n++ {
		r := w.started(id)
		w.report(r.ID, Report{Kind: ReportExited, Means: MeansUnseen, Error: "the machine was rebooted"})
		c, r := w.card(id), GetRun(w.v, r.ID)
		want := map[bool]string{true: "crashed", false: "reclaimed"}[n == 3]
		if c.LastOutcome != want || c.Failures != n/3 || r.Gone != GoneReport || GetHeld(w.v, r.ID) != nil || r.Error != "the machine was rebooted" {
			t.Fatalf("loss %d: %s, %d failures, gone %q (%s)", n, c.LastOutcome, c.Failures, r.Gone, r.Error)
		}
		if p := w.payload(id, "session_lost"); p["losses"] != float64(n) || p["error"] != "the machine was rebooted" {
			t.Fatalf("%v", p)
		}
		if n == 2 && r.Mode != ModeResume {
			t.Fatalf("run %d is %s", n, r.Mode)
		}
	}
}

// SES-28, M-12: that its node watches an attached session is no news; one that ended before it could is lost, and no
// failure of its card. After its own word it holds up only its own slot.
func TestAttachedSessionAtItsNode(t *testing.T) {
	attached := func() (*world, string, *Run) {
		w := agents(t)
		id := w.add("x", func(c *Card) { c.Assignee = "claude" })
		if res := w.ask(person, VAdopt, Adopt{Card: id, Slot: "mine"}, vouch("s-1", func(v *Vouch) { v.Surface, v.Pane = "headless", "" })); res.Err != nil {
			t.Fatal(res.Err)
		}
		return w, id, GetRun(w.v, w.card(id).Run)
	}
	for _, kind := range []string{ReportRefused, ReportFailed} {
		w, id, r := attached()
		if o := w.orders(OrderStart); len(o) != 1 || o[0].State != OrderLaunched || w.spec(r).Attach != 4711 || len(w.spec(r).Argv) != 0 {
			t.Fatalf("orders %+v", o)
		}
		seq := GetRun(w.v, r.ID).Launched
		w.after(1)
		w.launched(r)
		if got := GetRun(w.v, r.ID); got.Launched != seq || got.PID != 4711 || got.Slot != "mine" {
			t.Fatalf("%+v", got)
		}
		w.report(r.ID, Report{Kind: kind, Error: "its process is not there any more"})
		if c := w.card(id); c.Status != "ready" || c.LastOutcome != "reclaimed" || c.Failures != 0 || GetHeld(w.v, r.ID) != nil {
			t.Fatalf("%s: %s %s, %d failures", kind, c.Status, c.LastOutcome, c.Failures)
		}
	}
	w, id, r := attached()
	w.params("web", `{"reviewer":"rev"}`)
	w.must(id, "request_review", asRun(r.ID), "summary", "by hand")
	if got := GetRun(w.v, r.ID); got.Stop != "" || got.Session.Closing != 0 {
		t.Fatalf("the person's session is closed: %+v", got)
	}
	refused(t, StillHeld(w.v, w.card(id), "mine"), "session_open", "muster forget "+id)
	w.claimed(id) // the reviewer's
}

// SES-13, SES-14: a program that knows no sessions leaves none behind: what a person attached of it is not to be taken up
// again, and the next start begins afresh and says what it follows.
func TestAttachedCommandIsFollowedAfresh(t *testing.T) {
	w := agents(t)
	id := w.add("x", func(c *Card) { c.Assignee = "sh" })
	if res := w.ask(person, VAdopt, Adopt{Card: id}, vouch("by-hand", func(v *Vouch) { v.Surface, v.Pane, v.Harness = "headless", "", "command" })); res.Err != nil {
		t.Fatal(res.Err, res.Err.Hint)
	}
	r := GetRun(w.v, w.card(id).Run)
	w.must(id, "reclaim", manager)
	w.gone(r.ID)
	next := w.claimed(id)
	if next.Mode != ModeFresh || next.Session.Replaces != "by-hand" {
		t.Fatalf("%s, replaces %q", next.Mode, next.Session.Replaces)
	}
}
