package raftstore

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"muster/board"
)

// Bounds of a batch: what waits is taken up to them; one transaction may be
// larger and is then a batch of its own.
const (
	batchRequests = 256
	batchBytes    = 128 << 10
)

// executor decides requests, on the leader, in one goroutine: one batch and
// one log entry at a time. It lives as long as the store; leading comes and
// goes by terms.
type executor struct {
	s       *Store
	queue   queue
	clock   boardClock
	term    atomic.Uint64 // the term it is ready in, 0 for none
	changed chan struct{} // one slot: term changed
	lead    chan struct{} // one slot: Raft said that leadership changed
	give    chan *giveUp  // leadership transfers asked for

	carry []*call // taken, but not answered: of a dropped batch, or left over by a full one
	since time.Time

	held board.HeldTable // what the domain remembers of the term; read anew in the next

	rounds, questions atomic.Uint64
	sizes             [2]int        // requests of the last two batches, for the linger
	took              time.Duration // by the last batch, from its taking to its answers
	wrong             int           // terms given up for a wrong clock, one after the other
}

type giveUp struct {
	done chan error
	to   string // server id; "" leaves the choice to Raft
}

func newExecutor(s *Store) *executor {
	x := &executor{
		s: s, changed: make(chan struct{}, 1), lead: make(chan struct{}, 1), give: make(chan *giveUp),
		clock: boardClock{s: s},
	}
	x.queue.signal = make(chan struct{}, 1)
	return x
}

// Do executes a request, on the leader. It is answered when its outcome is
// committed, or, if it writes nothing, when a majority of the voters has
// confirmed after it came in that this node still leads. An Unavailable result
// says that this copy of the request was certainly not executed;
// UnknownOutcome that it may have been, or may still be.
func (s *Store) Do(ctx context.Context, req *board.Request) board.Result {
	if r := s.raft.Load(); r.State() != raft.Leader || s.ctx.Err() != nil {
		return notLeader()
	}
	c := newCall(req)
	if res, ok := s.exec.queue.push(c); !ok {
		return res
	}
	return c.wait(ctx)
}

// DoAll executes requests in their order, each answered as [Store.Do] does; they
// share entries. A request that is refused does not keep the next ones from being executed.
func (s *Store) DoAll(ctx context.Context, reqs []*board.Request) []board.Result {
	results := make([]board.Result, len(reqs))
	if r := s.raft.Load(); r.State() != raft.Leader || s.ctx.Err() != nil {
		for i := range results {
			results[i] = notLeader()
		}
		return results
	}
	calls := make([]*call, len(reqs))
	for i, req := range reqs {
		calls[i] = newCall(req)
	}
	s.exec.queue.pushAll(calls)
	for i, c := range calls {
		results[i] = c.wait(ctx)
	}
	return results
}

// wait is the outcome of a call that was pushed; one whose turn has not come is withdrawn when ctx ends.
func (c *call) wait(ctx context.Context) board.Result {
	select {
	case res := <-c.done:
		return res
	case <-ctx.Done():
	}
	if c.withdraw() {
		return gaveUp()
	}
	select {
	case res := <-c.done:
		return res
	default:
		return unknown()
	}
}

// run is the executor's goroutine.
func (x *executor) run() {
	r := x.s.raft.Load()
	x.s.tasks.Go(func() { x.drainLeaderCh(r) })
	for x.s.ctx.Err() == nil {
		if r.State() != raft.Leader {
			x.idle()
			continue
		}
		term, ok := x.begin(r)
		if !ok {
			x.again()
			continue
		}
		x.setTerm(term)
		x.serve(r, term)
		x.setTerm(0)
		x.held = board.HeldTable{}
		x.since = time.Now()
	}
	x.queue.close()
	x.refuse(x.queue.take(0, true))
	x.settle(0)
}

