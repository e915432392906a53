package board

import (
	"fmt"
	"math"

	"muster/board/workflow"
)

// claim is a run that the transition under way makes; it is written when the
// card has arrived, so that prompt and limits see the status it works in.
type claim struct {
	run     *Run
	spec    *workflow.RunSpec
	profile *workflow.Profile
	goes    going
}

// claimRun gives the card a run (WFL-19): everything is checked here again,
// whatever the plan said (M-03), and everything about the run is resolved once.
func (st *step) claimRun(a *workflow.Claim) *Error {
	spec, err := st.claimable()
	if err != nil {
		return err
	}
	role := a.Role
	if role == "" {
		role = spec.Role
	}
	p, err := st.claimProfile(role)
	if err != nil {
		return err
	}
	if st.s.node == nil { // only now: a card that nobody would work is not told to look for a machine
		return st.noMachine()
	}
	slot, rerr := st.s.slotOf(spec)
	if named := st.f.Start.Slot; named != "" {
		slot, rerr = slotName(named)
	}
	if rerr != nil {
		return st.failed(a, rerr)
	}
	st.s.slot = slot
	attach := st.f.Start.Attach != nil
	var goes going
	if attach {
		goes = st.attach(p, slot)
	} else if goes, err = st.goesOn(slot, p); err != nil {
		return err
	} else if err := st.folderFree(p); err != nil {
		return err
	}
	ttl, ok, rerr := st.s.Number(a.TTL)
	if rerr != nil {
		return st.failed(a, rerr)
	}
	if !ok {
		ttl = workflow.DefaultClaim
	}
	plan := &StartPlan{Target: st.to, Stored: st.wf.StoredAs(st.to), Role: role, Slot: slot, Profile: p}
	cand := st.s.Candidate(plan, st.f.Start.Node)
	if !attach {
		if err := st.admit(cand, p); err != nil {
			return err
		}
	}
	st.openRun(cand, plan, goes, ms(ttl))
	st.claim = &claim{run: st.run, spec: spec, profile: p, goes: goes}
	return nil
}

// goesOn is how the start goes on in its slot, once nothing of the card holds it up.
func (st *step) goesOn(slot string, p *workflow.Profile) (going, *Error) {
	if err := st.s.Fits(p); err != nil {
		return going{}, err
	}
	if err := StillHeld(st.t, st.c, slot); err != nil {
		return going{}, err
	}
	g := st.s.goOn(slot, p)
	var err *Error
	EachHeld(st.t, st.c.ID, func(h *Held) bool {
		if h.Slot == slot && g.from == nil {
			err = Errorf(Refused, "card %s: its pane on %s is open (run %s), and profile %q can not go on with it", st.c.ID, st.s.nodeName(h.Node), h.Run, p.Name).
				WithCheck("session_not_gone").WithHint("let it go: muster forget %s", st.c.ID)
		}
		return err == nil
	})
	return g, err
}

// claimable holds the card, the fleet and the board against a claim.
func (st *step) claimable() (*workflow.RunSpec, *Error) {
	c, t, b := st.c, st.t, st.b
	spec := st.wf.Statuses[st.to].Run
	switch {
	case c.Stored == "archived" || b.Archived:
		return nil, Errorf(Refused, "card %s is archived", c.ID).WithCheck("archived")
	case c.Run != "":
		return nil, Errorf(Conflict, "card %s is worked already, by run %s", c.ID, c.Run).WithCheck("running")
	case spec == nil:
		return nil, Errorf(Refused, "card %s: event %q claims a run for %q, which runs nothing", c.ID, st.f.Event, st.to).WithCheck("run_status")
	case st.f.Start == nil:
		return nil, st.noMachine()
	}
	if st.f.Force {
		return spec, nil
	}
	return spec, pausedFor(t, b, c)
}

func (st *step) noMachine() *Error {
	return Errorf(Refused, "card %s: a session needs a machine to run on", st.c.ID).WithCheck("start").WithHint("use: muster start %s", st.c.ID)
}

// pausedFor refuses a claim while the fleet or the card's board is paused (M-16).
func pausedFor(v View, b *Board, c *Card) *Error {
	by, text := Paused(v, b)
	if by == "" {
		return nil
	}
	return Errorf(Refused, "card %s: %s", c.ID, text).WithCheck("pause").WithHint("%s", ResumeCommand(v, b))
}

