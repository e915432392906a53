package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"muster/mesh"
)

// Net is what lies between the nodes: each direction of each pair by itself. What
// goes wrong on it by chance comes from its seed.
type Net struct {
	mu     sync.Mutex
	rng    *rand.Rand
	ports  map[mesh.NodeID]*port
	cuts   map[way]bool
	frozen map[mesh.NodeID]bool // neither sends nor takes anything: it waits
	conns  map[*conn]struct{}
	sent   map[way]uint64 // calls and pushes, and the newest that arrived
	came   map[way]uint64
	change chan struct{}
	count  func(what string)
	risk   Risk
}

type way struct{ from, to mesh.NodeID }

// Risk is how often something goes wrong on the way (0 to 1).
type Risk struct {
	Slow    float64 // it travels for up to two seconds
	LostReq float64 // a call is lost before it arrives, and its caller is told that nobody knows
	LostAns float64 // its answer is
	LateReq float64 // its caller is told that nobody knows, and it arrives seconds later
	Twice   float64 // a push arrives twice, the second time late
}

func newNet(seed uint64, count func(string)) *Net {
	return &Net{rng: rand.New(rand.NewPCG(seed, 1)), ports: map[mesh.NodeID]*port{}, cuts: map[way]bool{}, frozen: map[mesh.NodeID]bool{},
		conns: map[*conn]struct{}{}, sent: map[way]uint64{}, came: map[way]uint64{}, change: make(chan struct{}), count: count}
}

// set changes what the network is like; it wakes whatever waits for a way.
func (w *Net) set(fn func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fn()
	close(w.change)
	w.change = make(chan struct{})
}

func (w *Net) cut(from, to mesh.NodeID) { w.set(func() { w.cuts[way{from, to}] = true }) }

func (w *Net) heal() { w.set(func() { clear(w.cuts) }) }

func (w *Net) calm() { w.set(func() { clear(w.cuts); clear(w.frozen); w.risk = Risk{} }) }

func (w *Net) freeze(id mesh.NodeID, frozen bool) {
	w.set(func() {
		if delete(w.frozen, id); frozen {
			w.frozen[id] = true
		}
	})
}

// way tells whether something from one node reaches the other now, and what is closed at the next change.
func (w *Net) way(from, to mesh.NodeID) (bool, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.cuts[way{from, to}] && !w.frozen[from] && !w.frozen[to], w.change
}

// thawed waits while a node is frozen.
func (w *Net) thawed(ctx context.Context, id mesh.NodeID) error {
	for {
		w.mu.Lock()
		frozen, change := w.frozen[id], w.change
		w.mu.Unlock()
		if !frozen {
			return nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (w *Net) latency(from, to mesh.NodeID) time.Duration {
	if from == to {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	d := time.Duration(150+w.rng.IntN(1000)) * time.Microsecond
	if w.risk.Slow > 0 && w.rng.Float64() < w.risk.Slow {
		d += time.Duration(w.rng.IntN(2000)) * time.Millisecond
		w.count("message slow")
	}
	return d
}

// chance throws the dice for one share of the risk; what happens is counted.
func (w *Net) chance(what string, share func(*Risk) float64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := share(&w.risk)
	if s <= 0 || w.rng.Float64() >= s {
		return false
	}
	w.count(what)
	return true
}

func (w *Net) upTo(d time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Duration(w.rng.Int64N(int64(d)))
}

func (w *Net) port(id mesh.NodeID) *port {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ports[id]
}

func (w *Net) drop(c *conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, c)
}

// stamp numbers a message; arrives tells the net that it is there: one that was sent later may have come before.
func (w *Net) stamp(from, to mesh.NodeID) (arrives func()) {
	k := way{from, to}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent[k]++
	n := w.sent[k]
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if n < w.came[k] {
			w.count("message overtaken by a later one")
		}
		w.came[k] = max(w.came[k], n)
	}
}

// noticed is how long a message waits on a cut way until its sender takes it for lost.
const noticed = 4 * time.Second

// travel takes one way; it waits on a cut one, for as long as a connection lasts that says nothing.
func (w *Net) travel(ctx context.Context, from, to mesh.NodeID) error {
	if err := pass(ctx, w.latency(from, to)); err != nil {
		return err
	}
	for end := time.After(noticed); ; {
		open, change := w.way(from, to)
		if open {
			return nil
		}
		select {
		case <-change:
		case <-end:
			return errCut
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

var errCut = errors.New("the way is cut")

// pass lets fake time pass.
func pass(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func lost(method string, peer mesh.NodeID) error {
	return fmt.Errorf("%s to node %s: %w", method, peer, mesh.ErrConnLost)
}

func unsent(peer mesh.NodeID) error {
	return fmt.Errorf("%w: node %s is out of reach", mesh.ErrNotSent, peer)
}
