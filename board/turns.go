package board

// What a session in a pane is doing, as its node tells it: in a turn, idle, or at
// something that only a person can answer (SES-21).
const (
	TurnBusy       = "busy"       // it works
	TurnIdle       = "idle"       // its turn is over
	TurnPermission = "permission" // it asks whether it may do something
	TurnQuestion   = "question"   // it asks a person something
	TurnLimit      = "limit"      // its provider turns it away for a while
)

// maxSays bounds what is kept of a session's question, in bytes.
const maxSays = 300

// idle tells that the session is in no turn. One that asks something is in the
// middle of its turn (SES-21); of one that nobody told of, nothing is known.
func (s *Session) idle() bool { return s.Turn == TurnIdle || s.Turn == TurnLimit }

// asks tells that only a person, or time, lets it go on.
func (s *Session) asks() bool {
	return s.Turn == TurnPermission || s.Turn == TurnQuestion || s.Turn == TurnLimit
}

// tell takes over what a node said of a session's turn, or of its pane; at is when.
func (s *Session) tell(a *Report, at int64) {
	switch a.Kind {
	case ReportDeaf:
		if s.Deaf == 0 {
			s.Deaf = at
		}
		s.DeafWhy = clip(a.Error, maxSays)
		return
	case ReportHears:
		s.Deaf, s.DeafWhy = 0, ""
		return
	}
	turn := TurnBusy
	s.Silent, s.Waiting, s.Says, s.Until = 0, false, "", 0
	if a.Kind == ReportIdle {
		turn = TurnIdle
		s.Silent, s.Waiting = at, a.Waiting
		switch a.For {
		case TurnPermission, TurnQuestion, TurnLimit:
			turn, s.Waiting, s.Says, s.Until = a.For, true, clip(a.Text, maxSays), max(a.ResetAt, 0)
		}
	}
	if s.Turn == TurnBusy && turn != TurnBusy {
		s.Worked += max(at-s.TurnAt, 0)
	}
	if s.Turn != turn {
		s.Turn, s.TurnAt = turn, at
	}
}

// same tells that nothing changed that [Session.tell] writes.
func (s *Session) same(x *Session) bool {
	return s.Turn == x.Turn && s.Silent == x.Silent && s.Waiting == x.Waiting && s.Says == x.Says && s.Until == x.Until &&
		s.Deaf == x.Deaf && s.DeafWhy == x.DeafWhy
}

// workDue is when a session is over its limit of time in turns: a headless one is one turn from its launch on, a pane
// works while its node says so, and not while it waits for a person.
func workDue(r *Run) int64 {
	switch s := &r.Session; {
	case s.Working == 0 || r.Launched == 0:
	case r.Surface != "pane":
		return r.Launched + s.Working + 1
	case s.Turn == TurnBusy:
		return s.TurnAt + max(s.Working-s.Worked, 0) + 1
	}
	return 0
}

// dueWork is a session over its time in turns.
func (t *tx) dueWork(r *Run, d *Due) *Error {
	if r == nil || r.State == RunEnded || workDue(r) == 0 {
		return nil
	}
	if at := workDue(r); at > t.env.Now {
		t.putDue(at, DueWork, r.ID)
		return nil
	}
	return t.lasting(r, d, "timed_out", overLimit("working", r.Session.Working))
}

// stays tells that a report of a session counts although its run is over: an open
// pane goes on with the end of its turn, and that is what a cap on turns waits for.
func (t *tx) stays(r *Run, a *Report) bool {
	switch a.Kind {
	case ReportIdle, ReportBusy, ReportDeaf, ReportHears:
		return r.Launched != 0 && r.Gone == "" && r.Surface == "pane" && GetHeld(t, r.ID) != nil
	}
	return false
}

// turned writes what else it means that a session's turn changed: what a cap on turns
// counts, and an event when it begins to need a person, for whoever listens.
func (t *tx) turned(was, r *Run) {
	if h := GetHeld(t, r.ID); h != nil && h.Idle != r.Session.idle() {
		t.putHeld(t.holdRow(r))
	}
	if !r.Session.asks() || was.Session.Turn == r.Session.Turn && was.Session.Says == r.Session.Says {
		return
	}
	c := GetCard(t, r.Card)
	if c == nil {
		return
	}
	p := map[string]any{"for": r.Session.Turn}
	setIf(p, "text", r.Session.Says)
	if r.Session.Until != 0 {
		p["until"] = stamp(r.Session.Until)
	}
	t.event(c, Event{Kind: "session_waits", Actor: Platform(), Run: r.ID, Payload: jsonOf(p)})
	t.putCard(c)
}
