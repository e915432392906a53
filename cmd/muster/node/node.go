package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"muster/board"
	"muster/board/lease"
	"muster/cmd/muster/api"
	"muster/launcher"
	"muster/mesh"
	"muster/raftstore"
	"muster/raftstore/logstore"
)

var errClosed = errors.New("the node was stopped")

// Node is one running node.
type Node struct {
	cfg   Config
	log   *slog.Logger
	ident *mesh.Identity
	dir   *folder
	memMu sync.Mutex
	mem   *saved // guarded by memMu once Open has started the mesh
	trust trust

	mesh   *mesh.Node
	store  *raftstore.Store
	launch *launcher.Reconciler
	lease  *leading
	door   *http.Server
	api    *api.Server
	gossip atomic.Pointer[[]byte]
	hint   atomic.Pointer[string] // who leads, as a peer said
	era    atomic.Pointer[string] // number and random half of the era of this node's state
	space  *space
	flows  *board.Workflows // what is compiled for answers, beside the executor's own
	told   atomic.Uint64    // highest Seq answered to anybody (M-31)

	mu         sync.Mutex
	clock      lease.Clock
	heardTime  int64         // board time of the last contact's answer
	shortest   time.Duration // shortest lease of this node's runs
	leadCh     chan struct{} // closed at the next change of leader
	contactNow chan struct{}

	ctx    context.Context
	cancel context.CancelCauseFunc
	g      *errgroup.Group
	closed sync.Once
	ready  chan struct{} // closed when all that a peer may ask for is there
	done   chan struct{}
	err    error // why it stopped by itself
	again  atomic.Bool
	begun  time.Time
}

// New checks the config; nothing is opened.
func New(cfg Config) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	n := &Node{cfg: cfg, log: cfg.Logger, leadCh: make(chan struct{}), contactNow: make(chan struct{}, 1), done: make(chan struct{}), ready: make(chan struct{})}
	n.clock, n.flows, n.space = lease.NewClock(cfg.Lease), board.NewWorkflows(), &space{dir: cfg.Data}
	n.ctx, n.cancel = context.WithCancelCause(context.Background())
	n.g, n.ctx = errgroup.WithContext(n.ctx)
	return n, nil
}

// Open starts the node; on an error what it took is released. The order is: the
// folder's lock, who we are, being reachable, the state, adoption of what runs
// here, then everything that may act, then the doors.
func (n *Node) Open(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			n.Close()
		}
	}()
	n.begun = time.Now()
	if n.dir, err = openFolder(n.cfg.Data); err != nil {
		return err
	}
	if n.mem, err = n.dir.load(); err != nil {
		return err
	}
	if n.ident, err = mesh.LoadOrCreateIdentity(n.cfg.Data); err != nil {
		return err
	}
	first, err := n.introduce(ctx)
	if err != nil {
		return err
	}
	if err = n.openMesh(); err != nil {
		return err
	}
	if err = n.openStore(first); err != nil {
		return err
	}
	n.readNodes()
	if err = n.openLauncher(); err != nil {
		return err
	}
	close(n.ready)
	n.background()
	if err = n.appear(ctx, first); err != nil {
		return err
	}
	return n.openDoors()
}

// introduce decides what this start is: the first of a fleet, a join, or a return.
func (n *Node) introduce(ctx context.Context) (first bool, err error) {
	m := n.mem
	if m.Store == "" {
		m.Store = random(6)
	}
	if n.cfg.Listen == "" {
		n.cfg.Listen = m.Listen
	}
	if n.cfg.Listen == "" {
		n.cfg.Listen = "127.0.0.1:0"
	}
	if m.Fleet != "" {
		if n.cfg.Token != "" {
			n.cfg.Progress("this folder belongs to a fleet already: the token is not needed")
		}
		return false, nil
	}
	if n.cfg.Token != "" {
		return false, n.join(ctx)
	}
	m.Fleet, m.Name, m.Replica = random(12), n.cfg.Name, n.cfg.Replica
	return true, nil
}

func (n *Node) openMesh() error {
	set := map[mesh.NodeID]bool{n.ident.ID: true}
	for _, p := range n.mem.Peers {
		set[mesh.NodeID(p.ID)] = true
	}
	n.trust.replace(set)
	if len(n.mem.Gossip) > 0 {
		n.gossip.Store(&n.mem.Gossip)
	}
	c := mesh.DefaultConfig()
	c.Dir, c.Identity, c.Listen, c.FleetID, c.Logger = n.cfg.Data, n.ident, n.cfg.Listen, n.mem.Fleet, n.log
	if n.cfg.Advertise != "" {
		c.Advertise = []string{n.cfg.Advertise}
	}
	c.Trust, c.Handler = n.trust.has, n.handle
	c.GossipKeys = func() [][]byte {
		if k := n.gossip.Load(); k != nil {
			return [][]byte{*k}
		}
		return nil
	}
	c.Greeting, c.CheckGreeting = n.greeting, n.checkGreeting
	c.About = func() mesh.About {
		n.memMu.Lock()
		defer n.memMu.Unlock()
		return mesh.About{Name: n.cfg.Name, Generation: n.mem.Generation}
	}
	m, err := mesh.New(c)
	if err != nil {
		return err
	}
	if err := m.Open(); err != nil {
		return err
	}
	n.mesh = m
	for _, p := range n.mem.Peers {
		n.mesh.SetPeer(mesh.NodeID(p.ID), p.Addrs...)
	}
	return n.remember(func(x *saved) { x.Listen = m.Addr().String() })
}

