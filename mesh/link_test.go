package mesh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// A connection lost in the middle of a call: the outcome is unknown, and what
// comes after works on a new connection.
func TestConnectionLostMidCall(t *testing.T) {
	f := newFleet(t)
	started := make(chan struct{}, 1)
	ended := make(chan struct{}, 1)
	b := f.start(func(c *Config) {
		c.Handler = func(ctx context.Context, _ NodeID, method string, body []byte) ([]byte, error) {
			if method == "hang" {
				started <- struct{}{}
				<-ctx.Done()
				ended <- struct{}{}
			}
			return body, nil
		}
	})
	a := f.start(nil)
	know(a, b)
	got := make(chan error, 1)
	go func() {
		_, err := a.Call(ctxFor(t, 20*time.Second), b.Self(), "hang", nil)
		got <- err
	}()
	<-started
	b.conns.closeIf(func(NodeID) bool { return true })
	err := <-got
	if !errors.Is(err, ErrConnLost) || errors.Is(err, ErrNotSent) || !Ambiguous(err) {
		t.Fatalf("got %v, want ErrConnLost", err)
	}
	<-ended
	if out, err := a.Call(ctxFor(t, 20*time.Second), b.Self(), "m", []byte("x")); err != nil || string(out) != "x" {
		t.Fatalf("after the loss: %q, %v", out, err)
	}
}

// A peer that is not there: certainly not sent, and after the first try at once.
func TestUnreachableFailsFast(t *testing.T) {
	f := newFleet(t)
	a, b := f.start(nil), f.start(nil)
	know(a, b)
	if _, err := a.Call(ctxFor(t, 10*time.Second), b.Self(), "m", nil); err != nil {
		t.Fatal(err)
	}
	_ = b.Close()
	eventually(t, "the loss is noticed", func() bool {
		_, err := a.Call(ctxFor(t, 10*time.Second), b.Self(), "m", nil)
		return errors.Is(err, ErrNotSent)
	})
	l := a.link(b.Self())
	l.mu.Lock()
	l.until = time.Now().Add(time.Hour)
	l.mu.Unlock()
	connects := a.Stats().Connects
	// In its backoff a call does not even try, though the peer is back.
	b.cfg.Listen = b.Addr().String()
	f.open(b)
	if _, err := a.Call(t.Context(), b.Self(), "m", nil); !errors.Is(err, ErrNotSent) {
		t.Fatalf("got %v", err)
	}
	// The peer is back elsewhere: news of an address ends the backoff.
	_ = b.Close()
	b.cfg.Listen = "127.0.0.1:0"
	f.open(b)
	a.Learn(b.Self(), b.Addr().String())
	if _, err := a.Call(ctxFor(t, 10*time.Second), b.Self(), "m", nil); err != nil {
		t.Fatalf("after the peer has moved: %v", err)
	}
	if a.Stats().Connects != connects+1 {
		t.Errorf("connects %d, want %d", a.Stats().Connects, connects+1)
	}
}

