package node

import (
	"bytes"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"muster/board"
	"muster/mesh"
	"muster/raftstore"
)

// A machine is away for half a year by the fleet's clock: the key of gossip is another for the sixth time, all of the fleet has
// moved, and the log that it had is no more. The fleet knows where it was, so it comes back by that, and nobody does anything for it.
func TestAwayForMonths(t *testing.T) {
	var ahead atomic.Int64
	timed := func(c *Config) {
		c.Boot = func() time.Duration { return mesh.BootClock() + time.Duration(ahead.Load()) }
		c.Wall = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		c.Seams.Store = func(s *raftstore.Config) { s.Snapshots.Trailing, s.Snapshots.Keep = 1, 1 }
	}
	ac := testConfig(t, "atlas")
	timed(&ac)
	a := open(t, ac)
	b := a.joined(t, "borea", func(c *Config) { timed(c); c.Replica = true })
	c := a.joined(t, "cleo", func(c *Config) { timed(c); c.Replica = true })
	a.until(t, "cleo knows borea", func() bool { return b.key() != nil && c.trust.has(b.ident.ID) && len(c.mesh.Peers()) == 2 })
	was := c.key()
	cc := c.cfg
	c.Close()
	left, _ := c.store.Applied()
	for i := range 6 {
		before := a.key()
		ahead.Add(int64(31 * 24 * time.Hour))
		a.testDo(t, board.VNodeLabel, board.NodeLabel{Node: "atlas", Labels: map[string]string{"month": string(rune('1' + i))}}) // the leader looks
		a.until(t, "gossip has another key", func() bool { return !bytes.Equal(a.key(), before) })
	}
	if len(a.gossipKeys()) != 2 {
		t.Error("the key before does not count any more")
	}
	if err := a.store.Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	moved := func(n *Node) *Node {
		cfg := n.cfg
		n.Close()
		cfg.Listen, cfg.Token = "127.0.0.1:0", ""
		return open(t, cfg)
	}
	data := a.cfg.Data
	a.Close()
	if r, err := raftstore.Check(filepath.Join(data, "raft")); err != nil || r.Log == nil || r.Log.First <= left+1 {
		t.Fatalf("the leader's log is %+v (%v): cleo, which has %d, would need no snapshot", r.Log, err, left)
	}
	a = moved(a)
	a.until(t, "borea is with the moved leader", func() bool {
		return a.lease.State(string(b.ident.ID)).State == board.NodeOnline && bytes.Equal(b.key(), a.key())
	})
	b = moved(b)
	a.until(t, "borea is back", func() bool { return a.lease.State(string(b.ident.ID)).State == board.NodeOnline })
	cc.Token = "" // and it listens where it did
	c = open(t, cc)
	a.until(t, "cleo is back, with the newest key", func() bool {
		return a.lease.State(string(c.ident.ID)).State == board.NodeOnline && bytes.Equal(c.key(), a.key())
	})
	if bytes.Equal(c.key(), was) {
		t.Error("the key never changed")
	}
}
