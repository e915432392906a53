package board

import (
	"slices"
	"testing"
)

// M-35, M-37, RUN-03: a verdict clears the card's run and takes the start order
// and the due times out of the state; the session keeps its place until it is gone.
func TestOwnVerdictLeavesTheSession(t *testing.T) {
	w := newWorld(t, commands)
	id := w.add("x", func(c *Card) { c.Assignee, c.MaxRuntime = "agent", opt(60) })
	r := w.started(id)
	c := w.must(id, "request_review", asRun(r.ID), "summary", "all there")
	r = GetRun(w.v, r.ID)
	if c.Status != "review" || c.Run != "" || c.LastOutcome != "review_requested" {
		t.Fatalf("card %+v", c)
	}
	if r.State != RunEnded || r.Outcome != "review_requested" || r.Verdict != ByOwn || r.Ended != w.now || r.Gone != "" {
		t.Fatalf("run %+v", r)
	}
	if h := GetHeld(w.v, r.ID); h == nil || !h.Ended || h.Stopping {
		t.Fatalf("held %+v", h)
	}
	if len(w.orders(OrderStart))+len(w.orders(OrderStop)) != 0 {
		t.Fatal("an order is left: its own word neither stops it nor leaves its start standing")
	}
	if len(w.dues(DueClaim))+len(w.dues(DueRun)) != 0 {
		t.Fatal("due times of an ended run are left")
	}
	if got := comments(w, id); !slices.Equal(got, []string{"all there"}) {
		t.Fatalf("comments %q", got)
	}
	w.gone(r.ID)
	if GetHeld(w.v, r.ID) != nil {
		t.Fatal("a session that is gone keeps its place")
	}
}

// M-35, WFL-22: whatever gives a verdict from outside orders that session stopped in the same
// transaction, and the next start waits until it is gone; the order names the run.
func TestOutsideVerdictStopsTheSession(t *testing.T) {
	for _, c := range []struct {
		event, to, outcome string
		by                 Actor
		payload            []any
	}{
		{"reclaim", "ready", "reclaimed", manager, nil},
		{"stop_run", "blocked", "reclaimed", manager, []any{"why", "no"}},
		{"cancel", "cancelled", "cancelled", manager, nil},
		{"block", "blocked", "blocked", manager, []any{"kind", "needs_input", "reason", "which one?"}},
		{"reassign", "ready", "reclaimed", manager, []any{"assignee", "agent"}},
		{"timed_out", "ready", "timed_out", Platform(), []any{"error", "over its limit"}},
		{"stale", "ready", "stale", Platform(), nil},
		{"orphaned", "ready", "reclaimed", Platform(), nil},
		{"session_lost", "ready", "reclaimed", Platform(), nil},
	} {
		t.Run(c.event, func(t *testing.T) {
			w := newWorld(t, commands)
			id := w.add("x", func(c *Card) { c.Assignee = "sh" })
			r := w.started(id)
			seq := w.v.Seq()
			w.must(id, c.event, c.by, c.payload...)
			if w.v.Seq() != seq+1 {
				t.Fatal("more than one transaction")
			}
			w.status(id, c.to)
			r = GetRun(w.v, r.ID)
			if r.Outcome != c.outcome || r.Verdict != ByOutside {
				t.Fatalf("outcome %q verdict %q", r.Outcome, r.Verdict)
			}
			stops := w.orders(OrderStop)
			if len(stops) != 1 || stops[0].Run != r.ID || stops[0].Node != r.Node || r.Stop != stops[0].ID {
				t.Fatalf("stop orders %+v", stops)
			}
			if h := GetHeld(w.v, r.ID); h == nil || !h.Stopping || !h.Ended {
				t.Fatalf("held %+v", h)
			}
			if c.to != "ready" {
				return
			}
			refused(t, w.start(id), "session_not_gone", "atlas is still stopping")
			w.gone(r.ID)
			if next := w.started(id); next.N != 2 || next.Epoch <= r.Epoch { // RUN-10: a later run has a greater number and epoch
				t.Fatalf("next run %+v", next)
			}
		})
	}
}

