package sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"muster/cmd/muster/node"
	"muster/mesh"
)

// port is the mesh of one process of a node.
type port struct {
	w      *Net
	cfg    mesh.Config
	id     mesh.NodeID
	ctx    context.Context
	cancel context.CancelFunc
	raft   *listener
	door   *listener
	term   *listener
	wg     sync.WaitGroup

	mu    sync.Mutex
	peers []mesh.NodeID
}

var _ node.Mesh = (*port)(nil)

// plug connects a process with the others.
func (w *Net) plug(cfg mesh.Config) *port {
	p := &port{w: w, cfg: cfg, id: cfg.Identity.ID}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.raft, p.door, p.term = newListener(p.id), newListener(p.id), newListener(p.id)
	w.set(func() { w.ports[p.id] = p })
	return p
}

// Close takes the process off the network.
func (p *port) Close() error {
	p.unplug()
	p.wg.Wait()
	return nil
}

// unplug takes it off at once, as kill -9 does.
func (p *port) unplug() {
	p.cancel()
	p.w.set(func() {
		if p.w.ports[p.id] == p {
			delete(p.w.ports, p.id)
		}
		for c := range p.w.conns {
			if c.self == p.id || c.peer == p.id {
				delete(p.w.conns, c)
				c.sever()
			}
		}
	})
	_ = p.raft.Close()
	_ = p.door.Close()
	_ = p.term.Close()
}

// Self implements mesh.Network.
func (p *port) Self() mesh.NodeID    { return p.id }
func (p *port) Addr() net.Addr       { return addr(p.id) }
func (p *port) Advertised() []string { return []string{string(p.id)} }

// to finds the peer's process, if both trust each other.
func (p *port) to(peer mesh.NodeID) *port {
	q := p.w.port(peer)
	if q == nil || p.ctx.Err() != nil || peer != p.id && (!p.cfg.Trust(peer) || !q.cfg.Trust(p.id)) {
		return nil
	}
	if p.cfg.CheckGreeting != nil && q.cfg.Greeting != nil && peer != p.id && p.cfg.CheckGreeting(peer, q.cfg.Greeting()) != nil {
		return nil
	}
	return q
}

// Call implements mesh.Network.
func (p *port) Call(ctx context.Context, peer mesh.NodeID, method string, body []byte) ([]byte, error) {
	if err := p.w.thawed(ctx, p.id); err != nil {
		return nil, fmt.Errorf("%w: %w", mesh.ErrNotSent, err)
	}
	q := p.to(peer)
	if q == nil || ctx.Err() != nil {
		_ = pass(ctx, time.Millisecond)
		return nil, unsent(peer)
	}
	if peer != p.id {
		if p.w.chance("request lost", func(r *Risk) float64 { return r.LostReq }) {
			_ = pass(ctx, p.w.upTo(noticed))
			return nil, lost(method, peer)
		}
		if method == "do" && p.w.chance("copy late", func(r *Risk) float64 { return r.LateReq }) {
			late := 300*time.Millisecond + p.w.upTo(6*time.Second)
			q.spawn(func() {
				if pass(q.ctx, late) == nil {
					short, cancel := context.WithTimeout(q.ctx, 2*time.Second)
					defer cancel()
					_, _ = q.cfg.Handler(short, p.id, method, body)
				}
			})
			_ = pass(ctx, p.w.upTo(500*time.Millisecond))
			return nil, lost(method, peer)
		}
		arrives := p.w.stamp(p.id, peer)
		if err := p.w.travel(ctx, p.id, peer); err != nil {
			return nil, lost(method, peer)
		}
		arrives()
	}
	return p.await(ctx, q, method, body)
}

type answer struct {
	body []byte
	err  error
}

func (p *port) await(ctx context.Context, q *port, method string, body []byte) ([]byte, error) {
	hctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan answer, 1)
	if !q.spawn(func() {
		defer context.AfterFunc(q.ctx, cancel)()
		out, err := q.cfg.Handler(hctx, p.id, method, body)
		done <- answer{out, err}
	}) {
		return nil, lost(method, q.id)
	}
	select {
	case a := <-done:
		if q == p {
			return a.body, remote(a.err)
		}
		if p.w.chance("answer lost", func(r *Risk) float64 { return r.LostAns }) || p.w.travel(ctx, q.id, p.id) != nil {
			return nil, lost(method, q.id)
		}
		if p.w.thawed(ctx, p.id) != nil || p.ctx.Err() != nil {
			return nil, lost(method, q.id)
		}
		return a.body, remote(a.err)
	case <-q.ctx.Done():
	case <-p.ctx.Done():
	case <-ctx.Done():
		return nil, fmt.Errorf("%s to node %s: no answer in time, outcome unknown: %w", method, q.id, context.Cause(ctx))
	}
	return nil, lost(method, q.id)
}

