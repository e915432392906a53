package board

import "muster/board/workflow"

// Report is an outbox item of a node about one run.
type Report struct {
	Kind       string `json:"kind"`
	Run        string `json:"run"`
	Order      string `json:"order,omitempty"`
	SecretHash []byte `json:"secret_hash,omitempty"`
	PID        int64  `json:"pid,omitempty"`
	Session    string `json:"session,omitempty"`
	Workspace  string `json:"workspace,omitempty"`
	Code       *int64 `json:"code,omitempty"` // nil: no code (the keeper died, or its record is broken)
	Signal     string `json:"signal,omitempty"`
	Means      string `json:"means,omitempty"`
	ResetAt    int64  `json:"reset_at,omitempty"` // of a rate limit: when it is over, ms since the epoch
	ResetIn    int64  `json:"reset_in,omitempty"` // or how long after the end, ms
	PeakMB     int64  `json:"peak_mb,omitempty"`  // of exited: the most memory the session had
	Error      string `json:"error,omitempty"`
	Ago        int64  `json:"ago,omitempty"` // ms since it happened (M-02)

	ResumeFailed bool          `json:"resume_failed,omitempty"` // of spawn_failed: the session to go on with is not there (Error says why)
	Pane         string        `json:"pane,omitempty"`
	Waiting      bool          `json:"waiting,omitempty"` // of idle: at a question to a person, or at a limit not yet reset
	For          string        `json:"for,omitempty"`     // of a waiting one: TurnPermission, TurnQuestion or TurnLimit (ResetAt: its end)
	Text         string        `json:"text,omitempty"`    // and what it asks
	Closed       bool          `json:"closed,omitempty"`  // of exited: its user ended the pane
	Work         string        `json:"work,omitempty"`    // of exited and gone: what its workspace holds: saved, uncommitted, unpushed; "" not known
	Output       string        `json:"output,omitempty"`  // of done: the end of what a hook printed
	Look         *Look         `json:"look,omitempty"`    // of looked
	Memory       *MemoryReport `json:"memory,omitempty"`  // of memory, exited and gone: the agent's folder, as it was taken
	Head         string        `json:"head,omitempty"`    // of saved: the commit it is saved at; "" when its branch has nothing of its own
}

// Observe fires an event of the fleet on a run that is current.
type Observe struct {
	Run     string         `json:"run"`
	Event   string         `json:"event"`
	Payload map[string]any `json:"payload,omitempty"`
}

// Gone marks a session gone without its node's word.
type Gone struct {
	Run string `json:"run"`
	By  string `json:"by"` // GoneLease or GoneWord
	Why string `json:"why,omitempty"`
}

// Reasons records why cards wait; an empty Check clears.
type Reasons struct {
	Cards []CardReason `json:"cards"`
}

// CardReason is one card's reason.
type CardReason struct {
	Card  string `json:"card"`
	Check string `json:"check"`
	Text  string `json:"text"`
}

// DueArgs names due times by their stored keys.
type DueArgs struct {
	Keys []string `json:"keys"`
}

// Reading is what the leader knows of a node from its contacts; it is not in the log.
type Reading struct {
	State    string  `json:"state"` // online, offline, unknown
	AgeMS    int64   `json:"age_ms"`
	Slots    int64   `json:"slots"`
	Pressure string  `json:"pressure"` // normal, elevated, critical, unknown
	Load     float64 `json:"load"`
	FreeMB   int64   `json:"free_mb"`
	Estop    bool    `json:"estop"`
	EstopBy  string  `json:"estop_by,omitempty"`  // whose file it is,
	EstopWhy string  `json:"estop_why,omitempty"` // its first line,
	EstopMS  int64   `json:"estop_ms,omitempty"`  // and its age
	DiskMB   int64   `json:"disk_mb,omitempty"`   // free where its data is; 0: not known

	Workspaces int64 `json:"workspaces,omitempty"`   // of cards, on its disk
	WorkMB     int64 `json:"work_mb,omitempty"`      // what they take, as last measured
	NoSpace    bool  `json:"no_space,omitempty"`     // nearly full: it takes nothing new
	ClockMS    int64 `json:"clock_off_ms,omitempty"` // how far its clock is ahead of board time
}

// Env is what Exec knows besides the state: all of it is decided before, so
// that Exec stays pure.
type Env struct {
	Now       int64  // board time, ms
	Seq       uint64 // the Seq this request's transaction will have
	Nodes     func(id string) Reading
	Workflows *Workflows
	// Took, when it is given, hears of every transition that a firing takes. It decides nothing: `workflow test`
	// counts with it. A firing that is given up later is heard of, too.
	Took func(*workflow.Transition)
	Term uint64     // the executor's, when Held is given
	Held *HeldTable // the executor's; nil: what is held is read from the view
}
