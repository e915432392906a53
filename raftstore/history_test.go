package raftstore

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/hashicorp/raft"

	"muster/board"
)

// A history is three voters in fake time under random faults, with clients that
// retry under the same id through any node. Invariants 4 to 8: what was
// acknowledged is there once, what was refused never, unknowns are honest,
// everything is linearizable, and all nodes end with the same bytes.
type history struct {
	t     *testing.T
	rig   *rig
	links *links
	nodes []*histNode
	rng   *rand.Rand // of the faults

	mu     sync.Mutex
	ops    []porcupine.Operation
	acked  map[string]bool // request id -> done (else refused)
	counts map[string]int
}

type histNode struct {
	*rigNode
	log    *gateLog
	boot   int
	wall   time.Duration
	slow   time.Time // until then the state is written slowly
	copies [][]byte  // older state files
}

var keys = []string{"c0", "c1", "c2", "c3"} // few open operations on each: the search grows with them

type histIn struct {
	verb, key string
	n         int
}

type histOut struct {
	val           int
	refused, open bool
}

func (h *history) count(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[what]++
}

func newHistory(t *testing.T, seed int64) *history {
	h := &history{
		t: t, rig: newRig(t), links: newLinks(seed), rng: rand.New(rand.NewSource(seed * 31)),
		acked: map[string]bool{}, counts: map[string]int{},
	}
	h.rig.links = h.links
	start := time.Now()
	for _, name := range []string{"n1", "n2", "n3"} {
		n := &histNode{log: newGateLog()}
		n.rigNode = h.rig.node(name, func(c *Config) { h.tune(n, name, start, c) })
		h.nodes = append(h.nodes, n)
	}
	return h
}

func (h *history) tune(n *histNode, name string, start time.Time, c *Config) {
	c.Timers = LAN()
	c.Snapshots = Snapshots{Entries: 15, Bytes: 1 << 30, Every: 400 * time.Millisecond, Trailing: 24}
	c.OpenLog = func() (LogStore, error) { return n.log, nil }
	c.BootClock = func() time.Duration { return time.Since(start) }
	c.Wall = func() time.Time { h.mu.Lock(); defer h.mu.Unlock(); return time.Now().Add(n.wall) }
	c.BootID = fmt.Sprint("boot", n.boot)
	term, clock := c.AskTerm, c.AskClock
	c.AskTerm = func(ctx context.Context, server string) (out uint64, err error) {
		err = h.links.over(ctx, name, nodeOf(server), func() (err error) { out, err = term(ctx, server); return err })
		return out, err
	}
	c.AskClock = func(ctx context.Context, server string) (out time.Time, err error) {
		err = h.links.over(ctx, name, nodeOf(server), func() (err error) { out, err = clock(ctx, server); return err })
		return out, err
	}
	c.Fault = func(op string) error {
		h.mu.Lock()
		slow := time.Now().Before(n.slow)
		h.mu.Unlock()
		if op == "state-commit" && slow {
			pass(150 * time.Millisecond)
		}
		return nil
	}
}

func (h *history) start() {
	s := h.nodes[0].open()
	if err := s.Bootstrap(); err != nil {
		h.t.Fatal(err)
	}
	waitLeads(h.t, s)
	for _, n := range h.nodes[1:] {
		n.open()
		if err := s.AddVoter(ctx(h.t), n.server); err != nil {
			h.t.Fatal(err)
		}
	}
}

// do sends one copy of a request to a node, from another place: it may be late, and its answer may be lost.
func (h *history) do(n *histNode, r board.Request, patience time.Duration) board.Result {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, _ := h.rig.up(n.server)
	if s == nil || !h.links.travel("client", nodeOf(n.server)) {
		return notLeader() // nothing was sent
	}
	res := s.Do(ctx, &r)
	if h.links.chance(0.05) {
		h.count("answer lost")
		return unknown()
	}
	return res
}

// client runs operations one after the other.
func (h *history) client(id int, seed int64, end time.Time) {
	rng := rand.New(rand.NewSource(seed*1000 + int64(id)))
	for k := 0; time.Now().Before(end); k++ {
		in := histIn{verb: []string{verbAdd, verbAdd, verbAbove, verbGet}[rng.Intn(4)], key: keys[rng.Intn(len(keys))], n: 1 + rng.Intn(30)}
		h.operation(id, fmt.Sprintf("%d-%d", id, k), in, rng, 3+rng.Intn(4))
		pass(time.Duration(rng.Intn(150)) * time.Millisecond)
	}
}

