package launcher

import (
	"context"
	"errors"
	"log/slog"

	"muster/board"
	"muster/board/lease"
)

// Config is what a reconciler needs of its node.
type Config struct {
	Dir    string   // data folder: journal.db, runs, workspaces, ESTOP
	Node   string   // id of this node
	Name   string   // its name, for MUSTER_NODE
	Socket string   // session socket, for MUSTER_SOCKET
	Env    []string // environment of the node, of which sessions get what is on the list; nil: none

	Runner Runner
	// View reads the applied state. Applied is the raft index it has reached.
	View    func(func(board.View) error) error
	Applied func() uint64
	// Send brings a request to the leader and answers its outcome. It may take
	// as long as its context lets it.
	Send func(context.Context, *board.Request) board.Result
	// NewID mints a request id (era, Seq, random).
	NewID func() string

	Lease lease.Config
	Now   func() lease.Instant // nil: BootNow
	Log   *slog.Logger
	// OnFail is told, once, that the journal cannot be written: nothing is
	// started any more, and the node has to stop.
	OnFail func(error)

	Starts    int // preparations at once
	KeepRuns  int // folders of ended runs that stay
	failpoint func(string)
}

// DefaultConfig has the times and bounds; the rest must be given.
func DefaultConfig() Config {
	return Config{Lease: lease.DefaultConfig(), Now: BootNow, Starts: 8, KeepRuns: 1000}
}

// Validate says what is missing.
func (c *Config) Validate() error {
	switch {
	case c.Dir == "" || c.Node == "":
		return errors.New("launcher: Dir and Node must be given")
	case c.Runner == nil || c.View == nil || c.Applied == nil || c.Send == nil || c.NewID == nil:
		return errors.New("launcher: Runner, View, Applied, Send and NewID must be given")
	case c.Log == nil || c.Now == nil:
		return errors.New("launcher: Log and Now must be given")
	case c.Starts < 1 || c.KeepRuns < 1:
		return errors.New("launcher: Starts and KeepRuns must be above zero")
	}
	return c.Lease.Validate()
}

func (c *Config) at(step string) {
	if c.failpoint != nil {
		c.failpoint(step)
	}
}
