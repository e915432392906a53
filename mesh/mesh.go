package mesh

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Node is one node's place in the mesh.
type Node struct {
	cfg    Config
	self   NodeID
	log    *slog.Logger
	limit  *logLimit
	ctx    context.Context // ends when Close begins
	cancel context.CancelCauseFunc
	stats  counters

	tlsServer *tls.Config
	gate      *gate
	conns     *conns
	book      *book
	own       *ownAddrs
	pres      *presence

	raft, door, gossip, term *chanListener

	ln  net.Listener
	udp *net.UDPConn

	linkMu sync.Mutex
	links  map[NodeID]*link
	deskMu sync.Mutex
	desks  map[NodeID]*desk

	group   errgroup.Group // what Open starts
	spawnMu sync.Mutex
	closed  bool
	wg      sync.WaitGroup // what comes and goes: connections, handlers, dials
	opened  atomic.Bool
	once    sync.Once
	failed  error // of Close
}

var (
	_ Network   = (*Node)(nil)
	_ Directory = (*Node)(nil)
)

type counters struct {
	dropped, refused, connects atomic.Uint64
}

// Stats are counts since Open.
type Stats struct {
	PushesDropped     uint64 // pushes that never reached a connection or handler
	HandshakesRefused uint64 // strangers, garbage, too many at once
	Connects          uint64 // streams this node opened
}

// New checks the config and allocates; nothing is opened.
func New(cfg Config) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	n := &Node{
		cfg:   cfg,
		self:  cfg.Identity.ID,
		log:   cfg.Logger.With("component", "mesh"),
		limit: newLogLimit(time.Minute),
		gate:  newGate(cfg.HandshakeLimit),
		conns: newConns(cfg.DoorLimit),
		links: make(map[NodeID]*link),
		desks: make(map[NodeID]*desk),
	}
	n.ctx, n.cancel = context.WithCancelCause(context.Background())
	n.book = newBook(cfg.Dir, n.self, n.log)
	n.own = newOwnAddrs(cfg)
	n.pres = newPresence(n)
	n.tlsServer = n.serverTLS()
	ownID := func() net.Addr { return nodeAddr(n.self) }
	n.raft = newChanListener(ownID)
	n.gossip = newChanListener(ownID)
	n.term = newChanListener(ownID)
	n.door = newChanListener(n.Addr)
	return n, nil
}

// Open listens and starts. After an error nothing is left open.
func (n *Node) Open() error {
	if !n.opened.CompareAndSwap(false, true) {
		return errors.New("mesh: opened before")
	}
	if err := n.open(); err != nil {
		_ = n.Close()
		return fmt.Errorf("mesh: %w", err)
	}
	return nil
}

func (n *Node) open() (err error) {
	if err := n.book.load(); err != nil {
		return err
	}
	n.ln, n.udp, err = listen(n.cfg.Listen)
	if err != nil {
		return err
	}
	n.own.update(n.ln.Addr())
	n.group.Go(n.accept)
	n.group.Go(n.pres.readPackets)
	n.group.Go(n.pres.loop)
	n.group.Go(n.saveBook)
	n.group.Go(n.watchMachine)
	return nil
}

// Close says good-bye to gossip, ends all connections and waits for every
// goroutine, handlers included. It is idempotent.
func (n *Node) Close() error {
	n.once.Do(func() {
		n.pres.leave() // while there still is a socket to say it with
		n.cancel(errStopped)
		n.spawnMu.Lock()
		n.closed = true
		n.spawnMu.Unlock()
		for _, l := range []*chanListener{n.raft, n.door, n.gossip, n.term} {
			_ = l.Close()
		}
		if n.ln != nil {
			_ = n.ln.Close()
			_ = n.udp.Close()
		}
		n.conns.closeAll()
		n.failed = n.group.Wait()
		n.wg.Wait()
		n.failed = errors.Join(n.failed, n.book.flush())
	})
	return n.failed
}

// spawn runs f in a goroutine that Close waits for; false after Close began.
func (n *Node) spawn(f func()) bool {
	n.spawnMu.Lock()
	defer n.spawnMu.Unlock()
	if n.closed {
		return false
	}
	n.wg.Go(f)
	return true
}

// Self is this node's id.
func (n *Node) Self() NodeID { return n.self }

// Addr is where the node listens, valid after Open.
func (n *Node) Addr() net.Addr {
	if n.ln == nil {
		return nodeAddr(n.self)
	}
	return n.ln.Addr()
}

// Advertised are the addresses told to peers, best first.
func (n *Node) Advertised() []string { return n.own.list() }

// RaftListener gives the Raft connections of trusted peers, as *Conn; its Addr
// is this node's id, as Raft's addresses are.
func (n *Node) RaftListener() net.Listener { return n.raft }

