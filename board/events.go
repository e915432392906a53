package board

import (
	"slices"

	"muster/board/lease"
)

// fireEvent files an event of the workflow on a card: by a person, or by a run
// within what its secret allows.
func fireEvent(t *tx) (any, *Error) {
	a, err := args[FireEvent](t)
	if err != nil {
		return nil, err
	}
	b, c, err := t.card(a.Card)
	if err != nil {
		return nil, err
	}
	if len(t.req.Args) > maxPayload {
		return nil, Errorf(Exhausted, "an event of %d bytes; the bound is %d", len(t.req.Args), maxPayload).WithHint("keep large text in files")
	}
	actor := t.req.Actor
	if actor.Kind == ActorRun {
		if actor.Role, err = t.runRole(c, a.Event); err != nil {
			return nil, err
		}
	}
	if a.Force && (actor.Kind != ActorPerson || actor.Role != "manager" || a.Why == "") {
		return nil, Errorf(Refused, "--force is a manager's, and says --why")
	}
	given, err := t.assignable(c, &a)
	if err != nil {
		return nil, err
	}
	r := GetRun(t, c.Run)
	if err := t.reachable(r, &a); err != nil {
		return nil, err
	}
	if a.Force && a.Event == "reclaim" && r == nil { // the session only: the card has no run to take away
		t.forceGone(c.ID, a.Why)
		return map[string]any{"id": c.ID, "from": c.Status, "to": c.Status}, nil
	}
	p := a.Payload
	if p == nil {
		p = map[string]any{}
	}
	if a.Why != "" && p["why"] == nil {
		p["why"] = a.Why
	}
	m, err := t.fire(b, c, firing{Event: a.Event, Actor: actor, Payload: p, Force: a.Force, Why: a.Why, Run: r})
	if err != nil {
		return nil, err
	}
	if given != nil {
		if err := t.reassignAgent(b, GetCard(t, c.ID), given); err != nil {
			return nil, err
		}
	}
	if a.Force {
		t.forceGone(c.ID, a.Why)
	}
	return m.answer(c.ID), nil
}

// takesAway are the events that take a run away from its machine (M-35).
var takesAway = []string{"reclaim", "stop_run", "cancel", "reassign", "move"}

// reachable refuses to take a run without lease from a machine that cannot be
// asked: its session may be working (M-11, M-35).
func (t *tx) reachable(r *Run, a *FireEvent) *Error {
	if r == nil || a.Force || r.Gone != "" || r.Lease > 0 || !slices.Contains(takesAway, a.Event) {
		return nil
	}
	if n := t.env.Nodes(r.Node); n.State != NodeOnline {
		return Errorf(Refused, "run %s is on %s, which is %s, and has no lease: its session may be working", r.ID, t.nodeName(r.Node), n.State).
			WithCheck("machine").WithHint("wait for the machine, or if you know that it is dead: --force --why TEXT")
	}
	return nil
}

// forceGone is a manager's word that the sessions of a card are dead (M-35).
func (t *tx) forceGone(card, why string) {
	var rows []*Held
	EachHeld(t, card, func(h *Held) bool { rows = append(rows, h); return true })
	for _, h := range rows {
		if r := GetRun(t, h.Run); r != nil && !t.act(r, lease.ActManager, "a manager said that it is dead").Has(lease.EffectStale) {
			t.runEvent(r, "session_gone", map[string]any{"by": GoneWord, "why": clip(why, 200), "machine": t.nodeName(r.Node)})
		}
	}
}

// runRole is the role in which a run speaks on a card: its own on its card,
// implementer on its card's subtasks, a comment on cards it is linked with
// (invariant 24).
func (t *tx) runRole(c *Card, event string) (string, *Error) {
	r := GetRun(t, t.req.Actor.Run)
	switch {
	case c.ID == r.Card:
		return r.Role, nil
	case c.SubtaskOf == r.Card:
		return "implementer", nil
	case event == "comment" && (t.Has(TLink, LinkKey(c.ID, r.Card)) || t.Has(TLink, LinkKey(r.Card, c.ID))):
		return r.Role, nil
	}
	return "", Errorf(Refused, "run %s speaks on its own card, %s, and its subtasks", r.ID, r.Card).WithCheck("secret")
}

// start claims a card for a run: the scheduler's plan, or a person's word. All
// that the plan looked at is looked at again (M-03, M-14).
func start(t *tx) (any, *Error) {
	a, err := args[Start](t)
	if err != nil {
		return nil, err
	}
	b, c, err := t.card(a.Card)
	if err != nil {
		return nil, err
	}
	if err := t.startable(b, c, &a); err != nil {
		return nil, err
	}
	fl, err := t.flow(b)
	if err != nil {
		return nil, err
	}
	f := firing{Event: fl.wf.Dispatch.Start, Actor: t.req.Actor, Payload: map[string]any{}, Force: a.Force, Why: a.Why}
	n := GetNode(t, t.placeOf(&a))
	if n != nil { // without one the card may still move, when nothing is to run there (WFL-16)
		f.Start = &startCtx{Node: n.ID, Profile: a.Profile}
	}
	m, err := t.fire(b, c, f)
	if err != nil {
		return nil, err
	}
	out := map[string]any{"id": c.ID, "from": m.From, "to": m.To}
	if m.Run != nil {
		out["run"], out["machine"] = m.Run.ID, n.Name
	}
	return out, nil
}

// placeOf is the node the leader chose: the scheduler's in its own request, or
// what [Request.Place] was set to for a person's.
func (t *tx) placeOf(a *Start) string {
	if t.req.Actor.Kind == ActorPlatform {
		return a.Node
	}
	return t.req.Place
}

// startable are the checks of every start before the workflow is asked (RUN-08, M-16, M-35).
func (t *tx) startable(b *Board, c *Card, a *Start) *Error {
	planned := t.req.Actor.Kind == ActorPlatform
	elsewhere := func(why string) *Error {
		if planned {
			return Errorf(Conflict, "card %s: %s", c.ID, why).WithCheck("claimed_elsewhere")
		}
		return Errorf(Refused, "card %s: %s", c.ID, why)
	}
	switch {
	case c.Stored == "archived" || b.Archived:
		return elsewhere("it is archived")
	case c.Run != "":
		return elsewhere("it has a run, " + c.Run)
	case a.Status != "" && a.Status != c.Status:
		return elsewhere("it moved to " + c.Status)
	case a.Force && (t.req.Actor.Role != "manager" || a.Why == ""):
		return Errorf(Refused, "--force is a manager's, and says --why")
	}
	if !a.Force {
		if err := pausedFor(t, b, c); err != nil {
			return err
		}
	}
	return StillHeld(t, c, "")
}
