package board

import (
	"fmt"
	"time"
)

// What a node sees of its sessions between their start and their end. The node
// tells changes (M-10); the state keeps them with the run, and a due time says
// when they mean something. What lasts is offered to the workflow again.

// QuietFor is how long nothing must be heard of a session before its node tells that it is quiet, and before `stale` can
// be said (SUP-07).
const QuietFor = time.Hour

// lossWindow is the time in which losses of a session are counted together, in ms (M-10).
const lossWindow = 3600_000

// told takes a change that a node saw of a session. It counts for a current run
// only (INV-10), and nothing is written when it is no news (SUP-22).
func (t *tx) told(r *Run, a *Report) *Error {
	if c := GetCard(t, r.Card); (c == nil || c.Run != r.ID || r.Launched == 0) && !t.stays(r, a) {
		return superseded(r)
	}
	at := max(t.env.Now-max(a.Ago, 0), r.Claimed)
	was := *r
	switch a.Kind {
	case ReportSeen:
		if r.SeenAt == 0 {
			r.SeenAt = at
		}
		r.MissingSince = 0
	case ReportMissing:
		if r.MissingSince == 0 {
			r.MissingSince = at
		}
	case ReportQuiet:
		r.Session.Quiet = max(t.env.Now-max(a.Ago, 0), 1)
	case ReportHeard:
		r.Session.Quiet = 0
	default:
		r.Session.tell(a, at)
		t.sessionNamed(r, a.Session)
	}
	if was.SeenAt == r.SeenAt && was.SessionID == r.SessionID && was.MissingSince == r.MissingSince && was.Session.Quiet == r.Session.Quiet && was.Session.same(&r.Session) {
		return nil
	}
	t.putRun(r)
	t.turned(&was, r)
	return t.watch(&was, r)
}

// watch moves the due times of a run to what is known of it now.
func (t *tx) watch(was, r *Run) *Error {
	t.delDue(lostDue(was), DueLost, r.ID)
	t.putDue(lostDue(r), DueLost, r.ID)
	t.delDue(staleDue(was), DueStale, r.ID)
	t.putDue(staleDue(r), DueStale, r.ID)
	t.delDue(workDue(was), DueWork, r.ID)
	if r.State != RunEnded {
		t.putDue(workDue(r), DueWork, r.ID)
	}
	wait, err := t.idleInterval(r)
	if err != nil {
		return err
	}
	t.delDue(idleDue(was, wait), DueIdle, r.ID)
	t.putDue(idleDue(r, wait), DueIdle, r.ID)
	return nil
}

// lostDue is when a missing session counts as lost: missing for the grace, at
// the earliest two graces after its launch (SUP-14, SUP-18).
func lostDue(r *Run) int64 {
	if r.MissingSince == 0 {
		return 0
	}
	return max(r.MissingSince+r.Grace, r.Launched+2*r.Grace)
}

// staleDue is when a headless session of which nothing is heard is stale (SUP-07).
func staleDue(r *Run) int64 {
	if r.Stale == 0 || r.Session.Quiet == 0 || r.Surface == "pane" {
		return 0
	}
	return max(r.Claimed+r.Stale, r.Session.Quiet+QuietFor.Milliseconds())
}

// dueLost is a session that is missing. Without a reading of its machine there is
// no verdict (SUP-13), and the time counts anew (SUP-21).
func (t *tx) dueLost(r *Run, d *Due) *Error {
	if r == nil || r.State == RunEnded || r.MissingSince == 0 {
		return nil
	}
	if n := GetNode(t, r.Node); n != nil && n.State == NodeOffline {
		return nil // counted anew when it is back
	}
	if t.env.Nodes(r.Node).State != NodeOnline {
		r.MissingSince = t.env.Now
		t.putRun(r)
		t.putDue(lostDue(r), DueLost, r.ID)
		return nil
	}
	if at := lostDue(r); at > t.env.Now {
		t.putDue(at, DueLost, r.ID)
		return nil
	}
	f := t.fork()
	if f.sessionLost(r, r.SeenAt == 0, fmt.Sprintf("its process is gone from %s, and nobody saw how it ended", t.nodeName(r.Node))) != nil {
		t.putDue(t.env.Now+offerAgain, d.Kind, d.Key)
		return nil
	}
	t.join(f)
	return nil
}

