package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/board"
	"muster/cmd/muster/api"
)

// Exit codes.
const (
	ExitOK      = 0
	ExitFailed  = 1 // refused or failed
	ExitUsage   = 2
	ExitNoNode  = 3 // no node, or no leader in time
	ExitUnknown = 4 // it may or may not have happened: ask again under the same --request-id
)

const (
	defaultTimeout = 15 * time.Second
	patience       = 10 * time.Minute // how long a session's verb waits for its node and a leader
)

// Deps are the rooms behind the verbs that are not answered by a node's API.
type Deps struct {
	Version string
	// Up runs a node until ctx ends, or until it was asked to stop or failed.
	Up func(ctx context.Context, o UpOptions) error
	// Again replaces this process by the same program with other arguments, and text
	// on its stdin; nil: it stays as it is.
	Again func(args []string, stdin string) error
	// Door reaches a node's door at addr with a token, whose hashes pin its key:
	// how to dial it, and the Authorization header to send.
	Door func(addr, token string) (dial func(context.Context) (net.Conn, error), auth string, err error)
	// Check reads the store of a stopped node, or a state file, and changes nothing.
	Check func(path string) (*CheckReport, error)
	// Survey compares stopped nodes' folders, Recover makes a survivor the only voter of a
	// new era, Restore makes a new fleet of a backup.
	Survey  func(folders []string) ([]Survivor, error)
	Recover func(ctx context.Context, o RecoverOptions) (*RenewReport, error)
	// Follow makes a stopped node give up its state for that of its fleet.
	Follow  func(data, by, why string) error
	Restore func(ctx context.Context, o RestoreOptions) (*RenewReport, error)
	// Doctor looks at the node of a data folder, running or stopped, and at its machine.
	Doctor func(ctx context.Context, data string) []Finding
	Demo   func(ctx context.Context, o DemoOptions) error
	Bench  func(args []string, stdout, stderr io.Writer) int
}

// IO is a command's surroundings.
type IO struct {
	In       io.Reader
	Out, Err io.Writer
	Env      func(string) string
	Terminal bool // Out is a terminal
	Now      func() time.Time
}

// OS is the surroundings of this process.
func OS() IO {
	s, err := os.Stdout.Stat()
	return IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Getenv, Now: time.Now,
		Terminal: err == nil && s.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"}
}

// app is one call of the command line.
type app struct {
	deps Deps
	io   IO

	data, node, tokenFile, board string
	json, quiet, consistent      bool
	requestID                    string
	timeout                      time.Duration
	timeoutSet, dataSet          bool
	noColor                      bool
	args                         []string      // of this process
	path                         string        // of the command that ran
	verbs                        []string      // of the tree
	patience                     time.Duration // of who follows, while nobody answers

	out     *output
	session *session
	cl      *api.Client
}

// Main runs one command and returns its exit code.
func Main(ctx context.Context, args []string, surroundings IO, deps Deps) int {
	a := &app{deps: deps, io: surroundings, patience: patienceOfReaders, args: args, out: &output{w: surroundings.Out}}
	a.io.Out = a.out
	root := a.root()
	if err := utf8Args(args); err != nil {
		a.json = slices.Contains(args, "--json")
		a.complain(err)
		return exitCode(err)
	}
	root.SetArgs(args)
	root.SetIn(a.io.In)
	root.SetOut(a.io.Out)
	root.SetErr(a.io.Err)
	c, err := root.ExecuteContextC(ctx)
	a.path = c.CommandPath()
	if failed := a.out.failure(); failed != nil && (err == nil || errors.Is(err, context.Canceled) || errors.Is(err, failed)) {
		err, a.json = fmt.Errorf("the output could not be written: %w", failed), false // there nobody would read it
	}
	if err == nil {
		return ExitOK
	}
	if strings.HasPrefix(err.Error(), "unknown command") {
		err = usagef("%s", unknownVerb(root, err.Error()))
		a.json = a.json || slices.Contains(args, "--json") // no command has read the flags
	}
	a.complain(err)
	return exitCode(err)
}

