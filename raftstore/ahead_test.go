package raftstore

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/raft"

	"muster/board"
)

// gatedThree is three voters in a bubble, each with a log that the test can hold.
func gatedThree(t *testing.T) (*rig, []*rigNode, map[*rigNode]*gateLog) {
	t.Helper()
	r := newRig(t)
	r.links = newLinks(1)
	logs := map[string]*gateLog{"n1": newGateLog(), "n2": newGateLog(), "n3": newGateLog()}
	nodes := r.three(func(c *Config) {
		g := logs[nodeOf(c.Server)]
		c.OpenLog = func() (LogStore, error) { return g, nil }
	})
	of := map[*rigNode]*gateLog{}
	for _, n := range nodes {
		of[n] = logs[nodeOf(n.server)]
	}
	return r, nodes, of
}

func last(t *testing.T, g *gateLog) uint64 {
	t.Helper()
	i, err := g.LastIndex()
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// The leader's entry is on both followers' disks while its own disk still takes it: nobody
// is answered and nobody applies it until this disk has it as well (§2, INV-04).
func TestNothingIsTrueBeforeTheLeadersDiskHasIt(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		_, nodes, logs := gatedThree(t)
		l := leader(t, nodes)
		must(t, l.s.Do(ctx(t), toy(verbAdd, "a")))
		same(t, nodes)
		p := last(t, logs[l]) + 1
		release := logs[l].hold()
		got := make(chan board.Result, 1)
		go func() { got <- l.s.Do(ctx(t), toy(verbAdd, "a")) }()
		for _, n := range nodes {
			if n != l {
				waitFor(t, "a follower has it on its disk", func() bool { return last(t, logs[n]) == p })
			}
		}
		pass(2 * LAN().Election) // many times CommitTimeout; a disk that is later than this loses the lead
		for _, n := range nodes {
			if at, _ := n.s.Applied(); at >= p {
				t.Errorf("%s has applied entry %d, which is not on the disk of %s", n.server, at, l.server)
			}
		}
		select {
		case r := <-got:
			t.Errorf("answered %+v", r)
		default:
		}
		release()
		must(t, <-got)
		same(t, nodes)
		if a := counter(t, nodes[2].s, "a"); a != 2 {
			t.Errorf("a = %d", a)
		}
	})
}

// The leader dies before its disk has the entry: nobody was told of it. What the followers hold
// of it is the fleet's, once, and the old leader comes back without it and takes it from them.
func TestLeaderDiesBeforeItsDiskHasTheEntry(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		_, nodes, logs := gatedThree(t)
		l := leader(t, nodes)
		must(t, l.s.Do(ctx(t), toy(verbAdd, "a")))
		same(t, nodes)
		p := last(t, logs[l]) + 1
		release := logs[l].hold()
		got := make(chan board.Result, 1)
		go func() { got <- l.s.Do(ctx(t), withID(toy(verbAdd, "a"), "x")) }()
		var rest []*rigNode
		for _, n := range nodes {
			if n != l {
				rest = append(rest, n)
				waitFor(t, "a follower has it on its disk", func() bool { return last(t, logs[n]) == p })
			}
		}
		logs[l].breaks.Store(&errInjected)
		release()
		if r := <-got; !isCode(r, board.UnknownOutcome, "") {
			t.Errorf("answered %+v", r)
		}
		failsWith(t, l.s, errInjected)
		if at, _ := l.s.Applied(); at >= p {
			t.Errorf("%s has applied entry %d, which its disk has refused", l.server, at)
		}
		l.kill()
		if at := last(t, logs[l]); at != p-1 {
			t.Fatalf("the dead leader's log ends at %d, this tests nothing", at)
		}
		logs[l].breaks.Store(nil)
		next := leader(t, rest)
		must(t, next.s.Do(ctx(t), withID(toy(verbAdd, "a"), "x")))
		l.open()
		same(t, nodes)
		if a := counter(t, l.s, "a"); a != 2 {
			t.Errorf("a = %d after two requests, one of them asked twice", a)
		}
	})
}

// aheadOf is one entry on its way to a disk that is held.
func aheadOf(t *testing.T, leads *bool) (a *ahead, g *gateLog, failed *error, release func()) {
	t.Helper()
	g, failed = newGateLog(), new(error)
	a = &ahead{LogStore: g, fail: func(err error) { *failed = err }, lethal: func(err error) { *failed = err }, leads: func() bool { return *leads }}
	if err := a.StoreLogs([]*raft.Log{{Index: 6, Type: raft.LogCommand, Data: []byte("not mine")}}); err != nil || last(t, g) != 6 {
		t.Fatalf("an entry of others: %v, the log ends at %d", err, last(t, g))
	}
	release = g.hold()
	data := []byte("mine")
	a.expect(data)
	if err := a.StoreLogs([]*raft.Log{{Index: 7, Type: raft.LogCommand, Data: data}}); err != nil {
		t.Fatal(err)
	}
	return a, g, failed, release
}

// After another has taken the leadership over, this server acknowledges from the disk only,
// and writes nothing behind what is not there.
func TestWhoFollowsAcknowledgesFromItsDisk(t *testing.T) {
	t.Parallel()
	calls := map[string]func(a *ahead) error{
		"it has the entry":  func(a *ahead) error { return a.GetLog(7, new(raft.Log)) },
		"a later entry":     func(a *ahead) error { return a.StoreLog(&raft.Log{Index: 8}) },
		"the end is cut":    func(a *ahead) error { return a.DeleteRange(7, 7) },
		"where it ends":     func(a *ahead) error { _, err := a.LastIndex(); return err },
		"the FSM is at it":  func(a *ahead) error { return a.durable(7) },
		"the FSM is beyond": func(a *ahead) error { return a.durable(9) },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			for _, breaks := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					leads := false
					a, g, failed, release := aheadOf(t, &leads)
					done := make(chan error, 1)
					go func() { done <- call(a) }()
					synctest.Wait()
					select {
					case err := <-done:
						t.Errorf("did not wait for the disk: %v", err)
					default:
					}
					if breaks {
						g.breaks.Store(&errInjected)
					}
					release()
					if err := <-done; errors.Is(err, errInjected) != breaks || errors.Is(*failed, errInjected) != breaks {
						t.Errorf("broken disk: %v; the call says %v, the store %v", breaks, err, *failed)
					}
				})
			}
		})
	}
}

// What does not depend on the entry does not wait for it; the commit index that others
// are told ends before it, for ever if the write fails.
func TestWhatGoesOnBesideAnEntryAhead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leads := true
		a, g, _, release := aheadOf(t, &leads)
		var e raft.Log
		if err := a.GetLog(7, &e); err != nil || string(e.Data) != "mine" {
			t.Errorf("the leader cannot send it: %v %q", err, e.Data)
		}
		if err := errors.Join(a.GetLog(6, &e), a.durable(6)); err != nil || a.commit(6) != 6 {
			t.Errorf("the entry before: %v, commit %d", err, a.commit(6))
		}
		if a.commit(7) != 6 || a.commit(9) != 6 {
			t.Errorf("others are told %d and %d", a.commit(7), a.commit(9))
		}
		g.breaks.Store(&errInjected)
		release()
		synctest.Wait()
		if a.commit(7) != 6 {
			t.Errorf("after the write failed others are told %d", a.commit(7))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		leads := true
		a, _, _, release := aheadOf(t, &leads)
		release()
		synctest.Wait()
		if a.commit(7) != 7 || a.durable(7) != nil {
			t.Errorf("once it is on the disk others are told %d", a.commit(7))
		}
	})
}