// remote gives an error the form it has after crossing the wire.
func remote(err error) error {
	var e *mesh.RemoteError
	if err == nil || errors.As(err, &e) {
		if err != nil {
			return &mesh.RemoteError{Code: e.Code, Text: e.Text}
		}
		return nil
	}
	return &mesh.RemoteError{Code: mesh.CodeInternal, Text: err.Error()}
}

// spawn runs f unless the process is gone; Close waits for it.
func (p *port) spawn(f func()) bool {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if p.ctx.Err() != nil {
		return false
	}
	p.wg.Go(f)
	return true
}

// Push implements mesh.Network: what finds no way is lost.
func (p *port) Push(peer mesh.NodeID, method string, body []byte) {
	q := p.to(peer)
	if q == nil {
		return
	}
	if p.w.chance("push lost", func(r *Risk) float64 { return r.LostReq }) {
		return
	}
	times := 1
	if p.w.chance("push twice", func(r *Risk) float64 { return r.Twice }) {
		times = 2
	}
	for i := range times {
		var late time.Duration
		if i > 0 {
			late = p.w.upTo(4 * time.Second)
		}
		arrives := p.w.stamp(p.id, peer)
		q.spawn(func() {
			if pass(q.ctx, late) == nil && p.w.travel(q.ctx, p.id, peer) == nil {
				arrives()
				_, _ = q.cfg.Handler(q.ctx, p.id, method, body)
			}
		})
	}
}

// Dial implements mesh.Network; it waits for the way until ctx ends.
func (p *port) Dial(ctx context.Context, peer mesh.NodeID, alpn string) (net.Conn, error) {
	for {
		ways, change := p.w.way(p.id, peer)
		back, _ := p.w.way(peer, p.id)
		q := p.to(peer)
		if q != nil && ways && back {
			return p.w.connect(ctx, p.id, q, alpn)
		}
		select {
		case <-change:
		case <-p.ctx.Done():
			return nil, mesh.ErrClosed
		case <-time.After(100 * time.Millisecond): // trust may have changed
		case <-ctx.Done():
			return nil, fmt.Errorf("dial node %s for %s: %w", peer, alpn, context.Cause(ctx))
		}
	}
}

// connect makes a connection to a listener of a process.
func (w *Net) connect(ctx context.Context, from mesh.NodeID, q *port, alpn string) (net.Conn, error) {
	l := q.raft
	switch alpn {
	case mesh.ALPNDoor:
		l = q.door
	case mesh.ALPNTerm:
		l = q.term
	}
	near, far := pair(w, from, q.id)
	select {
	case l.ch <- far:
		w.mu.Lock()
		w.conns[near], w.conns[far] = struct{}{}, struct{}{}
		w.mu.Unlock()
		return near, nil
	case <-l.done:
	case <-ctx.Done():
	}
	return nil, unsent(q.id)
}

// RaftListener implements mesh.Network.
func (p *port) RaftListener() net.Listener { return p.raft }

// TermListener implements mesh.Network.
func (p *port) TermListener() net.Listener { return p.term }

// DoorListener implements mesh.Network.
func (p *port) DoorListener() net.Listener { return p.door }

// SetPeer notes that the peer is known: an address is a node's id here.
func (p *port) SetPeer(peer mesh.NodeID, _ ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if peer != p.id && !slices.Contains(p.peers, peer) {
		p.peers = append(p.peers, peer)
	}
}

// Learn implements node.Mesh.
func (p *port) Learn(peer mesh.NodeID, addrs ...string) { p.SetPeer(peer, addrs...) }

// Peers are the known peers.
func (p *port) Peers() []mesh.NodeID {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.peers)
}

// Kick has nothing to do: nothing here is late.
func (p *port) Kick() {}

// Recheck has nothing to do: trust is asked at each call.
func (p *port) Recheck() {}

type listener struct {
	id   mesh.NodeID
	ch   chan net.Conn
	done chan struct{}
	once sync.Once
}

func newListener(id mesh.NodeID) *listener {
	return &listener{id: id, ch: make(chan net.Conn), done: make(chan struct{})}
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

func (l *listener) Addr() net.Addr { return addr(l.id) }
