package api

import (
	"encoding/json"
	"time"

	"muster/board"
)

// Version is the version of the envelope.
const Version = 1

// Envelope is every answer: data, or an error; index says how fresh (the Seq it is true at).
type Envelope struct {
	V     int             `json:"v"`
	Index uint64          `json:"index,omitempty"`
	AgeMS *int64          `json:"age_ms,omitempty"` // of a local read; absent: not known
	Data  json.RawMessage `json:"data,omitempty"`
	Error *Failure        `json:"error,omitempty"`
}

// Failure is an error on the wire.
type Failure struct {
	board.Error
	RequestID string `json:"request_id,omitempty"` // to ask again with, when the outcome is unknown
}

// Reason says why a card waits.
type Reason struct {
	Check string     `json:"check"`
	Text  string     `json:"text"`
	Since *time.Time `json:"since,omitempty"`
}

// Attention says why a person is needed.
type Attention struct {
	Kind    string     `json:"kind"`
	Text    string     `json:"text"`
	Since   *time.Time `json:"since,omitempty"`
	Session string     `json:"session,omitempty"`
}

// Node is a machine of the fleet.
type Node struct {
	ID             string            `json:"id"`
	Name           string            `json:"name"`
	Addr           string            `json:"addr"`
	Role           string            `json:"role"`
	Leader         bool              `json:"leader"`
	State          string            `json:"state"`
	AgeS           *float64          `json:"age_s"`
	Draining       bool              `json:"draining"`
	Drain          *Pause            `json:"drain,omitempty"` // who, since when, why
	Slots          int64             `json:"slots"`
	Running        int               `json:"running"`
	Labels         map[string]string `json:"labels"`
	Tools          []string          `json:"tools"`
	MemoryPressure string            `json:"memory_pressure"`
	AlwaysOn       bool              `json:"always_on"`
	OS             string            `json:"os"`
	Arch           string            `json:"arch"`
	Version        string            `json:"version"`
	Generation     uint64            `json:"generation"`
	Estop          bool              `json:"estop"`
	EstopBy        *Pause            `json:"estop_by,omitempty"` // who set it, since when and why
	FreeMB         int64             `json:"free_mb,omitempty"`
	Load           float64           `json:"load,omitempty"`
	DiskFreeMB     int64             `json:"disk_free_mb,omitempty"` // where its data is
	Workspaces     int64             `json:"workspaces,omitempty"`
	WorkspacesMB   int64             `json:"workspaces_mb,omitempty"` // what they take of the disk, as last measured
	NoSpace        bool              `json:"no_space,omitempty"`      // nearly full: it takes nothing new
	ClockOffS      float64           `json:"clock_off_s,omitempty"`   // its clock ahead of board time
	Vote           string            `json:"vote,omitempty"`          // promoted or demoted by hand
}

// Board is a board at a glance.
type Board struct {
	Slug     string         `json:"slug"`
	Prefix   string         `json:"prefix"`
	Label    string         `json:"label"`
	Home     string         `json:"home,omitempty"`
	Zone     string         `json:"zone,omitempty"`
	Keep     int64          `json:"keep"`
	Workflow uint64         `json:"workflow"`
	Params   map[string]any `json:"params,omitempty"`
	Cards    map[string]int `json:"cards,omitempty"`     // by status
	Needs    int            `json:"attention,omitempty"` // cards that need a person
	Profiles []string       `json:"profiles,omitempty"`
	Paused   string         `json:"paused,omitempty"` // who and why
	PausedAt *time.Time     `json:"paused_at,omitempty"`
	Archived bool           `json:"archived,omitempty"` // put aside: nothing of it changes
	Created  time.Time      `json:"created_at"`
}

// Card is a card of a list.
type Card struct {
	ID         string            `json:"id"`
	Board      string            `json:"board"`
	Title      string            `json:"title"`
	Status     string            `json:"status"`
	Stored     string            `json:"stored"`
	Assignee   string            `json:"assignee"`
	Machine    string            `json:"machine"`
	Priority   int64             `json:"priority"`
	Failures   int64             `json:"failures"`
	Run        *string           `json:"run"`
	Reason     *Reason           `json:"reason"`
	WaitsFor   []string          `json:"waits_for"`
	WaitedBy   []string          `json:"waited_by"`
	SubtaskOf  string            `json:"subtask_of"`
	Attention  *Attention        `json:"attention"`
	Labels     map[string]string `json:"labels"`
	CreatedAt  time.Time         `json:"created_at"`
	UpdatedAt  time.Time         `json:"updated_at"`
	StartAfter *time.Time        `json:"start_after,omitempty"`
}

