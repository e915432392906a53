package board

import (
	"cmp"
	"slices"
	"strings"

	"muster/board/lease"
	"muster/board/workflow"
)

// What people do with the sessions of a card beside the workflow: attach one
// that they have (adopt), leave what a card has on a machine behind (move), and
// let a session go (forget).

// vouchAge is how old a node's word about a session may be, in ms (M-19).
const vouchAge = 5_000

// adoptSession makes a session that a person has the card's (SES-24..28): the session's
// own node vouches for it in the request, everything else is one transaction.
func adoptSession(t *tx) (any, *Error) {
	a, err := args[Adopt](t)
	if err != nil {
		return nil, err
	}
	b, c, err := t.card(a.Card)
	if err != nil {
		return nil, err
	}
	v := t.req.Vouch
	if err := t.vouched(v, &a); err != nil {
		return nil, err
	}
	p, err := t.attachProfile(b, c, v, a.Profile)
	if err != nil {
		return nil, err
	}
	if err := t.attachable(c, v); err != nil {
		return nil, err
	}
	f := firing{Event: "adopt", Actor: t.req.Actor, Payload: map[string]any{"session_id": v.Session, "machine": t.nodeName(v.Node)},
		Start: &startCtx{Node: v.Node, Profile: p.Name, Attach: v, Slot: a.Slot}}
	m, err := t.fire(b, c, f)
	if err != nil {
		return nil, err
	}
	if m.Run == nil || c.Run != m.Run.ID {
		return nil, Errorf(Refused, "card %s: the workflow takes a session in here, and gives it no run", c.ID).WithCheck("run_status")
	}
	return map[string]any{"id": c.ID, "from": m.From, "to": m.To, "run": m.Run.ID, "machine": t.nodeName(v.Node)}, nil
}

// MayAdopt holds who asks to attach a session, and the card, against the state: before the session's machine is asked
// to look at a process.
func MayAdopt(v View, req *Request, now int64) *Error {
	t := newTx(v, req, &Env{Now: now})
	if err := t.authorize(byManager); err != nil {
		return err
	}
	a, err := args[Adopt](t)
	if err == nil {
		_, _, err = t.card(a.Card)
	}
	return err
}

// vouched holds the word of the session's node: there, fresh, and through that node's own door, or the answer to the
// leader, which asks the machine that is named and takes nobody else's word for it.
func (t *tx) vouched(v *Vouch, a *Adopt) *Error {
	session, from := a.Session, t.req.Actor.Node
	if a.Machine != "" {
		n, err := FindNode(t, a.Machine)
		if err != nil {
			return err
		}
		from = n.ID
	}
	switch {
	case v == nil || v.Session == "":
		return Errorf(Refused, "no node vouches for session %q", clip(session, 60)).WithCheck("vouch").WithHint("name the machine that has it: muster adopt CARD --session ID --machine NAME")
	case session != "" && session != v.Session:
		return Errorf(Refused, "session %q was asked for, and %q was seen", clip(session, 60), clip(v.Session, 60)).WithCheck("vouch")
	case v.Node != from || GetNode(t, v.Node) == nil:
		return Errorf(Refused, "only the machine that has session %s speaks for it", clip(v.Session, 60)).WithCheck("vouch")
	case v.Ago < 0 || v.Ago > vouchAge:
		return Errorf(Refused, "session %s was seen too long ago", clip(v.Session, 60)).WithCheck("vouch").WithHint("try again")
	case v.PID <= 0 || v.Harness == "":
		return Errorf(Refused, "session %s has no process on %s", clip(v.Session, 60), t.nodeName(v.Node)).WithCheck("vouch")
	}
	var other string
	EachHeld(t, "", func(h *Held) bool {
		if r := GetRun(t, h.Run); r != nil && r.SessionID == v.Session && h.Node == v.Node {
			other = h.Card
		}
		return other == ""
	})
	if other != "" && other != t.attachCard() {
		return Errorf(Conflict, "session %s is that of card %s already", v.Session, other).WithCheck("vouch")
	}
	return nil
}

func (t *tx) attachCard() string {
	a, _ := args[Adopt](t)
	return a.Card
}

