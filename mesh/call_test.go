package mesh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
)

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
	out, err := a.Call(ctxFor(t, patience), b.Self(), "greet", []byte("hello"))
	if err != nil || string(out) != "you said hello" {
		t.Fatalf("got %q, %v", out, err)
	}
	s := <-got
	// The peer is who its key says, and the caller's time limit has crossed.
	if s.peer != a.Self() || s.method != "greet" || s.left <= 0 || s.left > patience {
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
