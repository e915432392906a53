package board

import "fmt"

// due handles due times that have come. Each is taken out of the state whatever
// becomes of it, and one poisoned card holds up no other (invariant 22). What
// does not fit into one transaction beside the others stays due, and comes with
// the next request; what does not fit alone is taken out and does nothing.
func due(t *tx) (any, *Error) {
	a, err := args[DueArgs](t)
	if err != nil {
		return nil, err
	}
	for _, key := range a.Keys {
		d := read[Due](t, TDue, key)
		if d == nil || d.At > t.env.Now {
			continue
		}
		f := t.fork()
		f.del(TDue, key)
		if g := f.fork(); g.dueOne(d) == nil {
			f.join(g)
		}
		if !t.fitsWith(f) {
			if len(t.out) > 0 {
				break
			}
			f = t.fork()
			f.del(TDue, key)
		}
		t.join(f)
	}
	return nil, nil
}

// fitsWith tells whether a fork may be joined within the bounds of one transaction.
func (t *tx) fitsWith(f *tx) bool {
	x, y := t.txn(), f.txn()
	return len(x.Ops)+len(y.Ops) <= maxOps && x.Size()+y.Size() <= maxBytes
}

func (t *tx) dueOne(d *Due) *Error {
	switch d.Kind {
	case DueCard:
		c := GetCard(t, d.Key)
		if c == nil {
			return nil
		}
		if i := GetImport(t, c.Board); i != nil { // its board is not there yet
			t.putDue(t.env.Now+importIdle, d.Kind, d.Key)
			return nil
		}
		return t.platformFire(c, nil, "promote", nil)
	case DueClaim:
		return t.dueClaim(GetRun(t, d.Key), d)
	case DueWork:
		return t.dueWork(GetRun(t, d.Key), d)
	case DueRun:
		return t.dueRun(GetRun(t, d.Key), d)
	case DueAge:
		return t.dueAge(GetRun(t, d.Key), d)
	case DueStale:
		return t.dueStale(GetRun(t, d.Key), d)
	case DueLost:
		return t.dueLost(GetRun(t, d.Key), d)
	case DueIdle:
		return t.dueIdle(GetRun(t, d.Key), d)
	case DueClose:
		t.dueClose(GetRun(t, d.Key))
	case DueImport:
		t.dueImport(d.Key)
	case DueCarry:
		t.dueCarry(d.Key)
	case DueOrders:
		t.dueOrders(d.Key)
	case DueKeep:
		t.dueKeep(d.Key)
	case DueKeepAll:
		t.dueKeepAll(d.Key)
	case DueAgent:
		t.dueAgent(d.Key)
	case DueAgents:
		t.dueAgents()
	case DueExpire:
		t.del(TToken, d.Key)
	case DueCool:
		t.dueCool(d.Key)
	}
	return nil
}

// dueClaim is a claim whose order nobody took: a verdict, and an order to void it (RUN-06, M-12, SUP-23).
func (t *tx) dueClaim(r *Run, d *Due) *Error {
	if r == nil || r.State == RunEnded {
		return nil
	}
	if o := GetOrder(t, r.Node, r.Order); o == nil || o.State != OrderPending {
		return nil
	}
	return t.lasting(r, d, "orphaned", map[string]any{"stale_lock": Lock(t, r), "claim_expires": d.At / 1000,
		"error": fmt.Sprintf("%s did not take the start in time", t.nodeName(r.Node))})
}

// offerAgain is when what lasts is offered again to a workflow that did not take it (architecture.md §8).
const offerAgain = 30_000

// lasting offers what lasts; when no transition takes it, it is due again later.
func (t *tx) lasting(r *Run, d *Due, event string, payload map[string]any) *Error {
	f := t.fork()
	if err := f.observed(r, event, payload); err == nil {
		t.join(f)
	} else {
		if err.Check != NoTransition {
			t.findingFailed(r.Card, event, err)
		}
		t.putDue(t.env.Now+offerAgain, d.Kind, d.Key)
	}
	return nil
}

// findingFailed shows, once, that the workflow did not manage what the fleet saw (SUP-02): without that a card would
// stay as it is, and nobody would know why. Of an idle session, that it is not taken at all is shown too (IDL-07).
func (t *tx) findingFailed(card, event string, err *Error) {
	c := GetCard(t, card)
	if c == nil || c.Attention.Check != "" {
		return
	}
	c.Attention = Reason{Check: event, Text: clip(fmt.Sprintf("the fleet saw %s, and the workflow failed on it: %s", event, err.Message), 500), Since: t.env.Now}
	t.putCard(c)
}

// dueRun is a run past its runtime, counted from its claim (SUP-06).
func (t *tx) dueRun(r *Run, d *Due) *Error {
	if r == nil || r.State == RunEnded || r.Runtime == 0 {
		return nil
	}
	return t.lasting(r, d, "timed_out", overLimit("runtime", r.Runtime))
}

func overLimit(name string, limit int64) map[string]any {
	return map[string]any{"limit": limit / 1000, "limit_seconds": limit / 1000, "what": name, "error": fmt.Sprintf("over its limit of %d s (%s)", limit/1000, name)}
}

// reasons records why cards wait: written only when check or text changed.
func reasons(t *tx) (any, *Error) {
	a, err := args[Reasons](t)
	if err != nil {
		return nil, err
	}
	for _, x := range a.Cards {
		c := GetCard(t, x.Card)
		if c == nil || c.Run != "" && x.Check != "" || c.Waits.Check == x.Check && c.Waits.Text == x.Text {
			continue
		}
		since := t.env.Now
		if c.Waits.Check == x.Check && c.Waits.Since != 0 {
			since = c.Waits.Since
		}
		if c.Waits = (Reason{Check: x.Check, Text: clip(x.Text, 300), Since: since}); x.Check == "" {
			c.Waits = Reason{}
		}
		t.reviewed(c)
		t.put(TCard, c.ID, c) // not putCard: waiting is no change of the card
	}
	return nil, nil
}
