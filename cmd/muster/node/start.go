package node

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os/exec"
	"runtime"
	"time"

	"muster/board"
	"muster/board/lease"
	"muster/launcher"
	"muster/mesh"
	"muster/raftstore"
	"muster/raftstore/logstore"
)

// bootTimeout is how long a start waits for a leader before it goes on without:
// a node that is alone keeps its sessions, shows its state, and says why nothing moves.
const bootTimeout = 30 * time.Second

func (n *Node) server() string { return string(n.ident.ID) + "/" + n.mem.Store }

func (n *Node) storeConfig() raftstore.Config {
	c := raftstore.DefaultConfig()
	c.Dir, c.Server, c.Logger = n.dir.path("raft"), n.server(), n.log
	c.Listener = n.mesh.RaftListener()
	c.Dial = func(ctx context.Context, server string) (net.Conn, error) {
		return n.mesh.Dial(ctx, mesh.NodeID(nodeOf(server)), mesh.ALPNRaft)
	}
	if n.cfg.Timers == "wan" {
		c.Timers = raftstore.WAN()
	}
	c.Room = func(bytes int64) bool {
		free, ok := n.space.left()
		return !ok || free-bytes >= spaceBack
	}
	if n.cfg.LogKind != "" {
		c.LogKind = logstore.Kind(n.cfg.LogKind)
	}
	c.Exec, c.MustExist = board.Exec, n.mem.Stored
	c.Nodes, c.Workflows = n.lease.State, board.NewWorkflows()
	c.BootClock, c.Wall = n.cfg.Boot, n.cfg.Wall
	c.AskTerm = func(ctx context.Context, server string) (uint64, error) {
		var t uint64
		err := n.call(ctx, nodeOf(server), "term", server, &t)
		return t, err
	}
	c.AskClock = func(ctx context.Context, server string) (time.Time, error) {
		var ms int64
		err := n.call(ctx, nodeOf(server), "clock", nil, &ms)
		return time.UnixMilli(ms), err
	}
	c.OnCommit = n.push
	if n.cfg.Seams.Store != nil {
		n.cfg.Seams.Store(&c)
	}
	return c
}

func (n *Node) openLauncher() error {
	l, err := launcher.New(launcher.Config{
		Dir: n.cfg.Data, Binary: n.cfg.Binary, Node: string(n.ident.ID), Name: n.cfg.Name,
		View:  n.store.View,
		Index: func() uint64 { i, _ := n.store.Applied(); return i },
		Send:  func(ctx context.Context, r *board.Request) board.Result { return n.report(ctx, *r) },
		Clock: func() lease.Clock { return n.Clock() },
		Repos: n.repos, Ports: n.cfg.Ports, Accept: n.accept, Memory: n.askMemory,
		Now: n.now, Estop: n.estopPath(), OnFail: func(err error) { n.fail(err) }, Logger: n.log, Runner: n.cfg.Seams.Runner,
	})
	if err != nil {
		return err
	}
	n.launch, n.looks = l, newLooks(l.Looked)
	return l.Open(n.ctx)
}

// report carries an item of this node's outbox.
func (n *Node) report(ctx context.Context, req board.Request) board.Result {
	if req.Actor.Kind == "" {
		req.Actor = board.Actor{Kind: board.ActorNode, Name: n.cfg.Name}
	}
	req.Actor.Node = string(n.ident.ID)
	return n.Do(ctx, req)
}

// remember changes what this node keeps of itself between starts.
func (n *Node) remember(fn func(*saved)) error {
	n.memMu.Lock()
	defer n.memMu.Unlock()
	fn(n.mem)
	return n.dir.save(n.mem)
}

// about is what this node says of itself at each start.
func (n *Node) about() (board.NodeUp, error) {
	n.memMu.Lock()
	defer n.memMu.Unlock()
	up := board.NodeUp{ID: string(n.ident.ID), Name: n.cfg.Name, Key: n.ident.PublicKey(), Addrs: n.addrs(), Store: n.mem.Store,
		Generation: n.mem.Generation, Labels: maps.Clone(n.cfg.Labels), Tools: tools(), Harnesses: harnesses(), Slots: n.slots(),
		Battery: hasBattery(), Replica: n.mem.Replica, OS: runtime.GOOS, Arch: runtime.GOARCH, Version: n.cfg.Version,
		Journal: n.journal(), Panes: n.launch != nil && n.launch.HasPanes(), MemoryMB: memoryMB(), Start: n.mem.Start, Format: board.Format}
	return up, n.limits(&up)
}

func (n *Node) journal() string {
	if n.launch == nil {
		return ""
	}
	return n.launch.JournalID()
}

func (n *Node) addrs() []string {
	if n.mesh == nil {
		return nil
	}
	return n.mesh.Advertised()
}

