package board

import "muster/board/lease"

// lost ends a claim whose session can not go on: nothing is launched, and the
// workflow hears of it as of a launch that failed, in the same transaction
// (SES-13, SES-15). It decides: call a person, or let the session go.
func (st *step) lost() *Error {
	r, g := st.claim.run, st.claim.goes
	err := st.t.ended(r, lease.ActFailed, "spawn_failed", resumeFailed(r, g.session, g.lost))
	if c := GetCard(st.t, st.c.ID); c != nil {
		*st.c = *c
	}
	return err
}

// resumeFailed is the payload of a launch that could not go on with a session (ERR-03).
func resumeFailed(r *Run, session, why string) map[string]any {
	why = clip(why, 300)
	return map[string]any{"error": "session " + session + " can not be continued: " + why, "refused": false,
		"resume_failed": true, "session_id": session, "slot": r.Slot, "why": why}
}

// ageDue is when a session is over its age limit; 0: none.
func ageDue(r *Run) int64 {
	if r.Session.Age == 0 || r.Session.Born == 0 {
		return 0
	}
	return r.Session.Born + r.Session.Age + 1
}
