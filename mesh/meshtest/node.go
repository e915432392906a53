package meshtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"

	"muster/mesh"
)

// Node is one node on a Network.
type Node struct {
	w        *Network
	id       mesh.NodeID
	handler  mesh.Handler
	trust    func(mesh.NodeID) bool
	ctx      context.Context
	cancel   context.CancelFunc
	raft     *listener
	door     *listener
	term     *listener
	presence chan struct{}

	mu    sync.Mutex
	peers []mesh.NodeID
	wg    sync.WaitGroup
}

var (
	_ mesh.Network   = (*Node)(nil)
	_ mesh.Directory = (*Node)(nil)
)

func newNode(w *Network, id mesh.NodeID, h mesh.Handler, trust func(mesh.NodeID) bool) *Node {
	n := &Node{w: w, id: id, handler: h, trust: trust, presence: make(chan struct{}, 1)}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.raft = &listener{node: n, ch: make(chan net.Conn), done: make(chan struct{})}
	n.door = &listener{node: n, ch: make(chan net.Conn), done: make(chan struct{})}
	n.term = &listener{node: n, ch: make(chan net.Conn), done: make(chan struct{})}
	return n
}

func (n *Node) trusts(id mesh.NodeID) bool { return n.trust == nil || n.trust(id) }

// Close takes the node off the network at once, as kill -9 does, and waits for
// its pushes and handlers.
func (n *Node) Close() error {
	n.w.mu.Lock()
	if n.w.nodes[n.id] == n {
		delete(n.w.nodes, n.id)
		n.w.changed()
	}
	n.w.mu.Unlock()
	n.cancel()
	_ = n.raft.Close()
	_ = n.door.Close()
	_ = n.term.Close()
	n.wg.Wait()
	return nil
}

// Self is this node's id.
func (n *Node) Self() mesh.NodeID { return n.id }

// Call runs the peer's handler and returns its answer. See mesh.Network.
func (n *Node) Call(ctx context.Context, peer mesh.NodeID, method string, body []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", mesh.ErrNotSent, context.Cause(ctx))
	}
	n.w.mu.Lock()
	to := n.w.nodes[peer]
	reach := n.w.nodes[n.id] == n && n.w.open(n.id, peer) && n.trusts(peer) && to.trusts(n.id)
	n.w.mu.Unlock()
	if !reach {
		return nil, fmt.Errorf("%w: node %s is out of reach", mesh.ErrNotSent, peer)
	}
	remote := peer != n.id
	if remote && n.w.chance(func() float64 { return n.w.dropReq }) {
		return nil, fmt.Errorf("%s to node %s: %w", method, peer, mesh.ErrConnLost)
	}
	return n.await(ctx, to, method, body)
}

type answer struct {
	body []byte
	err  error
}

// await waits for the answer for as long as it could still arrive.
func (n *Node) await(ctx context.Context, to *Node, method string, body []byte) ([]byte, error) {
	hctx, cancel := context.WithCancel(ctx)
	done := make(chan answer, 1)
	if !to.spawn(func() {
		defer cancel()
		stop := context.AfterFunc(to.ctx, cancel)
		defer stop()
		out, err := to.handler(hctx, n.id, method, body)
		done <- answer{out, err}
	}) {
		cancel()
		return nil, fmt.Errorf("%w: node %s is out of reach", mesh.ErrNotSent, to.id)
	}
	for {
		n.w.mu.Lock()
		change := n.w.change
		back := n.w.nodes[n.id] == n && n.w.nodes[to.id] == to && n.w.open(to.id, n.id)
		n.w.mu.Unlock()
		if !back {
			cancel()
			return nil, fmt.Errorf("%s to node %s: %w", method, to.id, mesh.ErrConnLost)
		}
		select {
		case a := <-done:
			if to != n && n.w.chance(func() float64 { return n.w.dropAns }) {
				return nil, fmt.Errorf("%s to node %s: %w", method, to.id, mesh.ErrConnLost)
			}
			return a.body, remoteError(a.err)
		case <-change:
		case <-ctx.Done():
			cancel()
			return nil, fmt.Errorf("%s to node %s: no answer in time, outcome unknown: %w", method, to.id, context.Cause(ctx))
		}
	}
}

// remoteError gives an error the form it has after crossing the wire.
func remoteError(err error) error {
	if err == nil {
		return nil
	}
	var e *mesh.RemoteError
	if errors.As(err, &e) {
		return &mesh.RemoteError{Code: e.Code, Text: e.Text}
	}
	return &mesh.RemoteError{Code: mesh.CodeInternal, Text: err.Error()}
}

// spawn runs f unless the node is closed; Close waits for it.
func (n *Node) spawn(f func()) bool {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	if n.w.nodes[n.id] != n {
		return false
	}
	n.wg.Go(f)
	return true
}

