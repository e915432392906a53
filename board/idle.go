package board

// An idle session (IDL, M-33): its node tells when a pane is not in a turn and
// since when, and when it works again; the board asks, counts, and calls a
// person. Ask, counter and time are one transaction, so that a new leader does not ask again.

// idleWait is the default of params.idle_interval, in ms.
const idleWait = 60_000

// idleInterval is how long a session must have been silent to count as idle.
func (t *tx) idleInterval(r *Run) (int64, *Error) {
	b := GetBoard(t, r.Board)
	if b == nil {
		return idleWait, nil
	}
	fl, err := t.flow(b)
	if err != nil {
		return 0, err
	}
	if n, ok := number64(fl.params["idle_interval"]); ok && n > 0 {
		return ms(n), nil
	}
	return idleWait, nil
}

// idleDue is when a silent session is spoken of: silent for one interval
// (IDL-03), and two after the last ask (IDL-04). A session without an id or a
// last message gives no verdict (IDL-02).
func idleDue(r *Run, interval int64) int64 {
	if r.Surface != "pane" || r.SessionID == "" || r.Session.Silent == 0 {
		return 0
	}
	at := r.Session.Silent + interval
	if r.Session.Nudged != 0 {
		at = max(at, r.Session.Nudged+2*interval)
	}
	return at
}

// dueIdle offers session_idle to the workflow.
func (t *tx) dueIdle(r *Run, d *Due) *Error {
	if r == nil || r.State == RunEnded {
		return nil
	}
	b, c := GetBoard(t, r.Board), GetCard(t, r.Card)
	if b == nil || c == nil || c.Run != r.ID {
		return nil
	}
	fl, err := t.flow(b)
	if err != nil {
		return err
	}
	wait, err := t.idleInterval(r)
	if err != nil {
		return err
	}
	at := idleDue(r, wait)
	switch {
	case at == 0 || len(fl.wf.Transitions(c.Status, "session_idle")) == 0: // IDL-01
		return nil
	case at > t.env.Now:
		t.putDue(at, DueIdle, r.ID)
		return nil
	case t.env.Nodes(r.Node).State != NodeOnline || t.isPaused(b): // no reading, no verdict; what is paused is not asked
		t.putDue(t.env.Now+wait, DueIdle, r.ID)
		return nil
	}
	worked := r.Session.Nudged != 0 && r.Session.Silent >= r.Session.Nudged+wait // IDL-05: a mere reply is no work
	asks, seen := r.Asks, len(t.out)
	f := t.fork()
	if err := f.platformFire(c, r, "session_idle", map[string]any{"turns": asks, "worked": worked, "waiting": r.Session.Waiting,
		"seconds": (t.env.Now - r.Session.Silent) / 1000}); err != nil {
		t.findingFailed(r.Card, "session_idle", err)
		t.putDue(t.env.Now+offerAgain, d.Kind, d.Key)
		return nil
	}
	spoke := len(f.out) > 0
	t.join(f)
	cur, now := GetRun(t, r.ID), GetCard(t, r.Card)
	switch {
	case cur == nil || now == nil || now.Run != r.ID:
	case spoke && len(t.out) > seen: // merged into what the transition's actions left (IDL-06)
		cur.Session.Nudged = t.env.Now
		t.putRun(cur)
		t.putDue(idleDue(cur, wait), DueIdle, r.ID)
	default: // it waits for a person: looked at again
		t.putDue(t.env.Now+offerAgain, d.Kind, d.Key)
	}
	return nil
}

func (t *tx) isPaused(b *Board) bool {
	f := GetFleet(t)
	return b.PausedAt != 0 || f != nil && f.PausedAt != 0
}
