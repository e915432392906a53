package board

import "encoding/json"

// Actor is who says something: the sender of an event, the author of a comment.
type Actor struct {
	Kind string `json:"kind"`           // person, run, platform or node
	Role string `json:"role,omitempty"` // manager, member, viewer; platform; or the role of the run
	Name string `json:"name,omitempty"` // name@node for people, the run id for runs
	Node string `json:"node,omitempty"` // the node whose door it came through, taken from TLS
	Run  string `json:"run,omitempty"`  // for Kind run
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
	unknown
}

func (f *Fleet) fields(w *wire) {
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
}

// IDTable is the state of the table of request ids (architecture.md §2).
type IDTable struct {
	Horizon uint64 // Seq of the newest id dropped; an id minted below it is never executed
	Walked  uint64 // Seq up to which ids have been dropped
	Count   int64  // ids in the table
	Oldest  int64  // board time of the oldest id kept, or a little earlier
	unknown
}

func (i *IDTable) fields(w *wire) {
	w.uint(1, &i.Horizon)
	w.uint(2, &i.Walked)
	w.int(3, &i.Count)
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
	str(w, 1, &r.Check)
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
	Runs                     uint64 // number of runs so far; the newest is ID.Runs
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
	LastFree                 int64  // board time of the newest status/promote/unblock/reclaim (RSP-05)
	Kind                     string
	unknown
}

func (c *Card) fields(w *wire) {
	str(w, 1, &c.ID)
	str(w, 2, &c.Board)
	str(w, 3, &c.Title)
	str(w, 4, &c.Status)
	str(w, 5, &c.Stored)
	str(w, 6, &c.Previous)
	str(w, 7, &c.Assignee)
	str(w, 8, &c.Machine)
	w.int(9, &c.Priority)
	w.int(10, &c.Created)
	w.int(11, &c.Updated)
	w.int(12, &c.Started)
	w.nest(13, &c.Creator)
	str(w, 14, &c.Run)
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
	str(w, 30, &c.SubtaskOf)
	w.dict(31, &c.Labels)
	w.int(32, &c.StartAfter)
	w.counts(33, &c.Blocks)
	str(w, 34, &c.BlockKind)
	str(w, 35, &c.BlockReason)
	w.nest(36, &c.Waits)
	w.nest(37, &c.Attention)
	str(w, 38, &c.LastEvent)
	w.int(39, &c.LastFree)
	str(w, 40, &c.Kind)
}

// Run states.
const (
	RunClaimed = "claimed" // claim and order written, nothing launched yet
	RunRunning = "running" // the node reported the process
	RunEnded   = "ended"   // it has its verdict
)

// Who gave a run its verdict (M-35).
const (
	ByOwn     = "own"     // its own word
	ByExit    = "exit"    // its process ended, the workflow judged
	ByOutside = "outside" // timed out, reclaim, cancel, ...: a stop order stands
)

// How a session came to be gone (M-35); "" is not gone.
const (
	GoneReport  = "report"  // its node saw the whole tree dead
	GoneRefused = "refused" // its node answered that it never started
	GoneVoid    = "void"    // its node voided it, with no process
	GoneLease   = "lease"   // lease and margin passed
	GoneWord    = "word"    // a manager said so
	GonePassed  = "passed"  // its session went on under the next run
)

// Run is one attempt at a card (RUN-01..12).
type Run struct {
	ID, Card, Board                    string
	N                                  uint64 // counts per card
	Role, Slot, Profile                string
	Harness, Surface, Model, Account   string
	Source, Status                     string // status started from, and entered
	State, Outcome, Error              string
	Verdict, Gone                      string // By..., Gone...
	Node                               string // executing node, stored for good (M-05)
	Era, Epoch                         uint64 // the fencing token: Seq of the claim in its era (M-04)
	Order                              string // id of its start order
	Lease, Kill, Leave, Grace          int64  // ms; Lease 0: none. Fixed at the claim
	Runtime, Stale                     int64  // ms; 0: none
	Expires                            int64  // of the claim, while its order is pending (RUN-06)
	Claimed, Launched, Ended, GoneAt   int64
	ExitCode                           *int64
	Signal                             string
	SecretHash                         []byte // SHA-256 of the run's secret
	PID                                int64
	SessionID, Mode                    string // mode: fresh, resume, adopt
	Workspace, LaunchKey               string
	SeenAt, MissingSince, OfflineSince int64
	Workflow                           uint64 // version it was started with
	Asks                               int64
	Forced                             bool
	Keeps                              string // run whose session it was claimed to take over
	Stored                             string // how the status entered is stored
	Over, Closed                       bool   // see lease.Run
	Metadata                           []byte // JSON; keys of others are kept (BRD-07)
	By                                 Actor  // who started it
	Verd                               string // profile verdict: exit or explicit
	Stop                               string // id of its stop order, while one stands
	unknown
}