// SUP-10, SUP-11, RSP-07, RSP-08, WFL-26: what an exit means in the default workflow.
func TestExitsInTheDefaultWorkflow(t *testing.T) {
	for _, c := range []struct {
		name, profile string
		code          int64
		status        string
		outcome       string
		failures      int64
	}{
		{"a command's success is its word", "sh", 0, "done", "completed", 0},
		{"an agent that says nothing trips the breaker", "agent", 0, "blocked", "crashed", 2},
		{"rate limit is no failure", "sh", 75, "ready", "rate_limited", 0},
		{"anything else is a crash", "sh", 3, "ready", "crashed", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, commands)
			id := w.add("x", func(x *Card) { x.Assignee = c.profile })
			r := w.started(id)
			card := w.exit(id, c.code)
			if card.Status != c.status || card.LastOutcome != c.outcome || card.Failures != c.failures {
				t.Fatalf("%s %s failures %d, want %s %s %d", card.Status, card.LastOutcome, card.Failures, c.status, c.outcome, c.failures)
			}
			r = GetRun(w.v, r.ID)
			if r.Verdict != ByExit || r.Gone != GoneReport || len(w.orders(OrderStop)) != 0 || GetHeld(w.v, r.ID) != nil {
				t.Fatalf("run %+v: nothing is left to stop", r)
			}
			if c.status == "blocked" && (card.BlockKind != "capability" || card.Attention.Check != "failures") {
				t.Fatalf("blocked %q, attention %+v", card.BlockKind, card.Attention)
			}
		})
	}
}

// RSP-07: failures in a row against the card's max_retries, else the parameter; a reset starts anew.
func TestBreaker(t *testing.T) {
	w := newWorld(t, commands)
	id := w.add("x", func(c *Card) { c.Assignee, c.MaxRetries = "sh", opt(3) })
	for n := int64(1); n <= 3; n++ {
		w.started(id)
		c := w.exit(id, 9)
		if want := map[bool]string{true: "blocked", false: "ready"}[n == 3]; c.Status != want || c.Failures != n {
			t.Fatalf("after %d: %s, %d failures", n, c.Status, c.Failures)
		}
	}
	if e := w.lastEvent(id, "gave_up"); string(e.Payload) != `{"error":"exit code 9","failures":3,"limit":3}` {
		t.Fatalf("%s", e.Payload)
	}
	c := w.must(id, "unblock", manager)
	if c.Failures != 0 || c.LastError != "" || c.BlockKind != "" || c.Attention.Check != "" || c.Status != "ready" {
		t.Fatalf("after unblock %+v", c)
	}
	one := w.add("y", func(c *Card) { c.Assignee, c.MaxRetries = "sh", opt(1) })
	w.started(one)
	if c := w.exit(one, 9); c.Status != "blocked" {
		t.Fatalf("max_retries 1: %s", c.Status)
	}
}

// SUP-16, M-11: the grace of machine_offline is the workflow's own guard; taken, the
// move stops the session, forgets it and gives the card free.
func TestMachineOffline(t *testing.T) {
	w := newWorld(t, commands)
	id := w.add("x", func(c *Card) { c.Assignee = "sh" })
	r := w.started(id)
	_, err := w.fire(id, "machine_offline", Platform(), "seconds", 600.0)
	refused(t, err, NoTransition, "")
	w.must(id, "machine_offline", Platform(), "seconds", 601.0)
	w.status(id, "ready")
	if s := GetSlot(w.v, id, "worker"); s == nil || s.Forgotten != w.now || s.Run != r.ID {
		t.Fatalf("slot %+v", s)
	}
	if len(w.orders(OrderStop)) != 1 {
		t.Fatal("want one stop order")
	}
	w.edit("atlas", func(n *Node) { n.Battery = true })
	other := w.add("laptop", func(c *Card) { c.Assignee = "sh" })
	w.started(other)
	_, err = w.fire(other, "machine_offline", Platform(), "seconds", 1e6)
	refused(t, err, NoTransition, "")
}

