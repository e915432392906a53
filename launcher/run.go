package launcher

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"muster/board"
	"muster/board/lease"
	"muster/launcher/workspace"
)

// run is what the reconciler knows of one run. It belongs to the loop.
type run struct {
	id, card, slot string // slot: card/slot, what epochs are compared in
	dir            string

	// As the applied state or a push told it.
	order *board.Order     // the start, nil when unknown
	want  *board.StartSpec // of the start
	stop  *board.Order
	epoch lease.Epoch
	own   bool // ended by its own word, not gone

	// As the folder and the keeper show it.
	spec  *Spec
	proc  *Proc
	exit  *Exit
	state lease.SessionState // while there is no link
	link  Session
	stage lease.Stage

	met     bool      // its folder has been looked at
	busy    bool      // an act of its own is under way (reaping, adopting)
	asked   bool      // its keeper was told to stop
	failed  string    // why its preparation failed
	full    bool      // ... for want of room on the disk
	again   time.Time // look at it again then; zero: no
	tries   int       // how often it had to be looked at again
	reapAt  time.Time // its tree is not ended again before
	said    string    // what goes on going wrong, as it was logged at saidAt
	saidAt  time.Time
	leaveAt lease.Instant
	why     string // what it waits for, for logs

	giveUp  func()              // ends a preparation that is under way
	settled bool                // left is known
	left    workspace.Left      // what its workspace holds that is nowhere else
	memory  *board.MemoryReport // its agent's folder at its end, nil: none, or not taken yet
	unsaved error               // why its branch could not be pushed, or looked at
	spoke   bool                // it has said a word, and that was taken
	shown   bool                // the fleet was told that its pane shows life
	deaf    int                 // its pane's state (News) in which it was seen to take no text
	awaits  *awaited            // a text that was typed, until it is known to be read
	waits   time.Time           // since when a text waits for its pane to take it; zero: none does
	deafWhy string              // and why it does not
	isDeaf  bool                // the fleet was told so, perhaps in an earlier life of this node
	learned bool                // what an earlier life told of its pane is known
	looked  int                 // its pane's state (News) in which its screen was looked at for a choice
	choice  bool                // and there was one
	takes   bool                // or it waited for text
	unasked string              // the question that its user broke off
	typedAt lease.Instant       // when something was typed into its pane last
	sought  string              // what was to be told of it when its session's id was looked for last
	found   string              // that id
	seeking bool                // it is being looked for
	quietAt time.Time           // since when its pane is quiet
	moveAt  time.Time           // since when it is not
	passed  bool                // its session carries a later run
	typing  bool                // something is typed into its pane, or it is looked at for that

	saw      string    // what was told of it last, between start and end
	listenAt time.Time // when its log is looked at again; zero: now
	heard    time.Time // its last write to its log, counted while this machine is awake
	wrote    time.Time // the same, as its log has it
	hearing  bool      // its next write is waited for

	word     *word
	unheard  *word         // the last one's outcome came when nobody waited
	turn     chan struct{} // one slot: the session's requests go one at a time
	launched chan struct{} // closed when `launched` has its outcome
}

func (r *Reconciler) newRun(id string) *run {
	return &run{id: id, card: board.CardOfRun(id), dir: r.runDir(id), launched: make(chan struct{})}
}

// runDir is the folder of a run, "" for an id that is none: it becomes part of
// a path, and comes from another machine.
func (r *Reconciler) runDir(id string) string {
	if board.RunKey(id) == "" || id != filepath.Base(id) || id[0] == '.' {
		return ""
	}
	return filepath.Join(r.cfg.Dir, "runs", id)
}

// session is what carries the run.
func (n *run) session() lease.SessionState {
	if n.link == nil {
		return n.state
	}
	if n.link.PID() != 0 {
		return lease.SessionLive
	}
	return lease.SessionHeld
}

