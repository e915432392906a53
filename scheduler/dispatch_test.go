package scheduler

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster/board"
)

// waitOf is what a plan says of a card; "" when it would start.
func (r *rig) waitOf(card string) (w Wait) {
	r.t.Helper()
	_, waits := Plan(r.input())
	for _, x := range waits {
		if x.Card == card {
			w = x
		}
	}
	return w
}

// DSP-05: eligibility sees where and by whom a card would run, the guard before it does not.
func TestEligibleSeesThePlannedStart(t *testing.T) {
	const seen = shell + `dispatch: {eligible: 'machine.name == "borea" && profile.name == "sh" && run.surface == "headless" && run.machine == "borea" && host.slots == 2'}` + "\n"
	r := newRig(t, seen, "atlas", "borea")
	yes, no := r.add("sh"), r.add("east")
	list, _ := Plan(r.input())
	if len(list) != 1 || list[0].Card != yes || list[0].Node != "n-borea" {
		t.Fatalf("started %s", starts(list))
	}
	if w := r.waitOf(no); w.Check != "eligible" {
		t.Fatalf("%s waits for %+v", no, w)
	}
}

// DSP-07: profile, then machine and caps, then the validators of the move: the first that refuses is the reason.
func TestChecksInOrder(t *testing.T) {
	const late = shell + `
statuses:
  ready:
    on:
      start:
        - {by: [platform], validators: [{when: card.priority == 7, refuse: not now}], target: running, do: [{claim: {role: implementer, ttl: 900}}]}
`
	r := newRig(t, late, "atlas")
	for want, profile := range map[string]string{"unassigned": "", "requires": "git", "cap": "none", "validator": "sh"} {
		if w := r.waitOf(r.add(profile, priority(7))); w.Check != want {
			t.Errorf("with profile %q the reason is %s: %s; want %s", profile, w.Check, w.Text, want)
		}
	}
}

// DSP-04: what nothing starts says so: no transition of the platform's whose guard holds.
func TestWhatNothingStarts(t *testing.T) {
	for transition, says := range map[string]string{"by: [platform], guard: card.priority > 5": "(does not hold: card.priority > 5)", "by: [manager]": "(only manager may)"} {
		r := newRig(t, shell+"statuses: {ready: {on: {start: [{"+transition+", target: running, do: [{claim: {role: implementer}}]}]}}}\n", "atlas")
		if w := r.waitOf(r.add("sh")); w.Check != board.NoTransition || w.Text != "nothing starts it there now "+says {
			t.Errorf("it waits for %+v, want %s", w, says)
		}
	}
}

const reviews = `
version: 1
name: default
extends: default
params: {reviewer: rev}
profiles:
  sh: {harness: command, verdict: explicit, args: [work]}
  rev: {harness: command, verdict: explicit, args: [review]}
`

// handOver takes a new card to its review, with its session gone.
func (r *rig) handOver() string {
	r.t.Helper()
	id := r.add("sh")
	r.must(board.Platform(), board.VStart, board.Start{Card: id, Node: "n-atlas"})
	run := r.run(r.card(id).Run)
	r.launch(run)
	r.person(board.VEvent, board.FireEvent{Card: id, Event: "request_review", Payload: map[string]any{"summary": "x"}})
	r.exit(run, 0)
	if c := r.card(id); c.Status != "review" {
		r.t.Fatalf("%s is %s", id, c.Status)
	}
	return id
}

// DSP-17, DSP-18: ready cards come before reviews, then priority, then age; without
// a reviewer nothing starts a review: a person does it.
func TestPlanOrderOfReviews(t *testing.T) {
	r := newRig(t, reviews, "atlas", "borea")
	review, low := r.handOver(), r.add("sh")
	high := r.add("sh", priority(3))
	list, _ := Plan(r.input())
	var got []string
	for _, s := range list {
		got = append(got, s.Card)
	}
	if want := []string{high, low, review}; !slices.Equal(got, want) {
		t.Fatalf("started %v, want %v", got, want)
	}
	without := newRig(t, strings.Replace(reviews, "reviewer: rev", "reviewer: null", 1), "atlas")
	id := without.handOver()
	if list, _ := Plan(without.input()); len(list) != 0 {
		t.Fatalf("started %s", starts(list))
	}
	if a, _ := Why(without.input(), id, true); a.Check != board.NoTransition {
		t.Fatalf("why: %+v", a)
	}
}

