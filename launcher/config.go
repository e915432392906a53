package launcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"muster/board"
	"muster/board/lease"
	"muster/launcher/tmux"
)

// Config is what a reconciler needs of its node.
type Config struct {
	Dir    string // data folder: journal.db, runs, workspaces
	Binary string // the executable whose first argument may be [KeepVerb]; for the default Runner
	Node   string // id of this node
	Name   string // its name, for MUSTER_NODE; "" is the id
	Socket string // session socket, for MUSTER_SOCKET; "" is session.sock in Dir
	Estop  string // no session starts while this file exists; "" is ESTOP in Dir

	// View reads the applied state; Index is the raft index it has reached.
	View  func(func(board.View) error) error
	Index func() uint64
	// Clock is this node's contact with the leader as it stands. After a change
	// of it, call [Reconciler.Contact].
	Clock func() lease.Clock
	// Send brings a request to the leader and answers its outcome. It may take
	// as long as its context lets it.
	Send func(context.Context, *board.Request) board.Result

	Logger *slog.Logger
	// OnFail is told, once, that the journal cannot be written: nothing is
	// started any more, and the node has to stop. nil: nobody.
	OnFail func(error)

	// Memory asks a machine, or any other that has it, for a piece of an object of
	// agents' memory, and how large it is. nil: nobody can be asked.
	Memory func(ctx context.Context, node, hash string, from int64) ([]byte, int64, error)

	// Repos maps names of repositories to URLs or paths of this machine, asked at
	// each use; nil: none. Ports are the first and last that cards are given; 0: the default.
	Repos func() (map[string]string, error)
	Ports [2]int
	// Accept says why this machine takes no session of a board and a harness, "" when it
	// does: its owner's word, asked before each start. nil: it takes all.
	Accept func(board, harness string) string

	Runner   Runner               // nil: real keepers, of Binary
	Now      func() lease.Instant // nil: BootNow
	Env      []string             // environment of the node, of which sessions get what is on a list; nil: this process's
	Starts   int                  // preparations at once; 0: 8
	KeepRuns int                  // folders of ended runs that stay; 0: 1000

	panes   *tmux.Server // nil: noPanes says why
	noPanes error

	evidence time.Duration // so long a program may take to show that it has read a text; 0: 10 s
	deaf     time.Duration // a pane that does not take a text for so long is told of; 0: 2 min
	quiet    time.Duration // without a word for so long, a session is quiet; 0: board.QuietFor
}

// validate fills what has a default and says what is missing.
func (c *Config) validate() error {
	switch {
	case c.Dir == "" || c.Node == "":
		return errors.New("launcher: Dir and Node must be given")
	case c.View == nil || c.Index == nil || c.Clock == nil || c.Send == nil:
		return errors.New("launcher: View, Index, Clock and Send must be given")
	case c.Runner == nil && c.Binary == "":
		return errors.New("launcher: Binary (or a Runner) must be given")
	case c.Starts < 0 || c.KeepRuns < 0:
		return errors.New("launcher: Starts and KeepRuns must not be below zero")
	}
	abs, err := filepath.Abs(c.Dir)
	if err != nil {
		return fmt.Errorf("launcher: data folder: %w", err)
	}
	c.Dir = abs
	c.Name = cmp.Or(c.Name, c.Node)
	c.Socket = cmp.Or(c.Socket, filepath.Join(c.Dir, "session.sock"))
	c.Estop = cmp.Or(c.Estop, filepath.Join(c.Dir, "ESTOP"))
	c.Starts, c.KeepRuns = cmp.Or(c.Starts, 8), cmp.Or(c.KeepRuns, 1000)
	c.quiet = cmp.Or(c.quiet, board.QuietFor)
	c.evidence, c.deaf = cmp.Or(c.evidence, 10*time.Second), cmp.Or(c.deaf, 2*time.Minute)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = BootNow
	}
	if c.Env == nil {
		c.Env = os.Environ()
	}
	if c.Runner == nil {
		c.Runner = &Keepers{Binary: c.Binary, Log: c.Logger}
	}
	c.openPanes()
	return nil
}