func (h *history) operation(client int, rid string, in histIn, rng *rand.Rand, tries int) histOut {
	call := time.Now()
	req := *toyN(in.verb, in.key, in.n, 0)
	if in.verb != verbGet {
		req.ID = rid
	}
	out, sent := histOut{open: true}, false
	for range tries {
		n := h.nodes[rng.Intn(len(h.nodes))]
		if rng.Float64() < 0.05 && in.verb != verbGet { // a copy that nobody hears of travels for long
			late := req
			go func() {
				pass(time.Duration(h.links.upTo(2500)) * time.Millisecond)
				h.do(n, late, time.Second)
			}()
			sent, req.Retry = true, true
			h.count("late copy")
		}
		res := h.do(n, req, time.Duration(200+rng.Intn(600))*time.Millisecond)
		if res.Err == nil || res.Err.Code == board.Refused {
			out = histOut{refused: res.Err != nil}
			out.val, _ = strconv.Atoi(string(res.Data))
			break
		}
		if res.Err.Code == board.UnknownOutcome {
			sent, req.Retry = true, true
		}
		pass(time.Duration(10+rng.Intn(150)) * time.Millisecond)
	}
	if out.open && (!sent || in.verb == verbGet) {
		h.count("not executed")
		return out
	}
	ret := time.Now()
	if out.open {
		ret = call.Add(time.Hour)
		h.count("unknown")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !out.open && in.verb != verbGet {
		h.acked[rid] = !out.refused
	}
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Call: call.UnixNano(), Output: out, Return: ret.UnixNano()})
	return out
}

// model is a set of counters.
func model() porcupine.Model {
	return porcupine.Model{
		Partition: func(ops []porcupine.Operation) [][]porcupine.Operation {
			by := map[string][]porcupine.Operation{}
			for _, o := range ops {
				k := o.Input.(histIn).key
				by[k] = append(by[k], o)
			}
			var out [][]porcupine.Operation
			for _, v := range by {
				out = append(out, v)
			}
			return out
		},
		Init: func() any { return 0 },
		Step: func(state, input, output any) (bool, any) {
			n, in, out := state.(int), input.(histIn), output.(histOut)
			if in.verb == verbGet {
				return out.val == n, n
			}
			refused := in.verb == verbAbove && n >= in.n
			next := n + 1
			if refused {
				next = n
			}
			return out.open || out.refused == refused && (refused || out.val == next), next
		},
	}
}

// fault does one random harm.
func (h *history) fault() {
	v := h.nodes[h.rng.Intn(3)]
	if l := h.leading(); l != nil && h.rng.Intn(2) == 0 {
		v = l
	}
	switch f := h.rng.Intn(12); f {
	case 0, 1: // cut off, in both directions or in some
		for _, o := range h.nodes {
			if o != v {
				h.links.set(nodeOf(v.server), nodeOf(o.server), f == 0 || h.rng.Intn(2) == 0)
				h.links.set(nodeOf(o.server), nodeOf(v.server), f == 0 || h.rng.Intn(2) == 0)
			}
		}
		h.count("cut")
	case 2, 3:
		h.links.heal()
	case 4, 5, 6:
		h.restart(v)
	case 7:
		h.mu.Lock()
		v.slow = time.Now().Add(time.Duration(300+h.rng.Intn(2000)) * time.Millisecond)
		h.mu.Unlock()
	case 8: // leadership away and back, behind the executor's back
		if s, _ := h.rig.up(v.server); s != nil {
			go func() { _ = s.await(context.Background(), s.raft.Load().LeadershipTransfer()) }()
			h.count("bounce")
		}
	case 9:
		if s, _ := h.rig.up(v.server); s != nil {
			go func() { _ = s.Transfer(ctx(h.t)) }()
			h.count("transfer")
		}
	case 10:
		h.mu.Lock()
		if h.nodes[0].wall == 0 { // one clock at a time: of two wrong ones nobody is right
			h.nodes[0].wall = []time.Duration{time.Hour, -time.Hour}[h.rng.Intn(2)]
		} else {
			h.nodes[0].wall = 0
		}
		h.mu.Unlock()
	case 11:
		h.links.mu.Lock()
		h.links.slow = 0.02
		h.links.mu.Unlock()
	}
}

func (h *history) leading() *histNode {
	for _, n := range h.nodes {
		if s, _ := h.rig.up(n.server); s != nil && leads(s) {
			return n
		}
	}
	return nil
}

