package raftstore

import (
	"errors"
	"net"
	"os"
	"testing"
)

// keepCopy is a copy of a node's folder as it is now, put back by the function.
func (n *rigNode) keepCopy(t *testing.T) (putBack func()) {
	t.Helper()
	kept := t.TempDir()
	n.kill()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.CopyFS(kept, os.DirFS(n.dir)))
	n.open()
	return func() {
		n.kill()
		must(os.RemoveAll(n.dir))
		must(os.CopyFS(n.dir, os.DirFS(kept)))
	}
}

// lostVote is a fleet of three of which n3 has forgotten 13 writes that n1 and n3 had acknowledged, and that n2 never saw.
func lostVote(t *testing.T) (nodes []*rigNode) {
	t.Helper()
	_, nodes = three(t, nil)
	for range 5 {
		must(t, leader(t, nodes).s.Do(ctx(t), toy(verbAdd, "a")))
	}
	same(t, nodes)
	putBack := nodes[2].keepCopy(t)
	nodes[1].kill()
	for range 13 {
		waitFor(t, "acknowledged", func() bool { return leader(t, nodes).s.Do(ctx(t), toy(verbAdd, "a")).Err == nil })
	}
	waitFor(t, "applied by both", func() bool {
		return nodes[0].s.Hash() == nodes[2].s.Hash() && counter(t, nodes[0].s, "a") >= 18
	})
	putBack()
	nodes[0].kill()
	return nodes
}

// M-32: nobody votes with lost state: a folder that was put back is refused by its store where others vote.
func TestAFolderPutBackDoesNotVote(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		nodes := lostVote(t)
		nodes[2].tune = func(c *Config) { c.Copied = true }
		if _, err := nodes[2].tryOpen(); !errors.Is(err, ErrCopied) {
			t.Fatalf("a store that was put back opens: %v", err)
		}
		nodes[0].open()
		nodes[1].open()
		if got := counter(t, leader(t, nodes).s, "a"); got < 18 {
			t.Errorf("%d of 18 acknowledged writes are there", got)
		}
	})
}

// M-32: the only voter goes on with a copy: there is nobody to have what it has not.
func TestTheOnlyVoterGoesOnWithACopy(t *testing.T) {
	t.Parallel()
	n, s := single(t, nil)
	must(t, s.Do(ctx(t), toy(verbAdd, "a")))
	n.keepCopy(t)()
	n.tune = func(c *Config) { c.Copied = true }
	s = n.open()
	waitLeads(t, s)
	if got := counter(t, s, "a"); got != 1 {
		t.Errorf("it holds %d of 1", got)
	}
}

// Invariant 7: who has applied entries that the leader's log does not have finds out at the first append, cuts nothing
// off, and stops.
func TestALeaderThatLostEntriesIsNotFollowed(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		nodes := lostVote(t) // and this time it votes
		nodes[2].open()
		nodes[1].open()
		leader(t, nodes)
		s := nodes[0].open()
		failsWith(t, s, ErrDiverged)
		if got := counter(t, s, "a"); got < 18 {
			t.Errorf("its state holds %d of 18", got)
		}
		if last, err := s.logs.LastIndex(); err != nil || last < s.state.now().Applied {
			t.Errorf("its log was cut to %d (%v), and the state is at %d", last, err, s.state.now().Applied)
		}
	})
}

// M-32: what is meant for a lost store does not reach the one that its node has now: Raft's messages do not say whom they
// are for, and the new store, which knows nothing, would give the vote of the old.
func TestAMessageForALostStoreIsNotTaken(t *testing.T) {
	t.Parallel()
	for server, want := range map[string]bool{"n1/s1": true, "n1/s0": false} {
		ours, theirs := net.Pipe()
		go func() {
			if mean(ctx(t), ours, server) == nil {
				_, _ = ours.Write([]byte("vote"))
			}
		}()
		c := &meant{Conn: theirs, server: "n1/s1"}
		b := make([]byte, 4)
		_, err := c.Read(b)
		if got := err == nil && string(b) == "vote"; got != want {
			t.Errorf("for %s: %q (%v), taken: want %v", server, b, err, want)
		}
		ours.Close()
		theirs.Close()
	}
}
