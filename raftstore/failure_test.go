package raftstore

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"muster/board"
)

// failsWith waits for the store to fail, and checks that nothing is answered as done after it.
func failsWith(t *testing.T, s *Store, want error) {
	t.Helper()
	select {
	case <-s.Failed():
	case <-time.After(10 * time.Second):
		t.Fatal("the store did not fail")
	}
	if !errors.Is(s.Err(), want) {
		t.Fatalf("failed with %v, want %v", s.Err(), want)
	}
	if r := s.Do(context.Background(), toy(verbAdd, "late")); !isCode(r, board.Unavailable, CheckNotLeader) {
		t.Fatalf("answered after the failure: %+v", r)
	}
}

// Invariant 12: a failed write of the log latches; what was on its way is unknown; the leader gives up leading.
func TestFailedLogWriteLatches(t *testing.T) {
	t.Parallel()
	s, g := gated(t, nil)
	must(t, s.Do(ctx(t), toy(verbAdd, "a")))
	g.breaks.Store(&errInjected)
	r := s.Do(ctx(t), toy(verbAdd, "a"))
	if !isCode(r, board.UnknownOutcome, "") {
		t.Fatalf("answered %+v", r)
	}
	failsWith(t, s, errInjected)
	g.breaks.Store(nil) // the disk is well again: too late, see fsync
	if r := s.Do(ctx(t), toy(verbAdd, "a")); r.Err == nil {
		t.Fatal("the store came back by itself")
	}
}

// A vote or term that cannot be written makes Raft panic; here the node stops in order.
func TestFailedTermWriteLatches(t *testing.T) {
	t.Parallel()
	g := newGateLog()
	s := newRig(t).node("n1", func(c *Config) { c.OpenLog = func() (LogStore, error) { return g, nil } }).open()
	if err := s.Bootstrap(); err != nil {
		t.Fatal(err)
	}
	g.term.Store(&errInjected) // at its first election
	failsWith(t, s, errInjected)
}

// A failed write of the state latches too, on a follower as on the leader; the others go on.
func TestFailedStateWriteLatches(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"n1/s1", "n2/s1"} {
		t.Run(nodeOf(who), func(t *testing.T) { bubble(t, func(t *testing.T) { failedStateWrite(t, who) }) })
	}
}

func failedStateWrite(t *testing.T, who string) {
	var broken atomic.Bool
	r, nodes := three(t, nil)
	victim := r.nodes[who]
	victim.breaks(func(op string) error {
		if broken.Load() && op == "state-commit" {
			return errInjected
		}
		return nil
	})
	broken.Store(true)
	res := nodes[0].s.Do(ctx(t), withID(toy(verbAdd, "a"), "x"))
	if victim == nodes[0] && !isCode(res, board.UnknownOutcome, "") {
		t.Fatalf("leader with a broken state answered %+v", res)
	}
	failsWith(t, victim.s, errInjected)
	var rest []*rigNode
	for _, n := range nodes {
		if n != victim {
			rest = append(rest, n)
		}
	}
	victim.unplug() // as its own transport, closed, would be
	l := leader(t, rest)
	waitFor(t, "the others go on", func() bool {
		return l.s.Do(ctx(t), withID(toy(verbAdd, "a"), "x")).Err == nil
	})
	same(t, rest)
	if got := counter(t, rest[0].s, "a"); got != 1 {
		t.Fatalf("a = %d after one request and its retry", got)
	}
	victim.close() // and after a restart on a sound disk it is whole
	broken.Store(false)
	victim.open()
	same(t, nodes)
}

// A write that hangs: the node gives up before the process is ended, and Close does not hang with it.
func TestHungStateWrite(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		var hang atomic.Bool
		r, nodes := three(t, func(c *Config) { c.SlowDisk = 300 * time.Millisecond })
		victim := nodes[0]
		victim.breaks(func(op string) error {
			if op == "state-commit" && hang.Load() {
				<-release
			}
			return nil
		})
		hang.Store(true)
		if res := victim.s.Do(ctx(t), withID(toy(verbAdd, "a"), "x")); !isCode(res, board.UnknownOutcome, "") {
			t.Fatalf("answered %+v", res)
		}
		failsWith(t, victim.s, ErrHung)
		l := leader(t, nodes[1:])
		waitFor(t, "the others go on", func() bool { return l.s.Do(ctx(t), withID(toy(verbAdd, "a"), "x")).Err == nil })
		r.mu.Lock()
		victim.s = nil // its files stay open until the process ends
		r.mu.Unlock()
	})
}

// Damage found while running is not served: the store fails, and the next start rebuilds.
func TestDamageFoundWhileRunningStopsAndHeals(t *testing.T) {
	t.Parallel()
	n, s := single(t, nil)
	must(t, s.Do(ctx(t), toy(verbAdd, "a")))
	must(t, s.Do(ctx(t), toy(verbAdd, "b")))
	corrupt(t, s.state, "a")
	if err := s.View(func(v board.View) error { v.Get(board.TText, "a"); return nil }); !errors.Is(err, ErrDamaged) {
		t.Fatalf("view: %v", err)
	}
	failsWith(t, s, ErrDamaged)
	n.close()
	s = n.open()
	waitLeads(t, s)
	if got := counter(t, s, "a"); got != 1 {
		t.Fatalf("a = %d after healing", got)
	}
}

// A panic of a reader's own making is its own, and leaves the store whole.
func TestPanicInAViewIsTheReaders(t *testing.T) {
	t.Parallel()
	_, s := single(t, nil)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = s.View(func(board.View) error { panic("mine") })
	}()
	must(t, s.Do(ctx(t), toy(verbAdd, "a")))
	if s.Err() != nil || s.state.cur.readers != 0 {
		t.Fatalf("err %v, %d readers", s.Err(), s.state.cur.readers)
	}
}

// Invariant 11: one frozen follower slows nobody, and catches up.
func TestFrozenFollowerSlowsNobody(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		_, nodes := three(t, nil)
		l := leader(t, nodes)
		victim := nodes[2]
		release, frozen := make(chan struct{}), make(chan struct{}, 1)
		victim.breaks(func(op string) error {
			if op == "state-commit" {
				signal(frozen)
				<-release
			}
			return nil
		})
		begin := time.Now()
		for range 50 {
			must(t, l.s.Do(ctx(t), toy(verbAdd, "a")))
		}
		t.Logf("50 writes beside a frozen follower: %v", time.Since(begin))
		<-frozen
		close(release)
		same(t, nodes)
	})
}
