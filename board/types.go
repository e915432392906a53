package board

import "strings"

// Actor is who says something: the sender of an event, the author of a comment.
type Actor struct {
	Kind string `json:"kind"`           // person, run, platform or node
	Role string `json:"role,omitempty"` // manager, member, viewer; platform; or the role of the run
	Name string `json:"name,omitempty"` // name@node for people, the run id for runs
	Node string `json:"node,omitempty"` // the node whose door it came through, taken from TLS
	Run  string `json:"run,omitempty"`  // for Kind run
	// Agent is the id of the agent whose session speaks, for Kind run; "" when it has none.
	Agent string `json:"agent,omitempty"`
	unknown
}

// The kinds of actors.
const (
	ActorPerson   = "person"
	ActorRun      = "run"
	ActorPlatform = "platform"
	ActorNode     = "node"
)

// Platform is the fleet itself.
func Platform() Actor { return Actor{Kind: ActorPlatform, Role: "platform", Name: "fleet"} }

func (a *Actor) fields(w *wire) {
	str(w, 1, &a.Kind)
	str(w, 2, &a.Role)
	str(w, 3, &a.Name)
	str(w, 4, &a.Node)
	str(w, 5, &a.Run)
	str(w, 6, &a.Agent)
}

// Fleet is the one record about the whole fleet.
type Fleet struct {
	Gossip              []byte // key of the gossip packets
	ID                  string // random, made by the first up
	Era                 uint64 // number of the era (architecture.md §6)
	EraTag              string // its random half
	Name                string
	Format              uint64 // of the state; raised by the leader
	Created             int64
	PausedBy, PausedWhy string
	PausedAt            int64
	GossipOld           []byte // the key before, which still counts; none when a removed node knows it
	GossipAt            int64  // when Gossip was made; 0: with the fleet
	GossipStale         bool   // a removed node knows it: the leader makes another
	Org                 string // organisation whose directory knows the fleet's agents; "": [LocalOrg]
	AgentSweep          string // agent id behind which all agents are gone through; "": they were
	nextFleet
	unknown
}

func (f *Fleet) fields(w *wire) {
	f.nextFleet.fields(w)
	str(w, 1, &f.ID)
	w.uint(2, &f.Era)
	str(w, 3, &f.EraTag)
	str(w, 4, &f.Name)
	w.uint(5, &f.Format)
	w.int(6, &f.Created)
	str(w, 7, &f.PausedBy)
	str(w, 8, &f.PausedWhy)
	w.int(9, &f.PausedAt)
	w.bytes(10, &f.Gossip)
	w.bytes(20, &f.GossipOld)
	w.int(21, &f.GossipAt)
	w.bool(22, &f.GossipStale)
	str(w, 23, &f.Org)
	str(w, 24, &f.AgentSweep)
}

// IDTable is the state of the table of request ids (architecture.md §2).
type IDTable struct {
	Horizon uint64 // Seq of the newest id dropped; an id minted below it is never executed
	Walked  uint64 // Seq up to which ids have been dropped
	Others  int64  // transactions after Walked without an id
	Oldest  int64  // board time of the oldest id kept, or a little earlier
	unknown
}

func (i *IDTable) fields(w *wire) {
	w.uint(1, &i.Horizon)
	w.uint(2, &i.Walked)
	w.int(3, &i.Others)
	w.int(4, &i.Oldest)
}

// Board is one kanban board (BRD-01).
type Board struct {
	Slug, Prefix, Label string
	Home, Zone          string // node name or id; IANA zone
	Keep                int64  // days that finished cards' events stay (M-37)
	Params              []byte // JSON object: overrides of workflow params
	Workflow            uint64 // version of the workflow in force (M-22)
	NextCard            uint64
	Created             int64
	Archived            bool
	PausedBy, PausedWhy string
	PausedAt            int64
	Imported            string // token of the import that made it
	Sweep               string // from which card on retention looks at all of them; "": it does not
	Carry               string // from which card on they are to be carried over to the version in force; "": all are
	CarryFrom           uint64 // ... from this version ...
	CarryParams         []byte // ... with these parameters of the board's own
	CarrySeq            uint64 // Seq at which that began
	unknown
}

func (b *Board) fields(w *wire) {
	str(w, 1, &b.Slug)
	str(w, 2, &b.Prefix)
	str(w, 3, &b.Label)
	str(w, 4, &b.Home)
	str(w, 5, &b.Zone)
	w.int(6, &b.Keep)
	w.bytes(7, &b.Params)
	w.uint(8, &b.Workflow)
	w.uint(9, &b.NextCard)
	w.int(10, &b.Created)
	w.bool(11, &b.Archived)
	str(w, 12, &b.PausedBy)
	str(w, 13, &b.PausedWhy)
	w.int(14, &b.PausedAt)
	str(w, 40, &b.Imported)
	str(w, 41, &b.Sweep)
	str(w, 42, &b.Carry)
	w.uint(43, &b.CarryFrom)
	w.bytes(44, &b.CarryParams)
	w.uint(45, &b.CarrySeq)
}

// WorkflowDoc is one saved version of a board's workflow file.
type WorkflowDoc struct {
	Board   string
	Version uint64
	Source  []byte // the YAML as written
	By      Actor
	At      int64
	unknown
}

