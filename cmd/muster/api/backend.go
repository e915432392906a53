package api

import (
	"context"
	"net"
	"os"
	"time"

	"muster/board"
	"muster/cmd/muster/tty"
)

// Fresh says how old a reading of the state is.
type Fresh struct {
	Index uint64        // Seq of the state that was read
	Age   time.Duration // since the sending of the last contact whose index is applied; negative: not known (M-31)
}

// Readings is what the leader knows of its nodes. Without one (then Live is
// false) a node knows of itself only.
type Readings struct {
	Nodes  map[string]board.Reading
	Leader string // node id
	Term   uint64
	Live   bool
	Alarms []string

	Removed string // this machine is out of the fleet, in words
}

// Info is what a node says of itself.
type Info struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Fleet   string    `json:"fleet"`
	Data    string    `json:"data"`
	Addr    string    `json:"addr"`
	Version string    `json:"version"`
	PID     int       `json:"pid"`
	Started time.Time `json:"started_at"`
}

// Sub is a subscription to changes: a one-slot signal, then read the state.
type Sub interface {
	C() <-chan struct{}
	Close()
}

// Backend is a node, as its doors see it.
type Backend interface {
	// Do executes a request, here or in one hop; it is answered once.
	Do(ctx context.Context, req board.Request) board.Result
	// SessionSay passes on a session's word, in the order of its run's words.
	SessionSay(ctx context.Context, run, secret string, req board.Request) board.Result
	// Vouch looks at a session of this machine that is to be attached, and speaks for what it saw (M-19).
	Vouch(a board.Adopt) (*board.Vouch, *board.Error)
	MintID() string
	// Read reads the local state; consistent waits for everything acknowledged before.
	Read(ctx context.Context, consistent bool, fn func(board.View) error) (Fresh, error)
	Readings(ctx context.Context) Readings
	Why(ctx context.Context, card string) (any, error)
	// DryRun is what the scheduler would start now on a board ("" is all), and what not, and why.
	DryRun(ctx context.Context, slug string) (any, error)
	Rounds(ctx context.Context, n int) (any, error)
	Subscribe(filter func(board.Table, string) bool) Sub
	ReadLog(ctx context.Context, run string, from int64, most int, wait bool) (LogChunk, error)
	// Terminal opens what a person asks to look at, on any machine; the connection ends with this node.
	Terminal(ctx context.Context, q TermAsk) (tty.Opened, net.Conn, error)
	// Diff is what a card has changed, from the machine that has its workspace.
	Diff(ctx context.Context, card string, stat bool) (*Diff, error)
	// MemoryFiles lists a snapshot of an agent's folder ("" is the newest), and MemoryChunk reads a piece of a file of it, from whatever machine has it.
	MemoryFiles(ctx context.Context, agent, hash string) (MemoryFiles, error)
	MemoryChunk(ctx context.Context, agent, hash, path string, from int64) (MemoryChunk, error)
	// Mirror waits until all that this machine knows of a board is in the repository that it mirrors it to.
	Mirror(ctx context.Context, slug string) (Mirror, error)
	// Gc lets the workspaces of this machine go that no card needs, and lists all.
	Gc(ctx context.Context, o GcOptions) ([]GcItem, error)
	Info() Info
	// Self is the node's id and name: every caller is named with them.
	Self() (id, name string)
	Hash() string
	NewToken(ctx context.Context, actor board.Actor, o TokenOptions) (TokenAnswer, *board.Error)
	// Backup writes the state to a file, as this node has it.
	Backup(ctx context.Context, f *os.File) (string, error)
	// Peers is how the other nodes answer this one, now.
	Peers(ctx context.Context) Peers
	Stop(restart bool)
}