func (r *Run) fields(w *wire) {
	str(w, 1, &r.ID)
	str(w, 2, &r.Card)
	str(w, 3, &r.Board)
	w.uint(4, &r.N)
	str(w, 5, &r.Role)
	str(w, 6, &r.Slot)
	str(w, 7, &r.Profile)
	str(w, 8, &r.Harness)
	str(w, 9, &r.Surface)
	str(w, 10, &r.Model)
	str(w, 11, &r.Account)
	str(w, 12, &r.Source)
	str(w, 13, &r.Status)
	str(w, 14, &r.State)
	str(w, 15, &r.Outcome)
	str(w, 16, &r.Error)
	str(w, 17, &r.Verdict)
	str(w, 18, &r.Gone)
	str(w, 19, &r.Node)
	w.uint(20, &r.Era)
	w.uint(21, &r.Epoch)
	str(w, 22, &r.Order)
	w.int(23, &r.Lease)
	w.int(24, &r.Kill)
	w.int(25, &r.Leave)
	w.int(26, &r.Grace)
	w.int(27, &r.Runtime)
	w.int(28, &r.Stale)
	w.int(29, &r.Expires)
	w.int(30, &r.Claimed)
	w.int(31, &r.Launched)
	w.int(32, &r.Ended)
	w.int(33, &r.GoneAt)
	w.optInt(34, &r.ExitCode)
	str(w, 35, &r.Signal)
	w.bytes(36, &r.SecretHash)
	w.int(37, &r.PID)
	str(w, 38, &r.SessionID)
	str(w, 39, &r.Mode)
	str(w, 40, &r.Workspace)
	str(w, 41, &r.LaunchKey)
	w.int(42, &r.SeenAt)
	w.int(43, &r.MissingSince)
	w.int(44, &r.OfflineSince)
	w.uint(45, &r.Workflow)
	w.int(46, &r.Asks)
	w.bool(47, &r.Forced)
	str(w, 48, &r.Keeps)
	w.bytes(49, &r.Metadata)
	w.nest(50, &r.By)
	str(w, 51, &r.Verd)
	str(w, 52, &r.Stop)
	str(w, 53, &r.Stored)
	w.bool(54, &r.Over)
	w.bool(55, &r.Closed)
}

// Held is one session that is not gone: what caps count and what the next start
// of that card and slot waits for (M-13, M-35). Keyed by run id.
type Held struct {
	Run, Card, Board, Slot                        string
	Node, Profile, Harness, Model, Status, Stored string
	Account, Surface, Role                        string
	Since, Lease                                  int64 // ms
	Ended                                         bool  // the run has its verdict; the session is not gone yet
	Stopping                                      bool  // a stop order stands
	Manual                                        bool  // attached by hand: not a dispatcher session (SES-22)
	unknown
}

func (h *Held) fields(w *wire) {
	str(w, 1, &h.Run)
	str(w, 2, &h.Card)
	str(w, 3, &h.Board)
	str(w, 4, &h.Slot)
	str(w, 5, &h.Node)
	str(w, 6, &h.Profile)
	str(w, 7, &h.Harness)
	str(w, 8, &h.Model)
	str(w, 9, &h.Status)
	str(w, 10, &h.Stored)
	str(w, 11, &h.Account)
	str(w, 12, &h.Surface)
	str(w, 13, &h.Role)
	w.int(14, &h.Since)
	w.int(15, &h.Lease)
	w.bool(16, &h.Ended)
	w.bool(17, &h.Stopping)
	w.bool(18, &h.Manual)
}

// SlotRec is the lineage of a card's slot (SES-03): its last session and whether it was let go.
type SlotRec struct {
	Card, Slot, Run, Node, SessionID, Harness string
	Forgotten                                 int64
	Closed                                    int64
	NotResumable                              bool
	unknown
}

func (s *SlotRec) fields(w *wire) {
	str(w, 1, &s.Card)
	str(w, 2, &s.Slot)
	str(w, 3, &s.Run)
	str(w, 4, &s.Node)
	str(w, 5, &s.SessionID)
	str(w, 6, &s.Harness)
	w.int(7, &s.Forgotten)
	w.int(8, &s.Closed)
	w.bool(9, &s.NotResumable)
}

