package bench

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/google/renameio/v2"
)

// An Env is what a bench is given: where to work and how to measure.
type Env struct {
	Dir     string // an empty folder of the bench's own, removed after it
	Windows int
	Window  time.Duration
	Program string    // the muster program, whose nodes are processes of their own
	Cards   int       // in the state of the benches about size
	Body    int       // bytes of a card's text there
	Log     io.Writer // progress, a line at a time

	slots int // of each node of a fleet; 0 is 64
}

// Config is the house method in this environment.
func (e Env) Config(name, unit string, goals ...Goal) Config {
	c := DefaultConfig(name, unit, e.Dir)
	c.Windows, c.Window, c.Goals = e.Windows, e.Window, goals
	c.Warmup = min(c.Warmup, e.Window)
	return c
}

// A Bench is one thing that can be measured. Run returns a *Missing when the
// machine lacks what the bench stands on.
type Bench struct {
	Name  string
	About string
	Run   func(ctx context.Context, env Env) ([]Result, error)
	Part  bool // of another bench: runs only when it is named
}

// Missing says what a bench needs and why, so that it is skipped with words.
type Missing struct{ What, Why string }

func (m *Missing) Error() string { return fmt.Sprintf("needs %s: %s", m.What, m.Why) }

// Benches lists what this package can measure. A bench of a room stands in a
// file of its own here and is added to this list.
func Benches() []Bench {
	list := []Bench{
		{Name: "null", About: "fdatasync against itself: what this machine can tell apart", Run: null},
		{Name: "etcd-ack", About: "etcd: one client's put, against one fdatasync and one round trip (the baseline of P2)", Run: etcdAck},
		{Name: "etcd-conns", About: "etcd: 64 clients on 4 connections, against 64 connections (why the baseline of P1 has 4)", Run: etcdConns},
		{Name: "ack", About: "one client's event on three nodes, against one fdatasync and one round trip, and against etcd (P2)", Run: eventAck},
		{Name: "events", About: "events of three nodes by 1, 16, 64, 256 clients, against etcd (P1)", Run: eventsAll},
		{Name: "events-one", About: "events of one node by 1, 16, 64, 256 clients, against fdatasync", Run: eventsOne},
		{Name: "start", About: "card add at a non-leader until its session runs there, against the bare start of the same program (P4a)", Run: start},
		{Name: "pane", About: "card add at a non-leader until its session runs in a pane there, against a bare tmux new-window of the same program (P4b)", Run: pane},
		{Name: "attach", About: "a key's echo in a pane on another machine, against tmux's own attach here", Run: attach},
		{Name: "claims", About: "waiting cards of three nodes until their launch orders are in the state, against events of 64 clients", Run: claimsAll},
		{Name: "failover", About: "the leader of three nodes killed -9 under load until events and sessions go on, against etcd's and the election timeout (P5a)", Run: failover},
		{Name: "stop", About: "the leader of three nodes told to stop until events go on, against one event (P5b)", Run: plannedStop},
		{Name: "idle", About: "processor time of a node of five with 100 quiet sessions, against an idle etcd member (P12)", Run: idleNodes},
		{Name: "sessions", About: "one node with 200 quiet sessions: its processor time, memory and context switches of its keepers", Run: quietSessions},
		{Name: "panes", About: "one node with 200 quiet panes: its processor time, tmux's, memory and context switches of its keepers", Run: quietPanes},
		{Name: "open", About: "a node with many cards: its start against a bare scan (P10), its memory against their JSON (P8)", Run: open},
	}
	for _, n := range loads {
		list = append(list,
			Bench{Name: fmt.Sprintf("events-%d", n), About: fmt.Sprintf("the part of events with %d clients", n), Run: eventsOf(n), Part: true},
			Bench{Name: fmt.Sprintf("events-tls-%d", n), About: "the same against an etcd whose members speak TLS, as ours do", Run: eventsTLSOf(n), Part: true})
	}
	return list
}

// An Envelope is the JSON of one run: version, place and results.
type Envelope struct {
	V       int       `json:"v"`
	Kind    string    `json:"kind"`
	At      time.Time `json:"at"`
	Machine Machine   `json:"machine"`
	Results []Result  `json:"results"`
	Skipped []Skip    `json:"skipped,omitempty"`
}

// Skip is a bench that could not run here.
type Skip struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

const (
	envelopeVersion = 1
	envelopeKind    = "muster-bench"
)

// Main is the entry of `muster bench`: it runs the benches named in args, all
// without a name. Exit codes: 0 measured (also without a verdict), 1 a bench
// failed, 2 a mistake in the call.
func Main(args []string, stdout, stderr io.Writer) int {
	return run(Benches(), args, stdout, stderr)
}

type options struct {
	env   Env
	json  string
	list  bool
	names []string
}

