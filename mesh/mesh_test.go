package mesh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

// fleet is some nodes on loopback that trust each other by a list.
type fleet struct {
	t    *testing.T
	mu   sync.Mutex
	list map[NodeID]bool
}

func newFleet(t *testing.T) *fleet { return &fleet{t: t, list: make(map[NodeID]bool)} }

func (f *fleet) trust(id NodeID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.list[id]
}

func (f *fleet) set(id NodeID, in bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list[id] = in
}

// member is a node that can be started again on its folder.
type member struct {
	*Node
	cfg Config
	log *lines
}

func echo(_ context.Context, peer NodeID, method string, body []byte) ([]byte, error) {
	return append([]byte(method+" "), body...), nil
}

// start makes a node and puts it on the list; change may alter its config.
func (f *fleet) start(change func(*Config)) *member {
	f.t.Helper()
	dir := f.t.TempDir()
	id, err := LoadOrCreateIdentity(dir)
	if err != nil {
		f.t.Fatal(err)
	}
	f.set(id.ID, true)
	m := &member{log: &lines{}}
	c := DefaultConfig()
	c.Dir, c.Identity, c.FleetID, c.Trust, c.Handler = dir, id, "test-fleet", f.trust, echo
	c.Listen = "127.0.0.1:0"
	c.ProbeInterval = 100 * time.Millisecond
	c.Logger = slog.New(slog.NewTextHandler(m.log, nil))
	if change != nil {
		change(&c)
	}
	m.cfg = c
	f.open(m)
	return m
}

func (f *fleet) open(m *member) {
	f.t.Helper()
	n, err := New(m.cfg)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := n.Open(); err != nil {
		f.t.Fatal(err)
	}
	m.Node = n
	f.t.Cleanup(func() { _ = n.Close() })
}

// know tells every node of every other's address.
func know(ms ...*member) {
	for _, a := range ms {
		for _, b := range ms {
			if a != b {
				a.SetPeer(b.Self(), b.Addr().String())
			}
		}
	}
}

// lines is a log to look at.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), what)
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	within(t, 15*time.Second, what, ok)
}

func within(t *testing.T, d time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(d)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("not within %v: %s", d, what)
		case <-tick.C:
		}
	}
}

func ctxFor(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestCallAnswers(t *testing.T) {
	f := newFleet(t)
	type seen struct {
		peer   NodeID
		method string
		left   time.Duration
	}
	got := make(chan seen, 1)
	b := f.start(func(c *Config) {
		c.Handler = func(ctx context.Context, peer NodeID, method string, body []byte) ([]byte, error) {
			s := seen{peer: peer, method: method}
			if d, ok := ctx.Deadline(); ok {
				s.left = time.Until(d)
			}
			got <- s
			return append([]byte("you said "), body...), nil
		}
	})
	a := f.start(nil)
	know(a, b)
	out, err := a.Call(ctxFor(t, 20*time.Second), b.Self(), "greet", []byte("hello"))
	if err != nil || string(out) != "you said hello" {
		t.Fatalf("got %q, %v", out, err)
	}
	s := <-got
	// The peer is who its key says, and the caller's time limit has crossed.
	if s.peer != a.Self() || s.method != "greet" || s.left <= 0 || s.left > 20*time.Second {
		t.Fatalf("handler saw %+v", s)
	}
}

// A node calls itself like any other.
func TestCallSelf(t *testing.T) {
	f := newFleet(t)
	a := f.start(func(c *Config) {
		c.Handler = func(ctx context.Context, peer NodeID, method string, body []byte) ([]byte, error) {
			if method == "hang" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return nil, &RemoteError{Code: "refused", Text: "no " + string(peer)}
		}
	})
	var remote *RemoteError
	_, err := a.Call(t.Context(), a.Self(), "x", nil)
	if !errors.As(err, &remote) || remote.Code != "refused" || remote.Text != "no "+string(a.Self()) {
		t.Fatalf("got %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := a.Call(ctx, a.Self(), "hang", nil); !errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &remote) {
		t.Fatalf("got %v", err)
	}
}

// Errors cross with their code; what has none, and a panic, is internal.
func TestErrorsCross(t *testing.T) {
	f := newFleet(t)
	b := f.start(func(c *Config) {
		c.Handler = func(_ context.Context, _ NodeID, method string, _ []byte) ([]byte, error) {
			switch method {
			case "coded":
				return nil, fmt.Errorf("wrapped: %w", &RemoteError{Code: "conflict", Text: "card web-1 is done"})
			case "plain":
				return nil, errors.New("disk on fire")
			case "large":
				return make([]byte, MaxBody+1), nil
			}
			panic("boom")
		}
	})
	a := f.start(nil)
	know(a, b)
	for method, want := range map[string]RemoteError{
		"coded": {"conflict", "card web-1 is done"},
		"plain": {CodeInternal, "disk on fire"},
		"panic": {CodeInternal, "panic panicked: boom"},
		"large": {CodeInternal, fmt.Sprintf("answer of %d bytes, at most %d fit", MaxBody+1, MaxBody)},
	} {
		_, err := a.Call(ctxFor(t, 10*time.Second), b.Self(), method, nil)
		var remote *RemoteError
		if !errors.As(err, &remote) || *remote != want {
			t.Errorf("%s: got %#v, want %#v", method, err, want)
		}
		if Ambiguous(err) {
			t.Errorf("%s: an answer was called ambiguous", method)
		}
	}
}

// A body over the limit is refused before it is sent; the largest crosses.
func TestBodyLimit(t *testing.T) {
	f := newFleet(t)
	a, b := f.start(nil), f.start(nil)
	know(a, b)
	ctx := ctxFor(t, 20*time.Second)
	if _, err := a.Call(ctx, b.Self(), "m", make([]byte, MaxBody+1)); !errors.Is(err, ErrNotSent) {
		t.Fatalf("got %v", err)
	}
	body := bytes.Repeat([]byte("x"), MaxBody-64)
	out, err := a.Call(ctx, b.Self(), "m", body)
	if err != nil || len(out) != len(body)+2 {
		t.Fatalf("got %d bytes, %v", len(out), err)
	}
}

// A thousand calls on one connection, answered in reverse order, each get their
// own answer.
func TestPipelining(t *testing.T) {
	const calls = 1000
	f := newFleet(t)
	var arrived sync.WaitGroup
	arrived.Add(calls)
	b := f.start(func(c *Config) {
		c.HandlersPerPeer = calls
		c.Handler = func(ctx context.Context, _ NodeID, _ string, body []byte) ([]byte, error) {
			arrived.Done()
			arrived.Wait() // none is answered before all are here
			return body, nil
		}
	})
	a := f.start(nil)
	know(a, b)
	ctx := ctxFor(t, 30*time.Second)
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() {
			want := fmt.Sprintf("call %d", i)
			if out, err := a.Call(ctx, b.Self(), "m", []byte(want)); err != nil || string(out) != want {
				t.Errorf("got %q, %v; want %q", out, err, want)
			}
		})
	}
	wg.Wait()
	if got := a.Stats().Connects; got != 1 {
		t.Errorf("%d connections for one peer", got)
	}
}