// Event is one board-visible change (BRD-08). Its key is its id (Seq.n).
type Event struct {
	ID, Board, Card, Run, Kind string
	At                         int64
	Actor                      Actor
	Payload                    []byte // JSON object
	Req                        string // request id of the transaction, on its first event
	Prev                       string // key of the card's event before
	From, To                   string // statuses, when it moved the card
	unknown
}

func (e *Event) fields(w *wire) {
	str(w, 1, &e.ID)
	str(w, 2, &e.Board)
	str(w, 3, &e.Card)
	str(w, 4, &e.Run)
	str(w, 5, &e.Kind)
	w.int(6, &e.At)
	w.nest(7, &e.Actor)
	w.bytes(8, &e.Payload)
	str(w, 9, &e.Req)
	str(w, 10, &e.Prev)
	str(w, 11, &e.From)
	str(w, 12, &e.To)
}

// Comment is one word of a card's thread (BRD-09).
type Comment struct {
	Card   string
	Author Actor
	Body   string
	At     int64
	unknown
}

func (c *Comment) fields(w *wire) {
	str(w, 1, &c.Card)
	w.nest(2, &c.Author)
	str(w, 3, &c.Body)
	w.int(4, &c.At)
}

// Link is a dependency: Child waits for Parent (BRD-10).
type Link struct {
	Child, Parent string
	At            int64
	unknown
}

func (l *Link) fields(w *wire) {
	str(w, 1, &l.Child)
	str(w, 2, &l.Parent)
	w.int(3, &l.At)
}

// Order kinds and states (architecture.md §3).
const (
	OrderStart = "start"
	OrderStop  = "stop" // a stop beats its start: the node voids what it has not started (M-35)

	OrderPending  = "pending"
	OrderTaken    = "taken"
	OrderLaunched = "launched"
)

// Order is what a node is asked to do, written by the transaction that decided
// it (M-17). It leaves the state when its node has answered it (M-37).
type Order struct {
	ID, Node, Kind, State string
	Run, Card, Slot       string
	Era, Seq              uint64 // fencing: Era and the Seq of the claim for a start; the Seq of this order for a stop
	At, Expires           int64
	Why                   string
	Spec                  []byte // JSON of StartSpec, for a start
	unknown
}

func (o *Order) fields(w *wire) {
	str(w, 1, &o.ID)
	str(w, 2, &o.Node)
	str(w, 3, &o.Kind)
	str(w, 4, &o.State)
	str(w, 5, &o.Run)
	str(w, 6, &o.Card)
	str(w, 7, &o.Slot)
	w.uint(8, &o.Era)
	w.uint(9, &o.Seq)
	w.int(10, &o.At)
	w.int(11, &o.Expires)
	str(w, 12, &o.Why)
	w.bytes(13, &o.Spec)
}

// StartSpec is all a node needs to start a session, resolved when the claim was
// made: an order pushed ahead of the state is complete in itself.
type StartSpec struct {
	Run       string            `json:"run"`
	Card      string            `json:"card"`
	Board     string            `json:"board"`
	Title     string            `json:"title"`
	Slot      string            `json:"slot"`
	Role      string            `json:"role"`
	Profile   string            `json:"profile"`
	Harness   string            `json:"harness"`
	Surface   string            `json:"surface"`
	Model     string            `json:"model,omitempty"`
	Argv      []string          `json:"argv"`               // rendered
	Env       map[string]string `json:"env,omitempty"`      // rendered literals
	EnvFrom   map[string]string `json:"env_from,omitempty"` // resolved on the executing node (M-24)
	Prompt    string            `json:"prompt,omitempty"`   // goes to MUSTER_BRIEF
	Body      string            `json:"body,omitempty"`     // goes to MUSTER_BODY
	Workspace string            `json:"workspace,omitempty"`
	LaunchKey string            `json:"launch_key"`
	SessionID string            `json:"session_id,omitempty"`
	Mode      string            `json:"mode,omitempty"`
	Keep      string            `json:"keep,omitempty"` // run whose session goes on
	Lease     int64             `json:"lease,omitempty"`
	Kill      int64             `json:"kill"`
	Leave     int64             `json:"leave"`
	Grace     int64             `json:"grace"`
	Lock      string            `json:"lock"` // fencing token as text: fleet/era/seq/run
	Extra     json.RawMessage   `json:"extra,omitempty"`
}

