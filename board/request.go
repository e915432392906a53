package board

import (
	"encoding/json"
)

// Request is one thing somebody asks the executor to do. It is answered by a
// [Result]; at most one transaction comes of it, however often it is sent under
// the same ID.
type Request struct {
	ID      string          `json:"id,omitempty"` // era.seq.random, see [ReqID]; "" for the scheduler's own, which the state guards
	Retry   bool            `json:"retry,omitempty"`
	Actor   Actor           `json:"actor"`
	Verb    string          `json:"verb"`
	Args    json.RawMessage `json:"args,omitempty"`
	Journal string          `json:"journal,omitempty"` // outbox items: journal and number instead of an ID
	Number  uint64          `json:"number,omitempty"`
	Secret  string          `json:"secret,omitempty"` // of a run or a token, checked against a hash in the state
	Place   string          `json:"place,omitempty"`  // node chosen by the leader for a start; never taken from a caller
	Vouch   *Vouch          `json:"vouch,omitempty"`  // of adopt: the word of the session's node; never taken from a caller
}

// Result answers a request. Err is nil on success.
type Result struct {
	Seq  uint64          `json:"seq"` // Seq the answer is true at
	Data json.RawMessage `json:"data,omitempty"`
	Err  *Error          `json:"error,omitempty"`
}

// Verbs of requests, with the type of their args.
const (
	VFleetInit    = "fleet.init"    // FleetInit: the first up
	VBoardCreate  = "board.create"  // BoardCreate
	VBoardApply   = "board.apply"   // BoardApply
	VBoardSet     = "board.set"     // BoardSet
	VBoardArchive = "board.archive" // BoardArchive
	VCardAdd      = "card.add"      // CardAdd
	VCardEdit     = "card.edit"     // CardEdit
	VCardPut      = "card.put"      // CardPut: a manager, past the workflow
	VCardLink     = "card.link"     // CardLink
	VCardUnlink   = "card.unlink"   // CardLink
	VEvent        = "event"         // FireEvent
	VStart        = "start"         // Start: by the scheduler (actor platform) or a person
	VAdopt        = "adopt"         // Adopt, with a Vouch
	VMove         = "move"          // Move
	VForget       = "forget"        // Forget
	VTokenCreate  = "token.create"  // TokenCreate
	VTokenRevoke  = "token.revoke"  // TokenRevoke
	VNodeJoin     = "node.join"     // NodeJoin, with the token's secret
	VNodeUp       = "node.up"       // NodeUp: a start of a node, generation by compare-and-set
	VNodeUpdate   = "node.update"   // NodeUpdate: what a node says of itself changed
	VNodeVote     = "node.vote"     // NodeVote: a person promotes or demotes
	VPause        = "pause"         // Pause: of the fleet or a board
	VResume       = "resume"        // Pause, without Why
	VDrain        = "node.drain"    // Drain: a node takes nothing new, or takes again
	VNodeSet      = "node.set"      // NodeSet: what users of its socket may do
	VNodeLabel    = "node.label"    // NodeLabel: a person's labels of a machine
	VNodeRemove   = "node.remove"   // NodeRemove: a machine is trusted no longer
	VGossip       = "gossip.key"    // GossipRotate: the leader gives gossip another key
	VNodeRole     = "node.role"     // NodeRole: the leader records what Raft's configuration is
	VNodeState    = "node.state"    // NodeState: the leader saw a node come or go
	VReport       = "report"        // Report: a node's outbox item
	VObserve      = "observe"       // Observe: the platform saw something about a run
	VGone         = "gone"          // Gone: lease and margin passed, or a manager's word
	VReasons      = "reasons"       // Reasons: why cards wait
	VDue          = "due"           // DueArgs: due times that have come
	VBarrier      = "barrier"       // nothing: a consistent read waits for its Seq
)

// FleetInit makes a one-node fleet with the board `default`.
type FleetInit struct {
	ID, Name, EraTag string
	Gossip           []byte
	Node             NodeUp
}

