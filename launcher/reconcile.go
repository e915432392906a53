package launcher

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"muster/board"
	"muster/board/lease"
	"muster/launcher/workspace"
)

// Reconciler makes this machine's processes match the orders of its node. One
// goroutine decides, by [lease.Orders]; what takes time is done beside it.
type Reconciler struct {
	cfg Config
	log *slog.Logger

	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	calls  chan func() // into the loop
	wake   chan struct{}
	timer  *time.Timer
	stop   chan struct{}
	starts chan struct{} // bounds preparations
	hooks  chan struct{} // and hooks

	// Of the loop.
	journal *journal
	orders  *lease.Orders
	runs    map[string]*run
	acked   []uint64          // items with an outcome, not yet written as such
	typed   map[string]string // texts that were typed into panes
	dirty   map[string]string // and the entries that know it: key -> slot
	flushAt time.Time
	errand  map[string]*errand // orders besides starts and stops that are under way
	swept   chan struct{}      // closed when no hook of an earlier life runs that nobody wants; nil: none did
	ended   int                // runs that left memory since old folders were removed

	box  *outbox
	work *workspace.Store

	measuring chan struct{} // one slot: a disk is walked once at a time

	mu     sync.Mutex
	links  map[string]held // live keepers by run
	jobs   map[Session]bool
	pushes []pushed // not yet looked at by the loop
	fail   error

	once sync.Once
}

// warmer is a Runner that can have a keeper ready in advance.
type warmer interface {
	Warm()
	Close()
}

// New makes a reconciler. Nothing is touched before Open.
func New(cfg Config) (*Reconciler, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	r := &Reconciler{
		cfg: cfg, log: cfg.Logger.With("component", "launcher"),
		calls: make(chan func()), wake: make(chan struct{}, 1), stop: make(chan struct{}),
		starts: make(chan struct{}, cfg.Starts), hooks: make(chan struct{}, cfg.Starts),
		orders: lease.NewOrders(), runs: map[string]*run{}, dirty: map[string]string{}, links: map[string]held{},
		errand: map[string]*errand{}, jobs: map[Session]bool{}, measuring: make(chan struct{}, 1),
	}
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	r.work = r.newWork()
	return r, nil
}

// held is a living keeper and the lease of its session. extend has one slot: the
// deadline may have moved.
type held struct {
	Session
	lease  time.Duration
	extend chan struct{}
}

var errClosed = errors.New("the launcher is closed")

// Open reads the journal, adopts every session that is still there, and starts
// to act. Sessions are adopted before anything is launched.
func (r *Reconciler) Open(ctx context.Context) (err error) {
	for _, dir := range []string{r.cfg.Dir, filepath.Join(r.cfg.Dir, "runs")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("launcher: %w", err)
		}
	}
	var had *contents
	if r.journal, had, err = openJournal(r.cfg.Dir, r.log); err != nil {
		return fmt.Errorf("launcher: %w", err)
	}
	r.box = newOutbox(r, had.outbox)
	r.typed = had.typed
	for slot, e := range had.high {
		r.orders.LoadHigh(slot, e)
	}
	for key, e := range had.entries {
		r.orders.Load(key, e.Entry)
		n := r.run(key)
		n.slot, n.epoch = e.Slot, e.Entry.Epoch
		if e.Entry.MayForward() {
			close(n.launched)
		}
	}
	err = r.work.Open()
	if err == nil {
		err = r.endJobs(ctx)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("launcher: %w", err), r.Close())
	}
	if err := r.adoptAll(ctx); err != nil {
		return errors.Join(fmt.Errorf("launcher: %w", err), r.Close())
	}
	r.work.RestAll(r.liveNow)
	if len(r.oldHooks()) > 0 {
		r.swept = make(chan struct{})
	}
	if had.lost != "" {
		r.sayLost(had.lost)
	}
	if text := treeLimits(); text != "" {
		r.log.Warn("limits of this system", "text", text)
	}
	if w, ok := r.cfg.Runner.(warmer); ok {
		w.Warm()
	}
	r.wg.Add(3)
	go r.loop()
	go r.keepMemories()
	go r.box.send()
	r.Wake()
	return nil
}

// Close stops deciding and reporting, and lets go of the keepers: the sessions
// go on, and the next Open finds them.
func (r *Reconciler) Close() error {
	var err error
	r.once.Do(func() {
		r.cancel(errClosed)
		close(r.stop)
		r.wg.Wait()
		r.mu.Lock()
		links := r.links
		r.links = map[string]held{}
		r.mu.Unlock()
		for _, l := range links {
			l.Close()
		}
		if w, ok := r.cfg.Runner.(warmer); ok {
			w.Close()
		}
		if r.journal != nil {
			err = errors.Join(r.flush(), r.journal.close())
		}
	})
	return err
}

// JournalID is the id of this node's outbox (board.NodeUp.Journal).
func (r *Reconciler) JournalID() string { return r.journal.id }

// Wake says that orders or runs of this node may have changed in the applied
// state. It never blocks.
func (r *Reconciler) Wake() {
	notify(r.wake)
}

// LeaderChanged says that requests may find a leader now.
func (r *Reconciler) LeaderChanged() { r.box.kick() }