// tools are the programs that placement may ask for, as far as this machine has them.
func tools() (found []string) {
	for _, t := range []string{"git", "go", "node", "npm", "python3", "docker", "make", "gcc", "cargo", "java", "tmux"} {
		if _, err := exec.LookPath(t); err == nil {
			found = append(found, t)
		}
	}
	return found
}

func harnesses() []string {
	found := []string{"command"}
	for name, bin := range map[string]string{"claude-code": "claude", "codex": "codex", "opencode": "opencode", "gemini": "gemini", "hermes": "hermes"} {
		if _, err := exec.LookPath(bin); err == nil {
			found = append(found, name)
		}
	}
	return found
}

// slots is what was asked for, else by the machine's memory.
func (n *Node) slots() int64 {
	if n.cfg.Slots > 0 {
		return n.cfg.Slots
	}
	return slotsFor(memoryMB())
}

// slotsFor is how many sessions a machine has room for, of 512 MB each, 2 to 8.
func slotsFor(memoryMB int64) int64 { return min(8, max(2, memoryMB/512)) }

// appear makes this start known: the first of a fleet writes it, every other
// raises its generation. Without a leader the node goes on and does it later.
func (n *Node) appear(ctx context.Context, first bool) error {
	if first {
		return n.initFleet(ctx)
	}
	n.hello()
	n.cfg.Progress("waiting for the fleet's leader ...")
	wait, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	if err := n.up(wait); err != nil {
		if board.CodeOf(err) != board.Unavailable && board.CodeOf(err) != board.UnknownOutcome {
			return err
		}
		n.cfg.Progress("no leader yet: this node keeps its sessions and goes on trying")
		n.task("start", func(ctx context.Context) error {
			for {
				err := n.up(ctx)
				if err == nil || ctx.Err() != nil {
					return nil
				}
				if c := board.CodeOf(err); c != board.Unavailable && c != board.UnknownOutcome {
					return err
				}
				_ = n.wait(ctx, n.leaderChanged())
			}
		})
	}
	return nil
}

// up commits this start (invariant 15). The id of the start makes a lost answer harmless.
func (n *Node) up(ctx context.Context) error {
	about, err := n.about()
	if err != nil {
		return err
	}
	b, err := json.Marshal(about)
	if err != nil {
		return err
	}
	res := n.report(ctx, board.Request{Verb: board.VNodeUp, Args: b})
	if res.Err != nil {
		return res.Err
	}
	var ans struct {
		Generation uint64 `json:"generation"`
	}
	if err := json.Unmarshal(res.Data, &ans); err != nil {
		return fmt.Errorf("answer to this start: %w", err)
	}
	if n.MintID() == "" { // a new machine: until something of the state is here, no request at its doors can have an id
		wait, cancel := context.WithTimeout(ctx, hopTimeout)
		_ = n.store.WaitSeq(wait, res.Seq) // else it says so to who asks
		cancel()
	}
	return n.remember(func(m *saved) { m.Generation, m.Start = ans.Generation, "" })
}

// initFleet writes the first transaction of a fleet.
func (n *Node) initFleet(ctx context.Context) error {
	n.cfg.Progress("making a fleet of one ...")
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	about, err := n.about()
	if err != nil {
		return err
	}
	b, err := json.Marshal(board.FleetInit{ID: n.mem.Fleet, Name: n.cfg.Name, EraTag: random(6), Gossip: key, Node: about})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	res := n.Do(ctx, board.Request{Actor: board.Platform(), Verb: board.VFleetInit, Args: b})
	if res.Err != nil && res.Err.Code != board.Conflict {
		return res.Err
	}
	return n.remember(func(m *saved) { m.Generation, m.Start = 1, "" })
}

// hello tells the known peers where this node is, and learns who leads. One that
// answers is enough; all are told.
func (n *Node) hello() {
	msg := helloMsg{Addrs: n.addrs()}
	for _, p := range n.mesh.Peers() {
		n.spawn(func() {
			ctx, cancel := context.WithTimeout(n.ctx, callTimeout)
			defer cancel()
			var ans helloAns
			if err := n.call(ctx, string(p), "hello", msg, &ans); err != nil {
				if errors.Is(err, mesh.ErrRefused) {
					n.askListed(ctx, p)
				}
				return
			}
			if ans.Leader != "" {
				n.hint.Store(&ans.Leader)
			}
			for _, x := range ans.Nodes {
				if x.ID != string(n.ident.ID) && n.trust.has(mesh.NodeID(x.ID)) {
					n.mesh.SetPeer(mesh.NodeID(x.ID), x.Addrs...)
				}
			}
			n.pokeContact()
		})
	}
}

type helloMsg struct {
	Addrs []string `json:"addrs"`
}

type helloAns struct {
	Leader string   `json:"leader"`
	Nodes  []peerID `json:"nodes"`
}
