package lease

import "time"

// The explicit-state model: one card and slot, up to three runs, two nodes. The
// deciding is done by the product's own functions (machine); the model adds what
// surrounds them: messages, disks, keepers, processes, faults and time.
//
// Time is relative: now is always 0 and a tick moves every instant back by one.
// Seqs are relative too: what every node has applied is dropped from the log.
// Every field is one byte, so that a state is a small array for the hash.
const (
	mRuns  = 3
	mNodes = 2
	mLog   = 10
	mBox   = 8
	mNever = 100 // a deadline that never comes
)

// cfg holds the product's times in ticks: a fresh contact is under 2 ticks old, a
// lease is 3 ticks, the margin 1. Hasty: 3, 1 and 1.
func (sc *scenario) cfg() Config {
	c := Config{Contact: 1, Fresh: 2, MarginMin: 1, MarginPer: 50}
	if sc.hasty {
		c.Fresh = 3
	}
	return c
}

func (sc *scenario) leaseTicks() int8 {
	if sc.hasty {
		return 1
	}
	return 3
}

// old is the age in ticks from which older makes no difference to anybody.
func (sc *scenario) old() int8 {
	fresh := int8(sc.cfg().Fresh)
	if !sc.lease && !sc.mix {
		return fresh
	}
	return max(fresh, sc.leaseTicks()+1)
}

// What a keeper of a run's folder is doing.
const (
	kNone  uint8 = iota // nothing executed, lock free
	kHeld               // holds the lock, has passed its last check
	kLive               // its process runs
	kOrph               // keeper killed, process gone with it, descendants may live
	kEnded              // whole tree dead
)

// A session's terminal word.
const (
	wNone    uint8 = iota
	wIssued        // the verb waits in the session for its node
	wFlight        // on its way to the leader
	wOK            // accepted
	wFolder        // in the folder, nobody asks
	wOutbox        // filed
	wRefused       // refused
)

// Node process states.
const (
	nUp uint8 = iota
	nDown
	nStopped
)

type mRun struct {
	r         Run
	ex        bool // committed
	node      int8
	from      int8 // run whose session it was to keep, -1
	kept      int8 // that session, -1
	lease     bool
	startTerm uint8 // term of the newest push of the start, 0 none
	stopTerm  uint8
}

type mSess struct {
	k      uint8
	fly    uint8 // keepers spawned that have not looked for the lock yet
	void   bool  // the file `void`
	by     int8  // start deadline of the keepers in flight
	dead   int8  // lease deadline of the live process, mNever without
	cur    int8  // run it carries
	had    uint8 // runs it has carried
	turn   int8  // run whose prompt it works on, -1 idle
	execs  uint8
	barred bool // its node has filed that nothing of it will ever run
}

type mEntry struct {
	mark  Mark
	filed Reports
	done  Reports
}

type mNode struct {
	st            uint8
	asleep, estop bool
	told          bool // clock
	age           int8
	cterm, need   uint8
	pos           uint8 // applied entries of the log
	req, ans      int8  // age+1 of a contact on its way, of its answer on its way
	ansTerm       uint8
	ansIdx        uint8
	high          int8
	known         uint8 // words that this life has sent to the leader
	base          [mRuns]Stands
	seen          uint8
	e             [mRuns]mEntry
	stage         [mRuns]Stage
	box           [mBox]uint8
	boxN          uint8
	boxSent       bool // the head has reached the leader, its answer has not come back
}

type mWord struct {
	st   uint8
	turn int8
}

// mBud counts what a scenario still allows.
type mBud struct{ Crash, Sleep, Reboot, Stop, Keeper, Change, Estop, Force, Out, Close, Exit uint8 }