// Push runs the peer's handler if it can be reached now, and is lost otherwise.
func (n *Node) Push(peer mesh.NodeID, method string, body []byte) {
	n.w.mu.Lock()
	to := n.w.nodes[peer]
	reach := n.w.nodes[n.id] == n && n.w.open(n.id, peer) && n.trusts(peer) && to.trusts(n.id)
	lost := n.w.dropReq > 0 && n.w.rng.Float64() < n.w.dropReq
	n.w.mu.Unlock()
	if reach && !lost {
		to.spawn(func() { _, _ = to.handler(to.ctx, n.id, method, body) })
	}
}

// Dial connects to a listener of the peer; it waits for the way until ctx ends.
func (n *Node) Dial(ctx context.Context, peer mesh.NodeID, alpn string) (net.Conn, error) {
	for {
		n.w.mu.Lock()
		change := n.w.change
		up := n.w.nodes[n.id] == n && n.w.linked(n.id, peer)
		to := n.w.nodes[peer]
		n.w.mu.Unlock()
		if up {
			if l := to.listener(alpn); l != nil {
				if c := n.connect(ctx, to, l); c != nil {
					return c, nil
				}
			} else {
				return nil, fmt.Errorf("dial node %s: no listener for %q", peer, alpn)
			}
		}
		select {
		case <-change:
		case <-n.ctx.Done():
			return nil, mesh.ErrClosed
		case <-ctx.Done():
			return nil, fmt.Errorf("dial node %s for %s: %w", peer, alpn, context.Cause(ctx))
		}
	}
}

func (n *Node) connect(ctx context.Context, to *Node, l *listener) net.Conn {
	a, b := net.Pipe()
	near, far := &conn{a, n.w, n.id, to.id}, &conn{b, n.w, to.id, n.id}
	n.w.mu.Lock()
	linked := n.w.linked(n.id, to.id)
	if linked {
		n.w.pipes[near], n.w.pipes[far] = struct{}{}, struct{}{}
	}
	n.w.mu.Unlock()
	if !linked {
		return nil
	}
	select {
	case l.ch <- far:
		return near
	case <-l.done:
	case <-ctx.Done():
	}
	_ = near.Close()
	_ = far.Close()
	return nil
}

func (n *Node) listener(alpn string) *listener {
	switch alpn {
	case mesh.ALPNRaft:
		return n.raft
	case mesh.ALPNDoor:
		return n.door
	case mesh.ALPNTerm:
		return n.term
	}
	return nil
}

// RaftListener gives the connections dialed for mesh.ALPNRaft.
func (n *Node) RaftListener() net.Listener { return n.raft }

// TermListener gives the connections dialed for mesh.ALPNTerm.
func (n *Node) TermListener() net.Listener { return n.term }

// DoorListener gives the connections dialed for mesh.ALPNDoor.
func (n *Node) DoorListener() net.Listener { return n.door }

// SetPeer only notes that the peer is known: addresses mean nothing here.
func (n *Node) SetPeer(peer mesh.NodeID, _ ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if peer != n.id && !slices.Contains(n.peers, peer) {
		n.peers = append(n.peers, peer)
	}
}

// Forget drops a peer.
func (n *Node) Forget(peer mesh.NodeID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.peers = slices.DeleteFunc(n.peers, func(id mesh.NodeID) bool { return id == peer })
}

// Peers are the known peers.
func (n *Node) Peers() []mesh.NodeID {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.peers)
}

// Presence is what this node would know from gossip, without its delay.
func (n *Node) Presence() map[mesh.NodeID]mesh.Seen {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	out := make(map[mesh.NodeID]mesh.Seen)
	for p, s := range n.w.seen {
		if p.from == n.id {
			out[p.to] = s
		}
	}
	return out
}

// Changed has one signal when Presence differs from before.
func (n *Node) Changed() <-chan struct{} { return n.presence }

// Recheck closes the connections that are no longer trusted.
func (n *Node) Recheck() {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	n.w.changed()
}

// Kick has nothing to do: nothing here is late.
func (n *Node) Kick() {}

// conn is one end of a connection.
type conn struct {
	net.Conn
	w          *Network
	self, peer mesh.NodeID
}

// Peer is the node at the other end.
func (c *conn) Peer() mesh.NodeID    { return c.peer }
func (c *conn) LocalAddr() net.Addr  { return addr(c.self) }
func (c *conn) RemoteAddr() net.Addr { return addr(c.peer) }

func (c *conn) Close() error {
	c.w.mu.Lock()
	delete(c.w.pipes, c)
	c.w.mu.Unlock()
	return c.Conn.Close()
}

type addr mesh.NodeID

func (addr) Network() string  { return "meshtest" }
func (a addr) String() string { return string(a) }

type listener struct {
	node *Node
	ch   chan net.Conn
	done chan struct{}
	once sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.ch:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *listener) Addr() net.Addr { return addr(l.node.id) }