// drainLeaderCh always empties Raft's channel, which holds the latest news only.
func (x *executor) drainLeaderCh(r *raft.Raft) {
	for {
		select {
		case <-r.LeaderCh():
			signal(x.lead)
		case <-x.s.ctx.Done():
			return
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (x *executor) setTerm(t uint64) {
	x.term.Store(t)
	signal(x.changed)
	if t != 0 {
		x.s.log.Info("leading", "term", t, "seq", x.s.state.now().Seq)
	}
}

// lookAgain is how often leadership is looked at without news of it: Raft's
// channel keeps the latest only, and an executor that missed it would stay deaf.
const lookAgain = 5 * time.Second

// idle is a step of not leading: what waits is told so. News wakes it, and the
// time at which what is left of a dropped batch has to be answered.
func (x *executor) idle() {
	x.refuse(x.queue.take(0, true))
	x.settle(x.s.cfg.Timers.Election)
	look := lookAgain
	if len(x.carry) > 0 {
		look = time.Until(x.since.Add(x.s.cfg.Timers.Election))
	}
	select {
	case <-x.lead:
	case <-x.queue.signal:
	case g := <-x.give:
		g.done <- ErrNotLeader
	case <-x.s.ctx.Done():
	case <-time.After(look):
	}
}

// beginAgain is how long a leader waits that could not begin its term: its
// voters did not answer, or nobody took the leadership over.
const beginAgain = 20 * time.Millisecond

// again waits until a term that could not begin is tried again.
func (x *executor) again() {
	x.settle(x.s.cfg.Timers.Election)
	select {
	case <-x.lead:
	case <-time.After(beginAgain):
	case <-x.s.ctx.Done():
	}
}

func (x *executor) refuse(calls []*call) {
	for _, c := range calls {
		c.answer(notLeader())
	}
}

// settle answers what a dropped batch left, once there was no new term for so
// long: as not executed only what certainly was not.
func (x *executor) settle(after time.Duration) {
	if len(x.carry) == 0 || time.Since(x.since) < after {
		return
	}
	for _, c := range x.carry {
		if c.maybe {
			c.answer(unknown())
		} else {
			c.answer(notLeader())
		}
	}
	x.carry = nil
}

// begin makes a term ready: its term is read, everything before is applied
// (Barrier), it is still the same term and this node leads in it; then the
// board's time is set by the voters' clocks.
func (x *executor) begin(r *raft.Raft) (term uint64, ok bool) {
	term = r.CurrentTerm()
	if err := x.s.await(context.Background(), r.Barrier(0)); err != nil {
		return 0, false
	}
	if !x.leads(r, term) {
		return 0, false
	}
	off, err := x.clock.begin(r, term)
	if err != nil {
		x.s.log.Warn("term does not begin", "term", term, "err", err)
		return 0, false
	}
	if off > clockAlarm || off < -clockAlarm {
		x.s.log.Error("clock of this machine is far from the voters' median: giving up leadership", "off", off, "term", term)
		err := x.s.await(context.Background(), r.LeadershipTransfer())
		if x.wrong++; err == nil || x.wrong < clockTries {
			return 0, false
		}
		x.s.log.Error("nobody takes the leadership over: this machine leads with a wrong clock", "err", err) // board time is the voters'
	}
	x.wrong = 0
	return term, x.leads(r, term)
}

func (x *executor) leads(r *raft.Raft, term uint64) bool {
	return r.CurrentTerm() == term && r.State() == raft.Leader
}

// serve executes batches until the term ends.
func (x *executor) serve(r *raft.Raft, term uint64) {
	for x.s.ctx.Err() == nil && x.leads(r, term) {
		select {
		case g := <-x.give: // between batches: what was taken is finished
			g.done <- x.transfer(r, g.to)
			return
		default:
		}
		calls := x.take()
		if len(calls) > 0 {
			from := time.Now()
			if !x.batch(r, term, calls) {
				return
			}
			x.took = time.Since(from)
			continue
		}
		select {
		case <-x.queue.signal:
		case <-x.lead:
		case g := <-x.give:
			g.done <- x.transfer(r, g.to)
			return
		case <-x.s.ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// Transfer hands leadership to another voter: the executor stops taking,
// finishes its batch and transfers; if that fails it begins a new term.
func (s *Store) Transfer(ctx context.Context) error { return s.TransferTo(ctx, "") }

// TransferTo is Transfer to a certain voter, by its server id.
func (s *Store) TransferTo(ctx context.Context, server string) error {
	g := &giveUp{done: make(chan error, 1), to: server}
	select {
	case s.exec.give <- g:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
	select {
	case err := <-g.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
}

func (x *executor) transfer(r *raft.Raft, to string) error {
	x.term.Store(0)
	signal(x.changed)
	if to != "" {
		return x.s.await(context.Background(), r.LeadershipTransferToServer(raft.ServerID(to), raft.ServerAddress(nodeOf(to))))
	}
	return x.s.await(context.Background(), r.LeadershipTransfer())
}