// M-12: a refused start is not the card's fault, one that failed is.
func TestSpawnFailed(t *testing.T) {
	for _, c := range []struct {
		kind, outcome string
		failures      int64
	}{{ReportRefused, "reclaimed", 0}, {ReportFailed, "spawn_failed", 1}} {
		w := newWorld(t, commands)
		id := w.add("x", func(c *Card) { c.Assignee = "sh" })
		r := w.claimed(id)
		w.report(r.ID, Report{Kind: c.kind, Error: "no room"})
		got := w.card(id)
		if got.Status != "ready" || got.LastOutcome != c.outcome || got.Failures != c.failures || GetHeld(w.v, r.ID) != nil {
			t.Fatalf("%s: %s %s failures %d", c.kind, got.Status, got.LastOutcome, got.Failures)
		}
		if c.failures == 1 && got.LastError != "no room" {
			t.Fatalf("last error %q", got.LastError)
		}
	}
}

// BRD-18: four kinds of blocks, counted by kind until the card is done; the same
// kind again sends it to triage, a dependency waits in todo.
func TestBlocks(t *testing.T) {
	w := newWorld(t, commands)
	id := w.add("x", func(c *Card) { c.Assignee = "sh" })
	_, err := w.fire(id, "block", manager, "kind", "mood", "reason", "x")
	refused(t, err, "block_kind", "needs_input, capability, transient, dependency")
	c := w.must(id, "block", manager, "kind", "transient", "reason", "net is down")
	if c.Status != "blocked" || c.BlockKind != "transient" || c.BlockReason != "net is down" || c.Attention.Check != "transient" || c.Blocks["transient"] != 1 {
		t.Fatalf("%+v", c)
	}
	w.must(id, "unblock", manager)
	w.status(id, "ready")
	c = w.must(id, "block", manager, "kind", "transient", "reason", "again")
	if c.Status != "triage" || c.Blocks["transient"] != 2 {
		t.Fatalf("%s %v", c.Status, c.Blocks)
	}
	dep := w.add("dep", nil)
	two := w.add("y", nil, dep)
	if c := w.must(two, "block", manager, "kind", "dependency", "reason", "needs dep"); c.Status != "todo" || c.Attention.Check != "" {
		t.Fatalf("%+v", c)
	}
	w.must(dep, "complete", manager)
	w.status(two, "ready")
	if c := w.must(two, "complete", manager); c.Blocks != nil {
		t.Fatalf("a finished card remembers %v", c.Blocks)
	}
}

// WFL-24, SES-14: forget_session marks one slot's newest session, changes no
// other row, and stops a session of the slot that is not gone (M-35).
func TestForgetSession(t *testing.T) {
	w := newWorld(t, commands)
	w.params("web", `{"reviewer":"rev"}`)
	id := w.add("x", func(c *Card) { c.Assignee = "agent" })
	r := w.started(id)
	w.must(id, "request_review", asRun(r.ID), "summary", "s")
	w.gone(r.ID)
	rev := w.started(id)
	w.must(id, "block", asRun(rev.ID), "kind", "needs_input", "reason", "what?")
	w.after(10)
	w.must(id, "forget", manager)
	for _, slot := range []string{"worker", "reviewer"} {
		if s := GetSlot(w.v, id, slot); s == nil || s.Forgotten != w.now {
			t.Fatalf("slot %s: %+v", slot, s)
		}
	}
	if stops := w.orders(OrderStop); len(stops) != 1 || stops[0].Run != rev.ID {
		t.Fatalf("stops %+v", stops)
	}
	w.gone(rev.ID)
	if next := w.started(id); GetSlot(w.v, id, "worker").Run != next.ID || GetSlot(w.v, id, "worker").Forgotten != 0 || GetSlot(w.v, id, "reviewer").Forgotten == 0 {
		t.Fatal("the new session's slot is not its own")
	}
}

// WFL-23, INV-07: close_session stops what is live in the slot, but never the session whose own word moved the card.
func TestCloseSessionSparesTheSpeaker(t *testing.T) {
	w := newWorld(t, commands)
	w.params("web", `{"review":false}`)
	id := w.add("x", func(c *Card) { c.Assignee = "agent" })
	r := w.started(id)
	w.must(id, "complete", asRun(r.ID), "summary", "done")
	w.status(id, "done")
	if len(w.orders(OrderStop)) != 0 {
		t.Fatal("a session was stopped while its own command was answered")
	}
	two := w.add("y", func(c *Card) { c.Assignee = "agent" })
	r = w.started(two)
	w.must(two, "request_review", asRun(r.ID), "summary", "s") // its own word: it may leave by itself
	w.must(two, "complete", manager)
	if stops := w.orders(OrderStop); len(stops) != 1 || stops[0].Run != r.ID {
		t.Fatalf("stops %+v", stops)
	}
}

