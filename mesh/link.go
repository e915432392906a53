package mesh

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// link is this node's way to one peer: the stream it keeps open, or the memory
// of why there is none.
type link struct {
	n    *Node
	peer NodeID

	mu      sync.Mutex
	conn    *clientConn
	dialing chan struct{} // closed when the dial under way has ended
	fails   int
	until   time.Time // no new dial before
	err     error     // of the last dial
	pushes  []outFrame
}

func (n *Node) link(peer NodeID) *link {
	n.linkMu.Lock()
	defer n.linkMu.Unlock()
	l := n.links[peer]
	if l == nil {
		l = &link{n: n, peer: peer}
		n.links[peer] = l
	}
	return l
}

func (n *Node) allLinks() []*link {
	n.linkMu.Lock()
	defer n.linkMu.Unlock()
	out := make([]*link, 0, len(n.links))
	for _, l := range n.links {
		out = append(out, l)
	}
	return out
}

// linkUp ends the wait after failed dials: there is news of the peer.
func (n *Node) linkUp(peer NodeID) {
	n.linkMu.Lock()
	l := n.links[peer]
	n.linkMu.Unlock()
	if l != nil {
		l.reset()
	}
}

func (l *link) reset() {
	l.mu.Lock()
	l.fails, l.until = 0, time.Time{}
	l.mu.Unlock()
}

// Call sends a request to a peer and waits for its answer. A peer that could
// not be reached a moment ago fails at once (ErrNotSent) until its short backoff
// ends. The outcome is unknown when Ambiguous says so.
func (n *Node) Call(ctx context.Context, peer NodeID, method string, body []byte) ([]byte, error) {
	if err := checkRequest(method, body); err != nil {
		return nil, err
	}
	if peer == n.self {
		return n.callSelf(ctx, method, body)
	}
	l := n.link(peer)
	for try := 0; ; try++ {
		c, err := l.get(ctx)
		if err != nil {
			return nil, notSent("%s to node %s: %w", method, peer, err)
		}
		out, err := c.call(ctx, method, body)
		// Only what was certainly not sent is sent again, and only once.
		if err == nil || try > 0 || !errors.Is(err, errLinkDied) {
			return out, l.describe(method, err)
		}
	}
}

func (l *link) describe(method string, err error) error {
	var remote *RemoteError
	if err == nil || errors.As(err, &remote) {
		return err
	}
	return fmt.Errorf("%s to node %s: %w", method, l.peer, err)
}

func checkRequest(method string, body []byte) error {
	if method == "" || len(method) > 255 {
		return notSent("method %q: want 1 to 255 bytes", method)
	}
	if len(body) > MaxBody {
		return notSent("%s: body of %d bytes, at most %d fit", method, len(body), MaxBody)
	}
	return nil
}

// get gives the open stream, or waits for one dial of it.
func (l *link) get(ctx context.Context) (*clientConn, error) {
	for try := range dialsPerCall {
		l.mu.Lock()
		if l.conn != nil && !l.conn.isDone() {
			c := l.conn
			l.mu.Unlock()
			return c, nil
		}
		if !l.n.cfg.Trust(l.peer) {
			l.mu.Unlock()
			return nil, fmt.Errorf("%w: it is not in the node list", ErrRefused)
		}
		if l.dialing == nil {
			if l.err != nil && (try > 0 || time.Now().Before(l.until)) {
				err := l.err
				l.mu.Unlock()
				return nil, err
			}
			if err := l.startDial(); err != nil {
				l.mu.Unlock()
				return nil, err
			}
		}
		dialing := l.dialing
		l.mu.Unlock()
		select {
		case <-dialing:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return nil, errors.New("each new connection ended at once")
}

// dialsPerCall bounds the connections one call waits for when each ends at once.
const dialsPerCall = 4

// startDial begins a dial; l.mu is held.
func (l *link) startDial() error {
	l.dialing = make(chan struct{})
	if !l.n.spawn(l.dial) {
		l.dialing = nil
		return ErrClosed
	}
	return nil
}

// dial connects and then serves the connection until it ends.
func (l *link) dial() {
	ctx, cancel := context.WithTimeout(l.n.ctx, dialTimeout+l.n.cfg.HandshakeTimeout)
	conn, err := l.n.dialPeer(ctx, l.peer, ALPNStream)
	cancel()
	var c *clientConn
	if err == nil {
		c = newClientConn(conn, &l.n.stats.dropped)
	}
	l.mu.Lock()
	l.err = err
	pushes := l.pushes
	l.pushes = nil
	if err != nil {
		l.fails++
		l.until = time.Now().Add(backoff(l.fails))
	} else {
		l.fails, l.until, l.conn = 0, time.Time{}, c
		for _, f := range pushes {
			_, _ = c.out.put(f)
		}
	}
	close(l.dialing)
	l.dialing = nil
	l.mu.Unlock()
	if err != nil {
		l.n.stats.dropped.Add(uint64(len(pushes)))
		l.n.log.Debug("no link", "node", l.peer, "err", err)
		return
	}
	l.n.stats.connects.Add(1)
	c.run(l.n.ctx, l.n.cfg.KeepAlive, func() { l.n.heard(l.peer) })
	l.mu.Lock()
	if l.conn == c {
		l.conn = nil
	}
	l.mu.Unlock()
}

// Push sends one way. Without a link it waits, bounded, for the dial that it
// starts; what cannot be delivered is dropped and counted in Stats.
func (n *Node) Push(peer NodeID, method string, body []byte) {
	if checkRequest(method, body) != nil {
		n.stats.dropped.Add(1)
		return
	}
	if peer == n.self {
		n.pushSelf(method, body)
		return
	}
	n.link(peer).push(outFrame{kind: kindPush, word: method, body: body})
}

func (l *link) push(f outFrame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil && !l.conn.isDone() {
		_, _ = l.conn.out.put(f)
		return
	}
	if l.dialing == nil {
		if l.err != nil && time.Now().Before(l.until) || !l.n.cfg.Trust(l.peer) || l.startDial() != nil {
			l.n.stats.dropped.Add(1)
			return
		}
	}
	if len(l.pushes) >= queuePushes {
		l.pushes = l.pushes[1:]
		l.n.stats.dropped.Add(1)
	}
	l.pushes = append(l.pushes, f)
}

// testLinks asks every open stream for a sign of life.
func (n *Node) testLinks() {
	for _, l := range n.allLinks() {
		l.mu.Lock()
		c := l.conn
		l.mu.Unlock()
		if c != nil {
			n.spawn(func() { c.test(linkTestTime) })
		}
		l.reset()
	}
}

// linkTestTime is how long a link has to show life after a wake.
const linkTestTime = 2 * time.Second