// ResumeCommand is what ends the pause that holds the board's cards: that of the fleet comes first.
func ResumeCommand(v View, b *Board) string {
	if f := GetFleet(v); f == nil || f.PausedAt == 0 {
		return resumeBoard(b)
	}
	return "muster resume"
}

func resumeBoard(b *Board) string { return "muster resume --board " + b.Slug }

// claimProfile is the profile that plays the role: the one that was planned, if
// it still does or may stand in (M-03); a person's start and a session that is
// there already may name another. A card without assignee keeps who plays a role
// that follows its assignee (DSP-08), and a card keeps who has stood in for that,
// with an event, in the same transaction.
func (st *step) claimProfile(role string) (*workflow.Profile, *Error) {
	name := st.f.Start.Profile
	if name != "" && (st.f.Actor.Kind != ActorPlatform || st.f.Force || st.f.Start.Attach != nil) {
		return st.s.profileNamed(name)
	}
	p, err := st.s.profileOf(role)
	if err != nil {
		return nil, err
	}
	if name == "" || name == p.Name {
		if st.c.Assignee == "" && st.s.followsAssignee(role) {
			st.assign(p, object("assignee", p.Name, "source", "role "+role))
		}
		return p, nil
	}
	q, why := st.s.standsIn(p, name)
	if q == nil {
		return nil, Errorf(Conflict, "card %s: its role %q is played by %q now, not by %q", st.c.ID, role, p.Name, clip(name, 60)).WithCheck("claimed_elsewhere")
	}
	st.instead = p.Name
	said := object("profile", q.Name, "instead_of", p.Name, "why", why.What+" is rate limited until "+clockText(why.Until))
	st.t.event(st.c, Event{Kind: "fallback", Actor: Platform(), Payload: said})
	if st.s.followsAssignee(role) {
		st.assign(q, object("assignee", q.Name, "source", fmt.Sprintf("fallback of %q", p.Name)))
	}
	return q, nil
}

func (st *step) assign(p *workflow.Profile, payload []byte) {
	st.c.Assignee = p.Name
	st.t.event(st.c, Event{Kind: "assigned", Actor: Platform(), Payload: payload})
	st.s.forget()
}

func (st *step) admit(cand *Candidate, p *workflow.Profile) *Error {
	if st.f.Force {
		return nil
	}
	s := st.s.copy()
	s.Playing(p)
	room, done := st.t.room()
	defer done()
	err, _ := room.Admit(s, cand)
	return err
}

// openRun makes the run current and tells of it.
func (st *step) openRun(cand *Candidate, plan *StartPlan, goes going, ttl int64) {
	c, t := st.c, st.t
	var era uint64
	if f := GetFleet(t); f != nil {
		era = f.Era
	}
	c.Runs++
	r := &Run{
		ID: RunID(c.ID, c.Runs), Card: c.ID, Board: c.Board, N: c.Runs, Role: plan.Role, Slot: plan.Slot,
		Profile: cand.Profile, Harness: cand.Harness, Surface: cand.Surface, Model: cand.Model, Account: cand.Account,
		Source: st.from, Status: plan.Target, Stored: plan.Stored, State: RunClaimed, Node: cand.Node,
		Era: era, Epoch: t.env.Seq, Order: t.orderID(), Expires: t.env.Now + ttl, Claimed: t.env.Now,
		Mode: goes.mode, SessionID: goes.session, Session: Session{Replaces: goes.replaces}, Workflow: st.b.Workflow, Forced: st.f.Force, By: st.f.Actor, Verd: plan.Profile.Verdict, Instead: st.instead,
	}
	r.LaunchKey = r.ID + "/start"
	if from := goes.from; from != nil {
		r.Keeps, r.LaunchKey = from.ID, from.LaunchKey // a kept key is how it still counts as dispatched (SES-07)
		r.Surface = from.Surface                       // the session stays what it is, whatever the profile would open
		r.Session.Manual, r.Session.Pane, r.Session.Born, r.PID = from.Session.Manual, from.Session.Pane, from.Session.Born, from.PID
	}
	c.Run = r.ID
	if c.Started == 0 {
		c.Started = t.env.Now // BRD-17: the first claim only
	}
	c.LastOutcome = ""
	st.run, st.ev.Run = r, r.ID
	st.s.run, st.s.noRun = r, false
	st.touched = true
	t.event(c, Event{Kind: "claimed", Actor: st.f.Actor, Run: r.ID, Payload: object(
		"lock", Lock(t, r), "expires", r.Expires/1000, "run_id", r.ID, "source_status", r.Source)})
}