// Node roles and recorded states.
const (
	RoleVoter   = "voter"
	RoleReplica = "replica"

	NodeOnline  = "online"
	NodeOffline = "offline"
	NodeLeft    = "left"
)

// Node is one machine of the committed node list, which is the trust (architecture.md §6).
type Node struct {
	ID, Name          string
	Key               []byte // public key
	Addrs             []string
	Store             string // id of its raft store; the raft server id is ID/Store
	Role, Local       string // voter or replica; what users of its socket may do
	NoVote            bool   // joined with --replica, or demoted by hand
	Vote              bool   // promoted by hand: votes although it has a battery
	Generation        uint64 // one more each start, by compare-and-set
	Labels            map[string]string
	Tools, Harnesses  []string
	Slots             int64
	AlwaysOn, Battery bool
	OS, Arch, Version string
	State             string // recorded changes only (M-10)
	OfflineSince      int64
	Joined, Started   int64
	Draining          bool
	Journal           string // id of its outbox journal
	MemoryMB          int64
	StartID           string // of the start that made this generation
	unknown
}

func (n *Node) fields(w *wire) {
	str(w, 1, &n.ID)
	str(w, 2, &n.Name)
	w.bytes(3, &n.Key)
	w.strs(4, &n.Addrs)
	str(w, 5, &n.Store)
	str(w, 6, &n.Role)
	str(w, 7, &n.Local)
	w.bool(8, &n.NoVote)
	w.bool(9, &n.Vote)
	w.uint(10, &n.Generation)
	w.dict(11, &n.Labels)
	w.strs(12, &n.Tools)
	w.strs(13, &n.Harnesses)
	w.int(14, &n.Slots)
	w.bool(15, &n.AlwaysOn)
	w.bool(16, &n.Battery)
	str(w, 17, &n.OS)
	str(w, 18, &n.Arch)
	str(w, 19, &n.Version)
	str(w, 20, &n.State)
	w.int(21, &n.OfflineSince)
	w.int(22, &n.Joined)
	w.int(23, &n.Started)
	w.bool(24, &n.Draining)
	str(w, 25, &n.Journal)
	w.int(26, &n.MemoryMB)
	str(w, 27, &n.StartID)
}

// Token lets somebody join or call (architecture.md §6). Only a hash of its secret is kept; the key is that hash.
type Token struct {
	ID, Role, Local string
	Expires, Made   int64
	Uses            int64 // left; -1 without limit
	By              Actor
	unknown
}

func (t *Token) fields(w *wire) {
	str(w, 1, &t.ID)
	str(w, 2, &t.Role)
	str(w, 3, &t.Local)
	w.int(4, &t.Expires)
	w.int(5, &t.Made)
	w.int(6, &t.Uses)
	w.nest(7, &t.By)
}

// Done is the stored outcome of a request id.
type Done struct {
	Seq     uint64
	At      int64
	Digest  []byte // of the actor and the caller's words
	Code    string // "" for success
	Check   string
	Message string
	Hint    string
	Data    []byte // small JSON
	unknown
}

func (d *Done) fields(w *wire) {
	w.uint(1, &d.Seq)
	w.int(2, &d.At)
	w.bytes(3, &d.Digest)
	str(w, 4, &d.Code)
	str(w, 5, &d.Check)
	str(w, 6, &d.Message)
	str(w, 7, &d.Hint)
	w.bytes(8, &d.Data)
}

// Outbox is the last number taken of a node's journal.
type Outbox struct {
	Journal, Node string
	Last          uint64
	unknown
}

func (o *Outbox) fields(w *wire) {
	str(w, 1, &o.Journal)
	str(w, 2, &o.Node)
	w.uint(3, &o.Last)
}

// Due kinds.
const (
	DueCard   = "card"   // look at the card again (start_after, a guard's end)
	DueClaim  = "claim"  // a pending order's expiry
	DueRun    = "run"    // a limit of a run (runtime)
	DueNode   = "node"   // an observation that lasts
	DueExpire = "expire" // a token's end
)

// Due is a moment at which something is looked at again: due times are state,
// so that a new leader keeps them (architecture.md §8).
type Due struct {
	At        int64
	Kind, Key string
	unknown
}

func (d *Due) fields(w *wire) {
	w.int(1, &d.At)
	str(w, 2, &d.Kind)
	str(w, 3, &d.Key)
}