func (d *WorkflowDoc) fields(w *wire) {
	str(w, 1, &d.Board)
	w.uint(2, &d.Version)
	w.bytes(3, &d.Source)
	w.nest(4, &d.By)
	w.int(5, &d.At)
}

// Reason says why a card waits: the check, a sentence, and since when (board time, ms).
type Reason struct {
	Check, Text string
	Since       int64
	unknown
}

func (r *Reason) fields(w *wire) {
	str(w, reasonCheck, &r.Check)
	str(w, 2, &r.Text)
	w.int(3, &r.Since)
}

// Card is the hot record of a card; its body is a record of its own (TText).
type Card struct {
	ID, Board, Title         string
	Status, Stored, Previous string // workflow status, how it is stored (BRD-13), the status before
	Assignee, Machine        string
	Priority                 int64
	Created, Updated         int64
	Started                  int64 // first claim only (BRD-17)
	Creator                  Actor
	Run                      string // current run id (RUN-03)
	Runs                     uint64 // number of runs so far, with those skipped; the next is ID.(Runs+1)
	Failures                 int64
	LastError, LastOutcome   string
	MaxRetries, MaxRuntime   *int64 // MaxRuntime in seconds
	Model, Provider, Effort  string
	Skills                   []string
	Goal                     bool
	GoalMaxTurns             *int64
	Tenant, Branch           string
	Workspace                string // scratch, dir:PATH, worktree:REPO; "" as the profile says
	SubtaskOf                string
	Labels                   map[string]string
	StartAfter               int64            // ms; 0: at once
	Blocks                   map[string]int64 // how often each kind of block was said since it was last done
	BlockKind, BlockReason   string
	Waits                    Reason // why it does not start
	Attention                Reason // why a person is needed (kind in Check)
	LastEvent                string // key of its newest event; events of a card are a chain (Event.Prev)
	LastSaid                 string // key of its newest comment; they are a chain (Event.SaidBefore)
	LastFree                 int64  // board time of the newest status/promote/unblock/reclaim (RSP-05)
	Kind                     string
	WorkNode, WorkLeft       string // node id and what its workspace there holds that is nowhere else: uncommitted or unpushed (M-05)
	Hook                     string // key of the hook's order it waits for
	KeepAt                   int64  // board time at which what is old of it leaves (M-37); 0: nothing is to leave
	WorkProfile              string // profile that gave the card its workspace; every slot works in it
	WorkHead                 string // commit that its work was last seen at, saved on a remote
	Skipped                  uint64 // of Runs: numbers that no run has, since a recovery did not know whether they were given
	unknown
}

// Tags that a [Glance] reads as well.
const (
	reasonCheck   = 1
	cardBoard     = 2
	cardStatus    = 4
	cardStored    = 5
	cardMachine   = 8
	cardRun       = 14
	cardSubtaskOf = 30
	cardWaits     = 36
	cardAttention = 37
)

func (c *Card) fields(w *wire) {
	str(w, 1, &c.ID)
	str(w, cardBoard, &c.Board)
	str(w, 3, &c.Title)
	str(w, cardStatus, &c.Status)
	str(w, cardStored, &c.Stored)
	str(w, 6, &c.Previous)
	str(w, 7, &c.Assignee)
	str(w, cardMachine, &c.Machine)
	w.int(9, &c.Priority)
	w.int(10, &c.Created)
	w.int(11, &c.Updated)
	w.int(12, &c.Started)
	w.nest(13, &c.Creator)
	str(w, cardRun, &c.Run)
	w.uint(15, &c.Runs)
	w.int(16, &c.Failures)
	str(w, 17, &c.LastError)
	str(w, 18, &c.LastOutcome)
	w.optInt(19, &c.MaxRetries)
	w.optInt(20, &c.MaxRuntime)
	str(w, 21, &c.Model)
	str(w, 22, &c.Provider)
	str(w, 23, &c.Effort)
	w.strs(24, &c.Skills)
	w.bool(25, &c.Goal)
	w.optInt(26, &c.GoalMaxTurns)
	str(w, 27, &c.Tenant)
	str(w, 28, &c.Branch)
	str(w, 29, &c.Workspace)
	str(w, cardSubtaskOf, &c.SubtaskOf)
	w.dict(31, &c.Labels)
	w.int(32, &c.StartAfter)
	w.counts(33, &c.Blocks)
	str(w, 34, &c.BlockKind)
	str(w, 35, &c.BlockReason)
	w.nest(cardWaits, &c.Waits)
	w.nest(cardAttention, &c.Attention)
	str(w, 38, &c.LastEvent)
	w.int(39, &c.LastFree)
	str(w, 40, &c.Kind)
	str(w, 41, &c.LastSaid)
	str(w, 42, &c.WorkNode)
	str(w, 43, &c.WorkLeft)
	str(w, 44, &c.Hook)
	w.int(45, &c.KeepAt)
	str(w, 46, &c.WorkProfile)
	str(w, 47, &c.WorkHead)
	w.uint(48, &c.Skipped)
}

// Address is the sender of a board's notices, made of its label (BRD-02). It is
// no mailbox: every node is a door (M-20).
func (b *Board) Address() string {
	var s strings.Builder
	for _, r := range strings.ToLower(b.Label) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			s.WriteRune(r)
		case s.Len() > 0 && !strings.HasSuffix(s.String(), "-"):
			s.WriteByte('-')
		}
	}
	return "board:" + orElse(strings.Trim(s.String(), "-"), b.Slug)
}