// CardDetail is one card with its text and thread.
type CardDetail struct {
	Card
	Body      string    `json:"body"`
	Comments  []Comment `json:"comments"`
	Runs      []Run     `json:"runs"`
	Workspace string    `json:"workspace,omitempty"`
	Branch    string    `json:"branch,omitempty"`
	Skills    []string  `json:"skills,omitempty"`
	Creator   string    `json:"creator"`
	LastError string    `json:"last_error,omitempty"`

	Subscribers []string     `json:"subscribers,omitempty"` // people, besides who filed it
	Agents      []Assignment `json:"agents,omitempty"`      // who works it, and who did
	Deliveries  []Delivery   `json:"deliveries,omitempty"`  // what its sessions were not told yet, or have not answered
}

// CardContext is what a session is told of a card.
type CardContext struct {
	Card string `json:"card"`
	Text string `json:"text"`
}

// Comment is one word of a thread.
type Comment struct {
	Author string    `json:"author"`
	Text   string    `json:"text"`
	At     time.Time `json:"at"`
}

// Run is one attempt.
type Run struct {
	ID        string     `json:"id"`
	Card      string     `json:"card"`
	Node      string     `json:"node"`
	Role      string     `json:"role"`
	Slot      string     `json:"slot"`
	Profile   string     `json:"profile"`
	Instead   string     `json:"instead_of,omitempty"` // profile that it stands in for
	Agent     string     `json:"agent,omitempty"`
	Surface   string     `json:"surface"`
	Harness   string     `json:"harness"`
	Mode      string     `json:"mode"`
	State     string     `json:"state"`
	Outcome   string     `json:"outcome"`
	Gone      string     `json:"gone"`
	ExitCode  *int64     `json:"exit_code"`
	Signal    string     `json:"signal,omitempty"`
	Means     string     `json:"means,omitempty"`
	ResetAt   *time.Time `json:"reset_at,omitempty"`
	PeakMB    int64      `json:"peak_mb,omitempty"`
	SessionID string     `json:"session_id"`
	PID       int64      `json:"pid"`
	Pane      string     `json:"pane"`
	LeaseS    int64      `json:"lease_s,omitempty"`
	StartedAt time.Time  `json:"started_at"`
	Launched  *time.Time `json:"launched_at"`
	EndedAt   *time.Time `json:"ended_at"`
	GoneAt    *time.Time `json:"gone_at"`
	Error     string     `json:"error"`
}

