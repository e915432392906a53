package scheduler

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster/board"
)

// A card that is filed starts at once; one that waits for room starts when a session ends, without any tick.
func TestLoopStartsWhatComesAndWhatCanNow(t *testing.T) {
	inBubble(t, shell, []string{"atlas"}, func(r *rig) {
		a, b, c := r.add("sh"), r.add("sh"), r.add("sh")
		synctest.Wait()
		runs := r.current()
		if len(runs) != 2 || runs[0].Card != a || runs[1].Card != b {
			r.t.Fatalf("%d run, want %s and %s", len(runs), a, b)
		}
		if w := r.card(c).Waits; w.Check != "cap" || w.Since == 0 {
			r.t.Fatalf("%s waits for %+v, want the cap", c, w)
		}
		r.launch(runs[0])
		r.exit(runs[0], 0)
		synctest.Wait()
		if r.card(c).Run == "" || r.card(c).Waits.Check != "" || r.card(a).Status != "done" {
			r.t.Fatalf("%s has not started when room came (%+v)", c, r.card(c).Waits)
		}
		if d := time.Since(r.began); d != 0 {
			r.t.Fatalf("it took %s of time, want none: there is a poll on the path", d)
		}
	})
}

// A card that waits for another starts when that one is done.
func TestLoopStartsDependants(t *testing.T) {
	inBubble(t, shell, []string{"atlas"}, func(r *rig) {
		a := r.add("sh")
		b := r.add("sh", after(a))
		synctest.Wait()
		if len(r.current()) != 1 {
			r.t.Fatal("the dependant runs already")
		}
		r.launch(r.current()[0])
		r.exit(r.current()[0], 0)
		synctest.Wait()
		if r.card(b).Run == "" {
			r.t.Fatalf("%s is %s, waits %+v", b, r.card(b).Status, r.card(b).Waits)
		}
	})
}

// RUN-06: an order nobody takes is orphaned at its due time, by the loop's own waking.
func TestLoopWakesForDueTimes(t *testing.T) {
	inBubble(t, shell, []string{"atlas"}, func(r *rig) {
		id := r.add("sh")
		synctest.Wait()
		run := r.current()[0]
		time.Sleep(901 * time.Second)
		synctest.Wait()
		if got := r.run(run.ID); got.Outcome != "reclaimed" || got.Stop == "" || r.card(id).Run != "" {
			r.t.Fatalf("after its expiry: run %s, stop %q, card run %q", got.Outcome, got.Stop, r.card(id).Run)
		}
	})
}