// BoardCreate makes a board.
type BoardCreate struct {
	Slug   string `json:"slug"`
	Prefix string `json:"prefix,omitempty"`
	Label  string `json:"label,omitempty"`
	YAML   string `json:"yaml,omitempty"` // its workflow; "" is the default
}

// BoardApply saves a workflow after validating everything (M-22).
type BoardApply struct {
	Board  string `json:"board"`
	YAML   string `json:"yaml"`
	DryRun bool   `json:"dry_run,omitempty"`
	Was    uint64 `json:"was,omitempty"` // version that it was written against: refused when another is in force; 0: whatever there is
}

// BoardSet changes single values: label, home, keep, zone, params.NAME. A value is JSON; null removes.
type BoardSet struct {
	Board string                     `json:"board"`
	Set   map[string]json.RawMessage `json:"set"`
	Was   map[string]json.RawMessage `json:"was,omitempty"` // refused when one of these keys has another value (null: none)
}

// BoardArchive puts a board aside, or with Undo takes it back.
type BoardArchive struct {
	Board string `json:"board"`
	Undo  bool   `json:"undo,omitempty"`
}

// CardFields are the fields a person gives a card. In an edit, nil leaves a field as it is.
type CardFields struct {
	Title        *string           `json:"title,omitempty"`
	Body         *string           `json:"body,omitempty"`
	Assignee     *string           `json:"assignee,omitempty"`
	Machine      *string           `json:"machine,omitempty"`
	Priority     *int64            `json:"priority,omitempty"`
	Skills       *[]string         `json:"skills,omitempty"`
	Model        *string           `json:"model,omitempty"`
	MaxRuntime   *int64            `json:"max_runtime,omitempty"` // seconds
	MaxRetries   *int64            `json:"max_retries,omitempty"`
	Goal         *bool             `json:"goal,omitempty"`
	GoalMaxTurns *int64            `json:"goal_max_turns,omitempty"`
	Workspace    *string           `json:"workspace,omitempty"`
	Branch       *string           `json:"branch,omitempty"`
	Kind         *string           `json:"kind,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`      // merged; an empty value removes
	StartAfter   *int64            `json:"start_after,omitempty"` // ms; 0 removes
}

// CardAdd files a card.
type CardAdd struct {
	Board     string   `json:"board"`
	After     []string `json:"after,omitempty"` // cards it waits for
	SubtaskOf string   `json:"subtask_of,omitempty"`
	Triage    bool     `json:"triage,omitempty"`
	CardFields
}

// CardEdit changes fields of a card.
type CardEdit struct {
	Card string      `json:"card"`
	Was  *CardFields `json:"was,omitempty"` // what the given fields were written against: refused when one has another value
	CardFields
}

// CardPut moves a card to a status without a run, past the workflow (M-22).
type CardPut struct {
	Card   string `json:"card"`
	Status string `json:"status"`
	Why    string `json:"why"`
	Force  bool   `json:"force,omitempty"` // also where its machine cannot be asked (M-35)
}

// CardLink makes a card wait for others (or no longer).
type CardLink struct {
	Card  string   `json:"card"`
	After []string `json:"after"`
}

// FireEvent files an event of the workflow on a card.
type FireEvent struct {
	Card    string         `json:"card"`
	Event   string         `json:"event"`
	Payload map[string]any `json:"payload,omitempty"`
	Force   bool           `json:"force,omitempty"` // reclaim, stop_run, cancel: also mark the session gone (M-35)
	Why     string         `json:"why,omitempty"`
	Agent   string         `json:"agent,omitempty"` // of reassign: the agent that has the card from now on (AGT-13)
}

// Start claims a card for a run. The leader's scheduler fills Node (placement)
// before the executor sees it; Status is the one the plan was made on.
type Start struct {
	Card    string `json:"card"`
	Node    string `json:"node,omitempty"`
	Status  string `json:"status,omitempty"`
	Profile string `json:"profile,omitempty"`
	Force   bool   `json:"force,omitempty"`
	Why     string `json:"why,omitempty"`
}

