package launcher

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"muster/board"
)

// A node in a process of its own, that can be killed: its state is replayed
// from a file, its launcher has the run folders and the journal.

// order and answer are what a test says to it, one JSON object a line.
type order struct {
	Op      string // file, event, say, runs, stop
	Profile string
	Script  string
	Card    string
	Run     string
	Event   string
	Wait    time.Duration
	Down    bool
}

type answer struct {
	Err     string
	Run     string
	Runs    []*board.Run
	Cards   map[string]string // id -> status
	Waiting int
	Journal string
	Code    board.Code
}

// nodeProgram is the process: args are data folder and world file.
func nodeProgram(args []string) int {
	f, err := newFleet(args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	exe, _ := os.Executable()
	cfg := f.config(args[0], exe)
	cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	r, err := New(cfg)
	if err == nil {
		err = r.Open(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	f.set(func() { f.woken = r.Wake })
	r.Wake()
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var o order
		if in.Decode(&o) != nil {
			r.Close()
			return 0
		}
		if out.Encode(obeyOrder(f, r, o)) != nil {
			return 1
		}
	}
}

func obeyOrder(f *fleet, r *Reconciler, o order) (a answer) {
	var err error
	switch o.Op {
	case "file":
		a.Run, err = f.file(o.Profile, o.Script)
	case "event":
		err = f.event(o.Card, o.Event)
	case "down":
		f.set(func() { f.down = o.Down })
	case "say":
		ctx, cancel := context.WithTimeout(context.Background(), o.Wait)
		defer cancel()
		s, serr := ReadSecret(filepath.Join(r.cfg.Dir, "runs", o.Run))
		if serr != nil {
			return answer{Err: serr.Error()}
		}
		if res := r.SessionSay(ctx, o.Run, s.Secret, say(f, o.Run, o.Event)); res.Err != nil {
			a.Err, a.Code = res.Err.Error(), res.Err.Code
		}
		return a
	}
	if err != nil {
		a.Err = err.Error()
	}
	a.Waiting, a.Journal, a.Cards = r.box.waiting(), r.JournalID(), map[string]string{}
	_ = f.view(func(v board.View) error {
		board.EachCard(v, nil, func(c *board.Card) bool {
			a.Cards[c.ID] = c.Status
			board.EachRun(v, c.ID, func(x *board.Run) bool { a.Runs = append(a.Runs, x); return true })
			return true
		})
		return nil
	})
	return a
}

// nodeProcess is such a process, from outside.
type nodeProcess struct {
	t     *testing.T
	dir   string
	world string
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *json.Decoder
	wrap  []string // a command before the node's own
	env   []string // beside the test's own
	exe   string   // "": the test binary itself
	alone bool     // as a service or a terminal runs it: leader of a session and a group of its own
}

func newProcess(t *testing.T) *nodeProcess {
	t.Helper()
	dir := t.TempDir()
	p := &nodeProcess{t: t, dir: filepath.Join(dir, "data"), world: filepath.Join(dir, "world")}
	t.Cleanup(func() { endAll(t, p.dir) })
	t.Cleanup(p.kill)
	p.run()
	p.mustAsk(order{Op: "runs"}) // its state is founded: a life that ends before would leave half of it
	return p
}

func (p *nodeProcess) run() {
	p.t.Helper()
	args := append(append([]string{}, p.wrap...), cmp.Or(p.exe, testBinary(p.t)), "program", "node", p.dir, p.world)
	p.cmd = exec.Command(args[0], args[1:]...)
	p.cmd.Env = append(os.Environ(), p.env...)
	log, err := os.OpenFile(p.world+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(p.t, err)
	defer log.Close()
	p.cmd.Stderr = log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: p.alone}
	p.in, err = p.cmd.StdinPipe()
	must(p.t, err)
	out, err := p.cmd.StdoutPipe()
	must(p.t, err)
	p.out = json.NewDecoder(bufio.NewReader(out))
	must(p.t, p.cmd.Start())
}

func (p *nodeProcess) kill() {
	if p.cmd.Process != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
}

func (p *nodeProcess) restart() {
	p.kill()
	p.run()
}

// ask is false when the process has died.
func (p *nodeProcess) ask(o order) (answer, bool) {
	p.t.Helper()
	var a answer
	b, err := json.Marshal(o)
	must(p.t, err)
	if _, err := p.in.Write(append(b, '\n')); err != nil {
		return a, false
	}
	if err := p.out.Decode(&a); err != nil {
		if !errors.Is(err, io.EOF) {
			p.t.Logf("answer: %v", err)
		}
		return a, false
	}
	return a, true
}

// mustAsk fails the test when the process is dead or says an error.
func (p *nodeProcess) mustAsk(o order) answer {
	p.t.Helper()
	a, ok := p.ask(o)
	if !ok || a.Err != "" {
		b, _ := os.ReadFile(p.world + ".log")
		p.t.Fatalf("%s: alive %v, error %q\n%s", o.Op, ok, a.Err, b)
	}
	return a
}

// until asks for the runs until ok says so; it restarts a process that died.
func (p *nodeProcess) until(what string, ok func(answer) bool) (last answer) {
	p.t.Helper()
	defer func() {
		if p.t.Failed() {
			b, _ := json.MarshalIndent(last, "", " ")
			p.t.Logf("the node's last answer: %s\nits log:\n%s", b, p.logText())
		}
	}()
	eventuallyIn(p.t, 3*slow, what, func() bool { // it may start anew several times meanwhile
		a, alive := p.ask(order{Op: "runs"})
		if !alive {
			p.restart()
			return false
		}
		last = a
		return ok(a)
	})
	return last
}

func (p *nodeProcess) logText() []byte {
	b, _ := os.ReadFile(p.world + ".log")
	return b
}

func allGone(a answer) bool {
	if len(a.Runs) == 0 || a.Waiting > 0 {
		return false
	}
	for _, r := range a.Runs {
		if r.Gone == "" {
			return false
		}
	}
	return true
}

func bufioReader(r io.Reader) *bufio.Reader { return bufio.NewReader(r) }

func killTree(t *testing.T, pid int) {
	t.Helper()
	must(t, syscall.Kill(pid, syscall.SIGKILL))
}