// usageError is a call that cannot be meant.
type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }

// Usage makes an error one of a call that cannot be meant (exit code 2).
func Usage(err error) error {
	text := err.Error()
	if e := new(board.Error); errors.As(err, &e) && e.Hint != "" {
		text += "; " + e.Hint
	}
	return &usageError{text}
}

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// codeError ends a command with a code of its own; what there is to say has been said.
type codeError int

func (e codeError) Error() string { return "" }

// callError is a failed call with the id to ask again with.
type callError struct {
	err *board.Error
	id  string
}

func (e *callError) Error() string { return e.err.Message }
func (e *callError) Unwrap() error { return e.err }

func exitCode(err error) int {
	var usage *usageError
	var code codeError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &usage):
		return ExitUsage
	}
	switch board.CodeOf(err) {
	case board.Unavailable:
		return ExitNoNode
	case board.UnknownOutcome:
		return ExitUnknown
	}
	return ExitFailed
}

// complain tells what went wrong, and what next.
func (a *app) complain(err error) {
	var code codeError
	if errors.As(err, &code) {
		return
	}
	e, id := a.failure(err)
	if a.json {
		if a.printJSON(api.Envelope{V: api.Version, Error: &api.Failure{Error: *e, RequestID: id}}); a.out.failure() == nil {
			return
		}
	}
	fmt.Fprintf(a.io.Err, "muster: %s\n", visible(e.Message))
	if e.Hint != "" {
		fmt.Fprintf(a.io.Err, "hint: %s\n", visible(a.here(e.Hint)))
	}
	if id != "" && !strings.Contains(e.Hint, id) {
		fmt.Fprintf(a.io.Err, "hint: ask again with: --request-id %s\n", visible(id))
	}
}

func (a *app) failure(err error) (e *board.Error, id string) {
	var call *callError
	var usage *usageError
	switch {
	case errors.As(err, &call):
		return call.err, call.id
	case errors.As(err, &e):
		return e, ""
	case errors.As(err, &usage):
		return board.Errorf(board.Invalid, "%s", usage.msg).WithCheck("usage").WithHint("see: %s --help", orElse(a.path, "muster")), ""
	case errors.Is(err, context.Canceled):
		return board.Errorf(board.Internal, "interrupted"), ""
	}
	return board.Errorf(board.Internal, "%v", err), ""
}

// root is the tree of all verbs.
func (a *app) root() *cobra.Command {
	c := &cobra.Command{
		Use: "muster", Short: "a board of work for a fleet of equal machines",
		Long: `a board of work for a fleet of equal machines

Exit codes: 0 done; 1 refused, failed, or waited for in vain; 2 the call is wrong; 3 no node here, or no leader;
4 the outcome is not known: ask again with the --request-id that is printed.`,
		SilenceErrors: true, SilenceUsage: true, Version: a.deps.Version,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error { return a.settle(c) },
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		RunE:              func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		said, _, _ := strings.Cut(err.Error(), ": strconv.") // the name of a Go function helps nobody
		return usagef("%s", said)
	})
	f := c.PersistentFlags()
	f.StringVar(&a.data, "data", "", "data folder of the local node (MUSTER_HOME; default ~/.muster)")
	f.StringVar(&a.node, "node", "", "address of another node, with a token")
	f.StringVar(&a.tokenFile, "token-file", "", "file that holds a token")
	f.StringVar(&a.board, "board", "", "board (MUSTER_BOARD; default: default)")
	f.BoolVar(&a.json, "json", false, "answer as JSON")
	f.BoolVarP(&a.quiet, "quiet", "q", false, "ids only")
	f.BoolVar(&a.consistent, "consistent", false, "read what is true now, through the leader")
	f.StringVar(&a.requestID, "request-id", "", "ask again under the id of an earlier request")
	f.DurationVar(&a.timeout, "timeout", defaultTimeout, "how long an answer may take")
	f.BoolVar(&a.noColor, "no-color", false, "no colours (NO_COLOR)")
	for _, g := range []struct {
		id, title string
		verbs     []*cobra.Command
	}{
		{"work", "Cards:", append([]*cobra.Command{a.cardCmd(), a.startCmd(), a.whyCmd(), a.waitCmd(), a.logCmd(), a.attachCmd(), a.shellCmd(), a.diffCmd(), a.runsCmd(), a.contextCmd()}, a.sayCmds()...)},
		{"board", "Boards:", []*cobra.Command{a.boardCmd(), a.webCmd(), a.tuiCmd(), a.workflowCmd(), a.eventsCmd(), a.agentCmd(), a.dispatchCmd()}},
		{"tell", "Who is told:", a.tellCmds()},
		{"fleet", "The fleet:", []*cobra.Command{a.upCmd(), a.joinCmd(), a.stopCmd(), a.restartCmd(), a.leaveCmd(), a.statusCmd(), a.pauseCmd(), a.resumeCmd(), a.nodeCmd(), a.tokenCmd(), a.gcCmd(), a.checkCmd(), a.backupCmd(), a.restoreCmd(), a.recoverCmd(), a.doctorCmd(), a.serviceCmd(), a.metricsCmd()}},
		{"more", "More:", []*cobra.Command{a.demoCmd(), a.benchCmd(), a.mcpCmd(), a.docsCmd(), a.versionCmd(), a.completionCmd()}},
	} {
		c.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, v := range g.verbs {
			v.GroupID = g.id
			a.verbs = append(a.verbs, v.Name())
		}
		c.AddCommand(g.verbs...)
	}
	c.SetHelpCommandGroupID("more")
	a.completions(c)
	return c
}

