package mesh

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// queuedBytes bounds the bodies of one peer's calls that wait for a handler.
const queuedBytes = 64 << 20

// desk bounds the handlers of one peer, over all its connections.
type desk struct {
	limit int

	mu      sync.Mutex
	running int
	waiting []job
	bytes   int
}

type job struct {
	size int
	run  func()
}

func (n *Node) desk(peer NodeID) *desk {
	n.deskMu.Lock()
	defer n.deskMu.Unlock()
	d := n.desks[peer]
	if d == nil {
		d = &desk{limit: n.cfg.HandlersPerPeer}
		n.desks[peer] = d
	}
	return d
}

// take runs the job in a goroutine, now or when its turn comes; false if there
// is no room for it or the mesh closes.
func (d *desk) take(j job, spawn func(func()) bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running >= d.limit {
		if len(d.waiting) >= d.limit*QueuedPerHandler || d.bytes+j.size > queuedBytes {
			return false
		}
		d.waiting = append(d.waiting, j)
		d.bytes += j.size
		return true
	}
	if !spawn(func() { d.work(j) }) {
		return false
	}
	d.running++
	return true
}

func (d *desk) work(j job) {
	for {
		j.run()
		d.mu.Lock()
		if len(d.waiting) == 0 {
			d.running--
			d.mu.Unlock()
			return
		}
		j = d.waiting[0]
		d.waiting[0] = job{}
		d.waiting = d.waiting[1:]
		d.bytes -= j.size
		d.mu.Unlock()
	}
}

// serverConn is our end of a stream that a peer opened.
type serverConn struct {
	n      *Node
	conn   *Conn
	out    *frameWriter
	ctx    context.Context // ends with the connection
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	cancels map[uint64]context.CancelFunc
}

// serverSilence is how many keep-alive periods a stream may be silent here; its
// other end tests it after one.
const serverSilence = 10

// serveStream answers the requests of one connection until it ends.
func (n *Node) serveStream(conn *Conn) {
	s := &serverConn{n: n, conn: conn, out: newFrameWriter(conn, &n.stats.dropped), cancels: make(map[uint64]context.CancelFunc)}
	s.ctx, s.cancel = context.WithCancelCause(n.ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		err := s.out.run(s.ctx.Done())
		s.cancel(errors.Join(ErrConnLost, err))
		conn.abort()
	})
	stop := context.AfterFunc(s.ctx, conn.abort)
	err := s.read()
	s.cancel(fmt.Errorf("%w: %w", ErrConnLost, err))
	stop()
	conn.abort()
	s.out.close(ErrConnLost)
	wg.Wait()
	if errors.Is(err, errFrame) {
		n.logAbout("frame "+string(conn.peer), "a peer sent what is no stream; connection closed", "node", conn.peer, "err", err)
	}
}

func (s *serverConn) read() error {
	r := bufio.NewReaderSize(s.conn, 64<<10)
	silence := serverSilence * s.n.cfg.KeepAlive
	var lastSet time.Time
	for {
		if now := time.Now(); now.Sub(lastSet) > s.n.cfg.KeepAlive {
			lastSet = now
			if err := s.conn.SetReadDeadline(now.Add(silence)); err != nil {
				return err
			}
			s.n.heard(s.conn.peer)
		}
		f, err := readFrame(r)
		if err != nil {
			return err
		}
		switch f.kind {
		case kindRequest, kindPush:
			if err := s.request(f); err != nil {
				return err
			}
		case kindCancel:
			s.mu.Lock()
			cancel := s.cancels[f.id]
			s.mu.Unlock()
			if cancel != nil {
				cancel()
			}
		case kindPing:
			// With a full queue the answers themselves are the sign of life.
			_, _ = s.out.put(outFrame{kind: kindPong, id: f.id})
		}
	}
}