func run(benches []Bench, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2
	}
	if o.list {
		for _, b := range benches {
			fmt.Fprintf(stdout, "%-14s %s\n", b.Name, b.About)
		}
		return 0
	}
	chosen, err := choose(benches, o.names)
	if err != nil {
		fmt.Fprintf(stderr, "bench: %v\n", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := measureAll(ctx, chosen, o, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "bench: %v\n", err)
		return 1
	}
	return 0
}

func parse(args []string, stderr io.Writer) (options, error) {
	o := options{env: Env{Log: stderr}}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() {
		fmt.Fprintln(stderr, "usage: muster bench [flags] [NAME...]     (--list shows the names)")
		f.PrintDefaults()
	}
	f.StringVar(&o.env.Dir, "dir", os.TempDir(), "folder on the disk to measure; what is written there is removed")
	f.IntVar(&o.env.Windows, "windows", leastWindows, "pairs of windows; fewer than 7 give no verdict")
	f.DurationVar(&o.env.Window, "window", 5*time.Second, "length of one side's window")
	quick := f.Bool("quick", false, "two windows of one second: to look at, never a verdict")
	f.IntVar(&o.env.Cards, "cards", 100_000, "cards in the state of bench open")
	f.IntVar(&o.env.Body, "body", 600, "bytes of each of these cards' texts; with 10000 the state is the gigabyte of goal P10")
	f.StringVar(&o.json, "json", "", "write machine, results and every window as JSON to this file (- is stdout, instead of text)")
	f.BoolVar(&o.list, "list", false, "list the benches")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if *quick {
		o.env.Windows, o.env.Window = 2, time.Second
	}
	o.names = f.Args()
	var err error
	if o.env.Program, err = os.Executable(); err != nil {
		return o, fmt.Errorf("this program's own file: %w", err)
	}
	return o, nil
}

func choose(benches []Bench, names []string) ([]Bench, error) {
	if len(names) == 0 {
		return slices.DeleteFunc(slices.Clone(benches), func(b Bench) bool { return b.Part }), nil
	}
	var chosen []Bench
	for _, name := range names {
		i := slices.IndexFunc(benches, func(b Bench) bool { return b.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no bench %q; see: muster bench --list", name)
		}
		chosen = append(chosen, benches[i])
	}
	return chosen, nil
}

// measureAll runs the benches one after the other. One that fails does not
// keep the others from running; their results are written all the same.
func measureAll(ctx context.Context, benches []Bench, o options, stdout, stderr io.Writer) error {
	text := stdout
	if o.json == "-" {
		text = io.Discard
	}
	e := Envelope{V: envelopeVersion, Kind: envelopeKind, At: time.Now().UTC(), Machine: DescribeMachine(ctx, o.env.Dir), Results: []Result{}}
	m := e.Machine
	fmt.Fprintf(text, "machine: %d cores, %s, %s %s, %s on %s, %s, commit %s, load %s\n\n",
		m.Cores, m.CPU, m.Kernel, m.Arch, m.Folder, m.Filesystem, m.Go, m.Commit, m.Load)
	var failed []error
	for _, b := range benches {
		if ctx.Err() != nil {
			failed = append(failed, ctx.Err())
			break
		}
		fmt.Fprintf(stderr, "bench %s\n", b.Name)
		results, err := inFolder(ctx, b, o.env)
		for i := range results {
			if err := results[i].WriteText(text); err != nil {
				return fmt.Errorf("print: %w", err)
			}
		}
		e.Results = append(e.Results, results...)
		var missing *Missing
		switch {
		case errors.As(err, &missing):
			e.Skipped = append(e.Skipped, Skip{b.Name, missing.Error()})
			fmt.Fprintf(text, "%s: skipped: %v\n", b.Name, missing)
		case err != nil:
			failed = append(failed, err)
		}
		fmt.Fprintln(text)
	}
	if err := e.write(o.json, stdout); err != nil {
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// inFolder gives a bench a folder of its own for its time.
func inFolder(ctx context.Context, b Bench, env Env) ([]Result, error) {
	dir, err := os.MkdirTemp(env.Dir, "muster-bench-")
	if err != nil {
		return nil, fmt.Errorf("%s: folder: %w", b.Name, err)
	}
	defer os.RemoveAll(dir)
	env.Dir = dir
	return b.Run(ctx, env)
}

// write puts the envelope where it is wanted, whole or not at all.
func (e Envelope) write(path string, stdout io.Writer) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return fmt.Errorf("results as JSON: %w", err)
	}
	text = append(text, '\n')
	if path == "-" {
		_, err = stdout.Write(text)
	} else {
		err = renameio.WriteFile(filepath.Clean(path), text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

// null measures one thing against itself, so that a reader sees how far from 1
// a ratio lies here by chance alone.
func null(ctx context.Context, env Env) ([]Result, error) {
	side := Fdatasync(env.Dir)
	r, err := Pair(ctx, env.Config("null", "ms"), side, side)
	return []Result{r}, err
}
