package board

// Agents leave the state some time after their end (M-37), as what happened to
// finished cards does. The head of their key stays: a generation is never given twice.

// Due kinds of agents.
const (
	DueAgent  = "agent"  // an agent may be old enough to leave
	DueAgents = "agents" // all agents are gone through, a slice at a time
)

const (
	keepForks  = 90  // days that an agent of no board stays after its end
	agentSlice = 150 // agents that one step goes through
	workSlice  = 300 // assignments that one step takes away
)

// over tells of an agent that it is never started again.
func (a *Agent) over() bool { return a.Ended != 0 || a.Leaving != 0 }

// closed tells since when nothing is to come of an agent, 0 when something may. A fleet's
// own agent whose end waits is one that nobody took up again.
func (a *Agent) closed() int64 {
	switch {
	case a.Active > 0 || a.Kind == AgentRoot:
	case a.Ended != 0:
		return max(a.Ended, a.Ending)
	case a.Org == LocalOrg:
		return a.Ending
	}
	return 0
}

// keepAgent notes when an agent that is closed leaves, or forgets it. The caller stores the agent.
func (t *tx) keepAgent(a *Agent) {
	if !t.directory() {
		return
	}
	at := int64(0)
	if from := a.closed(); from != 0 {
		at = max(from+t.keepOf(a), t.env.Now+1)
	}
	if at == a.KeepAt {
		return
	}
	t.delDue(a.KeepAt, DueAgent, a.ID)
	a.KeepAt = at
	t.putDue(at, DueAgent, a.ID)
}

// keepOf is how long an agent stays after its end, ms.
func (t *tx) keepOf(a *Agent) int64 {
	if c := GetCard(t, a.Card); c != nil {
		if b := GetBoard(t, c.Board); b != nil {
			return b.keepMS()
		}
	}
	return keepForks * dayMS
}

// dueAgent takes an agent away that is old enough, with what it was assigned to.
func (t *tx) dueAgent(id string) {
	a := GetAgent(t, id)
	if a == nil || a.KeepAt == 0 || a.KeepAt > t.env.Now {
		return
	}
	a.KeepAt = 0
	again := t.env.Now + 1
	switch from := a.closed(); {
	case from == 0:
		again = 0
	case from+t.keepOf(a) > t.env.Now: // its board keeps longer since
		again = from + t.keepOf(a)
	case getHand(t, HandDeclare, a) != nil || getHand(t, HandEnd, a) != nil || t.noSession(a) != nil:
		again = t.env.Now + dayMS
	case t.dropWork(a):
		t.del(TAgent, a.ID)
		return
	}
	a.KeepAt = again
	t.putDue(again, DueAgent, a.ID)
	t.putAgent(a)
}

// dropWork takes assignments of an agent away; true: none is left.
func (t *tx) dropWork(a *Agent) bool {
	keys := tails(t, TAssign, workPrefix(a.ID))
	for _, key := range keys[:min(len(keys), workSlice)] {
		t.del(TAssign, key)
		t.del(TAssign, workPrefix(a.ID)+key)
	}
	return len(keys) <= workSlice
}

// sweepAgents begins to go through all agents: those of the fleet become its
// organisation's, and each has the time at which it leaves.
func (t *tx) sweepAgents() {
	f := GetFleet(t)
	f.AgentSweep = "a"
	t.putFleet(f)
	t.putDue(t.env.Now+1, DueAgents, "all")
}

// dueAgents goes through the next agents.
func (t *tx) dueAgents() {
	f := GetFleet(t)
	if f == nil || f.AgentSweep == "" {
		return
	}
	var list []*Agent // gathered first: what is written moves under a scan
	scan(t, TAgent, "", f.AgentSweep, func(_ string, a *Agent) bool { list = append(list, a); return len(list) < agentSlice })
	for _, a := range list {
		if f.AgentSweep = a.ID + "\x00"; f.Org != "" && a.Org == LocalOrg {
			t.adopt(a, f.Org)
		}
		t.keepAgent(a)
		t.putAgent(a)
	}
	if len(list) < agentSlice {
		f.AgentSweep = ""
	} else {
		t.putDue(t.env.Now+1, DueAgents, "all")
	}
	t.putFleet(f)
}

// adopt makes a fleet's own agent one of an organisation, whose directory is to be told of it (AGT-22). The caller stores the agent.
func (t *tx) adopt(a *Agent, org string) {
	t.adoptHead(a.Key, org)
	a.Org = org
	t.handOn(a, HandDeclare)
	if a.Ending != 0 {
		t.handOn(a, HandEnd)
	}
}

func (t *tx) adoptHead(key, org string) {
	h := GetHead(t, LocalOrg, key)
	if h == nil {
		return
	}
	t.del(THead, headKey(LocalOrg, key))
	if GetHead(t, org, key) == nil {
		h.Org = org
		t.put(THead, headKey(org, key), h)
	}
}

// head reads who has a key; one that the going through did not come to yet is taken over here, with its agent.
func (t *tx) head(org, key string) *Head {
	h := GetHead(t, org, key)
	if h != nil || org == LocalOrg {
		return h
	}
	if h = GetHead(t, LocalOrg, key); h == nil {
		return nil
	}
	if a := GetAgent(t, h.Agent); a != nil && a.Org == LocalOrg {
		t.adopt(a, org)
		t.keepAgent(a)
		t.putAgent(a)
	} else {
		t.adoptHead(key, org)
	}
	return GetHead(t, org, key)
}