type mState struct {
	run   [mRuns]mRun
	se    [mRuns]mSess
	n     [mNodes]mNode
	w     [mRuns]mWord
	log   [mLog]uint8 // run<<2 | Stands
	logN  uint8
	term  uint8
	began int8
	told  [mNodes]bool
	ans   [mNodes]int8 // age of the leader's last answer
	doom  uint8        // runs whose end by lease is being recorded
	taint uint8        // sessions a manager has declared dead: the overlap is his
	bud   mBud
	bad   uint8
	full  bool // a bound of the model was hit: the state is not looked at
}

// What can be wrong with a state.
const (
	bOK uint8 = iota
	bTwice
	bTwoLive
	bEarly
	bTwoHeld
	bNoRun
	bAfterVoid
	bEstop
	bEpoch
	bForeignTurn
	bSuperseded
	bExitFirst
	bSecret
	bStuck
)

var badText = [...]string{
	bOK:          "",
	bTwice:       "invariant 2: a second process for one run",
	bTwoLive:     "invariant 2: two live sessions of one card and slot",
	bEarly:       "M-35: a session counted gone by its lease, and it lives",
	bTwoHeld:     "M-35: two runs hold one card and slot",
	bNoRun:       "invariant 1: a process without a committed run",
	bAfterVoid:   "invariant 3: a process started after its node had answered that it never will be",
	bEstop:       "M-16: a process started with ESTOP present",
	bEpoch:       "invariant 3: an epoch taken below the highest in the journal",
	bForeignTurn: "M-25: a word of one run's turn accepted for another run",
	bSuperseded:  "invariant 3: a word of an ended run accepted",
	bExitFirst:   "architecture.md §4: the exit overtakes the run's own word",
	bSecret:      "M-25: the run's own word refused, its secret was not yet known",
	bStuck:       "invariant 20: stuck after the faults stop",
}

// machine is the product's functions as the model calls them. A mutant replaces
// one of them.
type machine struct {
	next     func(Entry, Facts) Decision
	mayExec  func(LastCheck) (bool, string)
	answered func(c Clock, t Token, term, index uint64, now Instant) Clock
	mayStart func(c Clock, now Instant, applied uint64) (bool, string)
	begin    func(n uint64, now Instant) term
	answer   func(t term, r row, a ask, round Round, confirmed uint64, at Instant) (row, bool)
	goneAt   func(t term, r row, lease time.Duration, cfg Config) (Instant, bool)
	step     func(r Run, a Act) (Run, Effect)
	mayKeep  func(Run) bool
	inherit  func(wanted, kept time.Duration, keeps bool) time.Duration
	forward  func(Entry) bool

	noLock    bool // mutant: the launcher does not take the folder's lock
	pushEarly bool // mutant: a start is pushed before it is committed
	pushLate  bool // pushes come again when the state has long seen their order
}

func product() machine {
	return machine{
		next:     Next,
		mayExec:  KeeperMayExec,
		answered: Clock.Answered,
		mayStart: Clock.MayStart,
		begin:    beginTerm,
		answer:   term.answer,
		goneAt:   term.goneAt,
		step:     Run.Step,
		mayKeep:  Run.MayKeep,
		inherit:  Inherit,
		forward:  Entry.MayForward,
	}
}

// world is a scenario under a machine.
type world struct {
	m  machine
	sc scenario
}

// scenario bounds what happens.
type scenario struct {
	name     string
	runs     int
	nodes    int
	asym     bool // faults and delays on node 0 only; node 1 is in constant contact
	lease    bool // runs have leases; with mix the leader may also claim without
	mix      bool
	keep     bool // next runs may keep the session
	words    bool // sessions say terminal words
	headless bool // a session is stopped after its own verdict
	hasty    bool // lease and margin are shorter than a fresh contact
	bud      mBud
}

func newState(sc *scenario) mState {
	var s mState
	s.term, s.bud = 1, sc.bud
	for n := range s.n {
		s.n[n].high = -1
	}
	for r := range s.run {
		s.run[r].from, s.run[r].kept = -1, -1
		s.se[r].cur, s.se[r].turn, s.w[r].turn = -1, -1, -1
		s.se[r].by, s.se[r].dead = mNever, mNever
	}
	return s
}

