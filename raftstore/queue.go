package raftstore

import (
	"sync"
	"sync/atomic"

	"muster/board"
)

// Bounds of what waits for the executor.
const (
	waitRequests = 4096
	waitBytes    = 16 << 20
)

// call is one request on its way. It is answered exactly once.
type call struct {
	req   *board.Request
	size  int
	done  chan board.Result // one slot
	state atomic.Int32
	maybe bool // an entry with its outcome may have been committed
}

const (
	callWaits = iota
	callTaken
	callWithdrawn
)

func newCall(req *board.Request) *call {
	return &call{req: req, size: requestSize(req), done: make(chan board.Result, 1)}
}

// withdraw takes a call back whose turn has not come; false if it has.
func (c *call) withdraw() bool { return c.state.CompareAndSwap(callWaits, callWithdrawn) }

func (c *call) answer(r board.Result) {
	select {
	case c.done <- r:
	default:
	}
}

func requestSize(r *board.Request) int {
	return 256 + len(r.Args) + len(r.ID) + len(r.Verb) + len(r.Secret)
}

// queue holds the calls that wait, oldest first.
type queue struct {
	mu     sync.Mutex
	calls  []*call
	bytes  int
	closed bool
	signal chan struct{} // one slot: there is something
}

func (q *queue) push(c *call) (refusal board.Result, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.put(c)
}

// pushAll puts calls behind each other, with nothing between them; one that is refused is answered.
func (q *queue) pushAll(calls []*call) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, c := range calls {
		if refusal, ok := q.put(c); !ok {
			c.answer(refusal)
		}
	}
}

func (q *queue) put(c *call) (refusal board.Result, ok bool) {
	switch {
	case q.closed:
		return notLeader(), false
	case len(q.calls) >= waitRequests || q.bytes+c.size > waitBytes:
		return busy(), false
	}
	q.calls = append(q.calls, c)
	q.bytes += c.size
	signal(q.signal)
	return board.Result{}, true
}

// take takes up to n calls that were not withdrawn (all of them: any number).
func (q *queue) take(n int, all bool) []*call {
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []*call
	i := 0
	for ; i < len(q.calls) && (all || len(out) < n); i++ {
		c := q.calls[i]
		q.calls[i] = nil
		q.bytes -= c.size
		if c.state.CompareAndSwap(callWaits, callTaken) {
			out = append(out, c)
		}
	}
	if q.calls = q.calls[i:]; len(q.calls) == 0 {
		q.calls = nil
	} else {
		signal(q.signal)
	}
	return out
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}