// Dial, as Raft uses it, waits for the link within its time.
func TestDialWaitsForTheLink(t *testing.T) {
	f := newFleet(t)
	a, b := f.start(nil), f.start(nil)
	addr := b.Addr().String()
	_ = b.Close()
	a.SetPeer(b.Self(), addr)
	type res struct {
		peer NodeID
		err  error
	}
	got := make(chan res, 1)
	to := b.Self()
	go func() {
		c, err := a.Dial(ctxFor(t, 20*time.Second), to, ALPNRaft)
		if err != nil {
			got <- res{err: err}
			return
		}
		id, _ := PeerOf(c)
		got <- res{peer: id}
	}()
	select {
	case r := <-got:
		t.Fatalf("did not wait: %+v", r)
	case <-time.After(150 * time.Millisecond):
	}
	b.cfg.Listen = addr
	f.open(b)
	c, err := b.RaftListener().Accept()
	if err != nil {
		t.Fatal(err)
	}
	if id, _ := PeerOf(c); id != a.Self() {
		t.Errorf("accepted from %s", id)
	}
	if r := <-got; r.err != nil || r.peer != b.Self() {
		t.Fatalf("got %+v", r)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := a.Dial(ctx, ID("nobody"), ALPNRaft); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// ID is an id nobody has the key of.
func ID(name string) NodeID { return IDOfKey([]byte(name)) }

// Pushes arrive, never block, and beyond the bound the oldest are dropped and
// counted.
func TestPush(t *testing.T) {
	f := newFleet(t)
	got := make(chan string, 10)
	b := f.start(func(c *Config) {
		c.Handler = func(_ context.Context, peer NodeID, method string, body []byte) ([]byte, error) {
			got <- method + " " + string(body)
			return nil, nil
		}
	})
	a := f.start(nil)
	know(a, b)
	a.Push(b.Self(), "order", []byte("1")) // starts the link
	if s := <-got; s != "order 1" {
		t.Fatalf("got %q", s)
	}
	a.Push(b.Self(), "order", []byte("2"))
	if s := <-got; s != "order 2" {
		t.Fatalf("got %q", s)
	}
	var dropped = &a.stats.dropped
	q := newFrameWriter(&bytes.Buffer{}, dropped)
	for i := range queuePushes + 3 {
		if _, err := q.put(outFrame{kind: kindPush, word: "m", body: fmt.Append(nil, i)}); err != nil {
			t.Fatal(err)
		}
	}
	if d := a.Stats().PushesDropped; d != 3 || len(q.queue) != queuePushes || string(q.queue[0].body) != "3" {
		t.Errorf("dropped %d, %d wait, first %q", d, len(q.queue), q.queue[0].body)
	}
	a.Push(ID("nobody"), "m", nil)
	eventually(t, "a push to nobody is counted", func() bool { return a.Stats().PushesDropped == 4 })
}

// A link whose peer no longer answers is given up by the keep-alive, without
// any call's own time limit.
func TestSilentPeerIsLost(t *testing.T) {
	f := newFleet(t)
	b := f.start(func(c *Config) {
		c.Handler = func(ctx context.Context, _ NodeID, method string, _ []byte) ([]byte, error) {
			if method == "hang" {
				<-ctx.Done()
			}
			return nil, nil
		}
	})
	proxy := newProxy(t, b.Addr().String())
	a := f.start(func(c *Config) { c.KeepAlive = 200 * time.Millisecond })
	a.SetPeer(b.Self(), proxy.addr)
	if _, err := a.Call(ctxFor(t, 10*time.Second), b.Self(), "m", nil); err != nil {
		t.Fatal(err)
	}
	proxy.freeze()
	_, err := a.Call(ctxFor(t, 20*time.Second), b.Self(), "hang", nil)
	if !errors.Is(err, ErrConnLost) {
		t.Fatalf("got %v, want ErrConnLost", err)
	}
}

// After a wake a dead link is found in a moment, long before the keep-alive
// would find it (invariant 14).
func TestKickTestsLinks(t *testing.T) {
	f := newFleet(t)
	b := f.start(func(c *Config) {
		c.Handler = func(ctx context.Context, _ NodeID, method string, _ []byte) ([]byte, error) {
			if method == "hang" {
				<-ctx.Done()
			}
			return nil, nil
		}
	})
	proxy := newProxy(t, b.Addr().String())
	a := f.start(func(c *Config) { c.KeepAlive = time.Hour })
	a.SetPeer(b.Self(), proxy.addr)
	ctx := ctxFor(t, 20*time.Second)
	got := make(chan error, 1)
	go func() {
		_, err := a.Call(ctx, b.Self(), "hang", nil)
		got <- err
	}()
	eventually(t, "the call runs", func() bool { return running(b.Node, a.Self()) == 1 })
	a.Kick()
	if _, err := a.Call(ctx, b.Self(), "m", nil); err != nil {
		t.Fatalf("a live link did not outlast the test: %v", err)
	}
	proxy.freeze()
	a.Kick()
	if err := <-got; !errors.Is(err, ErrConnLost) {
		t.Fatalf("got %v, want ErrConnLost", err)
	}
}

// When a connection ends, what was begun is unknown and what still waited in the
// queue is certainly not sent.
func TestQueuedIsNotSent(t *testing.T) {
	f := newFleet(t)
	b := f.start(nil)
	proxy := newProxy(t, b.Addr().String())
	a := f.start(nil)
	a.SetPeer(b.Self(), proxy.addr)
	conn, err := a.dialPeer(ctxFor(t, 10*time.Second), b.Self(), ALPNStream)
	if err != nil {
		t.Fatal(err)
	}
	proxy.freeze()
	c := newClientConn(conn, &a.stats.dropped)
	done := make(chan struct{})
	go func() { c.run(t.Context(), time.Hour, func() {}); close(done) }()
	call := func(body []byte) <-chan error {
		got := make(chan error, 1)
		go func() {
			_, err := c.call(t.Context(), "m", body)
			got <- err
		}()
		return got
	}
	begun := call(make([]byte, MaxBody)) // more than the kernel takes: the writer hangs in it
	queueLen := func() int {
		c.out.mu.Lock()
		defer c.out.mu.Unlock()
		return len(c.out.queue)
	}
	taken := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.pending) == 1 && queueLen() == 0
	}
	eventually(t, "the writer is busy", taken)
	queued := call(nil)
	eventually(t, "a call waits", func() bool { return queueLen() == 1 })
	c.fail(errors.New("cut"))
	if err := <-begun; !errors.Is(err, ErrConnLost) || errors.Is(err, ErrNotSent) {
		t.Errorf("the begun call: %v", err)
	}
	if err := <-queued; !errors.Is(err, ErrNotSent) || Ambiguous(err) {
		t.Errorf("the queued call: %v", err)
	}
	<-done
}

// Close ends what is under way, twice is once, and nothing works after it.
func TestClose(t *testing.T) {
	f := newFleet(t)
	started := make(chan struct{})
	b := f.start(func(c *Config) {
		c.Handler = func(ctx context.Context, _ NodeID, _ string, _ []byte) ([]byte, error) {
			close(started)
			<-ctx.Done()
			return nil, ctx.Err()
		}
	})
	a := f.start(nil)
	know(a, b)
	got := make(chan error, 1)
	go func() {
		_, err := a.Call(t.Context(), b.Self(), "m", nil)
		got <- err
	}()
	<-started
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; !errors.Is(err, ErrConnLost) {
		t.Fatalf("the call under way: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Call(t.Context(), b.Self(), "m", nil); !errors.Is(err, ErrNotSent) {
		t.Fatalf("after Close: %v", err)
	}
	if _, err := a.RaftListener().Accept(); err == nil {
		t.Fatal("the Raft listener goes on")
	}
}

// A port in use is one clear error and leaves nothing open.
func TestPortInUse(t *testing.T) {
	f := newFleet(t)
	a := f.start(nil)
	c := a.cfg
	c.Dir = t.TempDir()
	c.Listen = a.Addr().String()
	n, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	err = n.Open()
	if err == nil || !strings.Contains(err.Error(), "in use by another program") || !strings.Contains(err.Error(), c.Listen) {
		t.Fatalf("got %v", err)
	}
}