// TermListener gives the connections of trusted peers that ask for a terminal, as *Conn.
func (n *Node) TermListener() net.Listener { return n.term }

// DoorListener gives the connections of anybody, as *Conn with a finished
// handshake, for an http.Server (whose ConnContext asks PeerOf whose key was
// shown). Whether that key is trusted must be asked for each request.
func (n *Node) DoorListener() net.Listener { return n.door }

// Stats are the counts so far.
func (n *Node) Stats() Stats {
	return Stats{
		PushesDropped:     n.stats.dropped.Load(),
		HandshakesRefused: n.stats.refused.Load(),
		Connects:          n.stats.connects.Load(),
	}
}

// SetPeer sets the addresses that the node list has for a peer.
func (n *Node) SetPeer(peer NodeID, addrs ...string) {
	n.book.setPeer(peer, addrs)
	n.linkUp(peer)
}

// Learn puts an address in front: where the peer says it is now.
func (n *Node) Learn(peer NodeID, addrs ...string) {
	n.book.learn(peer, addrs...)
	n.linkUp(peer)
}

// Forget drops a peer and its addresses.
func (n *Node) Forget(peer NodeID) {
	n.book.forget(peer)
	n.linkMu.Lock()
	l := n.links[peer]
	delete(n.links, peer)
	n.linkMu.Unlock()
	if l == nil {
		return
	}
	l.mu.Lock()
	c := l.conn
	l.mu.Unlock()
	if c != nil {
		c.fail(errors.New("the peer was forgotten"))
	}
}

// Peers are the known peers in the order to try them: last reached first.
func (n *Node) Peers() []NodeID { return n.book.ids() }

// Addrs are the addresses known of a peer, in the order they are tried.
func (n *Node) Addrs(peer NodeID) []string { return n.book.candidates(peer) }

// Presence is what gossip says of the nodes, this one not included.
func (n *Node) Presence() map[NodeID]Seen { return n.pres.snapshot(time.Now()) }

// Changed has one signal when Presence has changed since it was last taken.
func (n *Node) Changed() <-chan struct{} { return n.pres.changed }

// Moved has one signal when this node's own addresses have changed.
func (n *Node) Moved() <-chan struct{} { return n.own.moved }

// Kick rejoins gossip now, tests the open streams, and lets every waiting dial
// try again: after wake, start, change of address, or new gossip keys.
func (n *Node) Kick() {
	n.book.wake()
	n.testLinks()
	n.pres.kickNow()
}

// Recheck asks Trust again about everybody and closes the connections, in and
// out, of who is no longer trusted. The wiring calls it when the node list has
// changed.
func (n *Node) Recheck() {
	dropped := n.conns.closeIf(func(id NodeID) bool { return id != "" && !n.cfg.Trust(id) })
	n.pres.recheck()
	if dropped > 0 {
		n.log.Info("connections of removed nodes closed", "count", dropped)
	}
}

// SetAdvertise changes the addresses told to peers; none means to find them out.
func (n *Node) SetAdvertise(addrs ...string) error {
	for _, a := range addrs {
		if err := checkAddr(a); err != nil {
			return fmt.Errorf("mesh: advertise: %w", err)
		}
	}
	n.own.set(addrs)
	if n.ln != nil && n.own.update(n.ln.Addr()) {
		n.Kick()
	}
	return nil
}

func (n *Node) heard(peer NodeID) { n.pres.heard(peer, time.Now()) }

// saveBook writes the address book a moment after it has changed.
func (n *Node) saveBook() error {
	for {
		select {
		case <-n.book.save:
		case <-n.ctx.Done():
			return nil
		}
		wait := time.NewTimer(saveDelay)
		select {
		case <-wait.C:
		case <-n.ctx.Done():
			wait.Stop()
			return nil // Close writes it
		}
		if err := n.book.flush(); err != nil {
			n.logAbout("book", "the known peers could not be saved", "err", err)
		}
	}
}

const saveDelay = time.Second

// watchMachine notices a wake and a change of this machine's addresses.
func (n *Node) watchMachine() error {
	woke := WatchSleep(n.ctx)
	defer func() {
		for range woke { // until its goroutine has ended
		}
	}()
	tick := time.NewTicker(addrCheck)
	defer tick.Stop()
	for {
		select {
		case gap, ok := <-woke:
			if !ok {
				return nil
			}
			n.log.Info("awake again", "slept", gap.Slept, "stalled", gap.Stalled)
			n.own.update(n.ln.Addr())
			n.Kick()
		case <-tick.C:
			if n.own.update(n.ln.Addr()) {
				n.log.Info("this machine's addresses have changed", "now", n.own.list())
				n.Kick()
			}
		case <-n.ctx.Done():
			return nil
		}
	}
}

const addrCheck = 5 * time.Second