// settle fills what flags leave open: flags before environment before defaults.
func (a *app) settle(c *cobra.Command) error {
	a.endWithReader(c)
	f := c.Flags()
	a.dataSet, a.timeoutSet = f.Changed("data"), f.Changed("timeout")
	if a.timeout <= 0 {
		return usagef("--timeout %s: give a time above 0, e.g. 15s", a.timeout)
	}
	if a.board == "" {
		a.board = a.io.Env("MUSTER_BOARD")
	}
	if a.io.Env("NO_COLOR") != "" {
		a.noColor = true
	}
	if a.json && a.quiet {
		return usagef("--json and -q exclude each other")
	}
	if err := emptyFlags(c); err != nil {
		return err
	}
	if a.tokenFile != "" && a.node == "" && c.Name() != "join" { // which takes a token to a fleet
		return usagef("--token-file is for calling another node: give --node too")
	}
	return utf8Only("the board's name", a.board)
}

// home is the data folder of the local node.
func (a *app) home() (string, error) {
	dir := a.data
	if dir == "" {
		dir = a.io.Env("MUSTER_HOME")
	}
	if dir == "" {
		h := a.io.Env("HOME")
		if h == "" {
			return "", usagef("no home folder is known here: give --data DIR")
		}
		dir = filepath.Join(h, ".muster")
	}
	return filepath.Abs(dir)
}

// verb is a command that takes from least to most arguments (most < 0: any number).
func verb(use, short string, least, most int, run func(c *cobra.Command, args []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, RunE: run, Args: func(c *cobra.Command, args []string) error {
		if len(args) >= least && (most < 0 || len(args) <= most) {
			return emptyArgs(strings.TrimPrefix(c.CommandPath(), "muster ")+strings.TrimPrefix(c.Use, c.Name()), args)
		}
		return usagef("use: %s", c.UseLine())
	}}
}

// group is a noun: it does nothing by itself.
func group(use, short string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, RunE: func(c *cobra.Command, args []string) error {
		names := make([]string, len(subs))
		for i, s := range subs {
			names[i] = s.Name()
		}
		if len(args) > 0 {
			return usagef("unknown verb %q of muster %s: use %s", args[0], use, strings.Join(names, ", "))
		}
		return usagef("muster %s: which verb? use %s", use, strings.Join(names, ", "))
	}}
	c.AddCommand(subs...)
	return c
}