// A handler that does not end keeps neither the reader nor other calls up, and
// the calls beyond the bounds are answered busy, which is certainly not executed.
func TestSlowHandlersAndBusy(t *testing.T) {
	f := newFleet(t)
	release := make(chan struct{})
	b := f.start(func(c *Config) {
		c.HandlersPerPeer = 2
		c.Handler = func(ctx context.Context, _ NodeID, method string, _ []byte) ([]byte, error) {
			if method == "slow" {
				<-release
			}
			return []byte("ok"), nil
		}
	})
	a, other := f.start(nil), f.start(nil)
	know(a, b, other)
	ctx := ctxFor(t, 30*time.Second)
	results := make(chan error, 100)
	slow := func() {
		_, err := a.Call(ctx, b.Self(), "slow", nil)
		results <- err
	}
	go slow()
	eventually(t, "one slow call runs", func() bool { return running(b.Node, a.Self()) == 1 })
	if _, err := a.Call(ctx, b.Self(), "fast", nil); err != nil {
		t.Fatalf("a fast call beside a slow one: %v", err)
	}
	const more = 1 + 2*QueuedPerHandler
	for range more {
		go slow()
	}
	eventually(t, "the desk is full", func() bool { return running(b.Node, a.Self()) == 2+2*QueuedPerHandler })
	_, err := a.Call(ctx, b.Self(), "fast", nil)
	var remote *RemoteError
	if !errors.As(err, &remote) || remote.Code != CodeBusy || !errors.Is(err, ErrNotSent) {
		t.Fatalf("got %v, want busy", err)
	}
	if _, err := other.Call(ctx, b.Self(), "fast", nil); err != nil {
		t.Fatalf("another peer was kept out: %v", err)
	}
	close(release)
	for range more + 1 {
		if err := <-results; err != nil {
			t.Errorf("a call that waited: %v", err)
		}
	}
}

// running is how many calls of a peer run or wait.
func running(n *Node, peer NodeID) int {
	d := n.desk(peer)
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.running + len(d.waiting)
}

// A caller that gives up is free at once, and its handler is told.
func TestCancelFreesCallerAndHandler(t *testing.T) {
	f := newFleet(t)
	started, ended := make(chan struct{}), make(chan struct{})
	b := f.start(func(c *Config) {
		c.Handler = func(ctx context.Context, _ NodeID, _ string, _ []byte) ([]byte, error) {
			close(started)
			<-ctx.Done()
			close(ended)
			return nil, ctx.Err()
		}
	})
	a := f.start(nil)
	know(a, b)
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error, 1)
	go func() {
		_, err := a.Call(ctx, b.Self(), "m", nil)
		got <- err
	}()
	<-started
	cancel()
	err := <-got
	if !errors.Is(err, context.Canceled) || !Ambiguous(err) {
		t.Fatalf("got %v, want an ambiguous cancellation", err)
	}
	<-ended
}

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