// Adopt makes a session that a person has the card's; Session may be left out, the node's word names it. PID, Pane, Dir and
// Harness are what the caller says of it: its node looks, and vouches for what it saw.
type Adopt struct {
	Card    string `json:"card"`
	Session string `json:"session,omitempty"`
	Profile string `json:"profile,omitempty"` // who it counts as; "" the card's, or the board's first of its harness
	Slot    string `json:"slot,omitempty"`    // whose session it becomes; "" the workflow's
	PID     int64  `json:"pid,omitempty"`
	Pane    string `json:"pane,omitempty"` // of the person's own tmux: what runs in it is the process
	Dir     string `json:"dir,omitempty"`
	Harness string `json:"harness,omitempty"`
	Machine string `json:"machine,omitempty"` // that has the session; "" the one that is asked
}

// Vouch is the word of the node that has a session: it saw it (M-19).
type Vouch struct {
	Node       string `json:"node"`
	Session    string `json:"session"`
	Harness    string `json:"harness"`
	Surface    string `json:"surface,omitempty"` // "" is pane
	PID        int64  `json:"pid"`
	Pane       string `json:"pane,omitempty"`
	Dir        string `json:"dir,omitempty"` // where it works
	SecretHash []byte `json:"secret_hash,omitempty"`
	Ago        int64  `json:"ago,omitempty"` // ms since it looked
}

// Move changes a card's machine and leaves its sessions behind; "any" or "" unties it.
type Move struct {
	Card    string `json:"card"`
	Machine string `json:"machine"`
	Force   bool   `json:"force,omitempty"` // its sessions are dead, says a manager (M-35)
	Why     string `json:"why,omitempty"`
}

// Forget lets the sessions of a card go; Slot "" means all.
type Forget struct {
	Card string `json:"card"`
	Slot string `json:"slot,omitempty"`
	Why  string `json:"why,omitempty"`
}

// TokenCreate stores a token; ID is the SHA-256 (hex) of its secret.
type TokenCreate struct {
	ID    string `json:"id"`
	Role  string `json:"role"`
	Local string `json:"local,omitempty"`
	TTL   int64  `json:"ttl"` // seconds
	Uses  int64  `json:"uses,omitempty"`
	Name  string `json:"name,omitempty"`  // who calls with it
	Board string `json:"board,omitempty"` // the one board it is for
}

// TokenRevoke ends a token.
type TokenRevoke struct {
	ID string `json:"id"`
}

// NodeUp is what a node says of itself at each start. Generation is the one it
// expects in the state; the request raises it by one or is refused (M-32, invariant 15).
type NodeUp struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	Key        []byte            `json:"key"`
	Addrs      []string          `json:"addrs"`
	Store      string            `json:"store"`
	Generation uint64            `json:"generation"`
	Labels     map[string]string `json:"labels,omitempty"`
	Tools      []string          `json:"tools,omitempty"`
	Harnesses  []string          `json:"harnesses,omitempty"`
	Slots      int64             `json:"slots"`
	Battery    bool              `json:"battery,omitempty"`
	Replica    bool              `json:"replica,omitempty"`
	OS         string            `json:"os"`
	Arch       string            `json:"arch"`
	Version    string            `json:"version"`
	Journal    string            `json:"journal"`
	MemoryMB   int64             `json:"memory_mb,omitempty"`
	Start      string            `json:"start,omitempty"`  // of this start, so that a lost answer is known again
	Panes      bool              `json:"panes,omitempty"`  // it opens terminal panes
	Boards     []string          `json:"boards,omitempty"` // whose sessions it takes, by its own file; none: of all
	Local      string            `json:"local,omitempty"`  // what users of its socket may be at most, by its own word
	Format     uint64            `json:"format,omitempty"` // highest format of the state that it knows
}

// NodeJoin adds a node to the list, by a token.
type NodeJoin struct {
	Node   NodeUp `json:"node"`
	Secret string `json:"secret"` // of the token: only the leader turns it into the hash that the state has
}