// look reads the folder of a run that has no link. It takes and lets go of the
// folder's lock: a keeper of an earlier life that comes at that moment ends,
// and the launch is then declared dead.
func (n *run) look() error {
	n.state, n.exit, n.proc = lease.SessionNone, nil, nil
	if n.dir == "" || n.passed || !exists(n.dir) {
		return nil
	}
	if n.spec == nil {
		spec, err := ReadSpec(n.dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		n.spec = spec
	}
	dir := n.keptDir()
	proc, err := ReadProc(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		proc = &Proc{} // something was started; the nonce finds it
	}
	n.proc = proc
	exit, err := ReadExit(dir)
	if err != nil {
		return err
	}
	if exit != nil {
		n.exit = exit
		if exit.Started {
			n.state = lease.SessionEnded
		}
		return nil
	}
	if n.spec == nil {
		return nil
	}
	lock, err := takeLock(dir)
	switch {
	case errors.Is(err, errHeld) && proc != nil:
		n.state = lease.SessionLive // whose keeper does not talk to us, yet
		return nil
	case errors.Is(err, errHeld):
		n.state = lease.SessionHeld
		return nil
	case err != nil:
		return err
	}
	lock.Close()
	if proc != nil {
		n.state = lease.SessionOrphan
	}
	return nil
}

// facts is everything the next step of a run is decided by.
func (r *Reconciler) facts(n *run, s *seen) lease.Facts {
	f := lease.Facts{
		Epoch: n.epoch, Applied: s.applied, Term: s.clock.Term(),
		MayStart: s.mayStart, Why: s.why,
		Session: n.session(), Stage: n.stage, Word: n.word.state(), Passed: n.passed,
	}
	_, f.Kept = r.kept(n)
	switch {
	case s.stops[n.id] != nil:
		f.Stands = lease.StandsStop
	case s.starts[n.id] != nil:
		f.Stands = lease.StandsStart
	case n.own:
		f.Stands = lease.StandsOwn
		f.LeaveOver = r.leaveOver(n, s.now)
	}
	if f.Session == lease.SessionNone && (n.stage == lease.StageNone || n.stage == lease.StageReady) {
		f.Refuse = r.refuse(n)
	}
	return f
}

// leaveOver tells whether a session whose run ended by its own word has had its
// time to leave (M-35), counted from when this node saw it.
func (r *Reconciler) leaveOver(n *run, now lease.Instant) bool {
	if n.spec == nil || n.session() != lease.SessionLive || n.spec.Surface == surfacePane || n.spec.Attach != nil { // a pane stays for the card's next run, an attached one is its person's to end
		return false
	}
	if n.leaveAt == 0 {
		n.leaveAt = now.Add(n.spec.Leave)
	}
	if left := n.leaveAt.Sub(now); left > 0 {
		n.lookAgain(left)
		return false
	}
	return true
}

// lookAgain asks for another round for this run.
func (n *run) lookAgain(d time.Duration) {
	at := time.Now().Add(d)
	if n.again.IsZero() || at.Before(n.again) {
		n.again = at
	}
}

// backoff is lookAgain for something that may stay as it is.
func (n *run) backoff() {
	n.tries = min(n.tries+1, 8)
	n.lookAgain(10 * time.Millisecond << n.tries)
}

// take notes an order of the state or of a push.
func (n *run) take(o *board.Order) {
	n.slot = board.SlotKey(o.Card, o.Slot)
	if o.Kind == board.OrderStop {
		n.stop = o
		if n.epoch == (lease.Epoch{}) {
			// The claim is older than its stop; a later claim of the slot is younger.
			n.epoch = lease.Epoch{Era: o.Era, Seq: o.Seq}
		}
		return
	}
	n.epoch = lease.Epoch{Era: o.Era, Seq: o.Seq}
	if n.order == nil {
		n.order = o
		want := new(board.StartSpec)
		if json.Unmarshal(o.Spec, want) == nil {
			n.want = want
		}
	}
}

// over tells that nothing of a run is left to be done or remembered.
func (n *run) over(e lease.Entry, s *seen) bool {
	return e.Mark == lease.MarkNone && e.Filed == 0 && n.link == nil && !n.busy &&
		s.starts[n.id] == nil && s.stops[n.id] == nil &&
		(n.state == lease.SessionNone || n.state == lease.SessionEnded) &&
		n.stage != lease.StagePreparing && n.stage != lease.StageReady
}