// attachProfile is who the session counts as: the profile that is named, else
// the card's own if it is of that harness, else the board's first of that harness, panes first.
func (t *tx) attachProfile(b *Board, c *Card, v *Vouch, name string) (*workflow.Profile, *Error) {
	fl, err := t.flow(b)
	if err != nil {
		return nil, err
	}
	if name != "" {
		if err := mayGive(fl, t.req.Actor, "", name); err != nil {
			return nil, err
		}
		return fl.wf.Profile(name), nil
	}
	if p := fl.wf.Profile(c.Assignee); p != nil && p.Harness == v.Harness {
		return p, nil
	}
	var fit []*workflow.Profile
	for _, name := range sortedKeys(fl.wf.Profiles) {
		if p := fl.wf.Profiles[name]; p.Harness == v.Harness {
			fit = append(fit, p)
		}
	}
	slices.SortStableFunc(fit, func(x, y *workflow.Profile) int { return cmp.Compare(y.Surface, x.Surface) }) // pane before headless
	if len(fit) == 0 {
		return nil, Errorf(Refused, "card %s: this board has no profile of %s", c.ID, v.Harness).WithCheck("profile").WithHint("name one: muster adopt CARD --session ID --profile P")
	}
	return fit[0], nil
}

// attachable holds the card against the session: on its machine, and no other
// session of it alive (SES-24). A machine, an assignee and a folder are set in
// the transaction of the claim; set before, a start could pick them up (SES-25, SES-26).
func (t *tx) attachable(c *Card, v *Vouch) *Error {
	n := GetNode(t, v.Node)
	if n.Draining {
		return Errorf(Refused, "card %s: %s is draining: it takes nothing new, a session that is there neither", c.ID, n.Name).WithCheck("drain").WithHint("muster node undrain %s", n.Name)
	}
	if c.Machine != "" && c.Machine != n.Name && c.Machine != n.ID {
		return Errorf(Refused, "card %s is on %s, and session %s on %s", c.ID, c.Machine, v.Session, n.Name).WithCheck("machine").
			WithHint("move the card first: muster move %s --machine %s", c.ID, n.Name)
	}
	var err *Error
	EachHeld(t, c.ID, func(h *Held) bool {
		r := GetRun(t, h.Run)
		if r == nil || r.SessionID != v.Session || !leaseRun(t, r).MayKeep() {
			err = Errorf(Refused, "card %s has a session already, on %s (run %s), and it is alive", c.ID, t.nodeName(h.Node), h.Run).WithCheck("session_not_gone").
				WithHint("see: muster runs %s", c.ID)
		}
		return err == nil
	})
	return err
}

// attach is the claim of a session that is there: counted, and refused by no cap (M-14).
func (st *step) attach(p *workflow.Profile, slot string) going {
	c, v, n := st.c, st.f.Start.Attach, st.s.node
	if c.Machine == "" {
		c.Machine = n.Name
	}
	if c.Assignee == "" {
		c.Assignee = p.Name
		st.t.event(c, Event{Kind: "assigned", Payload: object("assignee", p.Name, "source", "adopt")})
	}
	if dir := strings.TrimPrefix(v.Dir, "dir:"); dir != "" && !strings.HasPrefix(c.Workspace, "dir:/") {
		c.Workspace = "dir:" + dir
	}
	st.s.forget()
	g := going{mode: ModeAdopt, session: v.Session}
	rec := GetSlot(st.t, c.ID, slot)
	switch {
	case rec == nil:
	case rec.SessionID != v.Session:
		g.replaces = rec.SessionID
	default:
		g.from = keepable(st.t, rec)
	}
	return g
}

// attached completes a run whose session is there already.
func (st *step) attached(r *Run, g going) {
	v, now := st.f.Start.Attach, st.t.env.Now
	r.Harness, r.Surface, r.PID, r.SecretHash, r.Workspace = v.Harness, orElse(v.Surface, "pane"), v.PID, v.SecretHash, v.Dir
	r.State, r.Launched, r.SeenAt, r.Expires = RunRunning, now, now, 0
	r.Session.Pane, r.Lease = v.Pane, 0 // no keeper of ours holds a lease over it
	if g.from == nil {
		r.LaunchKey, r.Session.Manual = "", true
	}
}

