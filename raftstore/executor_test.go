package raftstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"muster/board"
)

// gateLog lets a test hold or break the log on disk.
type gateLog struct {
	*raft.InmemStore
	held   atomic.Pointer[chan struct{}] // not nil: writes of entries wait for it
	breaks atomic.Pointer[error]         // what writes of entries say
	term   atomic.Pointer[error]         // what writes of the term say
	look   func()                        // called at each write of entries
	failed chan struct{}
}

func newGateLog() *gateLog {
	return &gateLog{InmemStore: raft.NewInmemStore(), failed: make(chan struct{})}
}

func (g *gateLog) gate() error {
	if g.look != nil {
		g.look()
	}
	if c := g.held.Load(); c != nil {
		<-*c
	}
	if e := g.breaks.Load(); e != nil {
		return *e
	}
	return nil
}

func (g *gateLog) StoreLogs(l []*raft.Log) error {
	if err := g.gate(); err != nil {
		return err
	}
	return g.InmemStore.StoreLogs(l)
}
func (g *gateLog) StoreLog(l *raft.Log) error { return g.StoreLogs([]*raft.Log{l}) }
func (g *gateLog) SetUint64(k []byte, v uint64) error {
	if e := g.term.Load(); e != nil {
		return *e
	}
	return g.InmemStore.SetUint64(k, v)
}
func (g *gateLog) IsMonotonic() bool       { return false }
func (g *gateLog) Failed() <-chan struct{} { return g.failed }
func (g *gateLog) Err() error              { return nil }
func (g *gateLog) Close() error            { return nil }
func (g *gateLog) hold() (release func()) {
	c := make(chan struct{})
	g.held.Store(&c)
	return func() { g.held.Store(nil); close(c) }
}

func (g *gateLog) BytesFrom(index uint64) (n int64) {
	last, _ := g.LastIndex()
	for i := index; i <= last; i++ {
		var l raft.Log
		if g.GetLog(i, &l) == nil {
			n += int64(len(l.Data)) + 32
		}
	}
	return n
}

// gated is a fleet of one whose log a test can hold.
func gated(t *testing.T, tune func(*Config)) (*Store, *gateLog) {
	t.Helper()
	g := newGateLog()
	_, s := single(t, func(c *Config) {
		c.OpenLog = func() (LogStore, error) { return g, nil }
		if tune != nil {
			tune(c)
		}
	})
	return s, g
}

func isCode(r board.Result, code board.Code, check string) bool {
	return r.Err != nil && r.Err.Code == code && (check == "" || r.Err.Check == check)
}

// §2: one entry in flight, so that what waits meanwhile becomes one entry.
func TestWaitingRequestsBecomeOneEntry(t *testing.T) {
	t.Parallel()
	s, g := gated(t, nil)
	var most atomic.Int64
	g.look = func() {
		if r := s.state.cur.readers; r > 0 {
			most.Add(1)
		}
	}
	release := g.hold()
	before := s.Stats()
	first := inFlight(t, s, toy(verbAdd, "a"))
	var wg sync.WaitGroup
	var seqs sync.Map
	for i := range 99 {
		wg.Go(func() {
			r := s.Do(ctx(t), toy(verbAdd, "a"))
			if r.Err != nil {
				t.Errorf("request %d: %v", i, r.Err)
			}
			if _, twice := seqs.LoadOrStore(r.Seq, i); twice {
				t.Errorf("Seq %d was given twice", r.Seq)
			}
		})
	}
	waitFor(t, "99 wait behind the one in flight", func() bool { return waiting(s) == 99 })
	release()
	wg.Wait()
	must(t, <-first)
	after := s.Stats()
	if n := after.Entries - before.Entries; n != 2 {
		t.Errorf("100 requests made %d entries, want 2", n)
	}
	if after.Txns-before.Txns != 100 || counter(t, s, "a") != 100 {
		t.Errorf("%d transactions, a = %d", after.Txns-before.Txns, counter(t, s, "a"))
	}
	if most.Load() > 0 {
		t.Error("a reading of the state was open while an entry was written")
	}
}