// Event is one change.
type Event struct {
	ID      string          `json:"id"`
	At      time.Time       `json:"at"`
	Board   string          `json:"board"`
	Card    string          `json:"card"`
	Kind    string          `json:"kind"`
	Actor   string          `json:"actor"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Run     string          `json:"run"`
	Agent   string          `json:"agent,omitempty"` // whose session said it
	Node    string          `json:"node,omitempty"`  // machine that it came through
	From    string          `json:"from,omitempty"`
	To      string          `json:"to,omitempty"`
}

// Pause is a stop of claims: of the fleet, of a board, or of a node, which then
// drains; or the file ESTOP of a node, which governs launches there (M-16).
type Pause struct {
	Of    string     `json:"of"` // fleet, board, node or estop
	Name  string     `json:"name,omitempty"`
	By    string     `json:"by"`
	Why   string     `json:"why"`
	Since *time.Time `json:"since,omitempty"`
}

// Status is the fleet at a glance.
type Status struct {
	Fleet    string    `json:"fleet"`
	Removed  string    `json:"removed,omitempty"` // this machine is out of the fleet, in words
	Name     string    `json:"name,omitempty"`
	Node     string    `json:"node"` // the node that answers
	Leader   string    `json:"leader"`
	Term     uint64    `json:"term"`
	Quorum   bool      `json:"quorum"`
	Voters   int       `json:"voters"`
	Seq      uint64    `json:"seq"`
	Hash     string    `json:"hash"`
	Format   uint64    `json:"format,omitempty"` // of the state
	Nodes    []Node    `json:"nodes"`
	Boards   []Board   `json:"boards"`
	Sessions int       `json:"sessions"`
	Pauses   []Pause   `json:"pauses"`
	Alarms   []string  `json:"alarms"`
	Notes    []string  `json:"notes"`
	Time     time.Time `json:"time"`
	Webhooks []Webhook `json:"webhooks,omitempty"`

	Needs int    `json:"attention,omitempty"`       // how much needs a person
	First []Need `json:"attention_first,omitempty"` // and some of it
}

// BoardDetail is a board with its cards, oldest first, and its statuses in the workflow's order.
type BoardDetail struct {
	Board
	Statuses []string       `json:"statuses"`
	InForce  map[string]any `json:"params_in_force,omitempty"` // the workflow's parameters with the board's own values
	List     []Card         `json:"list"`
}

// Session is one session that is not gone (M-35).
type Session struct {
	Run      string    `json:"run"`
	Card     string    `json:"card"`
	Board    string    `json:"board"`
	Slot     string    `json:"slot"`
	Node     string    `json:"node"`
	Profile  string    `json:"profile"`
	Status   string    `json:"status"`
	Since    time.Time `json:"since"`
	LeaseS   int64     `json:"lease_s,omitempty"`
	Ended    bool      `json:"ended,omitempty"`    // its run has its verdict
	Stopping bool      `json:"stopping,omitempty"` // it was told to stop

	Turn      string     `json:"turn,omitempty"` // of a pane: busy, idle, permission, question or limit, as its node told
	TurnSince *time.Time `json:"turn_since,omitempty"`
}

// Why explains where a card stands.
type Why struct {
	Card     string         `json:"card"`
	Status   string         `json:"status"`
	Check    string         `json:"check"`
	Text     string         `json:"text"`
	Since    *time.Time     `json:"since,omitempty"`
	Values   map[string]any `json:"values,omitempty"`
	Fix      string         `json:"fix,omitempty"`
	Position int            `json:"position,omitempty"` // in its board's queue, from 1
	Live     bool           `json:"live"`               // with the leader's readings
}

// Token is a token as people may see it: no secret, and only the beginning of its hash.
type Token struct {
	ID      string     `json:"id"`
	Role    string     `json:"role"`
	Local   string     `json:"local,omitempty"`
	Name    string     `json:"name,omitempty"`  // who calls with it
	Board   string     `json:"board,omitempty"` // the one board it is for
	Uses    int64      `json:"uses"`            // left: machines, or changes; 0 without a bound
	Expires *time.Time `json:"expires_at,omitempty"`
	Made    time.Time  `json:"made_at"`
	By      string     `json:"by"`
}

// LogChunk is a piece of a run's log.
type LogChunk struct {
	Chunk []byte `json:"chunk"`
	Next  int64  `json:"next"`
	EOF   bool   `json:"eof"`
}

// Do is the body of POST /v1/do.
type Do struct {
	Verb  string          `json:"verb"`
	Args  json.RawMessage `json:"args,omitempty"`
	ID    string          `json:"id,omitempty"`
	Retry bool            `json:"retry,omitempty"`
}

// Mirror is where a machine mirrors a board to, and the body of POST /v1/mirror (Board alone).
type Mirror struct {
	Board  string `json:"board"`
	Repo   string `json:"repo,omitempty"`
	Branch string `json:"branch,omitempty"`
	Folder string `json:"folder,omitempty"`
}

// TokenOptions is the body of POST /v1/token.
type TokenOptions struct {
	Role  string `json:"role"`
	Local string `json:"local,omitempty"`
	TTL   int64  `json:"ttl"` // seconds
	Uses  int64  `json:"uses,omitempty"`
	Name  string `json:"name,omitempty"`
	Board string `json:"board,omitempty"`

	Secret string `json:"-"` // of the token that asks, if one does
}

// TokenAnswer is the string that people copy.
type TokenAnswer struct {
	Token   string    `json:"token"`
	ID      string    `json:"id"`
	Expires time.Time `json:"expires_at"`
}
