package sim

import (
	"io"
	"net"
	"os"
	"sync"
	"time"

	"muster/mesh"
)

// half is one direction of a connection: what is written travels for a while, in
// order, and waits where the way is cut.
type half struct {
	w        *Net
	from, to mesh.NodeID

	mu     sync.Mutex
	flying []chunk
	last   time.Time // arrival of the newest chunk
	shut   bool      // nothing more comes
	late   time.Time // read deadline
	news   chan struct{}
}

type chunk struct {
	at time.Time
	b  []byte
}

func (h *half) wake() {
	close(h.news)
	h.news = make(chan struct{})
}

func (h *half) write(b []byte) (int, error) {
	d := h.w.latency(h.from, h.to)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.shut {
		return 0, io.ErrClosedPipe
	}
	at := time.Now().Add(d)
	if at.Before(h.last) {
		at = h.last
	}
	h.last = at
	h.flying = append(h.flying, chunk{at, append([]byte(nil), b...)})
	h.wake()
	return len(b), nil
}

func (h *half) read(p []byte) (int, error) {
	for {
		open, changed := h.w.way(h.from, h.to)
		h.mu.Lock()
		now, news := time.Now(), h.news
		wait := time.Hour
		if !h.late.IsZero() {
			if !now.Before(h.late) {
				h.mu.Unlock()
				return 0, os.ErrDeadlineExceeded
			}
			wait = h.late.Sub(now)
		}
		switch {
		case len(h.flying) > 0 && open:
			c := &h.flying[0]
			if due := c.at.Sub(now); due > 0 {
				wait = min(wait, due)
				break
			}
			n := copy(p, c.b)
			if c.b = c.b[n:]; len(c.b) == 0 {
				h.flying = h.flying[1:]
			}
			h.mu.Unlock()
			return n, nil
		case h.shut && len(h.flying) == 0:
			h.mu.Unlock()
			return 0, io.EOF
		}
		h.mu.Unlock()
		t := time.NewTimer(wait)
		select {
		case <-news:
		case <-changed:
		case <-t.C:
		}
		t.Stop()
	}
}

// close ends the direction; hard loses what is under way.
func (h *half) close(hard bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.shut = true; hard {
		h.flying = nil
	}
	h.wake()
}

func (h *half) deadline(t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.late = t
	h.wake()
}

// conn is one end of a connection.
type conn struct {
	w          *Net
	in, out    *half
	self, peer mesh.NodeID
}

// pair is a connection between two nodes.
func pair(w *Net, a, b mesh.NodeID) (near, far *conn) {
	to := &half{w: w, from: a, to: b, news: make(chan struct{})}
	back := &half{w: w, from: b, to: a, news: make(chan struct{})}
	return &conn{w, back, to, a, b}, &conn{w, to, back, b, a}
}

// Peer tells who is at the other end (mesh.PeerOf).
func (c *conn) Peer() mesh.NodeID           { return c.peer }
func (c *conn) Read(p []byte) (int, error)  { return c.in.read(p) }
func (c *conn) Write(p []byte) (int, error) { return c.out.write(p) }
func (c *conn) LocalAddr() net.Addr         { return addr(c.self) }
func (c *conn) RemoteAddr() net.Addr        { return addr(c.peer) }

func (c *conn) Close() error {
	c.w.drop(c)
	c.in.close(true)
	c.out.close(false)
	return nil
}

// sever loses what is under way, as the death of a machine does.
func (c *conn) sever() {
	c.in.close(true)
	c.out.close(true)
}

func (c *conn) SetDeadline(t time.Time) error     { return c.SetReadDeadline(t) }
func (c *conn) SetReadDeadline(t time.Time) error { c.in.deadline(t); return nil }
func (c *conn) SetWriteDeadline(time.Time) error  { return nil } // a write never waits

type addr mesh.NodeID

func (addr) Network() string  { return "sim" }
func (a addr) String() string { return string(a) }
