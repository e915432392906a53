package board

import (
	"strconv"
	"strings"
)

// StableKey is the key with its generation, unique in the organisation (AGT-02).
func (a *Agent) StableKey() string {
	if a.Generation <= 1 {
		return a.Key
	}
	return a.Key + "/generation/" + strconv.FormatUint(a.Generation, 10)
}

// State is how an agent stands: active, idle (nothing is assigned to it), ending or ended.
func (a *Agent) State() string {
	switch {
	case a.Ended != 0:
		return "ended"
	case a.Ending != 0 || a.Leaving != 0:
		return "ending"
	case a.Active > 0 || a.Kind == AgentRoot:
		return "active"
	}
	return "idle"
}

// GetAgent reads an agent by its id.
func GetAgent(v View, id string) *Agent { return read[Agent](v, TAgent, id) }

// EachAgent reads all agents in order of their ids.
func EachAgent(v View, fn func(*Agent) bool) {
	scan(v, TAgent, "", "", func(_ string, a *Agent) bool { return fn(a) })
}

func headKey(org, key string) string { return org + "/" + key }

// GetHead reads who has a key.
func GetHead(v View, org, key string) *Head { return read[Head](v, THead, headKey(org, key)) }

func assignKey(a *Assignment) string {
	return a.Kind + "/" + a.Target + "/" + a.Agent + "/" + a.Role
}

// workPrefix begins the keys that list an agent's assignments.
func workPrefix(agent string) string { return "of/" + agent + "/" }

// EachAssignment reads the assignments of a card (kind [AgentCard]) or a profile.
func EachAssignment(v View, kind, target string, fn func(*Assignment) bool) {
	scan(v, TAssign, kind+"/"+target+"/", "", func(_ string, a *Assignment) bool { return fn(a) })
}

// EachWork reads the assignments of an agent.
func EachWork(v View, agent string, fn func(*Assignment) bool) {
	for _, key := range tails(v, TAssign, workPrefix(agent)) {
		if a := read[Assignment](v, TAssign, key); a != nil && !fn(a) {
			return
		}
	}
}

// EachAgentRun reads the runs of an agent that the state still has: by card, oldest first.
func EachAgentRun(v View, agent string, fn func(*Run) bool) {
	seen, more := map[string]bool{}, true
	EachWork(v, agent, func(w *Assignment) bool {
		if w.Kind == AgentCard && !seen[w.Target] {
			seen[w.Target] = true
			EachRun(v, w.Target, func(r *Run) bool {
				more = r.Agent.ID != agent || fn(r)
				return more
			})
		}
		return more
	})
}

// FindAgent finds an agent by id, unambiguous beginning of an id, stable key, or
// CARD or CARD/ROLE: the one that works, or last worked, the card.
func FindAgent(v View, ref string) (*Agent, *Error) {
	if a := GetAgent(v, ref); a != nil {
		return a, nil
	}
	org := OrgOf(v)
	card, role, _ := strings.Cut(ref, "/")
	for _, key := range []string{ref, "card/" + ref} {
		for _, o := range []string{org, LocalOrg} {
			if h := GetHead(v, o, key); h != nil {
				return GetAgent(v, h.Agent), nil
			}
		}
	}
	var found []*Agent
	EachAssignment(v, AgentCard, card, func(w *Assignment) bool {
		if a := GetAgent(v, w.Agent); a != nil && (role == "" || role == w.Role) {
			found = append(found, a)
		}
		return true
	})
	if len(found) == 0 && len(ref) >= 5 {
		scan(v, TAgent, ref, "", func(_ string, a *Agent) bool { found = append(found, a); return len(found) < 3 })
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, Errorf(NotFound, "no agent %q in this fleet", clip(ref, 60)).WithHint("see: muster agent list")
	}
	return nil, Errorf(Invalid, "%q means %d agents", clip(ref, 60), len(found)).WithHint("say which: CARD/ROLE, or more of the id; see: muster agent list")
}

// OrgOf is the organisation whose agents the fleet declares.
func OrgOf(v View) string {
	if f := GetFleet(v); f != nil {
		return orElse(f.Org, LocalOrg)
	}
	return LocalOrg
}