// NodeUpdate changes addresses or readings that placement needs.
type NodeUpdate struct {
	ID    string   `json:"id"`
	Addrs []string `json:"addrs,omitempty"`
}

// Pause stops claims of the whole fleet, or of one board ("" is the fleet), and says why (M-16).
type Pause struct {
	Board string `json:"board,omitempty"`
	Why   string `json:"why,omitempty"`
}

// Drain lets a node finish what it runs and take nothing new (M-16). EndSessions
// takes its runs away as well; End ends the drain.
type Drain struct {
	Node        string `json:"node"`
	Why         string `json:"why,omitempty"`
	EndSessions bool   `json:"end_sessions,omitempty"`
	End         bool   `json:"end,omitempty"`
}

// NodeVote is a person's word about who votes.
type NodeVote struct {
	Node string `json:"node"`
	Vote bool   `json:"vote"`
}

// NodeSet changes a node's entry in the list: what users of its own socket may do.
type NodeSet struct {
	Node  string `json:"node"`
	Local string `json:"local"` // manager, member, viewer or none
}

// NodeLabel sets labels of a machine, which win over those it is started with; an empty value takes one away.
type NodeLabel struct {
	Node   string            `json:"node"`
	Labels map[string]string `json:"labels"`
}

// NodeRole records Raft's configuration.
type NodeRole struct {
	Node string `json:"node"`
	Role string `json:"role"`
}

// NodeState records a change of what the leader's contact table says.
type NodeState struct {
	Node  string `json:"node"`
	State string `json:"state"`
	Ago   int64  `json:"ago,omitempty"` // ms since it was last heard
}

// Report kinds: what a node says about a run's order, in order (architecture.md §4).
const (
	ReportTaken    = "taken"
	ReportLaunched = "launched"
	ReportRefused  = "refused"      // ESTOP, no room, no harness: not the card's fault
	ReportFailed   = "spawn_failed" // could not be started
	ReportExited   = "exited"       // the session's process ended; the whole tree is gone
	ReportGone     = "gone"         // voided or stopped, nothing lives

	// What a node sees of a session between its start and its end. Only changes are told (M-10).
	ReportSeen    = "seen"    // it shows life, for the first time or again
	ReportMissing = "missing" // keeper and process are not there, and nobody saw the end
	ReportQuiet   = "quiet"   // nothing was heard of it for an hour (Ago: how long)
	ReportHeard   = "heard"   // and now something was
	ReportIdle    = "idle"    // a pane that is not in a turn (Ago: since its last message)
	ReportBusy    = "busy"    // and now it is
	ReportDeaf    = "deaf"    // its pane does not take the text that waits for it (Error: why)
	ReportHears   = "hears"   // and now it does

	ReportWork = "work" // what the workspace of a current run holds now, told before the run's own word (Work, Head)

	ReportLooked = "looked" // a person looks at a terminal of this machine, typed, or left (Look)

	ReportDone = "done" // an order besides start and stop was carried out, or can not be (Code, Error)
)

// MeansLease is what a report says of a session whose lease ran out: its machine
// was out of touch, which is no failure of the card.
const MeansLease = "lease"

// MeansTerminal is what a report says of a session whose terminal's server ended:
// nobody wanted that, so it is lost and taken up again.
const MeansTerminal = "terminal"

// MeansRateLimit is what a report says of a session that its harness's provider
// turned away for a while, until ResetAt where that is known.
const MeansRateLimit = "rate_limit"

// MeansNoVerdict is what an end with code 0 means that says nothing of its work,
// where only commands count.
const MeansNoVerdict = "no_verdict"

// MeansNoSession is what a harness says when the session it is to take up again is not there.
const MeansNoSession = "no_session"

// MeansUnseen is what a report says of a session that is gone, tree and all, without anybody having seen how it ended: its
// machine was started anew, or its folder is lost. It is session_lost, not exited.
const MeansUnseen = "unseen"

// The states a reading may have besides NodeOnline and NodeOffline.
const NodeUnknown = "unknown"