// §2: a batch is bounded; what does not fit comes next, and a large transaction is a batch of its own.
func TestBatchIsBounded(t *testing.T) {
	t.Parallel()
	s, g := gated(t, nil)
	release := g.hold()
	before := s.Stats()
	first := inFlight(t, s, toyN(verbFill, "k", 50, 1000))
	var wg sync.WaitGroup
	for i := range 8 { // of 50 kB: two fit
		wg.Go(func() { must(t, s.Do(ctx(t), toyN(verbFill, fmt.Sprint("k", i), 50, 1000))) })
	}
	waitFor(t, "8 wait", func() bool { return waiting(s) == 8 })
	release()
	wg.Wait()
	must(t, <-first)
	if n := s.Stats().Entries - before.Entries; n != 5 {
		t.Errorf("9 transactions of 50 kB made %d entries, want 5", n)
	}
	must(t, s.Do(ctx(t), toyN(verbFill, "large", 900, 1000)))
}

// §2: bounds of one transaction and one key.
func TestTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	_, s := single(t, nil)
	must(t, s.Do(ctx(t), toyN(verbFill, "records", board.MaxTxnRecords, 1)))
	for name, r := range map[string]*board.Request{
		"records": toyN(verbFill, "records", board.MaxTxnRecords+1, 1),
		"bytes":   toyN(verbFill, "bytes", 100, board.MaxTxnBytes/100),
		"key":     toy(verbAdd, string(make([]byte, maxKey+1))),
	} {
		if got := s.Do(ctx(t), r); got.Err == nil || got.Err.Check != CheckTooLarge {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if _, seq := s.Applied(); seq != 1 {
		t.Errorf("Seq is %d: a refused transaction was written", seq)
	}
}

// §2: a refusal by the bounds or by a panic is a refusal like any other: of a retry it is written under its id.
func TestRefusalOfTheStoreIsRemembered(t *testing.T) {
	t.Parallel()
	_, s := single(t, nil)
	for name, r := range map[string]*board.Request{
		"large": toyN(verbFill, "records", board.MaxTxnRecords+1, 1),
		"panic": toy(verbPanic, "x"),
	} {
		r.ID, r.Retry = "1-t.0."+name, true
		first := s.Do(ctx(t), r)
		var done *board.Done
		if err := s.View(func(v board.View) error { done = board.GetDone(v, r.ID); return nil }); err != nil {
			t.Fatal(err)
		}
		if first.Err == nil || done == nil || done.Code != string(first.Err.Code) {
			t.Errorf("%s: %+v, remembered %+v", name, first, done)
		}
	}
}

// Invariant 22: one poison request stops nobody.
func TestPanicOfTheDomainIsARefusalOfThatRequest(t *testing.T) {
	t.Parallel()
	s, g := gated(t, nil)
	release := g.hold()
	first := inFlight(t, s, toy(verbAdd, "b"))
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			verb := verbAdd
			if i%2 == 0 {
				verb = verbPanic
			}
			if r := s.Do(ctx(t), toy(verb, "a")); (verb == verbPanic) != isCode(r, board.Internal, "panic") {
				t.Errorf("%s: %+v", verb, r)
			}
		})
	}
	waitFor(t, "all wait", func() bool { return waiting(s) == 10 })
	release()
	wg.Wait()
	must(t, <-first)
	if got := counter(t, s, "a"); got != 5 {
		t.Fatalf("a = %d, want 5", got)
	}
}

// §2: at most 4,096 requests or 16 MiB wait; beyond, unavailable, which says
// that it was not executed.
func TestWaitingIsBounded(t *testing.T) {
	t.Parallel()
	q := queue{signal: make(chan struct{}, 1)}
	full := func(size int) (n int) {
		for ; n <= waitRequests; n++ {
			if r, ok := q.push(&call{size: size}); !ok {
				if !isCode(r, board.Unavailable, CheckBusy) {
					t.Fatalf("refused with %+v", r)
				}
				break
			}
		}
		q.take(0, true)
		return n
	}
	if n := full(1); n != waitRequests {
		t.Errorf("%d small requests wait, want %d", n, waitRequests)
	}
	if n := full(1 << 20); n != waitBytes>>20 {
		t.Errorf("%d requests of 1 MiB wait, want %d", n, waitBytes>>20)
	}
	if n := full(1); n != waitRequests {
		t.Errorf("after taking, %d small requests wait, want %d", n, waitRequests)
	}
}

