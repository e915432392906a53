package board

import (
	"muster/board/workflow"
)

// endRun gives the card's run its verdict (M-35); without a run it does
// nothing. Whoever is not the run itself stops its session with it, unless the
// session is gone already or is kept.
func (st *step) endRun(outcome string, keep bool) *Error {
	c, t, r := st.c, st.t, st.run
	if c.Run == "" {
		return nil
	}
	if r == nil || st.claim != nil {
		return Errorf(Refused, "card %s: event %q cannot end run %s here", c.ID, st.f.Event, c.Run).WithCheck("run_status")
	}
	st.touched = true
	c.Run, c.LastOutcome = "", outcome
	r.Outcome = outcome
	if why := payloadText(st.f.Payload, "error"); why != "" {
		r.Error = clip(why, 500)
	}
	if at, ok := number64(st.f.Payload["reset_at"]); ok && at > 0 && at < 1e11 {
		setMetadata(r, resetKey, int64(at*1000))
	}
	if outcome == "rate_limited" {
		t.coolDown(r, st.s)
	}
	t.verdict(r, st.f.Actor.Kind == ActorRun && st.f.Actor.Run == r.ID, keep, st.f.Event)
	return nil
}

// runDue is when the run's runtime limit is passed: strictly later than the limit (SUP-06).
func runDue(r *Run) int64 {
	if r.Runtime == 0 {
		return 0
	}
	return r.Claimed + r.Runtime + 1
}

// recordFailure counts a failure in a row; at the breaker's limit the card goes
// to the breaker's target instead (RSP-07). trip sets the count to one below the limit first (RSP-08).
func (st *step) recordFailure(trip bool) *Error {
	c, br := st.c, st.wf.Breaker
	st.touched = true
	var limit float64
	has := false
	if br != nil {
		var err error
		if limit, has, err = st.s.Number(br.Limit); err != nil {
			return ruleError("card "+c.ID+": breaker.limit", err)
		}
		limit = min(max(limit, 0), maxSeconds)
	}
	if trip && has {
		c.Failures = max(c.Failures, int64(limit)-1, 0)
	}
	c.Failures++
	c.LastError = payloadText(st.f.Payload, "error")
	if c.LastError == "" {
		c.LastError = st.f.Event
		if st.run != nil && st.run.Outcome != "" {
			c.LastError = st.run.Outcome
		}
	}
	c.LastError = clip(c.LastError, 500)
	if !has || float64(c.Failures) < limit {
		return nil
	}
	st.to = br.Target
	why := "failed " + times(c.Failures) + " in a row: " + c.LastError
	if trip { // once is enough: what came before is not what holds the card
		why = c.LastError
	}
	if br.Kind != "" {
		c.BlockKind, c.BlockReason = br.Kind, why
	}
	st.callPerson("failures", why)
	st.t.event(c, Event{Kind: "gave_up", Actor: Platform(), Payload: object("failures", c.Failures, "limit", int64(limit), "error", c.LastError)})
	return nil
}

// callPerson says why a person is needed; it stands until the card leaves the status it now enters.
func (st *step) callPerson(kind, text string) {
	st.attention = true
	since := st.t.env.Now
	if st.c.Attention.Check == kind && st.c.Attention.Text == text {
		since = st.c.Attention.Since
	}
	st.c.Attention = Reason{Check: kind, Text: clip(text, 500), Since: since}
}

// blockKinds are the four kinds of a block (BRD-18).
var blockKinds = []string{"needs_input", "capability", "transient", "dependency"}

func (st *step) block(a *workflow.Block) *Error {
	kind, err := st.s.Render(a.Kind)
	if err != nil {
		return st.failed(a, err)
	}
	reason, err := st.s.Render(a.Reason)
	if err != nil {
		return st.failed(a, err)
	}
	if !contains(blockKinds, kind) {
		return Errorf(Invalid, "card %s: %q is no kind of block", st.c.ID, clip(kind, 60)).WithCheck("block_kind").
			WithHint("kinds are needs_input, capability, transient, dependency")
	}
	st.touched = true
	c := st.c
	blocks := make(map[string]int64, len(c.Blocks)+1)
	for k, n := range c.Blocks {
		blocks[k] = n
	}
	blocks[kind]++
	c.Blocks, c.BlockKind, c.BlockReason = blocks, kind, clip(reason, 4<<10)
	if kind != "dependency" { // a dependency comes back by itself
		st.callPerson(kind, reason)
	}
	return nil
}

func (st *step) unblock() {
	st.touched = true
	st.c.BlockKind, st.c.BlockReason = "", ""
	st.c.Attention, st.attention = Reason{}, false
}

// stopRun stops the run's session without a verdict (WFL-22): it names this run, never a later one.
func (st *step) stopRun() {
	if st.c.Run != "" && st.run != nil && st.run.Gone == "" {
		st.t.stopSession(st.run, st.f.Event)
		st.touched = true
	}
}

// session is close_session and forget_session: both stop a session of the slot that is not gone
// (M-35). The session whose own word this is goes on until it has left by itself.
func (st *step) session(a *workflow.Session) *Error {
	slot, err := st.s.Render(a.Slot)
	if err != nil {
		return st.failed(a, err)
	}
	if slot == "" {
		slot = workflow.DefaultSlot
	}
	st.touched = true
	t := st.t
	if rec := GetSlot(t, st.c.ID, slot); rec != nil {
		if a.Verb() == workflow.ForgetSession && rec.Forgotten == 0 {
			rec.Forgotten = t.env.Now
			t.putSlot(rec)
		}
	}
	var live []string
	EachHeld(t, st.c.ID, func(h *Held) bool {
		if h.Slot == slot && !h.Stopping {
			live = append(live, h.Run)
		}
		return true
	})
	for _, id := range live {
		r := st.run
		if r == nil || r.ID != id {
			r = GetRun(t, id)
		}
		switch {
		case r == nil, st.claim != nil && st.claim.run.ID == id:
		case st.f.Actor.Kind == ActorRun && st.f.Actor.Run == id:
			st.closeLater(r) // INV-07: not while its own command is being answered
		default:
			t.closed(r, a.Verb())
		}
	}
	return nil
}

// closeLater closes the session whose own word this is one round later (SES-19,
// M-18). A headless one ends by itself, or is stopped after `leave`.
func (st *step) closeLater(r *Run) {
	if r.Surface != "pane" || r.Session.Closing != 0 {
		return
	}
	r.Session.Closing = st.t.env.Now + st.s.Round()
	st.t.putRun(r)
	st.t.putDue(r.Session.Closing, DueClose, r.ID)
}

func payloadText(p map[string]any, key string) string {
	s, _ := p[key].(string)
	return s
}

func number64(v any) (float64, bool) {
	switch n := v.(type) {
	case float64:
		return n, true
	case int64:
		return float64(n), true
	case int:
		return float64(n), true
	}
	return 0, false
}
