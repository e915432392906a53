package board

import (
	"regexp"
	"strings"
)

// The verbs of agents.
const (
	VAgentDeclare = "agent.declare" // AgentDeclare
	VAgentEnd     = "agent.end"     // AgentEnd
	VAgentFork    = "agent.fork"    // AgentFork
)

// AgentDeclare makes the agent of a card and a role stand, or the next generation
// of one that ended. What stands already is answered, whatever the request says (M-27).
type AgentDeclare struct {
	Card string `json:"card"`
	Role string `json:"role,omitempty"`  // "": the one that the card's assignee plays
	ID   string `json:"id,omitempty"`    // minted by who asks; "": made of the key
	Next uint64 `json:"after,omitempty"` // the generation that ended, as the caller saw it; 0: whatever is the newest
}

// AgentEnd ends an agent for good.
type AgentEnd struct {
	Agent string `json:"agent"`
	Why   string `json:"why,omitempty"`
}

// AgentFork makes an agent after another: its configuration, without its memory.
type AgentFork struct {
	Agent   string `json:"agent"`
	Key     string `json:"key"`
	Session string `json:"session,omitempty"` // of the agent, which it comes of; "": its newest
	ID      string `json:"id,omitempty"`
}

var (
	agentIDRE = regexp.MustCompile(`^ag-[0-9a-z]{12,40}$`)
	forkKeyRE = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$`)
)

// mintedID holds an id that comes with a request: of the form, and nobody's.
func (t *tx) mintedID(id, key string) *Error {
	switch a := GetAgent(t, id); {
	case id == "":
		return nil
	case !agentIDRE.MatchString(id):
		return Errorf(Invalid, "%q is no id of an agent: ag- and 12 to 40 lower-case letters and digits", clip(id, 60))
	case a != nil && a.Key != key:
		return Errorf(Conflict, "the id %s is that of another agent (%s)", id, a.StableKey())
	case a != nil && a.over():
		return Errorf(Refused, "agent %s has ended: an id is never given again", id).WithCheck("agent_ended").WithHint("ask with a new id, or without one")
	}
	return nil
}

// answer is an agent as its verbs tell of it.
func (a *Agent) answer(fresh bool) map[string]any {
	return map[string]any{"id": a.ID, "key": a.StableKey(), "org": a.Org, "generation": a.Generation, "fresh": fresh, "state": a.State(), "synced": a.Declared != 0}
}

func agentDeclare(t *tx) (any, *Error) {
	a, err := args[AgentDeclare](t)
	if err != nil {
		return nil, err
	}
	b, c, err := t.card(a.Card)
	if err != nil {
		return nil, err
	}
	switch {
	case !t.agents():
		return nil, noAgents()
	case c.SubtaskOf != "":
		return nil, Errorf(Refused, "card %s is a part of %s: parts have no agents of their own", c.ID, c.SubtaskOf).WithCheck("agent")
	}
	fl, err := t.flow(b)
	if err != nil {
		return nil, err
	}
	role := orElse(a.Role, rolePlayed(fl.wf))
	if !flowHasRole(fl, role) {
		return nil, Errorf(Invalid, "board %s has no role %q", b.Slug, clip(role, 60)).WithHint("see: muster workflow show")
	}
	key := "card/" + c.ID + "/" + role
	if err := t.mintedID(a.ID, key); err != nil {
		return nil, err
	}
	var after *uint64
	if a.Next != 0 {
		after = &a.Next
	}
	was := t.head(OrgOf(t), key)
	if was != nil && a.Next > was.Generation {
		return nil, Errorf(Conflict, "generation %d of %s is not there yet: the newest is %d", a.Next, key, was.Generation)
	}
	x := t.cardKeyAgent(b, fl.wf, c, role, fl.wf.Profile(c.Assignee), t.req.Actor, after, a.ID)
	fresh := was == nil || was.Agent != x.ID
	if fresh {
		t.event(c, Event{Kind: "agent_declared", Payload: object("agent", x.ID, "org", x.Org, "key", x.StableKey(), "role", role, "profile", x.Profile)})
		t.putCard(c)
	}
	return x.answer(fresh), nil
}

// flowHasRole tells whether a run of the workflow plays the role.
func flowHasRole(fl *flow, role string) bool {
	if fl.wf.Roles[role] != nil {
		return true
	}
	for _, s := range fl.wf.Statuses {
		if s.Run != nil && s.Run.Role == role {
			return true
		}
	}
	return false
}

// agentEnd ends an agent here, for good: its key's next start is another generation (AGT-08).
func agentEnd(t *tx) (any, *Error) {
	req, err := args[AgentEnd](t)
	if err != nil {
		return nil, err
	}
	a, err := FindAgent(t, req.Agent)
	switch {
	case err != nil:
		return nil, err
	case a.Ended != 0:
		return a.answer(false), nil
	case a.Kind == AgentRoot:
		return nil, Errorf(Refused, "the root agent does not end: every other comes of it").WithCheck("agent")
	}
	if err := t.noSession(a); err != nil {
		return nil, err
	}
	why := clip(orElse(req.Why, "ended by "+t.req.Actor.Name), 200)
	var list []*Assignment
	EachWork(t, a.ID, func(w *Assignment) bool {
		if w.Ended == 0 {
			list = append(list, w)
		}
		return true
	})
	for _, w := range list {
		t.release(w, why)
	}
	a = GetAgent(t, a.ID)
	if a.Ended = t.env.Now; a.Ending == 0 {
		t.setEnding(a, t.env.Now, why)
	}
	a.Why = why
	t.keepAgent(a)
	t.putAgent(a)
	p := object("agent", a.ID, "key", a.StableKey(), "reason", why)
	if c := GetCard(t, a.Card); c != nil {
		t.event(c, Event{Kind: "agent_ended", Payload: p})
		t.putCard(c)
	} else {
		t.event(nil, Event{Kind: "agent_ended", Payload: p})
	}
	return a.answer(false), nil
}

// noSession refuses to end an agent whose session is not gone.
func (t *tx) noSession(a *Agent) (err *Error) {
	EachAgentRun(t, a.ID, func(r *Run) bool {
		if GetHeld(t, r.ID) != nil {
			err = Errorf(Refused, "agent %s works in run %s, on %s", a.ID, r.ID, t.nodeName(r.Node)).WithCheck("running").
				WithHint("take the run away first: muster reclaim %s; a pane that stays open: muster forget %s", r.Card, r.Card)
		}
		return err == nil
	})
	return err
}

// agentFork makes an agent after one that has run here (AGT-23).
func agentFork(t *tx) (any, *Error) {
	req, err := args[AgentFork](t)
	if err != nil {
		return nil, err
	}
	if !t.agents() {
		return nil, noAgents()
	}
	parent, err := FindAgent(t, req.Agent)
	if err != nil {
		return nil, err
	}
	if !forkKeyRE.MatchString(req.Key) {
		return nil, Errorf(Invalid, "%q is no key of a fork: letters, digits, dots, dashes and underscores, at most 64", clip(req.Key, 70)).WithHint("--key NAME")
	}
	key := "fork/" + parent.ID + "/" + req.Key
	if h := t.head(OrgOf(t), key); h != nil {
		a := GetAgent(t, h.Agent)
		if a == nil || a.over() {
			return nil, Errorf(Refused, "the fork %q of %s has ended: it is never started again", req.Key, parent.ID).WithCheck("agent_ended").WithHint("give a new key")
		}
		return a.answer(false), nil
	}
	session, err := t.forkSource(parent, req.Session)
	if err != nil {
		return nil, err
	}
	if err := t.mintedID(req.ID, key); err != nil {
		return nil, err
	}
	a, _ := t.declare(&declaration{id: req.ID, key: key, kind: AgentForked, name: req.Key, parent: parent, role: parent.Role, profile: parent.Profile, resolved: parent.Resolved,
		sponsor: parent.Sponsor, starterKind: StarterSession, starter: session})
	t.event(nil, Event{Kind: "agent_declared", Payload: object("agent", a.ID, "org", a.Org, "key", a.StableKey(), "profile", a.Profile, "parent", parent.ID, "session", session)})
	return a.answer(true), nil
}

// forkSource is the session that a fork comes of: one that has run here for the parent.
func (t *tx) forkSource(parent *Agent, want string) (session string, err *Error) {
	var ids []string
	EachAgentRun(t, parent.ID, func(r *Run) bool {
		if r.Launched != 0 {
			ids = append(ids, orElse(r.SessionID, r.ID))
		}
		return true
	})
	switch {
	case len(ids) == 0:
		return "", Errorf(Refused, "agent %s has run no session here: there is nothing to make a fork of", parent.ID).WithCheck("agent").WithHint("see: muster agent show %s", parent.ID)
	case want == "":
		return ids[len(ids)-1], nil
	}
	for _, id := range ids {
		if id == want {
			return id, nil
		}
	}
	return "", Errorf(Refused, "session %q did not run here for agent %s", clip(want, 60), parent.ID).WithCheck("agent").WithHint("its sessions: %s", strings.Join(ids[max(0, len(ids)-5):], ", "))
}
