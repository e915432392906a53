package e2e

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/launcher"
)

var (
	rounds = flag.Int("rounds", 0, "rounds of the long form (make prove-1, prove-3: 20); 0 is the short form")
	seed   = flag.Uint64("seed", 0, "seed of random choices; 0 takes one and prints it")
)

var binary string

func TestMain(m *testing.M) {
	// The tests wait for leases most of their time, not for a processor.
	_ = flag.Set("test.parallel", "4")
	flag.Parse()
	dir, err := os.MkdirTemp("", "muster-e2e")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "muster")
	build := []string{"build", "-o", binary}
	if raced {
		build = append(build, "-race")
		if err := os.Setenv("GORACE", "log_path="+filepath.Join(dir, raceLog)); err != nil {
			panic(err)
		}
	}
	if out, err := exec.Command("go", append(build, "muster/cmd/muster")...).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	if racesOfNodes(dir) {
		code = 1
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// raceLog begins the names of the files to which the race detector of a node writes: a node's standard error is nowhere
// when it has detached, and a test that kills nodes would not wonder about one that ends.
const raceLog = "race"

// racesOfNodes prints what the race detectors of the nodes found, and tells that there was something.
func racesOfNodes(dir string) bool {
	files, _ := filepath.Glob(filepath.Join(dir, raceLog+".*"))
	for _, f := range files {
		b, _ := os.ReadFile(f)
		fmt.Fprintf(os.Stderr, "a data race in a muster process (%s):\n%s\n", filepath.Base(f), b)
	}
	return len(files) > 0
}

// random is the test's source of choices; its seed is printed.
func random(t *testing.T) *rand.Rand {
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d (again with -seed=%d)", s, s)
	return rand.New(rand.NewPCG(s, 7))
}

// machine is one node as a process of its own.
type machine struct {
	t       *testing.T
	name    string
	data    string
	listen  string
	args    []string
	prefix  []string // command in front of muster, to put it into a namespace
	env     []string
	cmd     *exec.Cmd
	live    atomic.Int64 // pid of the node
	stopped bool         // by SIGSTOP
	binary  string       // another than the others'
	api     *api.Client
	out     string
}

// fleet is some machines on loopback.
type fleet struct {
	t        *testing.T
	dir      string
	machines []*machine
}

// freePort is a port that was free a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// shell is a board whose cards run their body as a script.
const shell = `
version: 1
name: default
extends: default
params: {lease: LEASE}
profiles:
  sh: {harness: command, args: [sh, -c, 'sh "$MUSTER_BODY"']}
`

// steady are the timers for tests in which a follower fails and the leader is to
// stay: a machine with far more to do than it can misses 150 ms easily.
var steady = []string{"--timers", "wan"}

// newFleet starts n machines, atlas first, the others joined by one string. With
// three of them all vote.
func newFleet(t *testing.T, n, slots int, args ...string) *fleet {
	t.Helper()
	return newFleetAt(t, n, slots, func(int, *machine) {}, args...)
}

// newFleetAt is newFleet with a say in where and how each machine runs.
func newFleetAt(t *testing.T, n, slots int, place func(i int, m *machine), args ...string) *fleet {
	t.Helper()
	dir, err := os.MkdirTemp("", "mf") // short: sockets live in it
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{t: t, dir: dir}
	t.Cleanup(f.close)
	names := []string{"atlas", "borea", "cleo", "dione", "eos"}
	for i := range n {
		m := &machine{t: t, name: names[i], data: filepath.Join(dir, names[i]), listen: freePort(t), out: filepath.Join(dir, names[i]+".out"),
			args: append([]string{"--label", "always-on=true", "--slots", fmt.Sprint(slots)}, args...)}
		m.api = client(m.data)
		place(i, m)
		if i > 0 {
			tok, err := api.Decode[api.TokenAnswer](f.machines[0].api.Post(context.Background(), "/v1/token", api.TokenOptions{Role: "node", TTL: 3600}))
			if err != nil {
				t.Fatalf("token: %v", err)
			}
			m.args = append(m.args, "--join", tok.Token)
		}
		f.machines = append(f.machines, m)
		m.start()
	}
	if n >= 3 {
		for _, m := range f.machines[1:3] {
			f.do(f.machines[0], board.VNodeVote, board.NodeVote{Node: m.name, Vote: true})
		}
		f.eventually(30*time.Second, "three voters", func() (bool, string) {
			s, err := f.machines[0].status()
			return err == nil && s.Voters == 3, fmt.Sprintf("%d voters (%v)", s.Voters, err)
		})
	}
	return f
}

func (f *fleet) close() {
	for _, m := range f.machines {
		m.kill()
	}
	f.endSessions()
	for _, m := range f.machines {
		endTmux(m.data)
	}
	if f.t.Failed() {
		for _, m := range f.machines {
			f.t.Logf("--- %s\n%s", m.name, m.lastWords(40))
		}
		f.t.Logf("folders are kept in %s", f.dir)
		return
	}
	os.RemoveAll(f.dir)
}

// lastWords are the newest lines of a machine's log, without Raft's own.
func (m *machine) lastWords(n int) string {
	b, _ := os.ReadFile(m.out)
	var lines []string
	for line := range strings.Lines(string(b)) {
		if !strings.Contains(line, "component=raft ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-n):], "")
}

// endSessions ends what the fleet's keepers still hold, each asked by the socket
// in its run's folder; what a dead keeper left behind is found by its run's mark.
func (f *fleet) endSessions() {
	keepers := &launcher.Keepers{Log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	procs, _ := filepath.Glob(filepath.Join(f.dir, "*", "runs", "*", "proc.json"))
	for _, path := range procs {
		dir := filepath.Dir(path)
		if e, err := launcher.ReadExit(dir); err != nil || e != nil {
			continue
		}
		s, err := keepers.Adopt(ctx, dir)
		if s != nil {
			_ = s.Stop(0, "the test is over")
			select {
			case <-s.Done():
			case <-ctx.Done():
			}
			s.Close()
		} else if err == nil {
			err = keepers.End(ctx, dir)
		}
		if err != nil {
			f.t.Logf("session of %s: %v", dir, err)
		}
	}
}

func (m *machine) start(extra ...string) {
	m.t.Helper()
	argv := append([]string{"up", "--data", m.data, "--name", m.name, "--listen", m.listen}, append(m.args, extra...)...)
	if testing.Verbose() {
		argv = append(argv, "--verbose")
	}
	argv = append(append([]string{}, m.prefix...), append([]string{cmp.Or(m.binary, binary)}, argv...)...)
	m.cmd = exec.Command(argv[0], argv[1:]...)
	m.cmd.Env = append(append(os.Environ(), "SHELL=/bin/sh", "ENV="), m.env...) // no shell waits for a person's own start files
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := os.OpenFile(m.out, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		m.t.Fatal(err)
	}
	defer out.Close()
	m.cmd.Stdout, m.cmd.Stderr = out, out
	if err := m.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.live.Store(int64(m.cmd.Process.Pid))
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(30 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if _, err := m.api.Get(context.Background(), "/v1/info", nil); err == nil {
			return
		} else if time.Now().After(deadline) {
			b, _ := os.ReadFile(m.out)
			m.t.Fatalf("%s did not come up: %v\n%s", m.name, err, b)
		}
	}
}

// kill is kill -9 of the node's process alone; its sessions are in sessions of their own.
func (m *machine) kill() {
	if m.cmd == nil || m.cmd.Process == nil {
		return
	}
	m.live.Store(0)
	if slices.Contains(m.prefix, "--fork") { // the node is its child, and goes with it only as long as it has not begun again without its token
		pid := m.cmd.Process.Pid
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		for child := range strings.FieldsSeq(string(children)) {
			if n, err := strconv.Atoi(child); err == nil {
				_ = syscall.Kill(n, syscall.SIGKILL)
			}
		}
	}
	_ = m.cmd.Process.Kill()
	_ = m.cmd.Wait()
	m.cmd = nil
}

// pid is that of the node's process, 0 while there is none.
func (m *machine) pid() int { return int(m.live.Load()) }

func (m *machine) signal(s syscall.Signal) {
	_ = m.cmd.Process.Signal(s)
	m.stopped = s == syscall.SIGSTOP
}

func (m *machine) status() (api.Status, error) {
	return api.Decode[api.Status](m.api.Get(context.Background(), "/v1/status", nil))
}

// run runs the command line against this machine and gives its output and exit code.
func (m *machine) run(args ...string) (stdout, stderr string, code int) {
	cmd := exec.Command(binary, append([]string{"--data", m.data}, args...)...)
	var o, e strings.Builder
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	}
	return o.String(), e.String(), code
}

// patience is the least that anything is waited for: it ends a hang, and claims nothing of how fast a busy machine is. What is
// claimed of times is measured by the tests themselves.
const patience = 2 * time.Minute

// eventually waits for a condition, looking again and again.
func (f *fleet) eventually(limit time.Duration, what string, cond func() (bool, string)) {
	f.t.Helper()
	limit = max(limit, patience)
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		ok, now := cond()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("after %s still not %s: %s", limit, what, now)
		}
	}
}

// leader is the machine that leads, as the others see it.
func (f *fleet) leader() *machine {
	f.t.Helper()
	var found *machine
	f.eventually(30*time.Second, "led by anybody", func() (bool, string) {
		for _, m := range f.machines {
			if m.pid() == 0 || m.stopped {
				continue
			}
			s, err := m.status()
			if err != nil || !s.Quorum {
				continue
			}
			for _, x := range f.machines {
				if x.name == s.Leader && x.pid() != 0 && !x.stopped {
					found = x
					return true, ""
				}
			}
		}
		return false, "nobody leads"
	})
	return found
}

// sameState waits until all machines are at the same Seq and holds their hashes
// against each other (invariant 7).
func (f *fleet) sameState() string {
	f.t.Helper()
	var at string
	f.eventually(40*time.Second, "at the same Seq", func() (bool, string) {
		var hashes []string
		for _, m := range f.machines {
			s, err := m.status()
			if err != nil {
				return false, m.name + ": " + err.Error()
			}
			hashes = append(hashes, s.Hash)
		}
		seqs := map[string]bool{}
		for _, h := range hashes {
			_, seq, _ := strings.Cut(h, "@")
			seqs[seq] = true
		}
		if len(seqs) > 1 {
			return false, strings.Join(hashes, ", ")
		}
		for _, h := range hashes {
			if h != hashes[0] {
				f.t.Fatalf("states differ at the same Seq: %s", strings.Join(hashes, ", "))
			}
		}
		at = hashes[0]
		return true, ""
	})
	return at
}