// TCK-03, M-31: one plan is made of one reading of each machine, whatever changes meanwhile.
func TestOneReadingAPlan(t *testing.T) {
	r := newRig(t, shell, "atlas", "borea")
	for range 4 {
		r.add("sh")
	}
	asked := map[string]int{}
	in := r.input()
	in.Nodes = func(id string) board.Reading {
		asked[id]++
		return board.Reading{State: []string{board.NodeOnline, board.NodeOffline}[min(asked[id]-1, 1)], Slots: 2, Pressure: "normal"}
	}
	if a := DryRun(in, "", true); len(a.Would) != 4 || asked["n-atlas"] != 1 || asked["n-borea"] != 1 {
		t.Fatalf("would start %d of 4, and asked %v", len(a.Would), asked)
	}
}

// TCK-01, TCK-06, CAP-21: all boards are planned in one round, and what one board starts the next one sees.
func TestPlanOverBoards(t *testing.T) {
	r := newRig(t, shell+"params: {max_fleet: 1}\n", "atlas")
	r.person(board.VBoardCreate, board.BoardCreate{Slug: "ops"})
	r.person(board.VBoardApply, board.BoardApply{Board: "ops", YAML: strings.Replace(shell, "name: default", "name: ops", 1)})
	first := r.add("sh")
	second := r.add("sh", func(a *board.CardAdd) { a.Board = "ops" })
	list, _ := Plan(r.input())
	if w := r.waitOf(second); len(list) != 1 || list[0].Card != first || !strings.Contains(w.Text, "the fleet is full (1 of 1 runs; cap: runs of the fleet, of board default") {
		t.Fatalf("started %s; the other waits for %+v", starts(list), w)
	}
	a := DryRun(r.input(), "ops", true)
	if len(a.Would) != 0 || len(a.Waiting) != 1 || a.Waiting[0].Card != second {
		t.Fatalf("of one board: %+v", a)
	}
}

// LCK-01, LCK-03..05, HST-02: a card of a machine that is offline, or of which
// nothing is known, waits for it, says which of the two, and starts when it is back, headless too.
func TestLoopWaitsForItsMachine(t *testing.T) {
	for _, state := range []string{board.NodeUnknown, board.NodeOffline} {
		inBubble(t, shell, []string{"atlas", "borea"}, func(r *rig) {
			r.set("n-borea", board.Reading{State: state})
			r.loop.Poke()
			synctest.Wait()
			id := r.add("sh", machine("borea"))
			synctest.Wait()
			if w := r.card(id).Waits; w.Check != "machine_"+state || !strings.Contains(w.Text, "borea is "+state) {
				r.t.Fatalf("it waits for %+v", w)
			}
			time.Sleep(time.Hour)
			r.online("borea")
			r.loop.Poke()
			synctest.Wait()
			if run := r.run(r.card(id).Run); run == nil || run.Node != "n-borea" {
				r.t.Fatalf("borea is back, and %s waits for %+v", id, r.card(id).Waits)
			}
		})
	}
}

// Invariant 22, DSP-14: cards whose start cannot be made and a profile that cannot
// be judged are refused with a reason; those behind them start at the same moment.
func TestPoisonedCards(t *testing.T) {
	const poison = shell + `
  torn: {harness: command, args: ['{{ next(card.title) }}']}
  odd: {parent: sh, requires: 'next(card.title) > 2'}
`
	inBubble(t, poison, []string{"atlas"}, func(r *rig) {
		r.person(board.VPause, board.Pause{Why: "x"})
		var bad []string
		for range 5 {
			bad = append(bad, r.add("torn", priority(9)), r.add("odd", priority(9)))
		}
		good := r.add("sh")
		r.person(board.VResume, board.Pause{})
		synctest.Wait()
		if r.card(good).Run == "" {
			r.t.Fatalf("%s is held up: %+v", good, r.card(good).Waits)
		}
		if d := time.Since(r.began); d != 0 {
			r.t.Fatalf("it waited %s", d)
		}
		for _, id := range bad {
			if c := r.card(id); c.Run != "" || c.Waits.Check == "" || c.Waits.Check == "pause" || c.Failures != 0 {
				r.t.Errorf("%s: run %q, %d failures, waits for %+v", id, c.Run, c.Failures, c.Waits)
			}
		}
	})
}