// sessionLost tells the workflow that a session is lost. One that was taken up
// again and never showed life cannot be taken up once more (SES-11, SUP-19); when
// its machine was out of touch, nobody can know that.
// Losses are counted for the session, over its runs.
func (t *tx) sessionLost(r *Run, never bool, why string) *Error {
	losses := 1
	rec := t.slotOfRun(r)
	if rec != nil {
		for _, at := range []int64{rec.Lost, rec.LostBefore} {
			if at != 0 && t.env.Now-at < lossWindow {
				losses++
			}
		}
		rec.LostBefore, rec.Lost = rec.Lost, t.env.Now
		rec.NotResumable = rec.NotResumable || r.Mode == ModeResume && never
		t.putSlot(rec)
	}
	p := map[string]any{"machine": t.nodeName(r.Node), "session_id": r.SessionID, "mode": r.Mode, "seen": !never,
		"never_came_up": r.Mode == ModeFresh && never, "losses": losses, "error": why}
	setIf(p, "pane", r.Session.Pane)
	return t.observed(r, "session_lost", p)
}

// backOnline lets the time of missing sessions of a machine count anew: what it was
// away does not count (SUP-21, M-10).
func (t *tx) backOnline(n *Node) {
	var runs []*Run
	EachHeld(t, "", func(h *Held) bool {
		if h.Node == n.ID {
			if r := GetRun(t, h.Run); r != nil && r.MissingSince != 0 && r.State != RunEnded {
				runs = append(runs, r)
			}
		}
		return true
	})
	for _, r := range runs {
		t.delDue(lostDue(r), DueLost, r.ID)
		r.MissingSince = t.env.Now
		t.putRun(r)
		t.putDue(lostDue(r), DueLost, r.ID)
	}
}

// dueStale is a headless session of which nothing was heard for too long.
func (t *tx) dueStale(r *Run, d *Due) *Error {
	if r == nil || r.State == RunEnded || staleDue(r) == 0 {
		return nil
	}
	if at := staleDue(r); at > t.env.Now {
		t.putDue(at, DueStale, r.ID)
		return nil
	}
	p := overLimit("stale", r.Stale)
	p["timeout_seconds"], p["pid"] = r.Stale/1000, r.PID
	p["error"] = fmt.Sprintf("nothing was heard of it since %s", stamp(r.Session.Quiet))
	return t.lasting(r, d, "stale", p)
}

// dueAge is a session over its age: its run is told so; an open pane without a
// run is closed, and the next start takes the session up in a new process.
func (t *tx) dueAge(r *Run, d *Due) *Error {
	if r == nil || r.Gone != "" || ageDue(r) == 0 || ageDue(r) > t.env.Now {
		return nil
	}
	if r.State == RunEnded {
		t.closed(r, "over its age")
		return nil
	}
	return t.lasting(r, d, "timed_out", overLimit("age", r.Session.Age))
}

// dueClose is a close that was put off until the session's own word had its
// answer (SES-19). A session that went on under a later run stays.
func (t *tx) dueClose(r *Run) {
	if r != nil && r.Session.Closing != 0 && r.Gone == "" {
		r.Session.Closing = 0
		t.closed(r, "close_session")
	}
}

// closed closes a session: its slot remembers that, and it is ordered to end.
func (t *tx) closed(r *Run, why string) {
	if rec := t.slotOfRun(r); rec != nil && rec.Closed == 0 {
		rec.Closed = t.env.Now
		t.putSlot(rec)
	}
	t.closeSession(r, why)
}

// sessionNamed notes the id of a session that its harness told in its output.
func (t *tx) sessionNamed(r *Run, id string) {
	if id == "" || r.Mode != ModeFresh || r.SessionID != "" || r.Launched == 0 {
		return
	}
	r.SessionID = clip(id, 200)
	if rec := t.slotOfRun(r); rec != nil && rec.SessionID == "" {
		rec.SessionID = r.SessionID
		t.putSlot(rec)
	}
}