// A caller that gives up before its turn was not executed, and is told so;
// after its turn, nobody knows.
func TestGivingUp(t *testing.T) {
	t.Parallel()
	s, g := gated(t, nil)
	release := g.hold()
	taken, cancel := context.WithCancel(context.Background())
	first := make(chan board.Result, 1)
	go func() { first <- s.Do(taken, toy(verbAdd, "a")) }()
	waitFor(t, "the first is in flight", func() bool { return s.exec.rounds.Load() > 0 })
	waiting, cancel2 := context.WithCancel(context.Background())
	cancel2()
	if r := s.Do(waiting, toy(verbAdd, "a")); !isCode(r, board.Unavailable, CheckBusy) {
		t.Fatalf("gave up while waiting: %+v", r)
	}
	cancel()
	if r := <-first; !isCode(r, board.UnknownOutcome, "") {
		t.Fatalf("gave up in flight: %+v", r)
	}
	release()
	must(t, s.Do(ctx(t), toy(verbAdd, "b")))
	if got := counter(t, s, "a"); got != 1 {
		t.Fatalf("a = %d, want 1: the withdrawn request was executed, or the other was not", got)
	}
}

// Invariant 5: a node that stops with an entry on its way answers unknown. Raft leaves such futures unanswered.
func TestStopWithAnEntryOnItsWayIsUnknown(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		_, nodes := three(t, nil)
		l := leader(t, nodes)
		for _, n := range nodes { // nothing commits any more
			if n != l {
				n.close()
			}
		}
		s := l.s
		got := make(chan board.Result, 1)
		rounds := s.exec.rounds.Load()
		go func() { got <- s.Do(context.Background(), toy(verbAdd, "a")) }()
		waitFor(t, "the entry is on its way, or the leader has stepped down", func() bool { return s.exec.rounds.Load() > rounds || !leads(s) })
		l.close()
		if r := <-got; !isCode(r, board.UnknownOutcome, "") && !isCode(r, board.Unavailable, CheckNotLeader) {
			t.Fatalf("answered %+v", r)
		} else {
			t.Logf("answered %s", r.Err.Message)
		}
		if r := s.Do(context.Background(), toy(verbAdd, "a")); !isCode(r, board.Unavailable, CheckNotLeader) {
			t.Fatalf("after Close: %+v", r)
		}
	})
}

// §2: *not leader* only for what certainly was not executed; the rest is
// unknown, or executed anew in the next term, as a retry.
func TestDroppedBatch(t *testing.T) {
	t.Parallel()
	x := &executor{}
	fresh := func() []*call { return []*call{{req: toy(verbAdd, "a"), done: make(chan board.Result, 1)}} }
	sure, maybe := fresh(), fresh()
	x.drop(sure, errCertainlyNot)
	x.drop(maybe, errMaybe)
	if sure[0].req.Retry || !maybe[0].req.Retry {
		t.Fatalf("marked as retries: %t and %t, want only the one that may have been executed", sure[0].req.Retry, maybe[0].req.Retry)
	}
	x.settle(time.Hour)
	if len(x.carry) != 2 {
		t.Fatal("a dropped batch was answered before a new term could begin")
	}
	x.settle(0)
	if r := <-sure[0].done; !isCode(r, board.Unavailable, CheckNotLeader) {
		t.Errorf("certainly not executed: %+v", r)
	}
	if r := <-maybe[0].done; !isCode(r, board.UnknownOutcome, "") {
		t.Errorf("perhaps executed: %+v", r)
	}
	// errors of Raft that leave it open must never be told as "not executed"
	x.drop(maybe, errCertainlyNot)
	x.settle(0)
	if r := <-maybe[0].done; !isCode(r, board.UnknownOutcome, "") {
		t.Errorf("perhaps executed, then not: %+v", r)
	}
}

