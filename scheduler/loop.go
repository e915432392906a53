package scheduler

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"muster/board"
)

// Store is what the loop needs of the replicated state.
type Store interface {
	// DoAll executes requests in their order, each seeing what came of those before.
	DoAll(ctx context.Context, reqs []*board.Request) []board.Result
	View(fn func(board.View) error) error
}

// Feed tells what has changed: a one-slot signal, and since the last Take which
// keys, or that everything must be read anew.
type Feed interface {
	C() <-chan struct{}
	Take() (keys []Key, all bool)
	Close()
}

// Key is one changed key of the state.
type Key struct {
	Table board.Table
	Key   string
}

// Contacts is what the leader knows of its nodes; nothing of it is in the log.
type Contacts interface {
	State(node string) board.Reading
	// GoneIn is how long until a session with this lease on this node may be counted gone.
	GoneIn(node string, lease time.Duration) (time.Duration, bool)
	// Condemn says that lease and margin have passed, and from then on keeps the node
	// without an answer until Acquit: between the two its session is counted gone,
	// and a fresh contact would let it start what no longer stands.
	Condemn(node string, lease time.Duration) bool
	Acquit(node string)
	// Next is how long until the state of one of the nodes may change without any contact.
	Next(nodes []string) (time.Duration, bool)
}

// Config of a loop.
type Config struct {
	Store     Store
	Feed      Feed
	Contacts  Contacts
	Workflows *board.Workflows
	Now       func() int64 // board time, ms
	Logger    *slog.Logger
}

// Loop schedules one term.
type Loop struct {
	cfg  Config
	poke chan struct{}

	// owned by Run: an index of the state, fed by the feed
	room   *board.Room         // what is held
	fleet  []*board.Node       // the node list, in order of ids
	boards map[string]boardSig // what of each board decides about its cards
	queue  *queue              // waits for room or a machine, or was not tried yet
	dirty  map[string]bool     // cards to look at

	// owned by Run: moments, in board time (ms)
	timers  *timers // card -> look again
	backoff *timers // card -> wait after starts that were refused for no reason the plan sees
	offers  *timers // run on a machine that is away -> the next offer
	roomAt  int64   // room may come free by time alone
	leaseAt int64   // a lease may have passed
	nextAt  int64   // the state of a node may change without any contact
	hold    int64   // before it due times and leases are not asked again: the executor did not take them

	// owned by Run: what is remembered of this term only
	free   bool            // something that others wait for may have come free
	news   bool            // what the contacts say may have changed
	away   map[string]bool // nodes that are offline
	tries  map[string]int  // starts of a card that were refused, one after the other
	asides *asides

	mu       sync.Mutex
	rounds   []*Round
	passed   passed
	examined uint64
}

// New makes a loop for one term.
func New(cfg Config) *Loop {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Workflows == nil {
		cfg.Workflows = board.NewWorkflows()
	}
	return &Loop{cfg: cfg, poke: make(chan struct{}, 1), queue: newQueue(), dirty: map[string]bool{}, tries: map[string]int{},
		timers: newTimers(), backoff: newTimers(), offers: newTimers(), away: map[string]bool{}, asides: newAsides()}
}

// Poke wakes the loop: what the contacts say has changed.
func (l *Loop) Poke() {
	select {
	case l.poke <- struct{}{}:
	default:
	}
}

// Examined is how many cards were looked at so far (goal P7's counter).
func (l *Loop) Examined() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.examined
}

func (l *Loop) count(n int) {
	l.mu.Lock()
	l.examined += uint64(n)
	l.mu.Unlock()
}

// Run schedules until ctx ends. It wakes for a change, a due time or a changed
// contact, never on a tick (architecture.md §8).
func (l *Loop) Run(ctx context.Context) {
	defer l.cfg.Feed.Close()
	l.scan()
	for ctx.Err() == nil {
		r := l.round(ctx)
		l.keep(r)
		t := time.NewTimer(l.sleep())
		select {
		case <-ctx.Done():
		case <-l.cfg.Feed.C():
			l.take()
		case <-l.poke:
			l.news, l.free = true, true
		case <-t.C:
		}
		t.Stop()
	}
}

// round observes, plans and asks the executor, once.
func (l *Loop) round(ctx context.Context) *Round {
	select { // what a round has asked for itself is in the state before the next
	case <-l.cfg.Feed.C():
		l.take()
	default:
	}
	r := newRound(l.cfg.Now())
	at := time.Now()
	l.observe(ctx, r)
	r.phase("observe", &at)
	starts, reasons := l.plan(r)
	r.phase("plan", &at)
	reasons = append(reasons, l.start(ctx, r, starts)...)
	l.putOff()
	r.phase("start", &at)
	l.record(ctx, reasons)
	r.phase("reasons", &at)
	return r
}

// sleep is how long nothing can happen without a change: until the next due time,
// look, offer, lease or change of contact. Cards that are to be looked at again
// at once leave no time for it.
func (l *Loop) sleep() time.Duration {
	if len(l.dirty) > 0 || l.free {
		return 0
	}
	now := l.cfg.Now()
	next := earliest(l.timers.next(), l.offers.next(), l.backoff.next(), l.roomAt, l.nextAt)
	if l.leaseAt > 0 {
		next = earliest(next, max(l.leaseAt, l.hold))
	}
	_ = l.cfg.Store.View(func(v board.View) error {
		if at := board.NextDue(v); at > 0 {
			next = earliest(next, max(at, l.hold))
		}
		return nil
	})
	if next == 0 {
		return time.Hour
	}
	return max(time.Duration(next-now)*time.Millisecond, time.Millisecond)
}

// earliest of the moments that are there.
func earliest(list ...int64) (at int64) {
	for _, x := range list {
		if x > 0 && (at == 0 || x < at) {
			at = x
		}
	}
	return at
}

// Wants are the changes a loop must hear of.
func Wants(t board.Table, key string) bool {
	switch t {
	case board.TCard, board.THeld, board.TStart, board.TLink, board.TNode, board.TBoard, board.TWorkflow, board.TDue, board.TCool:
		return true
	case board.TFleet:
		return key == board.FleetKey
	}
	return false
}
