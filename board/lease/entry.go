package lease

// Mark is what a node's journal holds of a launch key.
type Mark uint8

// The marks. A void is final: it beats its start in any order of arrival
// (invariant 3). A refusal is journalled as a void before it is filed.
const (
	MarkNone Mark = iota
	MarkTaken
	MarkVoid
)

// Report is what a node files about a run in its outbox: the acts from
// [ActTaken] to [ActWord].
type Report = Act

// Reports is a set of reports.
type Reports uint8

// Has tells whether the report is in the set.
func (s Reports) Has(r Report) bool { return s&(1<<r) != 0 }

// With is the set with the report.
func (s Reports) With(r Report) Reports { return s | 1<<r }

// Entry is one launch key of the journal. It is written (and synced) before
// what it stands for is done, together with the report it files.
type Entry struct {
	Epoch Epoch
	Mark  Mark
	Filed Reports // in the outbox, ever
	Done  Reports // of these, those that had an outcome at the leader
}

// MayForward tells whether the session's own requests may be sent on: the
// leader knows the run's secret only once `launched` has its outcome (M-25).
func (e Entry) MayForward() bool { return e.Done.Has(ActLaunched) }

// SessionState is what a run's folder and its keeper show of the session that
// carries the run: the one started under it, or the kept one whose identity it
// has been given. A process counts by pid, start time, boot id and nonce only.
type SessionState uint8

// The states.
const (
	SessionNone   SessionState = iota // nothing was ever executed, and the folder's lock is free
	SessionHeld                       // a keeper holds the lock and has executed nothing yet
	SessionLive                       // a keeper holds the lock and its process runs
	SessionOrphan                     // the keeper is dead, its tree may live
	SessionEnded                      // executed, and the whole tree is verified dead
)

// Stage is how far this life of the node's process has come with a start.
type Stage uint8

// The stages. A node that restarts is at StageNone with everything.
const (
	StageNone      Stage = iota // not begun in this life
	StagePreparing              // workspace and set-up under way
	StageReady                  // prepared, waiting for the last check
	StageSpawned                // a keeper was spawned, and is not known to have ended
	StageOver                   // set-up failed, or the keeper is known to have ended
)

// KeptState is the session a run is to take over, as long as it does not carry
// the run.
type KeptState uint8

// The states. Busy also means: its keeper is dead or does not answer, and it is
// not known whether anything lives.
const (
	KeptNone KeptState = iota // none is to be kept, or it is verified dead
	KeptBusy                  // alive, in a turn
	KeptIdle                  // alive and idle: its identity may be changed
)

// WordState is the session's terminal word, as the run's folder has it (its
// text and request id are written there before it is sent).
type WordState uint8

// The states.
const (
	WordNone   WordState = iota // none, or its outcome is known
	WordAsking                  // being asked by a verb of this life of the node: its outcome will come
	WordOpen                    // no outcome and nobody asks: it has to be filed, under the same request id
	WordFiled                   // in the outbox
)

// Facts is all that a node knows of a run when it decides.
type Facts struct {
	Epoch     Epoch  // of the run: era and Seq of its claim
	High      Epoch  // highest epoch the journal has for this card and slot
	Applied   Epoch  // era and Seq of the applied state
	Stands    Stands // what stands for the run in it
	StartTerm uint64 // term of a pushed start, 0 without one
	StopTerm  uint64 // term of a pushed stop, 0 without one
	Stop      Epoch  // era and Seq of the pushed stop
	Term      uint64 // term of the last contact ([Clock.Term])

	MayStart bool   // [Clock.MayStart]
	Why      string // and why not
	Refuse   string // why this machine will not start it (ESTOP, no harness, no room); "" when it can

	Session   SessionState
	Passed    bool // the session that carried it carries a later run now
	Stage     Stage
	Kept      KeptState
	Word      WordState
	LeaveOver bool // headless, ended by its own word, and `leave` has passed
}

// seen tells whether the claim is in the applied state: from then on the state
// is what counts, and a push, early or late, counts for nothing.
func (f Facts) seen() bool { return !f.Applied.Less(f.Epoch) }

func (f Facts) startCounts() bool {
	if f.seen() {
		return f.Stands == StandsStart
	}
	return f.StartTerm != 0 && f.StartTerm >= f.Term
}

func (f Facts) stopCounts() bool {
	if f.Stands == StandsStop {
		return true
	}
	return f.StopTerm != 0 && f.StopTerm >= f.Term && f.Applied.Less(f.Stop)
}

// carried tells whether a session carries the run.
func (f Facts) carried() bool { return f.Session == SessionLive || f.Session == SessionEnded }
