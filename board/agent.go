package board

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"

	"muster/board/workflow"
)

// Agents are declared here: one per key, by compare with what stands (M-27). An
// id is made of what makes the declaration unique, or comes with the request; what
// is stored wins. Nothing here asks anybody outside: see [Exec].

// declaration is what an agent is to be, when its key has none.
type declaration struct {
	id, key, kind, name  string // id "": made here
	parent               *Agent // nil: the root has none
	card, role, profile  string
	resolved             []byte
	refresh              bool // an agent that stands takes the profile as it is now (AGT-07)
	sponsor              string
	starterKind, starter string
	after                *uint64 // generation that it expects to be the newest; nil: whatever is
}

// agents tells whether the state may hold agents: all its nodes know them.
func (t *tx) agents() bool {
	f := GetFleet(t)
	return f != nil && f.Format >= FormatAgents
}

// declare makes the agent of a key stand, and says whether it is new (AGT-04, AGT-06..09).
func (t *tx) declare(d *declaration) (a *Agent, fresh bool) {
	org, gen := OrgOf(t), uint64(1)
	if h := t.head(org, d.key); h != nil {
		a = GetAgent(t, h.Agent)
		if a != nil && (!a.over() || d.after != nil && *d.after != h.Generation) {
			if d.refresh && !a.over() && (a.Profile != d.profile || string(a.Resolved) != string(d.resolved)) {
				a.Profile, a.Resolved = d.profile, d.resolved
				t.putAgent(a)
			}
			return a, false
		}
		gen = h.Generation + 1
	}
	a = &Agent{ID: orElse(d.id, t.agentID(org, d.key, gen)), Org: org, Key: d.key, Generation: gen, Kind: d.kind, Name: d.name, Path: d.name,
		Card: d.card, Role: d.role, Profile: d.profile, Resolved: d.resolved, Sponsor: d.sponsor, StarterKind: d.starterKind, Starter: d.starter,
		By: t.req.Actor, Created: t.env.Now}
	if d.parent != nil {
		a.Parent, a.Path = d.parent.ID, d.parent.Path+"/"+d.name
	}
	t.putAgent(a)
	t.handOn(a, HandDeclare)
	t.put(THead, headKey(org, d.key), &Head{Org: org, Key: d.key, Agent: a.ID, Generation: gen})
	return a, true
}

// agentID is the id of a new agent: the same declaration in the same era gives the same id, wherever it is decided.
func (t *tx) agentID(org, key string, gen uint64) string {
	fleet, era := "", ""
	if f := GetFleet(t); f != nil {
		fleet, era = f.ID, f.EraText()
	}
	h := sha256.Sum256([]byte("muster agent\x00" + fleet + "\x00" + era + "\x00" + org + "\x00" + key + "\x00" + strconv.FormatUint(gen, 10)))
	return fmt.Sprintf("ag-%x", h[:10])
}

// rootAgent is declared before any other (AGT-10): it never ends.
func (t *tx) rootAgent(wf *workflow.Workflow, given *workflow.Profile) *Agent {
	p := given
	if d := wf.Profile("default"); d != nil {
		p = d
	}
	a, _ := t.declare(&declaration{key: AgentRoot, kind: AgentRoot, name: "root", profile: profileName(p), resolved: resolvedProfile(p), starterKind: StarterAutomation, starter: "fleet"})
	return a
}

func profileName(p *workflow.Profile) string {
	if p == nil {
		return ""
	}
	return p.Name
}

// profileAgent is the agent of a profile, after those of the profiles that it
// inherits from, up to the root (AGT-14).
func (t *tx) profileAgent(b *Board, wf *workflow.Workflow, p *workflow.Profile) *Agent {
	var line []*workflow.Profile
	for q := p; q != nil && len(line) < 16; q = wf.Profile(q.Parent) { // the format refuses circles
		line = append(line, q)
	}
	a := t.rootAgent(wf, p)
	for i := len(line) - 1; i >= 0; i-- {
		q := line[i]
		next, fresh := t.declare(&declaration{key: "profile/" + q.Name, kind: AgentProfile, name: q.Name, parent: a, profile: q.Name, resolved: resolvedProfile(q), refresh: true,
			starterKind: StarterAutomation, starter: "orchestrator:" + b.where(), sponsor: b.Address()})
		if fresh {
			t.assign(&Assignment{Agent: next.ID, Kind: AgentProfile, Target: q.Name}, next)
			t.event(nil, Event{Kind: "agent_declared", Actor: Platform(), Board: b.Slug, Payload: object("agent", next.ID, "org", next.Org, "key", next.StableKey(), "profile", q.Name)})
		}
		a = next
	}
	return a
}

// where is the board's home as automations name it.
func (b *Board) where() string { return orElse(b.Home, b.Slug) }

// resolvedProfile is a profile as it stands in an agent's record: what decides how its sessions run.
func resolvedProfile(p *workflow.Profile) []byte {
	if p == nil {
		return nil
	}
	raw, err := json.Marshal(struct {
		Name        string `json:"name"`
		Parent      string `json:"parent,omitempty"`
		Harness     string `json:"harness"`
		Surface     string `json:"surface"`
		Model       string `json:"model,omitempty"`
		Placement   string `json:"placement,omitempty"`
		Account     string `json:"account,omitempty"`
		Permissions string `json:"permissions,omitempty"`
		Verdict     string `json:"verdict,omitempty"`
	}{p.Name, p.Parent, p.Harness, p.Surface, p.Model, p.Placement, p.Account, p.Permissions, p.Verdict})
	if err != nil {
		return nil
	}
	return raw
}

// assign makes an assignment active, and takes the agent's end out of the queue (AGT-20). It says whether that changed anything.
func (t *tx) assign(w *Assignment, a *Agent) bool {
	key := assignKey(w)
	if old := read[Assignment](t, TAssign, key); old != nil && old.Ended == 0 && old.Moved == w.Moved {
		return false
	} else if old == nil || old.Ended != 0 {
		a.Active++
	}
	w.Since = t.env.Now
	t.put(TAssign, key, w)
	t.put(TAssign, workPrefix(a.ID)+key, &Assignment{Agent: a.ID})
	if !a.over() {
		t.setEnding(a, 0, "")
	}
	t.putAgent(a)
	return true
}

// release ends an assignment; an agent with none left has its end queued (AGT-15).
func (t *tx) release(w *Assignment, why string) {
	w.Ended, w.Why = t.env.Now, clip(why, 200)
	t.put(TAssign, assignKey(w), w)
	a := GetAgent(t, w.Agent)
	if a == nil {
		return
	}
	a.Active = max(a.Active-1, 0)
	if a.Active == 0 && !a.over() && a.Kind != AgentRoot {
		t.setEnding(a, t.env.Now, w.Why)
	}
	t.putAgent(a)
}

// endAgents ends the assignments of a card's agents, and tells of each (AGT-17). The caller stores the card.
func (t *tx) endAgents(c *Card, why string) {
	if !t.agents() {
		return
	}
	var list []*Assignment
	EachAssignment(t, AgentCard, c.ID, func(w *Assignment) bool {
		if w.Ended == 0 {
			list = append(list, w)
		}
		return true
	})
	for _, w := range list {
		t.release(w, why)
		t.event(c, Event{Kind: "agent_released", Payload: object("agent", w.Agent, "role", w.Role, "reason", w.Why)})
	}
}
