package api

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"muster/board"
)

// Agent is an identity that outlives its sessions.
type Agent struct {
	ID         string     `json:"id"`
	Key        string     `json:"key"`
	Org        string     `json:"org"`
	Kind       string     `json:"kind"` // root, profile, card or fork
	Generation uint64     `json:"generation"`
	Name       string     `json:"name"`
	Path       string     `json:"path"`
	Parent     string     `json:"parent,omitempty"`
	Card       string     `json:"card,omitempty"`
	Role       string     `json:"role,omitempty"`
	Profile    string     `json:"profile,omitempty"`
	State      string     `json:"state"` // active, idle, ending or ended
	Why        string     `json:"why,omitempty"`
	Sponsor    string     `json:"sponsor,omitempty"`
	Starter    string     `json:"starter,omitempty"`
	StartedBy  string     `json:"starter_kind,omitempty"` // session, person or automation
	Synced     bool       `json:"synced"`                 // handed on to its organisation's directory
	CreatedAt  time.Time  `json:"created_at"`
	By         string     `json:"by"`
	EndingAt   *time.Time `json:"ending_at,omitempty"` // its end is queued since
	EndedAt    *time.Time `json:"ended_at,omitempty"`
	Writer     string     `json:"writer,omitempty"` // run that writes its memory
	Memory     *Snapshot  `json:"memory,omitempty"` // its newest snapshot
}

// Snapshot is one state of an agent's folder.
type Snapshot struct {
	Hash  string    `json:"hash"`
	Run   string    `json:"run"`
	Node  string    `json:"node"`
	At    time.Time `json:"at"`
	Bytes int64     `json:"bytes"`
	Files int64     `json:"files"`
}

// AgentDetail is an agent with what it was declared with, what it works and its sessions.
type AgentDetail struct {
	Agent
	Resolved    json.RawMessage `json:"profile_resolved,omitempty"`
	Assignments []Assignment    `json:"assignments"`
	Sessions    []Run           `json:"sessions"` // by card, oldest first
	Memories    []Snapshot      `json:"memories"` // those that its sessions began or ended with, the newest first
}

// Assignment is an agent's work on a card or a profile.
type Assignment struct {
	Agent   string     `json:"agent"`
	Kind    string     `json:"kind"`
	Target  string     `json:"target"`
	Role    string     `json:"role,omitempty"`
	State   string     `json:"state"` // active or ended
	Why     string     `json:"why,omitempty"`
	Moved   bool       `json:"moved,omitempty"` // by a manager
	Since   time.Time  `json:"since"`
	EndedAt *time.Time `json:"ended_at,omitempty"`
}

func snapshotOf(v board.View, m *board.MemoryRef) *Snapshot {
	if m.Hash == "" {
		return nil
	}
	node := m.Node
	if n := board.GetNode(v, node); n != nil {
		node = n.Name
	}
	return &Snapshot{Hash: m.Hash, Run: m.Run, Node: node, At: at(m.At), Bytes: m.Bytes, Files: m.Files}
}

// AgentOf is an agent as the API shows it.
func AgentOf(v board.View, a *board.Agent) Agent {
	return Agent{ID: a.ID, Key: a.StableKey(), Org: a.Org, Kind: a.Kind, Generation: a.Generation, Name: a.Name, Path: a.Path, Parent: a.Parent, Card: a.Card, Role: a.Role, Profile: a.Profile,
		State: a.State(), Why: a.Why, Sponsor: a.Sponsor, Starter: a.Starter, StartedBy: a.StarterKind, Synced: a.Declared != 0, CreatedAt: at(a.Created), By: ActorText(a.By),
		EndingAt: optAt(a.Ending), EndedAt: optAt(a.Ended), Writer: a.Writer, Memory: snapshotOf(v, &a.Memory)}
}

func assignmentOf(w *board.Assignment) Assignment {
	x := Assignment{Agent: w.Agent, Kind: w.Kind, Target: w.Target, Role: w.Role, State: "active", Why: w.Why, Moved: w.Moved, Since: at(w.Since), EndedAt: optAt(w.Ended)}
	if w.Ended != 0 {
		x.State = "ended"
	}
	return x
}

// agentsOf are the agents of a card.
func agentsOf(v board.View, card string) (list []Assignment) {
	board.EachAssignment(v, board.AgentCard, card, func(w *board.Assignment) bool { list = append(list, assignmentOf(w)); return true })
	return list
}

// agents are all of the fleet: the root first, then by key.
func (h *handler) agents(r *http.Request, _ caller) (any, Fresh, error) {
	list, all := []Agent{}, r.URL.Query().Get("all") == "true"
	i, err := h.read(r, func(v board.View) error {
		board.EachAgent(v, func(a *board.Agent) bool {
			if all || a.Ended == 0 {
				list = append(list, AgentOf(v, a))
			}
			return true
		})
		return nil
	})
	slices.SortFunc(list, func(a, b Agent) int {
		return cmp.Or(kindRank(a.Kind)-kindRank(b.Kind), a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Key, b.Key), cmp.Compare(a.ID, b.ID))
	})
	return list, i, err
}

func kindRank(kind string) int {
	return slices.Index([]string{board.AgentRoot, board.AgentProfile, board.AgentCard, board.AgentForked}, kind)
}

func (h *handler) agent(r *http.Request, _ caller) (any, Fresh, error) {
	var x AgentDetail
	i, err := h.read(r, func(v board.View) error {
		a, err := board.FindAgent(v, r.PathValue("id"))
		if err != nil {
			return err
		}
		x = AgentDetail{Agent: AgentOf(v, a), Resolved: a.Resolved, Assignments: []Assignment{}, Sessions: []Run{}, Memories: []Snapshot{}}
		for _, m := range board.MemoriesOf(v, a) {
			x.Memories = append(x.Memories, *snapshotOf(v, &m))
		}
		board.EachWork(v, a.ID, func(w *board.Assignment) bool { x.Assignments = append(x.Assignments, assignmentOf(w)); return true })
		board.EachAgentRun(v, a.ID, func(r *board.Run) bool { x.Sessions = append(x.Sessions, RunOf(v, r)); return true })
		return nil
	})
	return x, i, err
}
