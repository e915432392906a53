package board

import (
	"slices"

	"muster/board/workflow"
)

// declareAgent is the workflow's action: the agent of the card in the role of the
// run under way, else in that of its assignee (AGT-12, AGT-16). A part of a card
// gets none.
func (st *step) declareAgent() *Error {
	c, t := st.c, st.t
	if !t.agents() || c.SubtaskOf != "" {
		return nil
	}
	role, name := st.assigneeRole(), c.Assignee
	if r := st.run; r != nil && c.Run != "" {
		role, name = r.Role, r.Profile // the assignee, or who stands in for it
	}
	if name == "" {
		name, _ = st.s.params["default_assignee"].(string)
	}
	a, w, changed := t.cardAgent(st.b, st.wf, c, role, st.wf.Profile(name), st.f.Actor)
	if r := st.run; r != nil && c.Run != "" && r.Agent.ID != a.ID {
		if r.Agent.ID = a.ID; st.claim == nil { // a claim is written when the card has arrived
			t.putRun(r)
		}
	}
	if changed {
		p := object("agent", a.ID, "org", a.Org, "key", a.StableKey(), "role", role, "profile", name, "assignment", assignKey(w), "handed_to_machine", st.machineName())
		t.event(c, Event{Kind: "agent_declared", Actor: Platform(), Run: c.Run, Payload: p})
	}
	if Finished(c.Stored) {
		t.endAgents(c, c.Stored)
	}
	st.touched = true
	return nil
}

// assigneeRole is the role that the card's assignee plays: the first that follows it, in the order of the file.
func (st *step) assigneeRole() string { return rolePlayed(st.wf) }

func rolePlayed(wf *workflow.Workflow) string {
	for _, name := range wf.Order {
		if r := wf.Statuses[name].Run; r != nil && r.Role != "" {
			return r.Role
		}
	}
	return "implementer"
}

func (st *step) machineName() string {
	if st.s.node == nil {
		return ""
	}
	return st.s.node.Name
}

// cardAgent is who works a card in a role: the agent that a manager moved there
// (AGT-13), else the one of the key. changed says that it was not assigned before.
func (t *tx) cardAgent(b *Board, wf *workflow.Workflow, c *Card, role string, p *workflow.Profile, by Actor) (a *Agent, w *Assignment, changed bool) {
	EachAssignment(t, AgentCard, c.ID, func(x *Assignment) bool {
		if x.Ended == 0 && x.Moved && x.Role == role {
			if y := GetAgent(t, x.Agent); y != nil && !y.over() {
				a, w = y, x
			}
		}
		return a == nil
	})
	if a != nil {
		return a, w, false
	}
	a = t.cardKeyAgent(b, wf, c, role, p, by, nil, "")
	w = &Assignment{Agent: a.ID, Kind: AgentCard, Target: c.ID, Role: role}
	return a, w, t.assign(w, a)
}

// cardKeyAgent declares the agent of a card and a role.
func (t *tx) cardKeyAgent(b *Board, wf *workflow.Workflow, c *Card, role string, p *workflow.Profile, by Actor, after *uint64, id string) *Agent {
	parent := t.rootAgent(wf, p)
	if p != nil {
		parent = t.profileAgent(b, wf, p)
	}
	kind, name := t.starter(b, c, by)
	a, _ := t.declare(&declaration{id: id, key: "card/" + c.ID + "/" + role, kind: AgentCard, name: c.ID + "." + role, parent: parent, card: c.ID, role: role,
		profile: profileName(p), resolved: resolvedProfile(p), refresh: true, sponsor: t.sponsor(b, c, by), starterKind: kind, starter: name, after: after})
	return a
}

// starter is who had the agent started: the session or the person that said so, else the board as automation (AGT-12).
func (t *tx) starter(b *Board, c *Card, by Actor) (kind, name string) {
	for _, a := range []Actor{by, c.Creator} {
		switch a.Kind {
		case ActorRun:
			if r := GetRun(t, a.Run); r != nil && r.SessionID != "" {
				return StarterSession, r.SessionID
			}
			return StarterSession, a.Run
		case ActorPerson:
			if a.Kind == by.Kind { // who filed the card did not start it
				return StarterPerson, a.Name
			}
		}
	}
	return StarterAutomation, "board:" + b.where()
}

// sponsor is the person on whose behalf the card's work is done: who filed it, or had it filed by an agent's session; else who started it; else the board.
func (t *tx) sponsor(b *Board, c *Card, by Actor) string {
	for _, a := range []Actor{c.Creator, by} {
		switch a.Kind {
		case ActorPerson:
			return a.Name
		case ActorRun:
			if x := GetAgent(t, a.Agent); x != nil && x.Sponsor != "" {
				return x.Sponsor
			}
		}
	}
	return b.Address()
}

// reassignAgent gives a card to an agent that there is: a manager's word, beside the workflow's reassign (AGT-13).
func (t *tx) reassignAgent(b *Board, c *Card, a *Agent) *Error {
	fl, err := t.flow(b)
	if err != nil {
		return err
	}
	role := rolePlayed(fl.wf)
	var others []*Assignment
	EachAssignment(t, AgentCard, c.ID, func(w *Assignment) bool {
		if w.Ended == 0 && w.Role == role && w.Agent != a.ID {
			others = append(others, w)
		}
		return true
	})
	w := &Assignment{Agent: a.ID, Kind: AgentCard, Target: c.ID, Role: role, Moved: true}
	changed := t.assign(w, GetAgent(t, a.ID))
	for _, o := range others {
		t.release(o, "reassigned")
		t.event(c, Event{Kind: "agent_released", Payload: object("agent", o.Agent, "role", role, "reason", "reassigned")})
	}
	if changed {
		t.event(c, Event{Kind: "agent_assigned", Payload: object("agent", a.ID, "role", role, "assignment", assignKey(w))})
	}
	t.putCard(c)
	return nil
}

// assignable finds the agent that a card is to be given to.
func (t *tx) assignable(c *Card, f *FireEvent) (*Agent, *Error) {
	switch {
	case f.Agent == "":
		return nil, nil
	case f.Event != "reassign" || t.req.Actor.Kind != ActorPerson || t.req.Actor.Role != "manager":
		return nil, Errorf(Refused, "an agent is given a card by a manager, with reassign").WithHint("muster reassign %s PROFILE --agent ID", c.ID)
	case !t.agents():
		return nil, noAgents()
	case c.SubtaskOf != "":
		return nil, Errorf(Refused, "card %s is a part of %s: parts have no agents of their own", c.ID, c.SubtaskOf).WithCheck("agent")
	}
	a, err := FindAgent(t, f.Agent)
	switch {
	case err != nil:
		return nil, err
	case a.over():
		return nil, Errorf(Refused, "agent %s has ended: it is never started again", a.ID).WithCheck("agent_ended").WithHint("see: muster agent list")
	case !slices.Contains([]string{AgentCard, AgentForked}, a.Kind):
		return nil, Errorf(Refused, "agent %s is that of a %s: cards are given to agents of cards, and to forks", a.ID, a.Kind).WithCheck("agent").
			WithHint("make one after it: muster agent fork %s --key KEY", a.ID)
	}
	return a, nil
}

func noAgents() *Error {
	return Errorf(Refused, "the fleet's state has no agents yet: not all of its nodes know them").WithCheck("format").WithHint("upgrade every node; see: muster node list")
}
