package mesh

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// call is a request under way. Its state settles who owns the truth about it: a
// call that was dropped before the writer began with it was certainly not sent.
type call struct {
	state  atomic.Int32
	answer chan answer // one slot
}

type answer struct {
	body []byte
	err  error
}

const (
	callQueued int32 = iota
	callBegun
	callDropped
)

// begin is the writer's: false if the caller has left.
func (c *call) begin() bool { return c.state.CompareAndSwap(callQueued, callBegun) }

// drop is the caller's or the closer's: true if nothing of it was written.
func (c *call) drop() bool {
	return c.state.CompareAndSwap(callQueued, callDropped) || c.state.Load() == callDropped
}

// clientConn is our end of the stream that we opened to a peer.
type clientConn struct {
	conn  *Conn
	out   *frameWriter
	alive atomic.Bool // heard of since the last tick
	done  chan struct{}

	mu      sync.Mutex
	pending map[uint64]*call
	next    uint64
	err     error // set when done is closed
}

func newClientConn(c *Conn, dropped *atomic.Uint64) *clientConn {
	return &clientConn{
		conn:    c,
		out:     newFrameWriter(c, dropped),
		done:    make(chan struct{}),
		pending: make(map[uint64]*call),
	}
}

// run serves the connection until it fails; it returns after fail.
func (c *clientConn) run(ctx context.Context, keepAlive time.Duration, heard func()) {
	var wg sync.WaitGroup
	wg.Go(func() { c.fail(c.out.run(c.done)) })
	wg.Go(func() { c.watch(keepAlive) })
	stop := context.AfterFunc(ctx, func() { c.fail(ErrClosed) })
	c.fail(c.read(heard))
	stop()
	wg.Wait()
}

func (c *clientConn) read(heard func()) error {
	r := bufio.NewReaderSize(c.conn, 64<<10)
	for {
		f, err := readFrame(r)
		if err != nil {
			return err
		}
		if !c.alive.Swap(true) {
			heard()
		}
		switch f.kind {
		case kindAnswer:
			c.settle(f.id, answer{body: f.payload})
		case kindFailure:
			c.settle(f.id, answer{err: parseFailure(f.payload)})
		}
	}
}

func (c *clientConn) settle(id uint64, a answer) {
	c.mu.Lock()
	p := c.pending[id]
	delete(c.pending, id)
	c.mu.Unlock()
	if p != nil {
		p.answer <- a
	}
}

// watch tests a silent link. It counts ticks of this process, not time: a
// process that was stopped for long must not take that for the peer's silence.
func (c *clientConn) watch(keepAlive time.Duration) {
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for quiet := 0; ; {
		select {
		case <-tick.C:
		case <-c.done:
			return
		}
		if c.alive.Swap(false) {
			quiet = 0
			continue
		}
		switch quiet++; quiet {
		case 1:
			_, _ = c.out.put(outFrame{kind: kindPing})
		case 3:
			c.fail(errors.New("the peer does not answer"))
			return
		}
	}
}

// test closes the connection unless the peer answers within the time.
func (c *clientConn) test(within time.Duration) {
	c.alive.Store(false)
	_, _ = c.out.put(outFrame{kind: kindPing})
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-c.done:
	case <-t.C:
		if !c.alive.Load() {
			c.fail(errors.New("the peer does not answer"))
		}
	}
}

// fail ends the connection and what waits for it: what the writer has not begun
// was not sent, of all else nobody knows.
func (c *clientConn) fail(err error) {
	if err == nil {
		err = errors.New("closed")
	}
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	pending := c.pending
	c.pending = nil
	close(c.done)
	c.mu.Unlock()
	c.out.close(err)
	c.conn.abort()
	for _, p := range pending {
		if p.drop() {
			p.answer <- answer{err: fmt.Errorf("%w: %w", errLinkDied, err)}
		} else {
			p.answer <- answer{err: fmt.Errorf("%w: %w", ErrConnLost, err)}
		}
	}
}

// errLinkDied: the connection ended before the request was begun, so that it
// may be tried on a new one.
var errLinkDied = fmt.Errorf("%w: the connection ended first", ErrNotSent)

func (c *clientConn) isDone() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

func (c *clientConn) call(ctx context.Context, method string, body []byte) ([]byte, error) {
	p := &call{answer: make(chan answer, 1)}
	c.mu.Lock()
	if c.err != nil {
		err := c.err
		c.mu.Unlock()
		return nil, fmt.Errorf("%w: %w", errLinkDied, err)
	}
	c.next++
	id := c.next
	c.pending[id] = p
	c.mu.Unlock()
	if _, err := c.out.put(outFrame{kind: kindRequest, id: id, left: timeLeft(ctx), word: method, body: body, call: p}); err != nil {
		c.mu.Lock()
		delete(c.pending, id)
		c.mu.Unlock()
		return nil, notSent("%w", err)
	}
	select {
	case a := <-p.answer:
		return a.body, a.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	delete(c.pending, id)
	c.mu.Unlock()
	select {
	case a := <-p.answer: // both at once: the answer is worth more
		return a.body, a.err
	default:
	}
	if p.drop() {
		return nil, notSent("%w", context.Cause(ctx))
	}
	_, _ = c.out.put(outFrame{kind: kindCancel, id: id})
	return nil, fmt.Errorf("no answer in time, outcome unknown: %w", context.Cause(ctx))
}

// timeLeft is the context's time in milliseconds, at least 1; 0 is no limit.
func timeLeft(ctx context.Context) uint32 {
	t, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	left := time.Until(t).Milliseconds()
	return uint32(min(max(left, 1), 1<<31))
}
