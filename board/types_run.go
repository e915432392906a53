package board

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
	Signal, Means                      string // Means: what the exit means, by its harness's preset (rate_limit, auth, crash, ...)
	PeakMB                             int64  // the most memory its session had; where a machine counts none for a session, its largest process
	SecretHash                         []byte // SHA-256 of the run's secret
	PID                                int64
	SessionID, Mode                    string // mode: fresh, resume, adopt
	Workspace, LaunchKey               string
	Place, Branch                      string // the card's workspace and branch that its session was begun in
	Told                               uint64 // Seq at which its session was last told of other doors (M-22)
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
	Instead                            string // profile that this one stands in for (fallback)
	Session                            Session
	Agent                              RunAgent
	unknown
}

// Session is what a run knows of the session that carries it (SES-01), beside
// what the run itself says: surface, harness, session id, mode, slot, role.
// Times are board time in ms, 0 is never.
type Session struct {
	Born     int64  // launch of the process that carries it: a kept one keeps it
	Age      int64  // limit of that, ms; 0: none
	Replaces string // session id of the forgotten session in whose place it began (SES-14)
	Pane     string // of its node's terminal, when it has one
	Manual   bool   // a person had it before it was the card's: no dispatcher's session (SES-22)
	Closing  int64  // close requested: it is closed then, after the answer to its own word (SES-19)
	Quiet    int64  // nothing was heard from it since, as its node told (stale)
	Silent   int64  // its last message, once its node told that it is idle
	Waiting  bool   // idle at a question to a person, or at a limit
	Nudged   int64  // last ask (IDL-06)
	Turn     string // Turn..., as its node told last; "" it did not
	TurnAt   int64  // since when
	Says     string // what it asks, or what limit it is at
	Until    int64  // end of that limit, 0: not known
	Deaf     int64  // its pane has not taken a text since
	DeafWhy  string
	Working  int64 // limit of the time in turns, ms; 0: none
	Worked   int64 // time in its turns that are over, ms
	unknown
}

func (s *Session) fields(w *wire) {
	w.int(1, &s.Born)
	w.int(2, &s.Age)
	str(w, 3, &s.Replaces)
	str(w, 4, &s.Pane)
	w.bool(5, &s.Manual)
	w.int(6, &s.Closing)
	w.int(7, &s.Quiet)
	w.int(8, &s.Silent)
	w.bool(9, &s.Waiting)
	w.int(10, &s.Nudged)
	str(w, 11, &s.Turn)
	w.int(12, &s.TurnAt)
	str(w, 13, &s.Says)
	w.int(14, &s.Until)
	w.int(15, &s.Deaf)
	str(w, 16, &s.DeafWhy)
	w.int(17, &s.Working)
	w.int(18, &s.Worked)
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
	w.nest(56, &r.Session)
	str(w, 57, &r.Instead)
	str(w, 58, &r.Means)
	w.int(59, &r.PeakMB)
	str(w, 60, &r.Place)
	str(w, 61, &r.Branch)
	w.uint(62, &r.Told)
	w.nest(63, &r.Agent)
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
	Idle                                          bool  // its node told that it is in no turn (SES-21)
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
	w.bool(19, &h.Idle)
}

// SlotRec is the lineage of a card's slot (SES-03): the session that its next
// start goes on with. It is written when a node tells that a session came up,
// never by a claim alone.
type SlotRec struct {
	Card, Slot, Run, Node, SessionID, Harness string // Run: the newest that the session carried
	Forgotten                                 int64  // let go: the next start is fresh (SES-14)
	Closed                                    int64  // its pane is closed: it is taken up again, not kept (SES-09)
	NotResumable                              bool   // taking it up again failed without a sign of life (SES-11)
	Lost, LostBefore                          int64  // its last two losses (session_lost)
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
	w.int(10, &s.Lost)
	w.int(11, &s.LostBefore)
}
