package board

import (
	"fmt"

	"muster/board/lease"
)

// A run has two ends (M-35): its verdict, which is the workflow's, and its
// session being gone. What each act means for both is decided by [lease.Run];
// this file reads a run's record into it, and writes what comes of it: orders,
// the held row, due times.

// leaseRun is a run as the protocol sees it.
func leaseRun(v View, r *Run) lease.Run {
	l := lease.Run{Keeps: r.Keeps != "", Launched: r.Launched != 0, Over: r.Over, Closed: r.Closed}
	switch r.Verdict {
	case ByOwn:
		l.Verdict = lease.VerdictOwn
	case ByExit:
		l.Verdict = lease.VerdictExit
	case ByOutside:
		l.Verdict = lease.VerdictOutside
	}
	switch r.Gone {
	case GoneReport, GoneVoid:
		l.Gone = lease.GoneReport
	case GoneRefused:
		l.Gone = lease.GoneRefused
	case GoneLease:
		l.Gone = lease.GoneLease
	case GoneWord:
		l.Gone = lease.GoneManager
	case GonePassed:
		l.Gone = lease.GonePassed
	}
	switch o := GetOrder(v, r.Node, r.Order); {
	case r.Stop != "":
		l.Order = lease.OrderVoid
	case o == nil:
	case o.State == OrderPending:
		l.Order = lease.OrderPending
	case o.State == OrderTaken:
		l.Order = lease.OrderTaken
	case o.State == OrderLaunched:
		l.Order = lease.OrderLaunched
	}
	return l
}

// act applies an act to a run and writes all that it means but the workflow's
// part, which is the caller's: EffectVerdict says that a verdict is due.
func (t *tx) act(r *Run, a lease.Act, why string) lease.Effect {
	after, e := leaseRun(t, r).Step(a)
	if e.Has(lease.EffectStale) {
		return e
	}
	r.Over, r.Closed = after.Over, after.Closed
	r.Verdict = map[lease.Verdict]string{lease.VerdictOwn: ByOwn, lease.VerdictExit: ByExit, lease.VerdictOutside: ByOutside}[after.Verdict]
	if after.Launched && r.Launched == 0 {
		r.Launched = t.env.Now
	}
	t.stepOrders(r, after, e, why)
	if g := goneText(after.Gone, r.Launched != 0); g != r.Gone {
		r.Gone, r.GoneAt = g, t.env.Now
		if g == "" {
			r.GoneAt = 0
		}
	}
	t.stepHeld(r, e)
	t.putRun(r)
	t.stepKept(r, a, e, why)
	return e
}

func goneText(g lease.Gone, launched bool) string {
	if g == lease.GoneReport && !launched {
		return GoneVoid
	}
	return map[lease.Gone]string{lease.GoneReport: GoneReport, lease.GoneRefused: GoneRefused, lease.GoneLease: GoneLease,
		lease.GoneManager: GoneWord, lease.GonePassed: GonePassed}[g]
}

func (t *tx) stepOrders(r *Run, after lease.Run, e lease.Effect, why string) {
	start := GetOrder(t, r.Node, r.Order)
	switch after.Order {
	case lease.OrderTaken, lease.OrderLaunched:
		if start != nil {
			start.State = map[lease.OrderState]string{lease.OrderTaken: OrderTaken, lease.OrderLaunched: OrderLaunched}[after.Order]
			t.putOrder(start)
		}
		t.delDue(r.Expires, DueClaim, r.ID)
		return
	case lease.OrderPending:
		return
	}
	t.dropStart(r)
	if e.Has(lease.EffectStop) && r.Stop == "" {
		t.putStop(r, why)
	}
	if after.Order != lease.OrderVoid && r.Stop != "" {
		t.del(TOrder, OrderKey(r.Node, r.Stop))
		r.Stop = ""
	}
}

func (t *tx) stepHeld(r *Run, e lease.Effect) {
	switch h := GetHeld(t, r.ID); {
	case e.Has(lease.EffectHold):
		t.putHeld(t.holdRow(r))
	case e.Has(lease.EffectFree) || r.Gone == GonePassed:
		t.del(THeld, r.ID)
		t.mailGone(r)
	case h != nil && (h.Stopping != (r.Stop != "") || h.Ended != (r.Verdict != "")):
		t.putHeld(t.holdRow(r))
	}
}

// holdRow is the row of a session that is not gone: what caps count (M-13).
func (t *tx) holdRow(r *Run) *Held {
	return &Held{Run: r.ID, Card: r.Card, Board: r.Board, Slot: r.Slot, Node: r.Node, Profile: r.Profile, Harness: r.Harness, Model: r.Model,
		Status: r.Status, Stored: r.Stored, Account: r.Account, Surface: r.Surface, Role: r.Role, Since: r.Claimed, Lease: r.Lease,
		Ended: r.Verdict != "", Stopping: r.Stop != "", Manual: r.Session.Manual, Idle: r.Session.idle()}
}

