package raftstore

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"muster/board"
	"muster/raftstore/logstore"
)

// Timers of Raft: how long silence lasts until it means something.
type Timers struct {
	Heartbeat, Election, Lease time.Duration
}

// LAN is the preset for machines beside each other: a dead leader is replaced in about 600 ms.
func LAN() Timers {
	return Timers{Heartbeat: 300 * time.Millisecond, Election: 300 * time.Millisecond, Lease: 150 * time.Millisecond}
}

// WAN is the preset for machines across slow or unsteady links.
func WAN() Timers {
	return Timers{Heartbeat: 2 * time.Second, Election: 2 * time.Second, Lease: time.Second}
}

// Snapshots says when a snapshot is made and how much of the log stays.
type Snapshots struct {
	Entries  uint64        // made after so many log entries
	Bytes    int64         // or so many bytes of them
	Every    time.Duration // how often this is looked at
	Trailing uint64        // log entries that stay behind a snapshot, at least
	Keep     int64         // more of them stay as long as they are below so many bytes
	Rate     int64         // bytes a second a snapshot is written with; 0 is no limit
}

// Config of a store. Dir, Server, Exec and, beyond one voter, Dial, AskTerm and AskClock must be set; the rest has
// defaults.
type Config struct {
	Dir    string // one folder for log, state and snapshots
	Server string // Raft server id: node id "/" store id

	Listener net.Listener                                               // where Raft's connections come in; the store closes it
	Dial     func(ctx context.Context, server string) (net.Conn, error) // to another server's listener

	LogKind   logstore.Kind
	MustExist bool // this node had a log here: a missing one is an error (M-32)
	Copied    bool // the folder is not the one that this store last wrote: refused (ErrCopied), but where it is the only voter (M-32)

	Timers    Timers
	Snapshots Snapshots
	Room      func(bytes int64) bool // whether the disk has room for a snapshot of that size; nil is always
	Linger    time.Duration          // the most that a batch waits for more requests, when batches are large; 0 is off

	Exec      func(v board.View, r *board.Request, env *board.Env) (board.Txn, board.Result)
	Nodes     func(id string) board.Reading
	Workflows *board.Workflows

	// AskTerm asks another voter for its Store.Term, AskClock for its wall clock, over a path of their own. They must
	// not answer from a memory, and must return soon after ctx is done.
	AskTerm  func(ctx context.Context, server string) (uint64, error)
	AskClock func(ctx context.Context, server string) (time.Time, error)

	// OnCommit is told, on the leader only, what the executor of a term has committed, in order. It must not block.
	OnCommit func(term uint64, txns []board.Txn)

	Logger *slog.Logger

	MmapSize   int                  // bytes of address space for the state; a state that outgrows it waits for its readers
	SlowDisk   time.Duration        // a write that takes longer hangs: the node gives up; 0 is 10 s, negative is off
	CheckAfter time.Duration        // what a start left unread is read so long after it; 0 is 30 s
	BootClock  func() time.Duration // counts sleep; default CLOCK_BOOTTIME
	Wall       func() time.Time     // default time.Now
	BootID     string               // default this boot of the machine

	// For tests and simulation: OpenLog in place of logstore.Open; Fault is asked before each named operation of state
	// or marker, which fails with its answer, and may take its time.
	OpenLog func() (LogStore, error)
	Fault   func(op string) error

	transport transport          // tests: in place of Listener and Dial
	snaps     raft.SnapshotStore // tests: in place of files
	persist   func()             // tests: called when a snapshot begins to be written
}

// DefaultConfig has the defaults of production.
func DefaultConfig() Config {
	return Config{
		LogKind: logstore.Default,
		Timers:  LAN(),
		Snapshots: Snapshots{
			Entries: 50_000, Bytes: 64 << 20, Every: 10 * time.Second,
			Trailing: 10_000, Keep: 64 << 20, Rate: 128 << 20,
		},
		Linger:   5 * time.Millisecond,
		MmapSize: defaultMmap,
		SlowDisk: 10 * time.Second,
	}
}

// Validate says what is missing or out of range, all of it at once.
func (c *Config) Validate() error {
	var errs []error
	need := func(ok bool, what string) {
		if !ok {
			errs = append(errs, errors.New("raftstore config: "+what))
		}
	}
	need(c.Dir != "", "Dir is empty")
	need(len(c.Server) < 256, "Server is longer than 255 bytes")
	need(nodeOf(c.Server) != "" && nodeOf(c.Server) != c.Server, "Server must be node id/store id, not "+c.Server)
	need(c.Exec != nil, "Exec is nil")
	need(c.transport != nil || c.Listener != nil, "Listener is nil")
	need(c.Timers.Election >= c.Timers.Heartbeat && c.Timers.Heartbeat >= c.Timers.Lease && c.Timers.Lease >= 5*time.Millisecond,
		"Timers must be Election >= Heartbeat >= Lease >= 5 ms")
	need(c.Snapshots.Trailing >= 1 && c.Snapshots.Entries >= 1 && c.Snapshots.Every > 0, "Snapshots must be set")
	return errors.Join(errs...)
}

func (c *Config) fill() {
	d := DefaultConfig()
	if c.LogKind == "" {
		c.LogKind = d.LogKind
	}
	if c.Timers == (Timers{}) {
		c.Timers = d.Timers
	}
	if c.Snapshots == (Snapshots{}) {
		c.Snapshots = d.Snapshots
	}
	if c.MmapSize == 0 {
		c.MmapSize = d.MmapSize
	}
	if c.SlowDisk == 0 {
		c.SlowDisk = d.SlowDisk
	}
	if c.CheckAfter == 0 {
		c.CheckAfter = checkAfter
	}
	if c.Nodes == nil {
		c.Nodes = func(string) board.Reading { return board.Reading{State: board.NodeUnknown} }
	}
	if c.Workflows == nil {
		c.Workflows = board.NewWorkflows()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.BootClock == nil {
		c.BootClock = bootClock
	}
	if c.Wall == nil {
		c.Wall = time.Now
	}
	if c.BootID == "" {
		c.BootID = bootID()
	}
	if c.Fault == nil {
		c.Fault = func(string) error { return nil }
	}
}

// nodeOf is the node of a Raft server id, which is its Raft address too: where a node is, is looked up when it is
// dialled.
func nodeOf(server string) string {
	node, _, _ := strings.Cut(server, "/")
	return node
}

// raftConfig is Raft's own configuration.
func (c *Config) raftConfig() *raft.Config {
	r := raft.DefaultConfig()
	r.LocalID = raft.ServerID(c.Server)
	r.HeartbeatTimeout, r.ElectionTimeout, r.LeaderLeaseTimeout = c.Timers.Heartbeat, c.Timers.Election, c.Timers.Lease
	r.CommitTimeout = 50 * time.Millisecond // lower costs idle CPU and is slower than the push
	r.MaxAppendEntries = 64
	r.BatchApplyCh = true
	r.ShutdownOnRemove = false
	r.NoSnapshotRestoreOnStart = true // the state has its own applied index; Open compares it with the snapshot
	r.NoLegacyTelemetry = true
	r.TrailingLogs = c.Snapshots.Trailing
	r.SnapshotThreshold = 1 << 62 // snapshots are triggered by trigger.go
	r.SnapshotInterval = time.Hour
	r.Logger = adaptLogger(c.Logger)
	return r
}