// INV-08, INV-18: with a review wanted, only a reviewer or a person finishes; the reviewer's session is of its own slot.
func TestReviewIsSomebodyElses(t *testing.T) {
	w := newWorld(t, commands)
	w.params("web", `{"reviewer":"rev"}`)
	id := w.add("x", func(c *Card) { c.Assignee = "agent" })
	r := w.started(id)
	_, err := w.fire(id, "complete", asRun(r.ID), "summary", "s")
	refused(t, err, "validator", "a review is wanted")
	w.must(id, "request_review", asRun(r.ID), "summary", "s")
	w.gone(r.ID)
	rev := w.started(id)
	if rev.Slot == r.Slot || rev.Role != "reviewer" {
		t.Fatalf("%+v", rev)
	}
	w.must(id, "request_changes", asRun(rev.ID), "text", "not yet")
	w.status(id, "ready")
	w.gone(rev.ID)
	if again := w.started(id); again.Slot != "worker" || again.Role != "implementer" {
		t.Fatalf("%+v", again)
	}
}

// RUN-01, BRD-07: what a harness says of the end of its limit is kept with the run, and other keys stay.
func TestRunMetadataKeepsOtherKeys(t *testing.T) {
	w := newWorld(t, commands)
	id := w.add("x", func(c *Card) { c.Assignee = "sh" })
	r := w.started(id)
	w.write(func(x *tx) *Error {
		r := GetRun(x, r.ID)
		r.Metadata = []byte(`{"mine":{"a":1}}`)
		x.putRun(r)
		return nil
	})
	code := int64(75)
	w.report(r.ID, Report{Kind: ReportExited, Code: &code, ResetAt: w.now + 3_600_000})
	if got := string(GetRun(w.v, r.ID).Metadata); got != `{"mine":{"a":1},"reset_at":`+jsonNumber(uint64(w.now+3_600_000))+`}` {
		t.Fatalf("metadata %s", got)
	}
}

// RUN-08, RUN-10, INV-10: an observation of a run that is not current any more changes nothing.
func TestObservationsOfASupersededRun(t *testing.T) {
	w := newWorld(t, commands)
	id := w.add("x", func(c *Card) { c.Assignee = "sh" })
	old := w.started(id)
	w.exit(id, 1)
	w.started(id)
	seq := w.v.Seq()
	_, err := w.firing(id, firing{Event: "timed_out", Actor: Platform(), Run: GetRun(w.v, old.ID)})
	refused(t, err, "superseded", old.ID)
	if w.v.Seq() != seq {
		t.Fatal("something was written")
	}
}

// A workflow that would leave a run without a status for it, or a status without its run, is refused at the move.
func TestRunAndStatusBelongTogether(t *testing.T) {
	w := newWorld(t, `
version: 1
name: odd
initial: idle
statuses:
  idle: {stored_as: todo, on: {start: [{target: work, do: [{claim: {role: r}}]}], jump: [{target: work}]}}
  work:
    stored_as: running
    run: {role: r, prompt: 'hi'}
    on:
      leave: [{guard: payload.x != 1, target: idle}, {target: idle, do: [{end_run: done}]}]
      other: [{guard: payload.x == nil, target: work, do: [{end_run: done}]}]
profiles: {sh: {harness: command, args: [true]}}
dispatch: {start: start}
`)
	id := w.add("x", func(c *Card) { c.Assignee = "sh" })
	_, err := w.fire(id, "jump", manager)
	refused(t, err, "run_status", "without a run")
	w.started(id)
	_, err = w.fire(id, "leave", manager)
	refused(t, err, "run_status", "end_run")
	_, err = w.fire(id, "other", manager)
	refused(t, err, "run_status", "without a run")
	w.must(id, "leave", manager, "x", 1.0)
	w.status(id, "idle")
}