func (n *Node) openStore(first bool) error {
	n.lease = newLeading(n)
	if n.mem.Refetch != "" {
		if err := n.refetch(n.mem.Refetch); err != nil {
			return err
		}
	}
	s, err := raftstore.Open(n.storeConfig())
	if lost(err) {
		if len(n.mesh.Peers()) == 0 {
			return fmt.Errorf("%w; no other node of the fleet is known: restore %s from a copy", err, n.dir.path("raft"))
		}
		n.log.Error("log or vote of this node are lost: it rejoins under a new store id", "err", err)
		if err := n.refetch(err.Error()); err != nil {
			return err
		}
		n.mesh.Close() // the store has closed the listener that it was given
		n.cfg.Listen = n.mem.Listen
		if err := n.openMesh(); err != nil {
			return err
		}
		s, err = raftstore.Open(n.storeConfig())
	}
	if err != nil {
		return err
	}
	n.store = s
	if first {
		if err := s.Bootstrap(); err != nil {
			return err
		}
	}
	return n.remember(func(m *saved) { m.Stored = true })
}

// lost tells that this store may not vote any more, or has no state to serve: its
// node comes back under a new store id (M-32). Nobody votes with lost state.
func lost(err error) bool {
	for _, e := range []error{raftstore.ErrNoRebuild, raftstore.ErrLogBehind, raftstore.ErrOtherEra, logstore.ErrDamaged, logstore.ErrMissing} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// refetch sets state and log aside and takes a new store id. Node id, key and
// sessions stay.
func (n *Node) refetch(why string) error {
	to, err := n.dir.setAside()
	if err != nil {
		return fmt.Errorf("set the old state aside: %w", err)
	}
	n.cfg.Progress(fmt.Sprintf("fetching the state anew (%s); the old one is kept in %s", why, orElse(to, "no folder")))
	return n.remember(func(m *saved) { m.Store, m.Refetch, m.Stored = random(6), "", false })
}

// background starts what runs as long as the node does.
func (n *Node) background() {
	run := func(what string, fn func(context.Context) error) {
		n.g.Go(func() error {
			if err := fn(n.ctx); err != nil && n.ctx.Err() == nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			return nil
		})
	}
	run("leader watch", n.watchLeader)
	run("contact", n.contacts)
	run("leading", n.lease.run)
	run("node list", n.watchNodes)
	run("orders", n.watchOrders)
	run("sleep watch", n.watchSleep)
	run("store", func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-n.store.Failed():
			return fmt.Errorf("this node is unfit: %w (sessions go on; free space or repair the disk, then start it again)", n.store.Err())
		}
	})
	go func() {
		err := n.g.Wait()
		n.mu.Lock()
		if n.err == nil {
			n.err = err
		}
		n.mu.Unlock()
		close(n.done)
	}()
}

// Done is closed when the node has stopped, by itself or by Close; Err says why.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err is why the node stopped by itself, nil after Close.
func (n *Node) Err() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if errors.Is(n.err, errClosed) || errors.Is(n.err, context.Canceled) {
		return nil
	}
	return n.err
}

// Again tells that the node was asked to start anew (muster restart).
func (n *Node) Again() bool { return n.again.Load() }

// Close stops the node; its sessions go on. The order is the reverse of Open and
// is written only here: first nobody may ask (doors), then nothing acts (leading,
// contacts; the launcher leaves its keepers alone), then the state closes while
// the mesh still carries Raft's good-bye, the mesh last but for the lock, which
// holds off a second daemon until all of it is over.
func (n *Node) Close() error {
	n.closed.Do(func() {
		if n.api != nil {
			n.api.Close()
		}
		if n.door != nil {
			n.door.Close()
		}
		if n.store != nil && n.leads() {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			_ = n.store.Transfer(ctx) // best effort: others take over at once instead of after an election
			cancel()
		}
		n.cancel(errClosed)
		if n.launch != nil {
			n.launch.Close()
		}
		_ = n.g.Wait()
		if n.store != nil {
			n.store.Close()
		}
		if n.mesh != nil {
			n.mesh.Close()
		}
		if n.dir != nil {
			n.dir.close()
		}
	})
	return nil
}

