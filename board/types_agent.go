package board

// FormatAgents is the format of the state from which on it holds agents.
const FormatAgents = 2

// LocalOrg is the organisation of a fleet that no directory knows: its agents are its own.
const LocalOrg = "local"

// Kinds of agents.
const (
	AgentRoot    = "root"    // the fleet's own, of which all others come
	AgentProfile = "profile" // of a profile; its parent is that of the profile's parent
	AgentCard    = "card"    // of a card and a role: who works
	AgentForked  = "fork"    // made by a person after another: its configuration, without its memory
)

// Kinds of who started an agent.
const (
	StarterSession    = "session"
	StarterPerson     = "person"
	StarterAutomation = "automation"
)

// Agent is an identity that outlives its sessions (AGT-01..14): what was intended
// when it was declared, and what became of it. It never changes its id.
type Agent struct {
	ID, Org, Key         string // Key: without generation; see [Agent.StableKey]
	Generation           uint64 // of its key, from 1
	Kind, Name, Path     string
	Parent               string // agent id; "" of the root
	Card, Role, Profile  string
	Resolved             []byte // JSON: the profile as it was resolved last; a fork and the root keep what they were declared with
	Sponsor              string // person on whose behalf it works, or automation
	StarterKind, Starter string // session, person or automation, and which
	By                   Actor
	Created              int64
	Active               int64  // assignments that are active
	Ending               int64  // its end is queued since; 0: it is not
	Ended                int64  // it is never started again
	Why                  string // why it ended, or is to end
	Declared             int64  // handed on to its organisation's directory
	Writer               string // run that writes its memory
	Memory               MemoryRef
	Leaving              int64 // its end was told to the directory, or may have been: it is not taken back
	KeepAt               int64 // board time at which it leaves the state (M-37); 0: it does not
	unknown
}

func (a *Agent) fields(w *wire) {
	str(w, 1, &a.ID)
	str(w, 2, &a.Org)
	str(w, 3, &a.Key)
	w.uint(4, &a.Generation)
	str(w, 5, &a.Kind)
	str(w, 6, &a.Name)
	str(w, 7, &a.Path)
	str(w, 8, &a.Parent)
	str(w, 9, &a.Card)
	str(w, 10, &a.Role)
	str(w, 11, &a.Profile)
	w.bytes(12, &a.Resolved)
	str(w, 13, &a.Sponsor)
	str(w, 14, &a.StarterKind)
	str(w, 15, &a.Starter)
	w.nest(16, &a.By)
	w.int(17, &a.Created)
	w.int(18, &a.Active)
	w.int(19, &a.Ending)
	w.int(20, &a.Ended)
	str(w, 21, &a.Why)
	w.int(22, &a.Declared)
	str(w, 23, &a.Writer)
	w.nest(24, &a.Memory)
	w.int(25, &a.Leaving)
	w.int(26, &a.KeepAt)
}

// MemoryRef names a snapshot of an agent's folder; its bytes are on machines, never in the log (M-29).
type MemoryRef struct {
	Hash  string // SHA-256 of its list of files, hex; "" no snapshot
	Run   string // that it was taken of
	Node  string // id of the machine that took it
	At    int64
	Bytes int64 // of all its files
	Files int64
	unknown
}

func (m *MemoryRef) fields(w *wire) {
	str(w, 1, &m.Hash)
	str(w, 2, &m.Run)
	str(w, 3, &m.Node)
	w.int(4, &m.At)
	w.int(5, &m.Bytes)
	w.int(6, &m.Files)
}

// RunAgent is what a run knows of its agent; ID "" when it has none.
type RunAgent struct {
	ID    string
	Begun MemoryRef // snapshot that it was started with
	Reads bool      // another run writes the memory: what this one changes is not kept
	Saved MemoryRef // the newest taken of it
	unknown
}

func (r *RunAgent) fields(w *wire) {
	str(w, 1, &r.ID)
	w.nest(2, &r.Begun)
	w.bool(3, &r.Reads)
	w.nest(4, &r.Saved)
}

// Head points at the agent that has a key now (AGT-06).
type Head struct {
	Org, Key, Agent string
	Generation      uint64
	unknown
}

func (h *Head) fields(w *wire) {
	str(w, 1, &h.Org)
	str(w, 2, &h.Key)
	str(w, 3, &h.Agent)
	w.uint(4, &h.Generation)
}

// Assignment is an agent's work on a target in a role (AGT-15).
type Assignment struct {
	Agent, Kind, Target, Role string // Kind: card or profile; Target: card id or profile
	Moved                     bool   // by a manager: it wins over the key's head (AGT-13)
	Since, Ended              int64  // Ended 0: it is active
	Why                       string // why it ended
	unknown
}

func (a *Assignment) fields(w *wire) {
	str(w, 1, &a.Agent)
	str(w, 2, &a.Kind)
	str(w, 3, &a.Target)
	str(w, 4, &a.Role)
	w.bool(5, &a.Moved)
	w.int(6, &a.Since)
	w.int(7, &a.Ended)
	str(w, 8, &a.Why)
}
