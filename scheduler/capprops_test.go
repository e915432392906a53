package scheduler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"muster/board"
)

// Whatever happens in a fleet with random caps of every scope (where, unless,
// reserves), by the planner and by people, with machines that come, go, drain and
// refuse, with pauses, and with changes between a plan and its starts:
//
//   - no transaction takes a cap above its maximum, by a count of the test's own
//     (invariant 21, CAP-12 to CAP-22);
//   - nothing starts while room is missing, a place is kept for another card
//     (CAP-15), or contact, ESTOP, drain or pause forbid it (M-14, M-16);
//   - the executor takes what was planned, and at each start of the planner no card
//     that comes before it in the order could start on that machine (DSP-01);
//   - when the loop is idle nothing could start, by a plan from nothing and by the
//     test's own count: no wake-up is lost.
func TestCapsHold(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		script := drawScript(rt)
		var wrong []string
		synctest.Test(t, func(t *testing.T) {
			w := script.world(t)
			w.lead()
			defer w.stop()
			w.play(script.Steps)
			wrong = w.wrong
			for k, n := range w.seen {
				seen[k] += n
			}
		})
		if len(wrong) > 0 {
			rt.Fatal(strings.Join(wrong, "\n"))
		}
	})
	t.Log(seen)
	for _, what := range []string{"start reviewing", "forced", "waits for a cap"} {
		if seen[what] == 0 && seen["start running"] > 300 { // in a few worlds it may not come to that
			t.Errorf("the worlds never met: %s", what)
		}
	}
}

// MEM-05, invariant 21: in the same worlds, whatever has happened while nobody
// led, a dry run is the next round: cards, machines, profiles, their order, and
// the reason of each card that waits. It writes nothing.
func TestDryRunIsTheNextRound(t *testing.T) {
	planned, waiting := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		script := drawScript(rt)
		led := rapid.IntRange(0, len(script.Steps)).Draw(rt, "steps of a term before")
		var wrong []string
		synctest.Test(t, func(t *testing.T) {
			w := script.world(t)
			w.lead()
			w.play(script.Steps[:led])
			w.stop()
			w.watch = func(*board.Request, *board.Result, board.View, board.View, *board.Env) {}
			for _, s := range script.Steps[led:] {
				w.step(s)
			}
			p, q := w.dryRun()
			planned, waiting = planned+p, waiting+q
			wrong = w.wrong
		})
		if len(wrong) > 0 {
			rt.Fatal(strings.Join(wrong, "\n"))
		}
	})
	t.Logf("%d starts and %d reasons were foretold", planned, waiting)
	if planned == 0 || waiting == 0 {
		t.Error("nothing was foretold")
	}
}

// dryRun holds a dry run against the first round of a new term.
func (w *capWorld) dryRun() (planned, waiting int) {
	w.before = nil
	f := &rigFeed{c: make(chan struct{}, 1), all: true}
	w.loop = New(Config{Store: w, Feed: f, Contacts: rigContacts{w.rig}, Workflows: w.ws, Now: w.rig.now})
	w.loop.scan()
	first := newRound(w.rig.now())
	w.loop.observe(context.Background(), first) // what is observed first may move cards
	w.loop.scan()
	before := w.v.Seq()
	starts, waits := plan(w.input(), true)
	if w.v.Seq() != before {
		w.bad("a dry run has written")
	}
	if all, _ := Plan(w.input()); !slices.Equal(all, starts) {
		w.bad("a plan that tries every card starts %v, and the dry run %v", all, starts)
	}
	r := w.loop.round(context.Background())
	var want, got []string
	for _, s := range starts {
		want = append(want, fmt.Sprintf("%s on %s by %s", s.Card, s.Node, s.Profile))
	}
	for _, s := range r.Started {
		got = append(got, fmt.Sprintf("%s on %s by %s", s.Card, s.Machine, s.Profile))
	}
	if !slices.Equal(want, got) {
		w.bad("the dry run says %v, the round starts %v (failed %+v)", want, got, r.Failed)
	}
	for _, x := range waits {
		if c := w.card(x.Card); c.Waits.Check != x.Check || c.Waits.Text != clip(x.Text, maxReason) {
			w.bad("the dry run says that %s waits for %s: %q; after the round it waits for %s: %q", x.Card, x.Check, x.Text, c.Waits.Check, c.Waits.Text)
		}
	}
	return len(starts), len(waits)
}
