package board

import (
	"fmt"
	"strings"
	"time"
)

// MemoryNote stands in a prompt and an argv for what only the executing node knows
// of the agent's folder: "", or why it is not what it should be. The launcher puts it in.
const MemoryNote = "$MUSTER_MEMORY_NOTE"

// ReportMemory is what a node says of a snapshot that it took while a session lives.
const ReportMemory = "memory"

// VAgentMemory is the verb that takes an agent back to an earlier snapshot, with AgentMemory.
const VAgentMemory = "agent.memory"

// AgentMemory names a snapshot of an agent's sessions.
type AgentMemory struct {
	Agent string `json:"agent"`
	Hash  string `json:"hash"` // or its beginning
}

// SpecAgent is what a node is told of the agent whose session it starts.
type SpecAgent struct {
	ID    string `json:"id"`
	Hash  string `json:"hash,omitempty"`  // snapshot to begin with; "": none was taken
	Node  string `json:"node,omitempty"`  // machine that took it
	About string `json:"about,omitempty"` // the same in words
	Reads bool   `json:"reads,omitempty"` // another run writes it
}

// MemoryReport is a snapshot as its node tells of it.
type MemoryReport struct {
	Hash  string `json:"hash,omitempty"`
	Bytes int64  `json:"bytes,omitempty"`
	Files int64  `json:"files,omitempty"`
	Error string `json:"error,omitempty"` // why none was taken
}

// IsAgentID tells an agent's id from anything else: it becomes part of a path.
func IsAgentID(id string) bool { return agentIDRE.MatchString(id) }

// giveMemory makes the claimed run the writer of its agent's memory, unless a
// session that is not gone writes it (M-29).
func (t *tx) giveMemory(r *Run) {
	a := GetAgent(t, r.Agent.ID)
	if a == nil {
		return
	}
	r.Agent.Begun = a.Memory
	if a.Writer != "" && a.Writer != r.Keeps && GetHeld(t, a.Writer) != nil {
		r.Agent.Reads = true
		return
	}
	a.Writer = r.ID
	t.putAgent(a)
}

// reportMemory takes a snapshot: the writer's is the agent's newest, any other is kept with its run alone.
func (t *tx) reportMemory(r *Run, m *MemoryReport) {
	a := GetAgent(t, r.Agent.ID)
	if a == nil {
		return
	}
	if m.Hash == "" {
		t.runEvent(r, "agent_memory_failed", map[string]any{"agent": a.ID, "error": clip(m.Error, 300)})
		return
	}
	ref := MemoryRef{Hash: clip(m.Hash, 64), Run: r.ID, Node: r.Node, At: t.env.Now, Bytes: m.Bytes, Files: m.Files}
	if same := r.Agent.Saved.Hash == ref.Hash || r.Agent.Saved.Hash == "" && r.Agent.Begun.Hash == ref.Hash; same {
		return
	}
	r.Agent.Saved = ref
	t.putRun(r)
	p := map[string]any{"agent": a.ID, "hash": ref.Hash, "bytes": ref.Bytes, "files": ref.Files, "machine": t.nodeName(r.Node)}
	if a.Writer != r.ID || r.Gone == GoneLease || r.Gone == GoneWord {
		p["superseded"] = true
		t.runEvent(r, "agent_memory_kept", p)
		return
	}
	a.Memory = ref
	t.putAgent(a)
	t.runEvent(r, "agent_memory", p)
}

