package api

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"muster/board"
)

// Times of a connection, the same for both ways in.
const (
	headTime = 10 * time.Second // for the head of a request
	idleTime = 2 * time.Minute  // between requests
)

// plain answers the one request that there are many of, a write (POST /v1/do)
// in its plainest form, and hands every connection that says anything else on
// to net/http, with what was read of it. Half of what a write cost this node's
// processor was net/http: its goroutine that watches each connection, a map of
// headers, three deadlines. Both ways share what is said: [handler.write] and
// [answerOf].
type plain struct {
	ctx  context.Context // of the server: ends what is under way
	l    net.Listener
	h    *handler
	peer func(net.Conn) peerInfo
	next chan net.Conn // to net/http, whose listener this is
	done chan struct{}

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	wg    sync.WaitGroup
	once  sync.Once
}

func newPlain(ctx context.Context, l net.Listener, h *handler, peer func(net.Conn) peerInfo) *plain {
	return &plain{ctx: ctx, l: l, h: h, peer: peer, next: make(chan net.Conn), done: make(chan struct{}), conns: map[net.Conn]struct{}{}}
}

// Accept implements net.Listener for net/http.
func (p *plain) Accept() (net.Conn, error) {
	select {
	case c := <-p.next:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Addr implements net.Listener.
func (p *plain) Addr() net.Addr { return p.l.Addr() }

// Close ends the socket and its connections, and waits for them.
func (p *plain) Close() error {
	p.once.Do(func() {
		close(p.done)
		p.l.Close()
		p.mu.Lock()
		for c := range p.conns {
			c.Close()
		}
		p.conns = nil
		p.mu.Unlock()
	})
	p.wg.Wait()
	return nil
}

func (p *plain) serve() {
	for wait := time.Millisecond; ; {
		c, err := p.l.Accept()
		if err == nil {
			wait = time.Millisecond
			p.begin(c)
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
		select { // too many open files: they will be fewer
		case <-time.After(wait):
			wait = min(2*wait, time.Second)
		case <-p.done:
			return
		}
	}
}

// begin serves a connection, unless Close came first.
func (p *plain) begin(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns == nil {
		c.Close()
		return
	}
	p.conns[c] = struct{}{}
	p.wg.Go(func() { p.conn(c) })
}

// handed is a connection on its way to net/http.
type handed struct {
	net.Conn
	peer peerInfo
	read *bufio.Reader // what was read ahead comes first
}

func (c *handed) Read(b []byte) (int, error) {
	if c.read.Buffered() > 0 {
		return c.read.Read(b)
	}
	return c.Conn.Read(b)
}

// withPeer is net/http's ConnContext.
func (p *plain) withPeer(ctx context.Context, c net.Conn) context.Context {
	if h, ok := c.(*handed); ok {
		return context.WithValue(ctx, peerKey{}, h.peer)
	}
	return ctx
}

// conn serves one connection until it ends or is handed on.
func (p *plain) conn(c net.Conn) {
	s := &plainConn{p: p, c: c, r: bufio.NewReaderSize(c, 4<<10), peer: p.peer(c)}
	on := s.serve()
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
	if on && c.SetDeadline(time.Time{}) == nil {
		select {
		case p.next <- &handed{c, s.peer, s.r}:
			return
		case <-p.done:
		}
	}
	c.Close()
}

// plainConn is one connection whose requests have all been plain so far.
type plainConn struct {
	p    *plain
	c    net.Conn
	r    *bufio.Reader
	peer peerInfo
	out  []byte

	readBy, writeBy time.Time // the deadlines that stand
}

// serve answers plain requests; true when one came that is not, and is net/http's.
func (s *plainConn) serve() (on bool) {
	for {
		s.until(idleTime)
		if _, err := s.r.Peek(1); err != nil {
			return false
		}
		head, size, plain, err := s.head()
		if err != nil || !plain {
			return err == nil
		}
		if _, err := s.r.Discard(size); err != nil {
			return false
		}
		body := make([]byte, head.length)
		if head.length > s.r.Buffered() {
			s.exactly(bodyTime)
		}
		if _, err := io.ReadFull(s.r, body); err != nil {
			return false
		}
		if !s.answer(head, body) {
			return false
		}
	}
}

// until gives the connection time to read, about: deadlines are not moved for every request.
func (s *plainConn) until(d time.Duration) {
	if by := time.Now().Add(d); by.Sub(s.readBy).Abs() > d/4 {
		s.readBy = by
		_ = s.c.SetReadDeadline(by)
	}
}

func (s *plainConn) exactly(d time.Duration) {
	s.readBy = time.Now().Add(d)
	_ = s.c.SetReadDeadline(s.readBy)
}

// head looks at the head of the next request, which stays unread; size is its
// length. It is not plain when it does not fit into the reader, either.
func (s *plainConn) head() (h plainHead, size int, plain bool, err error) {
	for waited := false; ; waited = true {
		b, _ := s.r.Peek(s.r.Buffered())
		if n := min(len(b), len(plainStart)); !bytes.Equal(b[:n], plainStart[:n]) {
			return h, 0, false, nil
		}
		if end := bytes.Index(b, []byte("\r\n\r\n")); end >= 0 {
			plain = h.parse(b[len(plainStart) : end+2])
			return h, end + 4, plain, nil
		}
		if len(b) == s.r.Size() {
			return h, 0, false, nil
		}
		if !waited {
			s.exactly(headTime)
		}
		if _, err := s.r.Peek(len(b) + 1); err != nil {
			return h, 0, false, err
		}
	}
}

// answer executes a request and answers; false when the connection is of no more use.
func (s *plainConn) answer(head plainHead, body []byte) bool {
	took := timeoutFrom(head.timeout)
	ctx, cancel := context.WithTimeout(s.p.ctx, took)
	left := s.watch(cancel)
	id, status, answer := s.execute(ctx, head, body)
	cancel()
	if left() {
		return false
	}
	s.out = append(s.out[:0], "HTTP/1.1 "...)
	s.out = strconv.AppendInt(s.out, int64(status), 10)
	s.out = append(append(s.out, ' '), http.StatusText(status)...)
	s.out = append(s.out, "\r\nContent-Type: application/json\r\nDate: "...)
	s.out = time.Now().UTC().AppendFormat(s.out, http.TimeFormat)
	if id != "" && printable(id) {
		s.out = append(append(s.out, "\r\n"+HeaderRequestID+": "...), id...)
	}
	s.out = strconv.AppendInt(append(s.out, "\r\nContent-Length: "...), int64(len(answer)), 10)
	s.out = append(append(s.out, "\r\n\r\n"...), answer...)
	if by := time.Now().Add(streamWrite); by.Sub(s.writeBy) > streamWrite/4 {
		s.writeBy = by
		_ = s.c.SetWriteDeadline(by)
	}
	_, err := s.c.Write(s.out)
	return err == nil
}

// execute is what [handler.wrap] and [handler.do] are for net/http.
func (s *plainConn) execute(ctx context.Context, head plainHead, body []byte) (id string, status int, answer []byte) {
	h := s.p.h
	defer func() {
		if p := recover(); p != nil {
			h.log.Error("panic in a request", "path", "/v1/do", "panic", p, "stack", string(debug.Stack()))
			status, answer = answerOf(nil, unread, board.Errorf(board.Internal, "%v", p), "")
		}
	}()
	var d Do
	c, err := h.callerOf(s.peer, head.authorization)
	defer func() { h.denied(c, err) }()
	if err == nil {
		err = decodeBytes(body, &d)
	}
	if err != nil {
		status, answer = answerOf(nil, unread, err, "")
		return "", status, answer
	}
	d.ID = orElse(d.ID, head.id)
	var data any
	var fresh Fresh
	data, fresh, err = h.write(ctx, c, d, func(under string) { id = under })
	status, answer = answerOf(data, fresh, err, id)
	return id, status, answer
}

// goneAfter is how long a request runs before it is looked whether its caller
// is still there: most are answered sooner.
const goneAfter = 100 * time.Millisecond

// watch ends a request whose caller hangs up. left ends the watch and tells
// whether the caller has left.
func (s *plainConn) watch(cancel func()) (left func() bool) {
	ended := make(chan bool, 1)
	t := time.AfterFunc(goneAfter, func() {
		_ = s.c.SetReadDeadline(time.Time{})
		_, err := s.r.Peek(1) // the next request, or the end: a caller that waits says nothing
		var late net.Error
		gone := err != nil && (!errors.As(err, &late) || !late.Timeout())
		if gone {
			cancel()
		}
		ended <- gone
	})
	return func() bool {
		if t.Stop() {
			return false
		}
		for {
			_ = s.c.SetReadDeadline(time.Unix(1, 0)) // again, when the watch has only begun
			s.readBy = time.Time{}
			select {
			case gone := <-ended:
				return gone
			case <-time.After(time.Millisecond):
			}
		}
	}
}
