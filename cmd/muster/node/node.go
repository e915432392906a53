package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"muster/board"
	"muster/board/lease"
	"muster/cmd/muster/api"
	"muster/cmd/muster/directory"
	"muster/cmd/muster/web"
	"muster/launcher"
	"muster/mesh"
	"muster/raftstore"
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

	mesh    Mesh
	store   *raftstore.Store
	launch  *launcher.Reconciler
	lease   *leading
	door    *http.Server
	monitor *http.Server // figures on loopback; nil: not asked for
	api     *api.Server
	web     *web.Server
	gossip  atomic.Pointer[[]byte]
	hint    atomic.Pointer[string]      // who leads, as a peer said
	era     atomic.Pointer[string]      // number and random half of the era of this node's state
	over    atomic.Bool                 // that era is over: see outdated
	newer   atomic.Pointer[board.Error] // the state is of a later format than this build knows
	space   *space

	otherEra sync.Map         // eras with the same number that were told of
	flows    *board.Workflows // what is compiled for answers, beside the executor's own
	told     atomic.Uint64    // highest Seq answered to anybody (M-31)

	denials     denials
	measures    measures
	heardCommit atomic.Uint64            // index that the leader had applied at its last answer
	gossipOld   atomic.Pointer[[]byte]   // the key before, which still counts
	named       atomic.Pointer[[]peerID] // by a rejoin, until this node has caught up
	removed     atomic.Pointer[string]   // this machine is out of the fleet: what people are told
	listed      atomic.Bool              // the node list of this state has had this node
	unlisted    atomic.Bool              // its own state has listed it once, and then did not

	mu         sync.Mutex
	clock      lease.Clock
	heardTime  int64           // board time of the last contact's answer
	clockOff   time.Duration   // this machine's clock ahead of it
	shortest   time.Duration   // shortest lease of this node's runs
	under      context.Context // ends at the next change of leader
	underEnd   context.CancelFunc
	contactNow chan struct{}

	ctx    context.Context
	cancel context.CancelCauseFunc
	ready  chan struct{} // closed when all that a peer may ask for is there
	again  atomic.Bool
	full   atomic.Bool   // it stopped acting because its disk is full
	asked  chan struct{} // closed when somebody tells the node to stop
	ask    sync.Once
	begun  time.Time
	looks  *looks

	termsOpen   atomic.Int32 // terminals that are shown
	termMu      sync.Mutex
	mirroring   map[string]*mirroring        // boards that this machine mirrors; set before anything runs
	orgs        map[string]directory.Service // organisations that it holds credentials for; set before anything runs
	attachSeen  string                       // guarded by termMu: what node.yaml said of terminals
	attachMoved chan struct{}                // guarded by termMu: closed when it says something else

	tasks    sync.WaitGroup // what acts: see spawn
	serving  sync.WaitGroup // the mesh's door; it ends with Close only
	stopping bool           // guarded by mu: nothing is spawned any more
	err      error          // guarded by mu: why it stopped by itself
	alarms   []alarm        // guarded by mu: what people should know of this node
	eras     laterEra       // guarded by mu
	done     chan struct{}
	finished sync.Once
	closed   sync.Once
	closeErr error
}

// New checks the config; nothing is opened.
func New(cfg Config) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	n := &Node{cfg: cfg, log: cfg.Logger, contactNow: make(chan struct{}, 1), done: make(chan struct{}),
		ready: make(chan struct{}), asked: make(chan struct{})}
	n.clock, n.flows, n.space = lease.NewClock(cfg.Lease), board.NewWorkflows(), &space{dir: cfg.Data, look: cfg.Seams.Disk, ballast: ballast{dir: cfg.Data}}
	n.ctx, n.cancel = context.WithCancelCause(context.Background())
	n.under, n.underEnd = context.WithCancel(context.Background())
	return n, nil
}

// Open starts the node; on an error what it took is released. The order is: the
// folder's lock, who we are, being reachable, the state, adoption of what runs
// here, then everything that may act, then the doors.
func (n *Node) Open(ctx context.Context) (err error) {
	defer func() {
		if err == nil {
			return
		}
		if cerr := n.Close(); cerr != nil {
			n.log.Warn("closing after a start that failed", "err", cerr)
		}
	}()
	n.begun = time.Now()
	go n.finish()
	if n.dir, err = openFolder(n.cfg.Data); err != nil {
		return err
	}
	if err = n.roomToStart(ctx); err != nil {
		return err
	}
	if err = n.identify(ctx); err != nil {
		return err
	}
	first, err := n.introduce(ctx)
	if err != nil {
		return err
	}
	if err = n.openMesh(); err != nil {
		return err
	}
	if err = n.openStore(ctx, first); err != nil {
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

// Close stops the node; its sessions go on. The order is the reverse of Open and
// is written only here: first nobody may ask (doors), then nothing acts (leading,
// contacts; the launcher leaves its keepers alone), then the state closes while
// the mesh still carries Raft's good-bye, the mesh last but for the lock, which
// holds off a second daemon until all of it is over. The error tells what could not
// be put away in order (the next start looks at that); a second call says the same.
func (n *Node) Close() error {
	n.closed.Do(func() { n.closeErr = n.close() })
	return n.closeErr
}

func (n *Node) close() error {
	if n.web != nil {
		n.web.Close()
	}
	if n.api != nil {
		n.api.Close()
	}
	if n.door != nil {
		_ = n.door.Close() // of connections that are cut: nobody is there to be told
	}
	if n.monitor != nil {
		_ = n.monitor.Close()
	}
	n.serving.Wait()
	if n.store != nil && n.leads() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		_ = n.store.Transfer(ctx) // best effort: others take over at once instead of after an election
		cancel()
	}
	n.cancel(errClosed) // no contact after this
	if n.store != nil {
		n.bye()
	}
	var errs []error
	closes := func(what string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("close %s: %w", what, err))
		}
	}
	if n.launch != nil {
		closes("launcher", n.launch.Close())
	}
	n.finish()
	if n.store != nil {
		closes("store", n.store.Close())
	}
	if n.mesh != nil {
		closes("mesh", n.mesh.Close())
	}
	if n.dir != nil {
		n.dir.close()
	}
	return errors.Join(errs...)
}

func (n *Node) estopPath() string { return filepath.Join(n.cfg.Data, "ESTOP") }
