package mesh

import (
	"crypto/tls"
	"net"
	"sync"
	"time"
)

// Conn is an authenticated connection to or from a peer. It is not a *tls.Conn,
// for which an http.Server would look up our protocol names as versions of HTTP.
type Conn struct {
	*tls.Conn
	peer NodeID
	raw  *tracked
}

// Peer is the node whose key the other side has shown; on the door it need not
// be trusted, and is empty for a client that has shown none.
func (c *Conn) Peer() NodeID { return c.peer }

// Abort closes at once, without the farewell of TLS that can wait for a peer
// that does not read.
func (c *Conn) Abort() { c.abort() }

// abort closes at once, without the farewell of TLS that can wait for a peer
// that does not read.
func (c *Conn) abort() { _ = c.raw.Close() }

// conns are all open connections, so that Recheck and Close reach them.
type conns struct {
	doorLimit int

	mu     sync.Mutex
	open   map[*tracked]struct{}
	doors  int            // of them, those at the door
	byHost map[string]int // of these, from each address: one stranger does not take all places
	closed bool
}

// tracked is a TCP connection that is in conns until it is closed.
type tracked struct {
	net.Conn
	set  *conns
	peer NodeID // guarded by set.mu
	door bool   // guarded by set.mu
	host string // of one at the door
}

func newConns(doorLimit int) *conns {
	return &conns{doorLimit: doorLimit, open: make(map[*tracked]struct{}), byHost: make(map[string]int)}
}

// track takes over a connection; nil (and closed) when the mesh is closed.
func (s *conns) track(c net.Conn) *tracked {
	t := &tracked{Conn: c, set: s}
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.open[t] = struct{}{}
	}
	s.mu.Unlock()
	if closed {
		_ = t.Close()
		return nil
	}
	return t
}

func (t *tracked) setPeer(id NodeID) {
	t.set.mu.Lock()
	t.peer = id
	t.set.mu.Unlock()
}

// enterDoor takes one of the door's places, given back by Close. One address has
// half of them at most.
func (t *tracked) enterDoor(host string) bool {
	t.set.mu.Lock()
	defer t.set.mu.Unlock()
	if _, open := t.set.open[t]; !open || t.set.doors >= t.set.doorLimit || t.set.byHost[host] >= max(t.set.doorLimit/2, 2) {
		return false
	}
	t.door, t.host = true, host
	t.set.doors++
	t.set.byHost[host]++
	return true
}

func (t *tracked) Close() error {
	t.set.mu.Lock()
	if _, open := t.set.open[t]; open {
		delete(t.set.open, t)
		if t.door {
			t.set.doors--
			if t.set.byHost[t.host]--; t.set.byHost[t.host] == 0 {
				delete(t.set.byHost, t.host)
			}
		}
	}
	t.set.mu.Unlock()
	return t.Conn.Close()
}

// closeIf closes the connections of the peers that drop says; those without a
// known peer, and those at the door, are asked about with "": at the door a key need
// not be listed, and each request is judged by itself.
func (s *conns) closeIf(drop func(NodeID) bool) int {
	s.mu.Lock()
	byPeer := make(map[NodeID][]*tracked)
	for t := range s.open {
		id := t.peer
		if t.door {
			id = ""
		}
		byPeer[id] = append(byPeer[id], t)
	}
	s.mu.Unlock()
	n := 0
	for id, list := range byPeer {
		if !drop(id) {
			continue
		}
		for _, t := range list {
			_ = t.Close()
			n++
		}
	}
	return n
}

func (s *conns) closeAll() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.closeIf(func(NodeID) bool { return true })
}

// chanListener hands out connections that were accepted and checked elsewhere.
type chanListener struct {
	ch   chan net.Conn
	done chan struct{}
	once sync.Once
	addr func() net.Addr
}

func newChanListener(addr func() net.Addr) *chanListener {
	return &chanListener{ch: make(chan net.Conn), done: make(chan struct{}), addr: addr}
}

func (l *chanListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.ch:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *chanListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *chanListener) Addr() net.Addr { return l.addr() }

// offerTime is how long an accepted connection waits for its protocol to start.
const offerTime = 10 * time.Second

// offer waits until the connection is taken; it closes it when nobody will.
func (l *chanListener) offer(c net.Conn, giveUp <-chan struct{}) {
	t := time.NewTimer(offerTime)
	defer t.Stop()
	select {
	case l.ch <- c:
		return
	case <-l.done:
	case <-giveUp:
	case <-t.C:
	}
	_ = c.Close()
}

// nodeAddr is a node id as the address of a connection's end.
type nodeAddr NodeID

func (nodeAddr) Network() string  { return "muster" }
func (a nodeAddr) String() string { return string(a) }