// A refusal by the FSM or a change of term: executed anew in the next term of this node.
func TestDroppedRequestsAreExecutedInTheNextTerm(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		_, nodes := three(t, nil)
		l := leader(t, nodes)
		must(t, l.s.Do(ctx(t), toy(verbAdd, "a")))
		// an entry of a stale term slips in between two batches: it is refused by all, and its requests are not lost
		f := l.s.raft.Load().Apply(encodeEntry(&entry{Term: 1, Seq: 2, Txns: []board.Txn{txn(put("a", "77"))}}), 0)
		if err := f.Error(); err != nil || f.Response() != errRefused {
			t.Fatalf("stale entry: %v, %v", err, f.Response())
		}
		// and one of the right term that takes the next Seq: the executor's own next entry must be decided on the new state
		term, _ := l.s.LeaderTerm()
		f = l.s.raft.Load().Apply(encodeEntry(&entry{Term: term, Seq: 2, Txns: []board.Txn{txn(put("a", "10"))}}), 0)
		if err := f.Error(); err != nil || f.Response() != nil {
			t.Fatalf("entry: %v, %v", err, f.Response())
		}
		r := must(t, l.s.Do(ctx(t), toy(verbAdd, "a")))
		if string(r.Data) != "11" {
			t.Fatalf("a = %s, want 11", r.Data)
		}
		same(t, nodes)
		for _, n := range nodes {
			if n.s.Stats().RefusedTerm != 1 {
				t.Errorf("%s refused %d entries by term, want 1", n.server, n.s.Stats().RefusedTerm)
			}
		}
	})
}

// Transfer: the executor stops taking, finishes and transfers; nothing is lost, and on failure it goes on.
func TestTransfer(t *testing.T) {
	t.Parallel()
	bubble(t, transfers)
	_, alone := single(t, nil)
	if err := alone.Transfer(ctx(t)); err == nil {
		t.Fatal("a fleet of one transferred")
	}
	must(t, alone.Do(ctx(t), toy(verbAdd, "a"))) // it began a new term
}

func transfers(t *testing.T) {
	_, nodes := three(t, nil)
	l := leader(t, nodes)
	var wg sync.WaitGroup
	var done, unsure atomic.Int64
	stop := make(chan struct{})
	for i := range 4 {
		wg.Go(func() {
			for k := 0; ; k++ {
				select {
				case <-stop:
					return
				default:
				}
				pass(time.Millisecond)
				for _, n := range nodes {
					r := n.s.Do(ctx(t), withID(toy(verbAdd, "a"), fmt.Sprintf("%d-%d", i, k)))
					if r.Err == nil {
						done.Add(1)
						break
					}
					if r.Err.Code == board.UnknownOutcome {
						unsure.Add(1)
						break
					}
				}
			}
		})
	}
	for range 3 {
		l = leader(t, nodes)
		if err := l.s.Transfer(ctx(t)); err != nil {
			t.Logf("transfer: %v", err)
			continue
		}
		was := l
		waitFor(t, "another one leads", func() bool {
			l = leader(t, nodes)
			return l != was || leads(l.s)
		})
	}
	close(stop)
	wg.Wait()
	leader(t, nodes)
	same(t, nodes)
	got := int64(counter(t, nodes[0].s, "a"))
	if got < done.Load() || got > done.Load()+unsure.Load() {
		t.Fatalf("a = %d after %d acknowledged and %d unknown", got, done.Load(), unsure.Load())
	}
}

// The leader's OnCommit is told what was committed, in order, and nothing twice.
func TestOnCommitTellsWhatWasCommitted(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var told []string
	_, s := single(t, func(c *Config) {
		c.OnCommit = func(term uint64, txns []board.Txn) {
			mu.Lock()
			defer mu.Unlock()
			for _, x := range txns {
				told = append(told, string(x.Ops[0].Val))
			}
		}
	})
	var wg sync.WaitGroup
	for range 30 {
		wg.Go(func() { must(t, s.Do(ctx(t), toy(verbAdd, "a"))) })
	}
	wg.Wait()
	mu.Lock()
	defer mu.Unlock()
	for i, v := range told {
		if v != fmt.Sprint(i+1) {
			t.Fatalf("told %v", told)
		}
	}
	if len(told) != 30 {
		t.Fatalf("told %d of 30", len(told))
	}
}

var errInjected = errors.New("injected")
