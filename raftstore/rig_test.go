package raftstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"muster/board"
)

// The toy domain of these tests: counters in TText, results by request id in
// TRequest, refusals by request. It is as pure as board.Exec.
const (
	verbAdd    = "add"    // counter Key += 1
	verbGet    = "get"    // reads counter Key, writes nothing
	verbAbove  = "above"  // adds if the counter is below N, else a refusal
	verbFill   = "fill"   // N records of Size bytes under Key
	verbPanic  = "panic"  // a defect of the domain
	verbDelete = "delete" // removes counter Key
)

type toyArgs struct {
	Key     string
	N, Size int
}

func toyExec(v board.View, r *board.Request, env *board.Env) (board.Txn, board.Result) {
	if r.ID != "" {
		if b := v.Get(board.TRequest, r.ID); b != nil {
			var res board.Result
			if err := json.Unmarshal(b, &res); err != nil {
				panic(err)
			}
			return board.Txn{}, res
		}
	}
	var a toyArgs
	if err := json.Unmarshal(r.Args, &a); err != nil {
		return board.Txn{}, board.Result{Err: board.Errorf(board.Invalid, "args: %v", err)}
	}
	n := count(v, a.Key)
	data := func(n int) board.Result {
		return board.Result{Seq: env.Seq, Data: json.RawMessage(strconv.Itoa(n))}
	}
	put := func(key, val string) board.Op { return board.Op{Table: board.TText, Key: key, Val: []byte(val)} }
	var ops []board.Op
	var res board.Result
	switch r.Verb {
	case verbGet, board.VBarrier:
		return board.Txn{}, board.Result{Seq: v.Seq(), Data: json.RawMessage(strconv.Itoa(n))}
	case verbPanic:
		panic("toy")
	case verbAbove:
		if n >= a.N {
			res = board.Result{Seq: v.Seq(), Err: board.Errorf(board.Refused, "%s is %d", a.Key, n)}
			if !r.Retry || r.ID == "" {
				return board.Txn{}, res
			}
			res.Seq = env.Seq
			break
		}
		fallthrough
	case verbAdd:
		ops, res = append(ops, put(a.Key, strconv.Itoa(n+1))), data(n+1)
	case verbDelete:
		ops, res = append(ops, board.Op{Table: board.TText, Key: a.Key, Delete: true}), data(0)
	case verbFill:
		for i := range a.N {
			ops = append(ops, board.Op{Table: board.TCard, Key: fmt.Sprintf("%s-%06d", a.Key, i), Val: make([]byte, a.Size)})
		}
		res = data(a.N)
	}
	if r.ID != "" {
		b, err := json.Marshal(res)
		if err != nil {
			panic(err)
		}
		ops = append(ops, board.Op{Table: board.TRequest, Key: r.ID, Val: b})
	}
	return board.Txn{Ops: ops}, res
}

func count(v board.View, key string) int {
	n, _ := strconv.Atoi(string(v.Get(board.TText, key)))
	return n
}

func toy(verb, key string) *board.Request { return toyN(verb, key, 0, 0) }

func toyN(verb, key string, n, size int) *board.Request {
	b, err := json.Marshal(toyArgs{Key: key, N: n, Size: size})
	if err != nil {
		panic(err)
	}
	return &board.Request{Verb: verb, Args: b}
}

func withID(r *board.Request, id string) *board.Request {
	r.ID = id
	return r
}

// rig is a fleet in one process.
type rig struct {
	t     testing.TB
	dir   string
	links *links // nil: real sockets
	mu    sync.Mutex
	nodes map[string]*rigNode // by server id
}

type rigNode struct {
	rig    *rig
	server string
	dir    string
	addr   string
	tune   func(*Config)
	s      *Store // nil while down

	hook atomic.Pointer[func(op string) error] // breaks named operations of a running store
}

var quick = Timers{Heartbeat: 150 * time.Millisecond, Election: 150 * time.Millisecond, Lease: 120 * time.Millisecond}

func newRig(t testing.TB) *rig {
	r := &rig{t: t, dir: t.TempDir(), nodes: map[string]*rigNode{}} // the folder is removed after the nodes are closed
	t.Cleanup(func() {
		for _, n := range r.nodes {
			n.close()
		}
	})
	return r
}

func (r *rig) node(name string, tune func(*Config)) *rigNode {
	n := &rigNode{rig: r, server: name + "/s1", dir: filepath.Join(r.dir, name), tune: tune}
	r.mu.Lock()
	r.nodes[n.server] = n
	r.mu.Unlock()
	return n
}

func (r *rig) up(server string) (*Store, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := r.nodes[server]; n != nil && n.s != nil {
		return n.s, n.addr
	}
	return nil, ""
}

func (n *rigNode) config() Config {
	c := DefaultConfig()
	c.Dir, c.Server = n.dir, n.server
	c.Timers = quick
	c.MmapSize = 1 // everything is tested on a small memory map
	c.Exec = toyExec
	if os.Getenv("RAFTLOG") != "" {
		c.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})).With("node", n.server)
	}
	c.Dial = func(ctx context.Context, server string) (net.Conn, error) {
		_, addr := n.rig.up(server)
		if addr == "" {
			return nil, errors.New("down")
		}
		var d net.Dialer
		return d.DialContext(ctx, "tcp", addr)
	}
	c.AskTerm = func(ctx context.Context, server string) (uint64, error) {
		if s, _ := n.rig.up(server); s != nil {
			return s.Term(), nil
		}
		return 0, errors.New("down")
	}
	c.AskClock = func(ctx context.Context, server string) (time.Time, error) {
		if s, _ := n.rig.up(server); s != nil {
			return s.cfg.Wall(), nil
		}
		return time.Time{}, errors.New("down")
	}
	if n.rig.links != nil {
		c.Timers, c.transport = LAN(), n.rig.links.plug(nodeOf(n.server))
	}
	c.Fault = func(op string) error {
		if f := n.hook.Load(); f != nil {
			return (*f)(op)
		}
		return nil
	}
	if n.tune != nil {
		n.tune(&c)
	}
	return c
}