// restart kills a node and starts it again, sometimes with its state file lost, of an earlier time, cut off, or
// from before a crash of the machine.
func (h *history) restart(v *histNode) {
	up := 0
	for _, n := range h.nodes {
		if s, _ := h.rig.up(n.server); s != nil {
			up++
		}
	}
	if s, _ := h.rig.up(v.server); s == nil || up < 3 && h.rng.Intn(3) > 0 {
		return
	}
	h.count("kill")
	v.kill()
	path := filepath.Join(v.dir, stateFile)
	file, err := os.ReadFile(path)
	if err != nil {
		h.t.Fatal(err)
	}
	v.copies = append(v.copies, file)
	harm := func(b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			h.t.Fatal(err)
		}
	}
	switch h.rng.Intn(7) {
	case 0:
		_ = os.Remove(path)
	case 1:
		harm(v.copies[h.rng.Intn(len(v.copies))])
	case 2:
		harm(file[:h.rng.Intn(len(file))])
	case 3:
		v.boot++
	}
	pass(time.Duration(h.rng.Intn(1200)) * time.Millisecond)
	v.open()
}

func (h *history) run(seed int64, length time.Duration) {
	h.start()
	end := time.Now().Add(length)
	var clients sync.WaitGroup
	for id := range 4 {
		clients.Go(func() { h.client(id, seed, end) })
	}
	for time.Now().Before(end) {
		pass(time.Duration(100+h.rng.Intn(700)) * time.Millisecond)
		h.fault()
	}
	h.links.heal()
	clients.Wait()
	pass(3 * time.Second) // late copies
	h.check(seed)
}

// check holds the end of a history against the invariants.
func (h *history) check(seed int64) {
	rng := rand.New(rand.NewSource(seed))
	for _, key := range keys {
		for tries := 0; h.operation(9, "", histIn{verb: verbGet, key: key}, rng, 10).open; tries++ {
			if tries == 20 {
				h.t.Fatalf("seed %d: no consistent read after everything was healed", seed)
			}
		}
	}
	var nodes []*rigNode
	for _, n := range h.nodes {
		nodes = append(nodes, n.rigNode)
	}
	same(h.t, nodes)
	done := map[string]int{}
	err := nodes[0].s.View(func(v board.View) error {
		v.Scan(board.TRequest, "", "", func(id string, val []byte) bool {
			ok := !strings.Contains(string(val), `"error"`)
			if ok {
				done["all"]++
			}
			if acked, known := h.acked[id]; known && acked != ok {
				h.t.Errorf("seed %d: request %s was answered as done: %t, the state says %t", seed, id, acked, ok)
			}
			done[id] = 1
			return true
		})
		for _, key := range keys {
			done["sum"] += count(v, key)
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	if done["all"] != done["sum"] {
		h.t.Errorf("seed %d: %d requests stand as done, the counters say %d", seed, done["all"], done["sum"])
	}
	for id, ok := range h.acked {
		if ok && done[id] == 0 {
			h.t.Errorf("seed %d: acknowledged request %s is lost", seed, id)
		}
	}
	for _, n := range h.nodes {
		s, _ := h.rig.up(n.server)
		st := s.Stats()
		h.counts["skipped"] += int(st.Skipped)
		h.counts["refused by term"] += int(st.RefusedTerm)
		h.counts["restored"] += int(st.Resets)
		if st.RefusedSeq > 0 {
			h.t.Errorf("seed %d: %s refused %d entries by Seq: a gap", seed, n.server, st.RefusedSeq)
		}
	}
	h.counts["operations"] = len(h.ops)
}

// Invariants 4, 5, 6, 7, 8 under drops, cuts, kills, lost and damaged state files, leader changes, late copies and
// wrong clocks.
func TestHistories(t *testing.T) {
	total := map[string]int{}
	begin := time.Now()
	for i := range *runs {
		s := *seed + int64(i)
		t.Run(fmt.Sprint("seed", s), func(t *testing.T) {
			var h *history
			bubble(t, func(t *testing.T) {
				h = newHistory(t, s)
				h.run(s, 20*time.Second)
			})
			// outside the bubble, where its time-out is one
			switch porcupine.CheckOperationsTimeout(model(), h.ops, 10*time.Second) {
			case porcupine.Illegal:
				t.Errorf("seed %d: the history of %d operations is not linearizable", s, len(h.ops))
			case porcupine.Unknown:
				h.count("porcupine undecided")
			}
			for k, v := range h.counts {
				total[k] += v
			}
		})
	}
	t.Logf("%d histories of 20 s in %v: %v", *runs, time.Since(begin).Round(time.Millisecond), total)
}

var _ raft.Transport = (*bubbleTransport)(nil)
