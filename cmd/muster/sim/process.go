package sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"muster/board"
	"muster/cmd/muster/node"
	"muster/launcher"
	"muster/mesh"
	"muster/raftstore"
)

// process is one life of a node.
type process struct {
	m      *Machine
	node   *node.Node
	ctx    context.Context // ends with its death
	cancel context.CancelFunc
	port   atomic.Pointer[port]
	opened chan struct{} // closed when Open has returned
	ready  atomic.Bool   // Open succeeded
	closed chan struct{}
	fuse   atomic.Int64 // writes until it dies; 0: it does not
	shut   atomic.Bool
}

var errDead = errors.New("sim: this process is dead")

func (p *process) id() mesh.NodeID { return p.m.node() }

// acts tells that it is up, and has not stopped by itself.
func (p *process) acts() bool {
	if !p.ready.Load() || p.ctx.Err() != nil {
		return false
	}
	select {
	case <-p.node.Done():
		return false
	default:
		return true
	}
}

// dies counts the fuse down.
func (p *process) dies() bool { return p.fuse.Load() > 0 && p.fuse.Add(-1) == 0 }

// die is the moment of death: nothing of it reaches a disk, the network or a session from here on.
func (p *process) die() {
	p.cancel()
	if q := p.port.Load(); q != nil {
		q.unplug()
	}
}

// close takes away what a dead or stopped process holds, and waits for it.
func (p *process) close() {
	if p.shut.Swap(true) {
		<-p.closed
		return
	}
	defer close(p.closed)
	<-p.opened
	_ = p.node.Close() // of a dead process nothing is in order
}

// start begins a life of the node, after another one unless somebody else came before; it does not wait for it. token is
// for the first life of any but the first node.
func (m *Machine) start(token string, after *process) *process {
	p := &process{m: m, opened: make(chan struct{}), closed: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	n, err := node.New(p.config(token))
	if err != nil {
		m.f.bug("%s: %v", m.Name, err)
		return nil
	}
	p.node = n
	first := true
	m.with(func() {
		if first = m.now == after && (after == nil || after.ctx.Err() == nil); first {
			m.now = p
		}
	})
	if !first {
		p.cancel()
		return nil
	}
	m.f.wg.Go(func() {
		err := n.Open(p.ctx)
		if err == nil {
			p.ready.Store(true)
		}
		close(p.opened)
		if err != nil && p.ctx.Err() == nil {
			m.f.note("%s does not start: %v", m.Name, err)
			m.f.count("start failed")
		}
		m.f.wg.Go(func() { m.supervise(p, err) })
	})
	return p
}

// supervise starts the node again when it ended by itself, as a service manager does.
func (m *Machine) supervise(p *process, failed error) {
	if failed == nil {
		select {
		case <-p.node.Done():
		case <-p.ctx.Done():
			return
		}
		if p.ctx.Err() != nil || p.shut.Load() {
			return
		}
		err := p.node.Err()
		m.f.ended(m, err)
		p.node.AwaitRoom(p.ctx)
	}
	if p.ctx.Err() != nil || m.f.over() {
		return
	}
	p.close()
	_ = pass(p.ctx, time.Second)
	if p.ctx.Err() == nil && !m.f.over() {
		m.f.count("node started again by its supervisor")
		m.start("", p)
	}
}

func (p *process) config(token string) node.Config {
	m := p.m
	c := node.Config{
		Data: m.dir, Name: m.Name, Token: token, Slots: m.slots, Version: "sim", Boot: m.boot, Wall: m.wallNow, Logger: m.f.logger(m.Name),
		Labels: map[string]string{"always-on": fmt.Sprint(!m.laptop())},
	}
	c.Seams = node.Seams{
		Mesh: func(c mesh.Config) (node.Mesh, error) {
			if p.ctx.Err() != nil {
				return nil, errDead
			}
			m.with(func() { m.id = c.Identity.ID })
			q := m.f.net.plug(c)
			p.port.Store(q)
			return q, nil
		},
		Door: func(ctx context.Context, ident *mesh.Identity, to string, want func(mesh.NodeID) error) (net.Conn, error) {
			q := m.f.net.port(mesh.NodeID(to))
			if q == nil {
				return nil, unsent(mesh.NodeID(to))
			}
			if err := want(q.id); err != nil {
				return nil, err
			}
			return m.f.net.connect(ctx, ident.ID, q, mesh.ALPNDoor)
		},
		Store: p.store, Runner: hands{p}, Disk: m.free, Awake: m.awake,
		Read: func(r *board.Reading) { r.Pressure, r.Load, r.FreeMB = "normal", 0, 4096 },
	}
	return c
}

// laptop is a machine that is not always on: its sessions have no lease.
func (m *Machine) laptop() bool { return m.slots == 1 }

func (p *process) store(c *raftstore.Config) {
	m := p.m
	c.OpenLog = func() (raftstore.LogStore, error) { return m.disk.Open(p.gate), nil }
	c.Fault = func(op string) error { _, err := p.gate(op, 0); return err }
	m.mu.Lock()
	c.BootID = fmt.Sprint("boot", m.boots)
	m.mu.Unlock()
	c.SlowDisk = 10 * time.Second
	c.CheckAfter = 3 * time.Second
	c.MmapSize = 8 << 20
	c.Snapshots = raftstore.Snapshots{Entries: 60, Bytes: 1 << 30, Every: 2 * time.Second, Trailing: 40, Keep: 1}
	c.Exec = m.f.exec(c.Exec)
}

// hands is what a process has of its machine's sessions: nothing, once it is dead.
type hands struct{ p *process }

func (h hands) may() error {
	if h.p.m.f.net.thawed(h.p.ctx, h.p.id()) != nil || h.p.ctx.Err() != nil {
		return errDead
	}
	return nil
}

// Start implements launcher.Runner.
func (h hands) Start(dir string) (launcher.Session, error) {
	if err := h.may(); err != nil {
		return nil, err
	}
	if h.p.dies() {
		h.p.m.f.count("killed in a start")
		if h.p.m.f.rand(2) == 0 {
			_, _ = h.p.m.keeps.Start(dir) // its keeper is there, and nobody knows
		}
		h.p.die()
		h.p.m.f.died(h.p.m)
		return nil, errDead
	}
	return h.p.m.keeps.Start(dir)
}

// Adopt implements launcher.Runner.
func (h hands) Adopt(ctx context.Context, dir string) (launcher.Session, error) {
	if err := h.may(); err != nil {
		return nil, err
	}
	s, err := h.p.m.keeps.Adopt(ctx, dir)
	if s != nil {
		h.p.m.f.count("session adopted by the next process of its node")
	}
	return s, err
}

// End implements launcher.Runner.
func (h hands) End(ctx context.Context, dir string) error {
	if err := h.may(); err != nil {
		return err
	}
	return h.p.m.keeps.End(ctx, dir)
}