// Lock is the fencing token of a run as text: fleet/era/seq/run (M-04).
func Lock(v View, r *Run) string {
	fleet := ""
	if f := GetFleet(v); f != nil {
		fleet = f.ID
	}
	return fmt.Sprintf("%s/%d/%d/%s", fleet, r.Era, r.Epoch, r.ID)
}

// writeClaim stores the run, its place among what is held, its start order and its due times.
func (st *step) writeClaim() *Error {
	cl, c, t := st.claim, st.c, st.t
	r := cl.run
	if c.Run != r.ID || c.Status != r.Status {
		return Errorf(Refused, "card %s: event %q claims a run for %q and leaves the card %s", c.ID, st.f.Event, r.Status, c.Status).WithCheck("run_status")
	}
	s := st.s.copy()
	s.run, s.planned = r, cl.profile
	if err := s.limit(r, cl.spec.Limits); err != nil {
		return err
	}
	if from := cl.goes.from; from != nil {
		r.Lease = from.Lease // its keeper goes on holding it (architecture.md §5)
		if err := t.actKept(from); err != nil {
			return err
		}
	}
	if st.f.Start.Attach != nil {
		st.attached(r, cl.goes)
	}
	if err := s.giveWorkspace(cl.profile); err != nil {
		return err
	}
	r.worksIn(c, cl.profile, cl.goes.from)
	t.giveMemory(r)
	spec, err := s.startSpec(cl)
	if err != nil {
		return err
	}
	t.putRun(r)
	t.putHeld(t.holdRow(r))
	state := OrderPending
	if r.State == RunRunning {
		state = OrderLaunched
	} else {
		t.putStart(r) // what is there already was not started
	}
	t.putOrder(&Order{ID: r.Order, Node: r.Node, Kind: OrderStart, State: state, Run: r.ID, Card: c.ID, Slot: r.Slot,
		Era: r.Era, Seq: r.Epoch, At: t.env.Now, Expires: r.Expires, Why: st.f.Why, Spec: spec})
	t.putDue(r.Expires, DueClaim, r.ID)
	t.putDue(runDue(r), DueRun, r.ID)
	if r.State == RunRunning { // it is there already
		t.came(c, r)
	}
	return nil
}

// putStart remembers a start for the longest round there may be, and forgets a
// few of those that are older: what a new leader counts on with (M-15).
func (t *tx) putStart(r *Run) {
	var old []string
	t.Scan(TStart, "", "", func(key string, _ []byte) bool {
		if key >= StartKey(t.env.Now-maxRound, "") || len(old) == 8 {
			return false
		}
		old = append(old, key)
		return true
	})
	for _, key := range old {
		t.del(TStart, key)
	}
	t.put(TStart, StartKey(t.env.Now, r.ID), t.holdRow(r))
}

// limit evaluates the limits of the run, once: a later edit of the card does not change them (BRD-16).
func (s *Scope) limit(r *Run, l workflow.Limits) *Error {
	v, err := s.Limits(l)
	if err != nil {
		return ruleError("card "+r.Card, err)
	}
	opt := func(n *float64) int64 {
		if n == nil {
			return 0
		}
		return max(ms(*n), 1)
	}
	r.Runtime, r.Stale, r.Lease, r.Session.Age = opt(v.Runtime), opt(v.Stale), opt(v.Lease), opt(v.Age)
	r.Session.Working = opt(v.Working)
	r.Grace, r.Kill, r.Leave = ms(v.Grace), ms(v.Kill), ms(v.Leave)
	if r.Lease > 0 { // TERM comes kill before the lease's end: there must be a time before it
		r.Kill = min(r.Kill, r.Lease/2)
	}
	return nil
}

// maxSeconds bounds what a workflow may call a duration: about 30 years.
const maxSeconds = 1e9

// ms turns seconds of the workflow into stored milliseconds.
func ms(seconds float64) int64 {
	return int64(math.Round(min(max(seconds, 0), maxSeconds) * 1000))
}