// pushed is an order that came ahead of the state.
type pushed struct {
	term  uint64
	order board.Order
}

// maxPushes bounds the pushes that wait for the loop; beyond, the state tells.
const maxPushes = 4096

// Push takes an order that its leader sent ahead of the state; term is the one
// it was committed in. It may come late, twice or never. It never blocks: the
// leader's executor calls it for its own node before it answers anybody, and must
// not wait for a disk, a fork or a keeper here.
func (r *Reconciler) Push(term uint64, o board.Order) {
	if o.Node != r.cfg.Node || r.runDir(o.Run) == "" || o.Kind == board.OrderDeliver {
		return
	}
	r.mu.Lock()
	if len(r.pushes) < maxPushes {
		r.pushes = append(r.pushes, pushed{term, o})
	}
	r.mu.Unlock()
	r.Wake()
}

// takePushes takes over what was pushed since the last round, in the order it came.
func (r *Reconciler) takePushes() {
	r.mu.Lock()
	list := r.pushes
	r.pushes = nil
	r.mu.Unlock()
	for i := range list {
		o := &list[i].order
		if o.Kind != board.OrderStart && o.Kind != board.OrderStop {
			continue
		}
		n := r.run(o.Run)
		old := *n
		n.take(o)
		p := lease.Push{Term: list[i].term, Key: n.id, Slot: n.slot, Epoch: n.epoch}
		if o.Kind == board.OrderStop {
			p.Stop = lease.Epoch{Era: o.Era, Seq: o.Seq}
		}
		if !r.orders.Push(p, r.cfg.Clock()) {
			*n = old
		}
	}
}

// Contact says that the node's clock has moved: the lease of every session runs
// from the sending of the contact that was answered (architecture.md §5), and
// what waited for a contact may start.
func (r *Reconciler) Contact() {
	r.mu.Lock()
	for _, l := range r.links {
		notify(l.extend)
	}
	r.mu.Unlock()
	r.Wake()
}

// extendBy: the part of a lease by which a deadline moves before its keeper is told.
const extendBy = 8

// extender tells new deadlines to one keeper, beside the loop and beside the other
// keepers: one that does not read (it is frozen) must hold up neither the others'
// starts nor their deadlines. It ends with the link.
//
// A contact comes several times a second, and a message wakes the keeper: it is told when its deadline moves by a good
// part of the lease. What it has is never later than the contact allows, and at most that part earlier.
func (r *Reconciler) extender(l held) {
	defer r.wg.Done()
	var told lease.Instant
	for {
		if at, ok := r.cfg.Clock().Deadline(l.lease); ok && (told == 0 || at.Sub(told) >= l.lease/extendBy) {
			if err := l.Extend(at); err != nil {
				l.Close() // found again by its socket, if it lives
				return
			}
			told = at
		}
		select {
		case <-l.extend:
		case <-l.Done():
			return
		case <-r.stop:
			return
		}
	}
}

// post runs fn in the loop, in order with everything else that is decided; false
// when the launcher is closed.
func (r *Reconciler) post(fn func()) bool {
	select {
	case r.calls <- fn:
		return true
	case <-r.stop:
		return false
	}
}

// ask is post that waits; false when the launcher is closed.
func (r *Reconciler) ask(fn func()) bool {
	done := make(chan struct{})
	select {
	case r.calls <- func() { fn(); close(done) }:
		<-done
		return true
	case <-r.stop:
		return false
	}
}

func (r *Reconciler) loop() {
	defer r.wg.Done()
	r.timer = time.NewTimer(time.Hour)
	defer r.timer.Stop()
	for {
		select {
		case <-r.stop:
			return
		case fn := <-r.calls:
			fn()
			continue // what it changed wakes by itself
		case <-r.wake:
		case <-r.timer.C:
		}
		r.round()
	}
}

// run finds or makes the record of a run.
func (r *Reconciler) run(id string) *run {
	n := r.runs[id]
	if n == nil {
		n = r.newRun(id)
		r.runs[id] = n
	}
	return n
}

// broken latches the first failure of the journal: from here on nothing is
// decided, and the node is told to stop.
func (r *Reconciler) broken(err error) {
	r.mu.Lock()
	first := r.fail == nil
	if first {
		r.fail = err
	}
	r.mu.Unlock()
	if first {
		r.log.Error("journal cannot be written; nothing is started any more", "err", err)
		if r.cfg.OnFail != nil {
			r.cfg.OnFail(err)
		}
	}
}

// InKeeperTree tells whether a process belongs to a session of this node: the
// user's own socket refuses such a peer (architecture.md §6).
func (r *Reconciler) InKeeperTree(pid int) bool {
	r.mu.Lock()
	keepers := make(map[int]bool, len(r.links))
	for _, l := range r.links {
		if k := l.Keeper(); k != 0 {
			keepers[k] = true
		}
	}
	for l := range r.jobs {
		if k := l.Keeper(); k != 0 {
			keepers[k] = true
		}
	}
	r.mu.Unlock()
	return len(keepers) > 0 && inTree(pid, keepers)
}

// Err is the failure that stopped this launcher, nil while it works.
func (r *Reconciler) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fail
}