// stepKept passes on what an act means for the run whose session was to be kept.
func (t *tx) stepKept(r *Run, a lease.Act, e lease.Effect, why string) {
	from := GetRun(t, r.Keeps)
	if from == nil {
		return
	}
	switch {
	case e.Has(lease.EffectBackStop):
		t.act(from, lease.ActBackStop, why)
	case e.Has(lease.EffectBack):
		t.act(from, lease.ActBack, why)
	case e.Has(lease.EffectFrom):
		t.act(from, a, why)
	}
}

// verdict ends a run for the workflow: own says that the run itself said so. Unless
// its session is kept or gone, anybody else's verdict orders it stopped, in the same
// transaction (M-35).
func (t *tx) verdict(r *Run, own, keep bool, why string) {
	if r.Verdict == "" {
		act := lease.ActVerdict
		if (own || keep) && r.Launched != 0 {
			act = lease.ActWord
		}
		t.act(r, act, why)
	}
	r.State, r.Ended = RunEnded, t.env.Now
	t.delDue(runDue(r), DueRun, r.ID)
	t.delDue(workDue(r), DueWork, r.ID)
	t.putRun(r)
}

// part takes a run from its card where the workflow does not: while a card has a run, nothing plans it again. The
// caller writes the card.
func (t *tx) part(c *Card, r *Run, outcome, why string) {
	c.Run, c.LastOutcome, r.Outcome = "", outcome, outcome
	t.verdict(r, false, false, why)
}

// stuck says that only a person can move a card on, and why.
func (c *Card) stuck(t *tx, why string) {
	c.Attention = Reason{Check: "stuck", Text: clip(why, 500), Since: t.env.Now}
}

// closeSession orders a session ended, whatever run has it (M-35: whatever
// forgets or closes a session that is not gone stops it).
func (t *tx) closeSession(r *Run, why string) {
	if r.Verdict == "" {
		t.stopSession(r, why)
		return
	}
	t.act(r, lease.ActClose, why)
}

// stopSession orders the end of a run's session, once, and gives no verdict: that
// comes with the exit it leads to (WFL-22).
func (t *tx) stopSession(r *Run, why string) {
	if r.Gone != "" || r.Stop != "" {
		return
	}
	t.putStop(r, why)
	t.dropStart(r)
	if GetHeld(t, r.ID) != nil {
		t.putHeld(t.holdRow(r))
	}
	t.putRun(r)
}

func (t *tx) putStop(r *Run, why string) {
	o := &Order{ID: t.orderID(), Node: r.Node, Kind: OrderStop, State: OrderPending, Run: r.ID, Card: r.Card, Slot: r.Slot,
		Era: r.Era, Seq: t.env.Seq, At: t.env.Now, Why: why}
	t.putOrder(o)
	r.Stop = o.ID
}

// dropStart takes a run's start order out of the state, with the due time of its claim.
func (t *tx) dropStart(r *Run) {
	if o := GetOrder(t, r.Node, r.Order); o != nil {
		t.delOrder(o)
	}
	t.delDue(r.Expires, DueClaim, r.ID)
}

// gone is the leader's word that lease and margin have passed (architecture.md §5):
// its contact table decides; the state checks that the run has a lease.
func gone(t *tx) (any, *Error) {
	a, err := args[Gone](t)
	if err != nil {
		return nil, err
	}
	r, err := t.findRun(a.Run)
	switch {
	case err != nil:
		return nil, err
	case a.By != GoneLease:
		return nil, Errorf(Invalid, "gone by %q", a.By)
	case r.Lease == 0:
		return nil, Errorf(Refused, "run %s has no lease: its slot is kept until its machine returns or a manager says it is dead", r.ID)
	}
	e := t.act(r, lease.ActLease, "its lease has passed")
	if e.Has(lease.EffectStale) {
		return nil, nil
	}
	t.runEvent(r, "session_gone", map[string]any{"by": a.By, "machine": t.nodeName(r.Node)})
	if !e.Has(lease.EffectVerdict) {
		return nil, nil
	}
	return nil, t.sessionLost(r, false, fmt.Sprintf("%s is out of touch, and the lease has passed", t.nodeName(r.Node)))
}

// runEvent records an event of a run on its card.
func (t *tx) runEvent(r *Run, kind string, payload map[string]any) {
	c := GetCard(t, r.Card)
	if c == nil {
		return
	}
	t.event(c, Event{Kind: kind, Run: r.ID, Payload: jsonOf(payload)})
	t.putCard(c)
}

func (t *tx) nodeName(id string) string {
	if n := GetNode(t, id); n != nil && n.Name != "" {
		return n.Name
	}
	return id
}