// SUP-15, SUP-16, M-10, M-11: going offline is written once; machine_offline is offered at once and at the guard's own
// threshold; the requeue orders a stop; the slot is free only by the lease; then another machine takes the card.
func TestLoopMachineAway(t *testing.T) {
	inBubble(t, shell, []string{"atlas", "borea"}, func(r *rig) {
		id := r.add("sh", machine("atlas"))
		synctest.Wait()
		run := r.current()[0]
		r.launch(run)
		r.person(board.VCardEdit, board.CardEdit{Card: id, CardFields: board.CardFields{Machine: new(string)}})
		r.set("n-atlas", board.Reading{State: board.NodeUnknown})
		r.loop.Poke()
		time.Sleep(9 * time.Minute) // less than the lease: nothing else may end it
		synctest.Wait()
		if n := r.node("n-atlas"); n.State != board.NodeOnline || r.card(id).Run != run.ID {
			r.t.Fatal("INV-01: something was concluded without a reading")
		}
		r.set("n-atlas", board.Reading{State: board.NodeOffline, AgeMS: 0})
		r.hear("n-atlas")
		went := r.now()
		r.loop.Poke()
		synctest.Wait()
		if n := r.node("n-atlas"); n.State != board.NodeOffline || n.OfflineSince != went {
			r.t.Fatalf("offline since %d, want %d", n.OfflineSince, went)
		}
		time.Sleep(599 * time.Second)
		synctest.Wait()
		if r.card(id).Run != run.ID {
			r.t.Fatal("taken away before the threshold")
		}
		if n := r.count(board.VNodeState); n != 1 {
			r.t.Fatalf("M-10: %d changes of state were written, want 1", n)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if c := r.card(id); c.Run != "" || c.Status != "ready" {
			r.t.Fatalf("after the threshold: %s, run %q", c.Status, c.Run)
		}
		if h := r.heldRow(run.ID); h == nil || !h.Stopping {
			r.t.Fatalf("M-35: held %+v, want stopping", h)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if now := r.current(); len(now) != 1 || now[0].Node != "n-borea" || r.run(run.ID).Gone != board.GoneLease {
			r.t.Fatalf("after lease and margin: %+v, gone %q", now, r.run(run.ID).Gone)
		}
	})
}

// An idle loop asks for nothing.
func TestLoopIsIdle(t *testing.T) {
	inBubble(t, shell, []string{"atlas"}, func(r *rig) {
		r.add("sh")
		synctest.Wait()
		before := r.count(board.VStart)
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := r.count(board.VStart) - before; n > 0 {
			r.t.Fatalf("%d starts in an idle hour", n)
		}
	})
}

// M-03: a machine that changes between a plan and its claim is no reason to wait:
// the plan is made anew, at once.
func TestLoopPlansAnewAtOnce(t *testing.T) {
	inBubble(t, shell, []string{"atlas", "borea"}, func(r *rig) {
		r.before = func(verb string) {
			if verb == board.VStart && !r.state("n-atlas").Estop {
				r.set("n-atlas", board.Reading{State: board.NodeOnline, Slots: 2, Estop: true})
			}
		}
		r.add("sh")
		synctest.Wait()
		if runs := r.current(); len(runs) != 1 || runs[0].Node != "n-borea" {
			r.t.Fatalf("runs %+v, want one on borea", runs)
		}
	})
}

// A start that the executor refuses whatever is planned is asked for ever more
// seldom, says why, and holds up no other card (invariant 22).
func TestLoopBacksOff(t *testing.T) {
	inBubble(t, shell, []string{"atlas"}, func(r *rig) {
		r.mu.Lock()
		r.refuse = board.VStart
		r.mu.Unlock()
		id := r.add("sh")
		synctest.Wait()
		if n := r.count(board.VStart); n != triesAtOnce {
			r.t.Fatalf("asked %d times at once, want %d", n, triesAtOnce)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := r.count(board.VStart); n < 10 || n > 70 {
			r.t.Fatalf("asked %d times in an hour", n)
		}
		if w := r.card(id).Waits; w.Text != "not now" {
			r.t.Fatalf("the card waits for %+v", w)
		}
		r.mu.Lock()
		r.refuse = ""
		r.mu.Unlock()
		time.Sleep(61 * time.Second)
		synctest.Wait()
		if r.card(id).Run == "" {
			r.t.Fatal("not started although nothing refuses it any more")
		}
	})
}

// MEM-02, EXP-04: under elevated pressure the first of a round only; the loop wakes when the round lets go.
func TestLoopElevatedPressure(t *testing.T) {
	inBubble(t, shell, []string{"atlas"}, func(r *rig) {
		r.set("n-atlas", board.Reading{State: board.NodeOnline, Slots: 2, Pressure: "elevated"})
		r.add("sh")
		second := r.add("sh")
		synctest.Wait()
		if w := r.card(second).Waits; w.Check != "eligible" || !strings.Contains(w.Text, "memory_pressure is elevated") || !strings.Contains(w.Text, "local_started is 1") {
			r.t.Fatalf("DSP-04: it waits for %+v", w)
		}
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if len(r.current()) != 1 {
			r.t.Fatal("two within a round")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if r.card(second).Run == "" {
			r.t.Fatalf("not started with the next round: %+v", r.card(second).Waits)
		}
	})
}

// CAP-22: the loop wakes when a full round of starts lets go.
func TestLoopWaitsForTheRound(t *testing.T) {
	inBubble(t, shell+"dispatch: {capacity: [{counts: starts, scope: machine, max: 1}]}\n", []string{"atlas"}, func(r *rig) {
		r.add("sh")
		second := r.add("sh")
		synctest.Wait()
		run := r.current()[0]
		r.launch(run)
		r.exit(run, 0)
		synctest.Wait()
		if r.card(second).Run != "" {
			r.t.Fatal("two starts in a round of one: what has ended is not counted")
		}
		time.Sleep(60 * time.Second)
		synctest.Wait()
		if r.card(second).Run == "" {
			r.t.Fatalf("not started with the next round: %+v", r.card(second).Waits)
		}
	})
}

// A start guard that reads the time lets a card start when it turns, without any change (architecture.md §8).
func TestLoopWakesForTheTime(t *testing.T) {
	const late = shell + `
statuses:
  ready:
    on:
      start:
        - {by: [platform], guard: now - card.created_at > 100, target: running, do: [{claim: {role: implementer, ttl: 900}}]}
`
	inBubble(t, late, []string{"atlas"}, func(r *rig) {
		id := r.add("sh")
		time.Sleep(99 * time.Second)
		synctest.Wait()
		if r.card(id).Run != "" {
			r.t.Fatal("started before its time")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if r.card(id).Run == "" {
			r.t.Fatalf("not started when its time came: %+v", r.card(id).Waits)
		}
	})
}

// M-16: a pause holds everything and its end lets it go, by the feed alone; a draining node is passed by.
func TestLoopPause(t *testing.T) {
	inBubble(t, shell, []string{"atlas", "borea"}, func(r *rig) {
		r.person(board.VPause, board.Pause{Why: "upgrade"})
		id := r.add("sh")
		synctest.Wait()
		if w := r.card(id).Waits; w.Check != "pause" || !strings.Contains(w.Text, "ann@atlas: upgrade") {
			r.t.Fatalf("it waits for %+v", w)
		}
		r.person(board.VDrain, board.Drain{Node: "atlas"})
		r.person(board.VPause, board.Pause{Board: "default", Why: "release"})
		r.person(board.VResume, board.Pause{})
		synctest.Wait()
		if w := r.card(id).Waits; r.card(id).Run != "" || !strings.Contains(w.Text, "board default is paused by ann@atlas: release") {
			r.t.Fatalf("it waits for %+v", w)
		}
		r.person(board.VResume, board.Pause{Board: "default"})
		synctest.Wait()
		if runs := r.current(); len(runs) != 1 || runs[0].Node != "n-borea" {
			r.t.Fatalf("resumed, and atlas drains: %+v", runs)
		}
	})
}

// RSP-02: what a guard holds until a known time is tried again then, not before.
func TestLoopWaitsForAGuard(t *testing.T) {
	inBubble(t, shell, []string{"atlas"}, func(r *rig) {
		id := r.add("sh")
		synctest.Wait()
		run := r.current()[0]
		r.launch(run)
		r.exit(run, 75)
		synctest.Wait()
		if c := r.card(id); c.Run != "" || c.Waits.Check != "rate_limit" {
			r.t.Fatalf("after a rate limit: run %q, waits %+v", c.Run, c.Waits)
		}
		time.Sleep(299 * time.Second)
		synctest.Wait()
		if r.card(id).Run != "" {
			r.t.Fatal("started before the cooldown was over")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if r.card(id).Run == "" {
			r.t.Fatalf("not started after the cooldown: %+v", r.card(id).Waits)
		}
	})
}

// Due times that the executor does not take stay due: they are asked again, but
// not without a pause.
func TestLoopPausesWhenDueTimesAreNotTaken(t *testing.T) {
	inBubble(t, shell, []string{"atlas"}, func(r *rig) {
		synctest.Wait()
		r.refuse = board.VDue
		r.add("sh", func(a *board.CardAdd) { at := r.now() + 1000; a.StartAfter = &at })
		before := r.count(board.VDue)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if n := r.count(board.VDue) - before; n < 2 || n > 60 {
			r.t.Fatalf("asked %d times in half a minute", n)
		}
	})
}