func (n *rigNode) tryOpen() (*Store, error) {
	c := n.config()
	if c.transport == nil {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		c.Listener = l
	}
	s, err := Open(c)
	if err != nil {
		return nil, err
	}
	n.rig.mu.Lock()
	defer n.rig.mu.Unlock()
	n.s = s
	if c.Listener != nil {
		n.addr = c.Listener.Addr().String()
	}
	return s, nil
}

func (n *rigNode) open() *Store {
	n.rig.t.Helper()
	s, err := n.tryOpen()
	if err != nil {
		n.rig.t.Fatalf("open %s: %v", n.server, err)
	}
	return s
}

func (n *rigNode) unplug() {
	if n.rig.links != nil {
		n.rig.links.unplug(nodeOf(n.server))
	}
}

func (n *rigNode) take() *Store {
	n.rig.mu.Lock()
	defer n.rig.mu.Unlock()
	s := n.s
	n.s = nil
	return s
}

func (n *rigNode) close() {
	if s := n.take(); s != nil {
		n.unplug()
		if err := s.Close(); err != nil && s.Err() == nil {
			n.rig.t.Errorf("close %s: %v", n.server, err)
		}
	}
}

// kill leaves what kill -9 leaves.
func (n *rigNode) kill() {
	if s := n.take(); s != nil {
		n.unplug()
		s.abandon()
	}
}

// breaks sets the hook.
func (n *rigNode) breaks(f func(op string) error) { n.hook.Store(&f) }

// inFlight sends a request and returns when the executor has it in hand: what comes now waits. (Its log must be held.)
func inFlight(t testing.TB, s *Store, r *board.Request) <-chan board.Result {
	t.Helper()
	rounds, got := s.exec.rounds.Load(), make(chan board.Result, 1)
	go func() { got <- s.Do(ctx(t), r) }()
	waitFor(t, "a request is in flight", func() bool { return s.exec.rounds.Load() > rounds })
	return got
}

func waiting(s *Store) int {
	s.exec.queue.mu.Lock()
	defer s.exec.queue.mu.Unlock()
	return len(s.exec.queue.calls)
}

// single is a fleet of one that leads.
func single(t testing.TB, tune func(*Config)) (*rigNode, *Store) {
	t.Helper()
	n := newRig(t).node("n1", tune)
	s := n.open()
	if err := s.Bootstrap(); err != nil {
		t.Fatal(err)
	}
	waitLeads(t, s)
	return n, s
}

// three is a fleet of three voters in a bubble: real time and a loaded machine
// make leaders change when they like.
func three(t testing.TB, tune func(*Config)) (*rig, []*rigNode) {
	t.Helper()
	r := newRig(t)
	r.links = newLinks(1)
	return r, r.three(tune)
}

func (r *rig) three(tune func(*Config)) []*rigNode {
	t := r.t
	t.Helper()
	nodes := []*rigNode{r.node("n1", tune), r.node("n2", tune), r.node("n3", tune)}
	s := nodes[0].open()
	if err := s.Bootstrap(); err != nil {
		t.Fatal(err)
	}
	waitLeads(t, s)
	for _, n := range nodes[1:] {
		n.open()
		waitFor(t, "a voter is added", func() bool { // by whoever leads: two voters on a loaded machine may change their mind
			return leader(t, nodes).s.AddVoter(ctx(t), n.server) == nil
		})
	}
	for _, n := range nodes {
		waitFor(t, "all know three voters", func() bool { return len(n.s.Servers()) == 3 })
	}
	return nodes
}

func ctx(t testing.TB) context.Context {
	c, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return c
}

// waitFor polls: the tests have no sleep of a guessed length.
func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	end := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(end) {
			t.Fatalf("timed out: %s", what)
		}
		<-time.After(2 * time.Millisecond)
	}
}

func leads(s *Store) bool { _, ok := s.LeaderTerm(); return ok }

func waitLeads(t testing.TB, s *Store) {
	t.Helper()
	waitFor(t, "node leads", func() bool { return leads(s) })
}

// leader waits for one node that leads.
func leader(t testing.TB, nodes []*rigNode) *rigNode {
	t.Helper()
	var l *rigNode
	waitFor(t, "some node leads", func() bool {
		for _, n := range nodes {
			if s, _ := n.rig.up(n.server); s != nil && leads(s) {
				l = n
				return true
			}
		}
		return false
	})
	return l
}

func must(t testing.TB, r board.Result) board.Result {
	t.Helper()
	if r.Err != nil {
		t.Fatalf("%s (%s %s)", r.Err.Message, r.Err.Code, r.Err.Check)
	}
	return r
}

func counter(t testing.TB, s *Store, key string) (n int) {
	t.Helper()
	if err := s.View(func(v board.View) error { n = count(v, key); return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

// same waits until all nodes hold the same Seq, and fails if their hashes differ (invariant 7).
func same(t testing.TB, nodes []*rigNode) {
	t.Helper()
	var seq uint64
	for _, n := range nodes {
		_, q := n.s.Applied()
		seq = max(seq, q)
	}
	for _, n := range nodes {
		if err := n.s.WaitSeq(ctx(t), seq); err != nil {
			t.Fatal(err)
		}
	}
	want := nodes[0].s.Hash()
	for _, n := range nodes {
		if got := n.s.Hash(); got != want {
			t.Fatalf("%s has hash %x at Seq %d, %s has %x", n.server, got, seq, nodes[0].server, want)
		}
	}
}