func (n *Node) sockets() (user, session string) {
	return filepath.Join(n.cfg.Data, "muster.sock"), filepath.Join(n.cfg.Data, "session.sock")
}

// openDoors lets people and sessions in, last of all.
func (n *Node) openDoors() error {
	user, session := n.sockets()
	srv, err := api.Serve(backend{n}, api.Sockets{User: user, Session: session, InKeeperTree: n.launch.InKeeperTree, Logger: n.log.With("component", "api")})
	if err != nil {
		return err
	}
	n.api = srv
	mux := http.NewServeMux()
	mux.HandleFunc("POST /join", n.serveJoin)
	mux.Handle("/", api.Handler(backend{n}, api.DoorToken, n.log.With("component", "door")))
	n.door = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if id, ok := mesh.PeerOf(c); ok {
				ctx = context.WithValue(ctx, peerKey{}, id)
			}
			return ctx
		}}
	go func() { _ = n.door.Serve(n.mesh.DoorListener()) }()
	return nil
}

type peerKey struct{}

// leaderNode is the node id of who leads, "" when nobody is known to.
func (n *Node) leaderNode() string {
	if server, _ := n.store.Leader(); server != "" {
		return nodeOf(server)
	}
	if h := n.hint.Load(); h != nil { // a node that Raft does not know yet learns it from its peers
		return *h
	}
	return ""
}

// leads tells whether Raft says that this node leads; its executor may not be ready yet.
func (n *Node) leads() bool { return n.leaderNode() == string(n.ident.ID) }

func nodeOf(server string) string {
	for i := range server {
		if server[i] == '/' {
			return server[:i]
		}
	}
	return server
}

// leaderChanged is closed at the next change of leader or of its readiness.
func (n *Node) leaderChanged() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.leadCh
}

// watchLeader turns the store's one signal into one for everybody.
func (n *Node) watchLeader(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-n.store.LeaderChanged():
		}
		n.mu.Lock()
		close(n.leadCh)
		n.leadCh = make(chan struct{})
		n.mu.Unlock()
		n.launch.LeaderChanged()
	}
}

func (n *Node) watchNodes(ctx context.Context) error {
	sub := n.store.Subscribe(func(t board.Table, _ string) bool { return t == board.TNode || t == board.TFleet })
	defer sub.Close()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-sub.C:
			if keys, all := sub.Take(); all || touches(keys, board.TNode, board.FleetKey) {
				n.readNodes()
			}
		}
	}
}

// touches tells whether keys hold one of a table, or a certain key of the fleet's.
func touches(keys []raftstore.Key, t board.Table, fleetKey string) bool {
	for _, k := range keys {
		if k.Table == t || k.Table == board.TFleet && k.Key == fleetKey {
			return true
		}
	}
	return false
}

// watchOrders wakes the launcher when an order of this node has changed in the
// applied state.
func (n *Node) watchOrders(ctx context.Context) error {
	mine := string(n.ident.ID) + "/"
	sub := n.store.Subscribe(func(t board.Table, key string) bool {
		return t == board.TOrder && len(key) > len(mine) && key[:len(mine)] == mine
	})
	defer sub.Close()
	for {
		n.launch.Wake()
		n.setShortest()
		select {
		case <-ctx.Done():
			return nil
		case <-sub.C:
			sub.Take()
		}
	}
}

// setShortest looks up the shortest lease of this node's runs: contacts come
// three times as often.
func (n *Node) setShortest() {
	var shortest time.Duration
	_ = n.store.View(func(v board.View) error {
		board.EachHeld(v, "", func(h *board.Held) bool {
			if d := time.Duration(h.Lease) * time.Millisecond; h.Node == string(n.ident.ID) && d > 0 && (shortest == 0 || d < shortest) {
				shortest = d
			}
			return true
		})
		return nil
	})
	n.mu.Lock()
	less := shortest > 0 && (n.shortest == 0 || shortest < n.shortest)
	n.shortest = shortest
	n.mu.Unlock()
	if less {
		n.pokeContact()
	}
}

// watchSleep makes contact and rejoins before anything else after the machine slept.
func (n *Node) watchSleep(ctx context.Context) error {
	for g := range mesh.WatchSleep(ctx) {
		n.log.Info("woke", "slept", g.Slept, "stalled", g.Stalled)
		n.mesh.Kick()
		n.pokeContact()
	}
	return nil
}

func (n *Node) estopPath() string { return filepath.Join(n.cfg.Data, "ESTOP") }

func (n *Node) estop() bool {
	_, err := os.Stat(n.estopPath())
	return err == nil
}

// fail stops the node because it is unfit: others must not count on it.
func (n *Node) fail(err error) {
	n.mu.Lock()
	if n.err == nil {
		n.err = err
	}
	n.mu.Unlock()
	n.cancel(err)
}