// moveCard changes a card's machine and leaves behind what ties it to the old one:
// the run is taken away, the sessions are let go, in one transaction (M-05).
func moveCard(t *tx) (any, *Error) {
	a, err := args[Move](t)
	if err != nil {
		return nil, err
	}
	b, c, err := t.card(a.Card)
	if err != nil {
		return nil, err
	}
	machine := ""
	if a.Machine != "any" && a.Machine != "" {
		n, err := FindNode(t, a.Machine)
		if err != nil {
			return nil, err
		}
		machine = n.Name
	}
	if a.Force && a.Why == "" {
		return nil, Errorf(Refused, "--force is a manager's, and says --why")
	}
	if err := t.leaves(c, a.Force); err != nil {
		return nil, err
	}
	from := c.Status
	if r := GetRun(t, c.Run); r != nil {
		p := map[string]any{"why": orElse(a.Why, "moved to "+orElse(machine, "any machine"))}
		if _, err := t.fire(b, c, firing{Event: "reclaim", Actor: t.req.Actor, Payload: p, Run: r}); err != nil {
			return nil, err
		}
	}
	left := t.letGo(c, "", "move")
	if a.Force {
		t.forceGone(c.ID, a.Why)
	}
	c = GetCard(t, c.ID)
	if c.WorkLeft != "" {
		c.WorkHead = "" // what was saved before it stays behind with it: nobody looks for it elsewhere
		left = append(left, c.WorkLeft+" work in the card's workspace on "+t.nodeName(c.WorkNode))
	}
	old := c.Machine
	c.Machine, c.WorkNode, c.WorkLeft, c.Waits = machine, "", "", Reason{}
	p := map[string]any{"from": old, "machine": machine}
	if len(left) > 0 {
		p["left"] = left
	}
	setIf(p, "why", clip(a.Why, 200))
	t.event(c, Event{Kind: "moved", Payload: jsonOf(p)})
	t.putCard(c)
	return map[string]any{"id": c.ID, "from": from, "to": c.Status, "machine": machine, "left": left}, nil
}

// leaves refuses to leave a session behind on a machine that cannot be asked,
// unless a lease ends it: it may be working (M-35).
func (t *tx) leaves(c *Card, force bool) (err *Error) {
	EachHeld(t, c.ID, func(h *Held) bool {
		if r := GetRun(t, h.Run); r != nil {
			err = t.reachable(r, &FireEvent{Card: c.ID, Event: "move", Force: force})
		}
		return err == nil
	})
	return err
}

// letGo forgets the sessions of a card (of one slot, or of all when slot is "")
// and closes what is open; it says what they were.
func (t *tx) letGo(c *Card, slot, why string) (left []string) {
	var recs []*SlotRec
	scan(t, TSlot, c.ID+"/", "", func(_ string, rec *SlotRec) bool {
		if (slot == "" || rec.Slot == slot) && rec.SessionID != "" && rec.Forgotten == 0 {
			recs = append(recs, rec)
		}
		return true
	})
	for _, rec := range recs {
		rec.Forgotten = t.env.Now
		t.putSlot(rec)
		left = append(left, "session "+rec.SessionID+" on "+t.nodeName(rec.Node)+" (slot "+rec.Slot+")")
	}
	var open []*Run
	EachHeld(t, c.ID, func(h *Held) bool {
		if slot == "" || h.Slot == slot {
			if r := GetRun(t, h.Run); r != nil {
				open = append(open, r)
			}
		}
		return true
	})
	for _, r := range open {
		t.closed(r, why)
	}
	return left
}

// forgetSessions lets a card's sessions go, so that its next start is fresh (SES-14):
// by the workflow's own event where it has one, else as it stands.
func forgetSessions(t *tx) (any, *Error) {
	a, err := args[Forget](t)
	if err != nil {
		return nil, err
	}
	b, c, err := t.card(a.Card)
	if err != nil {
		return nil, err
	}
	from := c.Status
	if a.Slot == "" {
		f := t.fork()
		m, err := f.fire(b, GetCard(f, c.ID), firing{Event: "forget", Actor: t.req.Actor, Payload: map[string]any{}, Why: a.Why, Run: GetRun(f, c.Run)})
		if err == nil {
			t.join(f)
			return map[string]any{"id": c.ID, "from": m.From, "to": GetCard(t, c.ID).Status}, nil
		}
		if err.Check != NoTransition {
			return nil, err
		}
	}
	if r := GetRun(t, c.Run); r != nil && (a.Slot == "" || a.Slot == r.Slot) {
		return nil, Errorf(Refused, "card %s: run %s works in that session", c.ID, r.ID).WithCheck("running").
			WithHint("take the run away first: muster reclaim %s", c.ID)
	}
	left := t.letGo(c, a.Slot, "forget")
	if len(left) == 0 {
		return nil, Errorf(Refused, "card %s has no session to let go", c.ID).WithCheck("session").WithHint("see: muster runs %s", c.ID)
	}
	t.event(c, Event{Kind: "forgotten", Payload: jsonOf(map[string]any{"sessions": left})})
	t.putCard(c)
	return map[string]any{"id": c.ID, "from": from, "to": c.Status, "left": left}, nil
}

// actKept takes over the session of the run before for one that keeps it.
func (t *tx) actKept(from *Run) *Error {
	if t.act(from, lease.ActKept, "").Has(lease.EffectStale) {
		return Errorf(Conflict, "card %s: the session of run %s is not to be kept", from.Card, from.ID).WithCheck("session_not_gone")
	}
	return nil
}
