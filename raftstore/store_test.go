package raftstore

import (
	"fmt"
	"testing"
	"time"

	"muster/board"
)

func TestSingleNodeExecutesAndKeeps(t *testing.T) {
	t.Parallel()
	n, s := single(t, nil)
	for range 20 {
		must(t, s.Do(ctx(t), toy(verbAdd, "a")))
	}
	if got := counter(t, s, "a"); got != 20 {
		t.Fatalf("counter is %d, want 20", got)
	}
	_, seq := s.Applied()
	hash := s.Hash()
	n.close()
	s = n.open()
	if _, got := s.Applied(); got != seq {
		t.Fatalf("Seq is %d after a restart, was %d", got, seq)
	}
	if s.Hash() != hash {
		t.Fatal("hash changed over a restart")
	}
	waitLeads(t, s)
	res := must(t, s.Do(ctx(t), toy(verbAdd, "a")))
	if string(res.Data) != "21" || res.Seq != seq+1 {
		t.Fatalf("result is %s at Seq %d, want 21 at %d", res.Data, res.Seq, seq+1)
	}
	if got := s.Stats(); got.Skipped == 0 && got.RefusedSeq > 0 {
		t.Fatalf("after a restart entries were refused instead of skipped: %+v", got)
	}
}

// The same over real sockets, through Raft's own transport: the one test that
// needs three nodes in real time. Its timers are long, for a loaded machine.
func TestThreeNodesHoldTheSame(t *testing.T) {
	t.Parallel()
	nodes := newRig(t).three(func(c *Config) {
		c.Timers = Timers{Heartbeat: time.Second, Election: time.Second, Lease: time.Second}
	})
	for i := range 50 {
		id, retry := fmt.Sprint("r", i), false
		waitFor(t, "a request is done", func() bool {
			r := withID(toy(verbAdd, "a"), id)
			r.Retry, retry = retry, true
			return leader(t, nodes).s.Do(ctx(t), r).Err == nil
		})
	}
	same(t, nodes)
	l := leader(t, nodes)
	for _, n := range nodes {
		if got := counter(t, n.s, "a"); got != 50 {
			t.Fatalf("counter on %s is %d, want 50", n.server, got)
		}
		if n != l && !leads(n.s) {
			if r := n.s.Do(ctx(t), toy(verbAdd, "a")); !isCode(r, board.Unavailable, CheckNotLeader) {
				t.Fatalf("a follower answered %+v", r)
			}
		}
	}
	server, _ := nodes[1].s.Leader()
	if server == "" {
		t.Fatal("a follower does not know the leader")
	}
}

// A follower is told when the leader changes, not only when it leads itself:
// contacts, forwarded requests and outboxes wait for that signal.
func TestFollowerHearsOfALeaderElsewhere(t *testing.T) {
	t.Parallel()
	nodes := newRig(t).three(nil)
	l := leader(t, nodes)
	agreed := func() bool { // whoever it is by now: on a busy machine it may have changed again
		first, _ := nodes[0].s.Leader()
		for _, f := range nodes {
			if s, _ := f.s.Leader(); s == "" || s != first {
				return false
			}
			if f.server == first {
				l = f
			}
		}
		return true
	}
	for quiet := false; !quiet; { // until nobody is told of a change any more
		waitFor(t, "everybody knows one leader", agreed)
		quiet = true
		for _, f := range nodes {
			select {
			case <-f.s.LeaderChanged():
				quiet = false
			case <-time.After(300 * time.Millisecond):
			}
		}
	}
	_ = l.s.Close()
	for _, f := range nodes { // one of the two leads next; the other one must be told too
		if f == l {
			continue
		}
		select {
		case <-f.s.LeaderChanged():
		case <-ctx(t).Done():
			t.Fatalf("the leader is gone, and %s was not told", f.server)
		}
	}
}
