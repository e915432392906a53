package scheduler

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster/board"
)

const limited = shell + `
  a: {harness: agent, fallback: [named, o]}
  b: {harness: agent}
  o: {harness: other}
harnesses:
  agent: {headless: {fresh: [agent]}, exit: {75: rate_limit}, verdict: explicit}
  other: {headless: {fresh: [other]}, exit: {75: rate_limit}, verdict: explicit}
`

// meet lets the current run of a card end with a rate limit.
func (r *rig) meet(card string, reset time.Duration) {
	r.t.Helper()
	synctest.Wait()
	run := r.run(r.card(card).Run)
	if run == nil {
		r.t.Fatalf("%s does not run: %+v", card, r.card(card).Waits)
	}
	r.launch(run)
	code := int64(75)
	r.report(run.Node, board.Report{Kind: board.ReportExited, Run: run.ID, Code: &code, Means: "rate_limit", ResetIn: reset.Milliseconds()})
	synctest.Wait()
}

// A rate limit holds all that share the account on that machine: they go elsewhere,
// or wait and say until when; at that moment they start, also under a new leader.
func TestLoopCooldown(t *testing.T) {
	inBubble(t, limited, []string{"atlas", "borea"}, func(r *rig) {
		r.meet(r.add("b", machine("atlas")), time.Hour)
		elsewhere := r.add("b")
		held := r.add("b", machine("atlas"))
		plain := r.add("sh", machine("atlas"))
		synctest.Wait()
		if run := r.run(r.card(elsewhere).Run); run == nil || run.Node != "n-borea" || r.card(plain).Run == "" {
			r.t.Fatalf("the free account is passed by: %+v, %+v", run, r.card(plain).Waits)
		}
		r.launch(r.run(r.card(plain).Run))
		r.exit(r.run(r.card(plain).Run), 0)
		w := r.card(held).Waits
		if w.Check != "cooldown" || !strings.Contains(w.Text, "agent on atlas is rate limited until ") {
			r.t.Fatalf("it waits for %+v", w)
		}
		if a, _ := Why(r.input(), held, true); a.Check != "cooldown" || a.Values["wait_s"] != int64(3600) || !strings.Contains(a.Fix, "--force") {
			r.t.Fatalf("why: %+v", a)
		}
		ctx, cancel := context.WithCancel(r.t.Context())
		defer func() { cancel(); synctest.Wait() }()
		r.lead(ctx) // what the first leader knew is in the state
		time.Sleep(time.Hour - time.Second)
		synctest.Wait()
		if r.card(held).Run != "" {
			r.t.Fatal("started before the limit was over")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if r.card(held).Run == "" {
			r.t.Fatalf("not started when the limit was over: %+v", r.card(held).Waits)
		}
	})
}

// Another profile steps in, where the first asks for it, when that is under a limit
// on every machine it fits: in order, on the card's first start, and it is said.
func TestLoopFallback(t *testing.T) {
	inBubble(t, limited, []string{"atlas", "borea"}, func(r *rig) {
		r.meet(r.add("b", machine("atlas")), time.Hour)
		id := r.add("a")
		synctest.Wait()
		if run := r.run(r.card(id).Run); run == nil || run.Profile != "a" || run.Node != "n-borea" {
			r.t.Fatalf("there is a machine without a limit: %+v", run)
		}
		r.meet(id, time.Hour)
		if c := r.card(id); c.Run != "" || c.Waits.Check != "cooldown" {
			r.t.Fatalf("it has a session of its own: run %q, waits %+v", c.Run, c.Waits)
		}
		if rows := DryRun(r.input(), "", true).Would; len(rows) != 0 {
			r.t.Fatalf("would start %+v", rows)
		}
		r.person(board.VPause, board.Pause{Why: "look"})
		first, without := r.add("a"), r.add("b")
		r.person(board.VResume, board.Pause{})
		synctest.Wait()
		run := r.run(r.card(first).Run)
		if run == nil || run.Profile != "o" || run.Instead != "a" {
			r.t.Fatalf("nobody stands in: %+v, waits %+v", run, r.card(first).Waits)
		}
		if a, _ := Why(r.input(), first, true); !strings.Contains(a.Text, `profile o, in place of a`) {
			r.t.Fatalf("why: %s", a.Text)
		}
		if c := r.card(without); c.Run != "" || c.Waits.Check != "cooldown" {
			r.t.Fatalf("nobody was asked to stand in: %+v", c.Waits)
		}
		told := false
		for _, x := range r.loop.Rounds(50) {
			for _, s := range x.Started {
				told = told || s.Card == first && s.Instead == "a" && s.Profile == "o"
			}
		}
		if !told {
			r.t.Fatalf("no round tells who stands in: %+v", r.loop.Rounds(50))
		}
	})
}
