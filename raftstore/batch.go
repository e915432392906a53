package raftstore

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"
)

// take takes what waits for one batch.
func (x *executor) take() []*call {
	calls := x.carry
	x.carry = nil
	if n := batchRequests - len(calls); n > 0 {
		calls = append(calls, x.queue.take(n, false)...)
	}
	if x.s.cfg.Linger > 0 && len(calls) > 0 {
		calls = x.linger(calls)
	}
	return calls
}

// lingerFrom is how many requests the last two batches must have held together,
// about, for the next to wait for more.
const lingerFrom = 8

// linger waits a moment for the clients of the last two batches, when those
// were large: a closed loop of clients otherwise splits into two halves, and
// each batch costs all nodes a sync and a transaction. It waits half as long as a batch
// takes, at most (tried beside a quarter and the whole: bench events-64), so that on a slow machine it waits for slow clients.
func (x *executor) linger(calls []*call) []*call {
	want := min((x.sizes[0]+x.sizes[1])*4/5, batchRequests)
	if want < lingerFrom || len(calls) >= want {
		x.sizes[0], x.sizes[1] = x.sizes[1], len(calls)
		return calls
	}
	end := time.NewTimer(min(x.s.cfg.Linger, x.took/2))
	defer end.Stop()
	for len(calls) < want {
		select {
		case <-x.queue.signal:
			calls = append(calls, x.queue.take(batchRequests-len(calls), false)...)
		case <-end.C:
			want = 0
		case <-x.s.ctx.Done():
			want = 0
		}
	}
	x.sizes[0], x.sizes[1] = x.sizes[1], len(calls)
	return calls
}

// Outcomes of a batch.
var (
	errCertainlyNot = errors.New("certainly not executed")
	errMaybe        = errors.New("outcome is not known")
)

// batch executes calls and answers them; false when the term is over.
func (x *executor) batch(r *raft.Raft, term uint64, calls []*call) bool {
	x.rounds.Add(1)
	d, err := x.decide(term, calls)
	if err != nil { // the state cannot be read: the store has failed
		x.drop(calls, errCertainlyNot)
		return false
	}
	x.carry = d.rest
	if d.data == nil {
		x.questions.Add(1)
		if _, err := x.s.votes.confirm(x.s.ctx, term); err != nil {
			x.drop(d.calls, errCertainlyNot)
			return false
		}
	} else if err := x.commit(r, d.data); err != nil {
		x.drop(d.calls, err)
		return false
	}
	if x.s.Err() != nil {
		x.drop(d.calls, errMaybe)
		return false
	}
	if d.data != nil && x.s.cfg.OnCommit != nil {
		if e, err := decodeEntry(d.data); err == nil { // values of d's transactions may lie in a reading that is over
			x.s.cfg.OnCommit(term, e.Txns)
		}
	}
	for i, c := range d.calls {
		c.answer(d.results[i])
	}
	return true
}

// commit puts an entry into the log and waits until this node has applied it.
func (x *executor) commit(r *raft.Raft, data []byte) error {
	x.s.ahead.expect(data)
	begun := time.Now()
	f := r.Apply(data, 0)
	err := x.s.await(context.Background(), f)
	if err == nil {
		x.s.count.commit.add(time.Since(begun))
	}
	switch {
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress), errors.Is(err, raft.ErrEnqueueTimeout):
		return errCertainlyNot
	case err != nil:
		return errMaybe
	case f.Response() != nil: // refused by the rule of Seq and Term, on every node alike
		x.s.log.Warn("own entry was refused", "reason", f.Response())
		return errCertainlyNot
	}
	return nil
}

// drop keeps the calls of a batch that failed for the next term of this node,
// if there is one soon. A next term's Barrier settles what became of an entry,
// so executing anew is safe; a call whose first entry may be in is marked as a
// retry, like any second copy.
func (x *executor) drop(calls []*call, why error) {
	for _, c := range calls {
		if why != errCertainlyNot && !c.maybe {
			again := *c.req
			again.Retry = true
			c.req, c.maybe = &again, true
		}
	}
	x.carry = append(calls, x.carry...)
	x.since = time.Now()
}