// carrier is the session that carries the run, -1 when none does.
func (s *mState) carrier(r int) int {
	for x := range s.se {
		if s.se[x].execs > 0 && int(s.se[x].cur) == r {
			return x
		}
	}
	return -1
}

// logAt is the position of an entry in the log, -1 when every node has it.
func (s *mState) logAt(r int, st Stands) int {
	for i := range int(s.logN) {
		if s.log[i] == uint8(r)<<2|uint8(st) {
			return i
		}
	}
	return -1
}

const seqBase = 100

func (s *mState) epochOf(r int) Epoch {
	if r < 0 {
		return Epoch{}
	}
	if !s.run[r].ex {
		return Epoch{1, seqBase + mLog} // pushed, and not committed by anybody
	}
	if i := s.logAt(r, StandsStart); i >= 0 {
		return Epoch{1, seqBase + uint64(i)}
	}
	return Epoch{1, 1 + uint64(r)}
}

func (w *world) clock(n *mNode) Clock {
	return Clock{fresh: w.sc.cfg().Fresh, told: n.told, sent: Instant(-int(n.age)), term: uint64(n.cterm), need: uint64(n.need)}
}

// leader is the term of the current leader, as its table has it.
func (w *world) leader(s *mState) term {
	t := w.m.begin(uint64(s.term), Instant(-int(s.began)))
	t.asks = 1
	return t
}

func (s *mState) row(n int) row {
	r := row{told: s.told[n], answered: Instant(-int(s.ans[n]))}
	for x := range s.run {
		if s.doom&(1<<x) != 0 && int(s.run[x].node) == n {
			r.condemned++
		}
	}
	return r
}

// facts is what node n knows of run r. push: a pushed stop has arrived.
func (w *world) facts(s *mState, n, r int, push bool) (Entry, Facts) {
	nd, ru := &s.n[n], &s.run[r]
	e := Entry{Mark: nd.e[r].mark, Filed: nd.e[r].filed, Done: nd.e[r].done, Epoch: s.epochOf(r)}
	f := Facts{
		Epoch: s.epochOf(r), High: s.epochOf(int(nd.high)),
		Applied: Epoch{1, seqBase - 1 + uint64(nd.pos)}, Stands: nd.base[r],
		StartTerm: uint64(ru.startTerm), Term: uint64(nd.cterm),
		Stage: nd.stage[r],
	}
	if i := s.logAt(r, StandsStop); push && i >= 0 {
		f.StopTerm, f.Stop = uint64(ru.stopTerm), Epoch{1, seqBase + uint64(i)}
	}
	f.MayStart, f.Why = w.m.mayStart(w.clock(nd), 0, uint64(nd.pos))
	if nd.estop {
		f.Refuse = "ESTOP"
	}
	x := s.carrier(r)
	switch {
	case x >= 0 && s.se[x].k == kLive:
		f.Session = SessionLive
	case x >= 0 && s.se[x].k == kOrph:
		f.Session = SessionOrphan
	case x >= 0 && s.se[x].k == kEnded:
		f.Session = SessionEnded
	case s.se[r].k == kHeld:
		f.Session = SessionHeld
	}
	for y := range s.se {
		f.Passed = f.Passed || x < 0 && s.se[y].had&(1<<r) != 0
	}
	if k := ru.kept; k >= 0 && x < 0 {
		switch {
		case s.se[k].k == kLive && s.se[k].turn < 0:
			f.Kept = KeptIdle
		case s.se[k].k != kEnded:
			f.Kept = KeptBusy
		}
	}
	switch st := s.w[r].st; {
	case st == wIssued, st == wFlight && nd.known&(1<<r) != 0:
		f.Word = WordAsking
	case st == wFolder, st == wFlight:
		f.Word = WordOpen
	case st == wOutbox:
		f.Word = WordFiled
	}
	f.LeaveOver = w.sc.headless
	return e, f
}
