package mesh

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"
)

const (
	dialTimeout = 3 * time.Second
	// dialStagger is how long an address may keep silent before the next one is
	// tried beside it.
	dialStagger = 200 * time.Millisecond
	backoffMin  = 50 * time.Millisecond
	backoffMax  = time.Second
)

// backoff is the wait after so many failures in a row, with jitter.
func backoff(fails int) time.Duration {
	d := backoffMax
	if fails < 6 {
		d = min(backoffMin<<max(fails-1, 0), backoffMax)
	}
	return d/2 + rand.N(d/2+1)
}

// Dial opens a connection to a peer for one protocol and returns a *Conn. While
// the peer is out of reach it tries again, at once when an address is news, and
// gives the last reason when ctx ends.
func (n *Node) Dial(ctx context.Context, peer NodeID, alpn string) (net.Conn, error) {
	ctx, cancel := n.joined(ctx)
	defer cancel()
	for fails := 1; ; fails++ {
		news := n.book.changed()
		c, err := n.dialPeer(ctx, peer, alpn)
		if err == nil {
			return c, nil
		}
		wait := time.NewTimer(backoff(fails))
		select {
		case <-wait.C:
		case <-news:
			wait.Stop()
			fails = 0
		case <-ctx.Done():
			wait.Stop()
			return nil, fmt.Errorf("dial node %s for %s: %w (last try: %w)", peer, alpn, context.Cause(ctx), err)
		}
	}
}

// joined is a context that ends with ctx or with the mesh.
func (n *Node) joined(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(n.ctx, func() { cancel(ErrClosed) })
	return ctx, func() { stop(); cancel(context.Canceled) }
}

type dialResult struct {
	conn *Conn
	addr string
	err  error
}

// dialPeer tries each known address of a peer once, newest first, a little
// staggered; the first that answers with the right key wins.
func (n *Node) dialPeer(ctx context.Context, id NodeID, alpn string) (*Conn, error) {
	if id == n.self {
		return nil, errors.New("a node does not dial itself")
	}
	if !n.cfg.Trust(id) {
		return nil, fmt.Errorf("%w: node %s is not in the node list", ErrRefused, id)
	}
	addrs := n.book.candidates(id)
	if len(addrs) == 0 {
		return nil, fmt.Errorf("node %s: %w", id, ErrNoAddress)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan dialResult, len(addrs))
	next := func() {
		addr := addrs[0]
		addrs = addrs[1:]
		if !n.spawn(func() {
			c, err := n.dialAddr(ctx, id, alpn, addr)
			results <- dialResult{c, addr, err}
		}) {
			results <- dialResult{err: ErrClosed}
		}
	}
	stagger := time.NewTimer(dialStagger)
	defer stagger.Stop()
	next()
	var errs []error
	for running := 1; running > 0; {
		select {
		case r := <-results:
			running--
			if r.err == nil {
				cancel()
				if late := func() { closeLate(results, running) }; !n.spawn(late) {
					late()
				}
				n.book.reachedAt(id, r.addr, r.conn.RemoteAddr(), time.Now())
				n.heard(id)
				return r.conn, nil
			}
			errs = append(errs, r.err)
		case <-stagger.C:
		}
		if len(addrs) > 0 && ctx.Err() == nil {
			next()
			running++
			stagger.Reset(dialStagger)
		}
	}
	return nil, errors.Join(errs...)
}

// closeLate closes what connects after another address has won. Every try ends
// by its cancelled context.
func closeLate(results <-chan dialResult, running int) {
	for range running {
		if r := <-results; r.conn != nil {
			r.conn.abort()
		}
	}
}

func (n *Node) dialAddr(ctx context.Context, id NodeID, alpn, addr string) (*Conn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	raw, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	t := n.conns.track(raw)
	if t == nil {
		return nil, ErrClosed
	}
	c, err := n.dialHandshake(ctx, t, id, alpn)
	if err != nil {
		_ = t.Close()
		return nil, fmt.Errorf("%s: %w", addr, err)
	}
	return c, nil
}

func (n *Node) dialHandshake(ctx context.Context, t *tracked, id NodeID, alpn string) (*Conn, error) {
	until := time.Now().Add(n.cfg.HandshakeTimeout)
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = t.Close() })()
	want := func(got NodeID) error {
		switch got {
		case id:
			return nil
		case n.self:
			return fmt.Errorf("%w: this is our own address", ErrRefused)
		}
		return fmt.Errorf("%w: node %s answers there, not %s", ErrRefused, got, id)
	}
	tc := tls.Client(t, clientTLS(n.cfg.Identity, alpn, want))
	if err := tc.HandshakeContext(ctx); err != nil {
		return nil, refusedByPeer(err)
	}
	t.setPeer(id)
	c := &Conn{Conn: tc, peer: id, raw: t}
	if err := n.greetServer(c, until); err != nil {
		return nil, err
	}
	if !n.cfg.Trust(id) {
		return nil, fmt.Errorf("%w: node %s is not in the node list", ErrRefused, id)
	}
	return c, nil
}