// request hands a request to the peer's desk. It never waits for a handler.
func (s *serverConn) request(f frame) error {
	left, method, body, err := parseRequest(f.payload)
	if err != nil {
		return err
	}
	ctx, cancel := s.ctx, context.CancelFunc(func() {})
	if f.kind == kindRequest {
		ctx, cancel = context.WithCancel(s.ctx)
		if left > 0 {
			ctx, cancel = withTimeout(ctx, cancel, left)
		}
		s.mu.Lock()
		s.cancels[f.id] = cancel
		s.mu.Unlock()
	}
	finish := func() {
		cancel()
		s.mu.Lock()
		delete(s.cancels, f.id)
		s.mu.Unlock()
	}
	run := func() {
		defer finish()
		out, err := s.n.handle(ctx, s.conn.peer, method, body)
		if f.kind == kindRequest {
			// The handler's place is kept until its answer is queued: a peer
			// that does not read its answers gets no more of them made.
			_ = s.send(answerFrame(f.id, out, err))
		}
	}
	if s.n.desk(s.conn.peer).take(job{size: len(body), run: run}, s.n.spawn) {
		return nil
	}
	finish()
	if f.kind == kindPush {
		s.n.stats.dropped.Add(1)
		return nil
	}
	busy := outFrame{kind: kindFailure, id: f.id, word: CodeBusy, body: []byte("too many requests of this node are waiting")}
	if _, err := s.out.put(busy); err != nil && !errors.Is(err, errQueueFull) {
		return err
	}
	return nil
}

func withTimeout(ctx context.Context, outer context.CancelFunc, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, d)
	return ctx, func() { cancel(); outer() }
}

// send queues a frame, waiting for room while the connection lasts.
func (s *serverConn) send(f outFrame) error {
	for {
		wait, err := s.out.put(f)
		if !errors.Is(err, errQueueFull) {
			return err
		}
		select {
		case <-wait:
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		}
	}
}

func answerFrame(id uint64, body []byte, err error) outFrame {
	if err == nil && len(body) > MaxBody {
		err = &RemoteError{Code: CodeInternal, Text: fmt.Sprintf("answer of %d bytes, at most %d fit", len(body), MaxBody)}
	}
	if err == nil {
		return outFrame{kind: kindAnswer, id: id, body: body}
	}
	e := asRemote(err)
	return outFrame{kind: kindFailure, id: id, word: e.Code[:min(len(e.Code), 255)], body: []byte(e.Text[:min(len(e.Text), 64<<10)])}
}

// asRemote gives an error the form in which it crosses the wire.
func asRemote(err error) *RemoteError {
	var e *RemoteError
	if errors.As(err, &e) {
		return e
	}
	return &RemoteError{Code: CodeInternal, Text: err.Error()}
}

// handle runs the handler; a panic in it is an answer like any other.
func (n *Node) handle(ctx context.Context, peer NodeID, method string, body []byte) (out []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			n.log.Error("a handler panicked", "node", peer, "method", method, "panic", p, "stack", string(debug.Stack()))
			err = &RemoteError{Code: CodeInternal, Text: fmt.Sprintf("%s panicked: %v", method, p)}
		}
	}()
	return n.cfg.Handler(ctx, peer, method, body)
}

// callSelf answers a node's call to itself with the same bounds and the same
// errors as any other.
func (n *Node) callSelf(ctx context.Context, method string, body []byte) ([]byte, error) {
	hctx, cancel := n.joined(ctx)
	done := make(chan answer, 1)
	run := func() {
		defer cancel()
		out, err := n.handle(hctx, n.self, method, body)
		if err != nil {
			err = asRemote(err)
		}
		done <- answer{out, err}
	}
	if !n.desk(n.self).take(job{size: len(body), run: run}, n.spawn) {
		cancel()
		return nil, &RemoteError{Code: CodeBusy, Text: "too many requests of this node are waiting"}
	}
	select {
	case a := <-done:
		return a.body, a.err
	case <-hctx.Done():
	}
	select {
	case a := <-done:
		return a.body, a.err
	default:
		return nil, fmt.Errorf("%s: no answer in time, outcome unknown: %w", method, context.Cause(hctx))
	}
}

func (n *Node) pushSelf(method string, body []byte) {
	run := func() { _, _ = n.handle(n.ctx, n.self, method, body) }
	if !n.desk(n.self).take(job{size: len(body), run: run}, n.spawn) {
		n.stats.dropped.Add(1)
	}
}