// A reason is written once, however long it is.
func TestALongReasonIsWrittenOnce(t *testing.T) {
	const long = `dispatch: {eligible: 'card.title == "` + "a very long title" + `" && params.guard_pr > 1 && params.guard_auth > 1 && params.guard_success > 1 && params.idle_interval > 1 && params.goal_max_turns > 1 && params.block_limit > 1 && params.failure_limit > 1 && params.rate_limit_cooldown > 1 && params.auto_decompose_starts > 1'}` + "\n"
	inBubble(t, shell+long, []string{"atlas"}, func(r *rig) {
		id := r.add("sh")
		synctest.Wait()
		if w := r.card(id).Waits; w.Check != "eligible" || len(w.Text) < 280 {
			r.t.Fatalf("it waits for %+v", w)
		}
		before := r.count(board.VReasons)
		r.loop.Poke()
		synctest.Wait()
		if n := r.count(board.VReasons); n != before || n > 2 {
			r.t.Fatalf("reasons were asked for %d times", n)
		}
	})
}

// `why` has an answer for every status: a check, a text, and what would change it.
func TestWhyOfEveryStatus(t *testing.T) {
	r := newRig(t, strings.Replace(reviews, "reviewer: rev", "reviewer: null, merge: true", 1), "atlas")
	var flow []string
	_ = r.View(func(v board.View) error {
		wf, err := r.ws.Of(v, board.GetBoard(v, "default"))
		if err != nil {
			t.Fatal(err)
		}
		flow = wf.Order
		return nil
	})
	says := map[string]string{
		"triage": "params.triage_surfaces is [pane]", "specifying": "run ", "todo": "waits for ", "ready": "it starts now", "running": "run ", "review": "does not hold: params.reviewer != nil", "reviewing": "run ",
		"merging": "waits for its hook on atlas, which is online", "blocked": "needs_input: a key", "done": "nothing more happens", "cancelled": "only done satisfies them", "archived": "nothing more happens",
	}
	parent := r.add("")
	for _, status := range flow {
		id := r.add("sh", after(parent))
		put := func(to string) {
			r.person(board.VCardPut, board.CardPut{Card: id, Status: to, Why: "test"})
		}
		switch status {
		case "specifying", "running", "reviewing": // they run: as a run of their card says
			from := map[string]string{"specifying": "triage", "running": "ready", "reviewing": "ready"}[status]
			r.person(board.VCardUnlink, board.CardLink{Card: id, After: []string{parent}})
			put(from)
			r.must(board.Platform(), board.VStart, board.Start{Card: id, Node: "n-atlas"})
		case "merging":
			id = r.handOver()
			r.person(board.VEvent, board.FireEvent{Card: id, Event: "complete", Payload: map[string]any{"summary": "x"}})
		case "blocked":
			r.person(board.VEvent, board.FireEvent{Card: id, Event: "block", Payload: map[string]any{"kind": "needs_input", "reason": "a key"}})
		case "ready", "triage", "review":
			r.person(board.VCardUnlink, board.CardLink{Card: id, After: []string{parent}})
			put(status)
		case "todo":
		default:
			put(status)
		}
		for _, live := range []bool{true, false} {
			a, err := Why(r.input(), id, live)
			if err != nil || a.Check == "" || a.Text == "" || live && !strings.Contains(a.Text, says[status]) || live && a.Fix == "" && a.Check != "starting" {
				t.Errorf("why of %s (live %v): %+v (%v); want %q", status, live, a, err, says[status])
			}
		}
		if run := r.run(r.card(id).Run); run != nil {
			r.person(board.VEvent, board.FireEvent{Card: id, Event: "cancel"})
			r.report(run.Node, board.Report{Kind: board.ReportGone, Run: run.ID})
		}
	}
}