// agentMemory takes an agent's memory back to a snapshot that one of its sessions began or ended with.
func agentMemory(t *tx) (any, *Error) {
	req, err := args[AgentMemory](t)
	if err != nil {
		return nil, err
	}
	a, err := FindAgent(t, req.Agent)
	if err != nil {
		return nil, err
	}
	if len(req.Hash) < 6 {
		return nil, Errorf(Invalid, "%q is no hash of a snapshot, nor the first six signs of one", clip(req.Hash, 70)).WithHint("see: muster agent memory %s log", a.ID)
	}
	if err := t.noSession(a); err != nil {
		return nil, err
	}
	for _, m := range MemoriesOf(t, a) {
		if strings.HasPrefix(m.Hash, req.Hash) {
			a.Memory = m
			t.putAgent(a)
			p := object("agent", a.ID, "hash", m.Hash)
			if c := GetCard(t, a.Card); c != nil {
				t.event(c, Event{Kind: "agent_memory_restored", Payload: p})
				t.putCard(c)
			} else {
				t.event(nil, Event{Kind: "agent_memory_restored", Payload: p})
			}
			return map[string]any{"id": a.ID, "key": a.StableKey(), "hash": m.Hash}, nil
		}
	}
	return nil, Errorf(NotFound, "agent %s has no snapshot %s", a.ID, clip(req.Hash, 70)).WithHint("see: muster agent memory %s log", a.ID)
}

// MemoriesOf are the snapshots of an agent that its record and its runs name, the newest first.
func MemoriesOf(v View, a *Agent) (list []MemoryRef) {
	seen := map[string]bool{"": true}
	add := func(m MemoryRef) {
		if !seen[m.Hash] {
			seen[m.Hash] = true
			list = append(list, m)
		}
	}
	add(a.Memory)
	var runs []*Run
	EachAgentRun(v, a.ID, func(r *Run) bool { runs = append(runs, r); return true })
	for i := len(runs) - 1; i >= 0; i-- {
		add(runs[i].Agent.Saved)
		add(runs[i].Agent.Begun)
	}
	return list
}

// earlierSessions bounds what a prompt tells of an agent's sessions.
const earlierSessions = 5

// preamble says to a session whose it is, and what was before it (AGT-24).
func (s *Scope) preamble(r *Run, a *Agent) string {
	var b strings.Builder
	fmt.Fprintf(&b, "You are agent %s (%s).", a.ID, a.Path)
	if r.Agent.Reads {
		fmt.Fprintf(&b, " Another session of yours, run %s, writes your memory: your folder (MUSTER_AGENT_HOME) is a copy of it, and what you change there is not kept.", a.Writer)
	} else {
		b.WriteString(" What you keep in the folder MUSTER_AGENT_HOME is there again for your next session, on whatever machine.")
	}
	b.WriteString(MemoryNote + "\n")
	var runs []*Run
	EachAgentRun(s.view, a.ID, func(x *Run) bool {
		if x.ID != r.ID && x.Launched != 0 {
			runs = append(runs, x)
		}
		return true
	})
	if len(runs) > 0 {
		b.WriteString("Your earlier sessions:\n")
	}
	for _, x := range runs[max(0, len(runs)-earlierSessions):] {
		ended := "not over"
		if x.Ended != 0 {
			ended = "ended " + time.UnixMilli(x.Ended).UTC().Format(time.RFC3339) + ", " + orElse(x.Outcome, "ended")
		}
		fmt.Fprintf(&b, "- %s on %s: %s\n", orElse(x.SessionID, x.ID), s.nodeName(x.Node), ended)
	}
	b.WriteString("\n")
	return b.String()
}

// specAgent is what the node is told of the run's agent, nil when it has none.
func (s *Scope) specAgent(r *Run) (*SpecAgent, *Agent) {
	a := GetAgent(s.view, r.Agent.ID)
	if a == nil {
		return nil, nil
	}
	m := r.Agent.Begun
	x := &SpecAgent{ID: a.ID, Hash: m.Hash, Node: m.Node, Reads: r.Agent.Reads}
	if m.Hash != "" {
		x.About = fmt.Sprintf("snapshot %s, of run %s on %s", m.Hash[:min(12, len(m.Hash))], m.Run, s.nodeName(m.Node))
	}
	return x, a
}

// begins tells whether the prompt is the first that its session is told.
func begins(r *Run, lost string) bool { return r.Mode == ModeFresh || lost != "" }
