package raftstore

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"

	"muster/board"
	"muster/raftstore/logstore"
)

// P10: a start begins where the state is. Of the entries that the state has,
// Raft reads none again and hands none to the FSM.
func TestStartResumesAtTheState(t *testing.T) {
	t.Parallel()
	n, s := single(t, nil)
	for range 50 {
		must(t, s.Do(ctx(t), toy(verbAdd, "a")))
	}
	for _, down := range []func(){n.close, n.kill} {
		down()
		s = n.open()
		waitLeads(t, s)
		must(t, s.Do(ctx(t), toy(verbAdd, "a")))
		if got := s.Stats().Skipped; got != 0 {
			t.Errorf("%d entries were handed over once more", got)
		}
		if v := s.Servers(); len(v) != 1 || v[0].ID != n.server || !v[0].Voter {
			t.Errorf("after a restart the servers are %+v", v)
		}
	}
	if got := counter(t, s, "a"); got != 52 {
		t.Errorf("a is %d, want 52", got)
	}
	if err := s.Snapshot(ctx(t)); err != nil {
		t.Error(err)
	}
}

// A voter that comes back resumes too, knows all voters, takes what it missed
// from the leader's log, and the leader of before can be any of them.
func TestVotersResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := three(t, nil)
		for range 30 {
			must(t, leader(t, nodes).s.Do(ctx(t), toy(verbAdd, "a")))
		}
		for i, n := range nodes {
			if i%2 == 0 {
				n.close()
			} else {
				n.kill()
			}
			must(t, leader(t, append(append([]*rigNode{}, nodes[:i]...), nodes[i+1:]...)).s.Do(ctx(t), toy(verbAdd, "a")))
			if s := n.open(); len(s.Servers()) != 3 {
				t.Fatalf("%s knows %+v after its restart", n.server, s.Servers())
			}
			same(t, nodes)
			if got := n.s.Stats().Skipped; got != 0 {
				t.Errorf("%s was handed %d entries once more", n.server, got)
			}
		}
		for _, n := range nodes {
			n.close()
		}
		for _, n := range nodes {
			n.open()
		}
		must(t, leader(t, nodes).s.Do(ctx(t), toy(verbAdd, "a")))
		same(t, nodes)
		if got := counter(t, nodes[0].s, "a"); got != 34 {
			t.Errorf("a is %d, want 34", got)
		}
	})
}

// M-32: a log whose entry at the state's index is of another term is not the log
// that the state was made from: the node must not vote.
func TestLogOfAnotherTermIsRefused(t *testing.T) {
	t.Parallel()
	n, s := single(t, nil)
	for range 5 {
		must(t, s.Do(ctx(t), toy(verbAdd, "a")))
	}
	n.close()
	changeMeta(t, n, func(m *meta) { m.Term += 7 })
	if s, err := n.tryOpen(); !errors.Is(err, ErrLogBehind) {
		t.Errorf("opened: %v, %v; want ErrLogBehind", s, err)
	}
}

// changeMeta writes another meta row into a stopped node's state.
func changeMeta(t *testing.T, n *rigNode, change func(*meta)) {
	t.Helper()
	db, err := bbolt.Open(n.path(stateFile), 0o600, boltOptions(0))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Update(func(tx *bbolt.Tx) error {
		m, err := readMeta(tx)
		if err != nil {
			return err
		}
		change(&m)
		return tx.Bucket(metaBucket).Put(metaKey, m.encode())
	})
	if err != nil {
		t.Fatal(err)
	}
	writeMarker(t, n, killed(n))
}

// A configuration in the state that does not hold is damage, and healed like any.
func TestBadConfigurationIsRebuilt(t *testing.T) {
	t.Parallel()
	n, _, seq, hash := stopped(t, nil)
	db, err := bbolt.Open(n.path(stateFile), 0o600, boltOptions(0))
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(metaBucket)
		return b.Put(confKey, flipAt(b.Get(confKey), 9))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	writeMarker(t, n, killed(n))
	s := n.open()
	if !fileExists(n.path(asideFile)) {
		t.Error("the state was not set aside")
	}
	if err := s.WaitSeq(ctx(t), seq); err != nil || s.Hash() != hash {
		t.Errorf("rebuilt to another state (%v)", err)
	}
}

// P10: who is the only voter does not wait for an election timeout.
func TestOnlyVoterLeadsAtOnce(t *testing.T) {
	t.Parallel()
	n, s := single(t, nil)
	must(t, s.Do(ctx(t), toy(verbAdd, "a")))
	n.close()
	n.tune = func(c *Config) {
		c.Timers = Timers{Heartbeat: time.Hour, Election: time.Hour, Lease: time.Second}
	}
	waitLeads(t, n.open())
}

// manySegments is a stopped fleet of one whose log fills more than one segment,
// with a snapshot behind them; first is the name of the first.
func manySegments(t *testing.T, tune func(*Config)) (n *rigNode, first string) {
	t.Helper()
	n, s := single(t, tune)
	for range 18 {
		must(t, s.Do(ctx(t), toyN(verbFill, "x", 10, 100_000)))
	}
	must(t, s.Do(ctx(t), toy(verbAdd, "a")))
	if err := s.Snapshot(ctx(t)); err != nil {
		t.Fatal(err)
	}
	n.close()
	names, err := filepath.Glob(n.path(filepath.Join(logDir, "*.wal")))
	if err != nil || len(names) < 2 {
		t.Fatalf("segments: %v, %v", names, err)
	}
	return n, names[0]
}

// harmEntry flips a bit in the middle of a segment.
func harmEntry(t *testing.T, name string) {
	t.Helper()
	b := readFile(t, name)
	writeFile(t, name, flipAt(b, len(b)/2))
}

// Log damage is found at the start when the machine went down with the log open,
// when damage was met before, or when nothing is known; never repaired away.
func TestDamagedLogAtAStart(t *testing.T) {
	t.Parallel()
	n, first := manySegments(t, nil)
	harmEntry(t, first)
	for name, m := range map[string]marker{
		"machine went down": {Server: n.server, Boot: "earlier", Open: true},
		"damage was met":    {Server: n.server, Boot: bootID(), Open: true, Suspect: true},
		"of another store":  {Server: "n1/other"},
	} {
		writeMarker(t, n, m)
		if _, err := n.tryOpen(); !errors.Is(err, logstore.ErrDamaged) {
			t.Errorf("%s: opened: %v; want logstore.ErrDamaged", name, err)
		}
	}
	if err := os.Remove(n.path(markerFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := n.tryOpen(); !errors.Is(err, logstore.ErrDamaged) {
		t.Errorf("no marker: opened: %v; want logstore.ErrDamaged", err)
	}
}

// What a start has left unread is read while the node runs. Damage of the log
// fails the node, and the start after that refuses it: nobody votes with it.
func TestDamagedLogAfterAStopInOrder(t *testing.T) {
	t.Parallel()
	for name, mark := range map[string]func(n *rigNode){
		"stopped in order": func(*rigNode) {},
		"killed":           func(n *rigNode) { writeMarker(t, n, killed(n)) },
	} {
		n, first := manySegments(t, nil)
		n.tune = func(c *Config) { c.CheckAfter = time.Millisecond }
		harmEntry(t, first)
		mark(n)
		s := n.open()
		select {
		case <-s.Failed():
		case <-ctx(t).Done():
			t.Fatalf("%s: the damage was not found", name)
		}
		if !errors.Is(s.Err(), logstore.ErrDamaged) {
			t.Errorf("%s: failed with %v", name, s.Err())
		}
		n.close()
		if _, err := n.tryOpen(); !errors.Is(err, logstore.ErrDamaged) {
			t.Errorf("%s: opened after that: %v; want logstore.ErrDamaged", name, err)
		}
	}
}

// An entry that Raft needs at once and that does not hold is an error of Open, not a panic.
func TestDamagedEntryBehindTheState(t *testing.T) {
	t.Parallel()
	n, first := manySegments(t, nil)
	harmEntry(t, first)
	err := errors.Join(os.Remove(n.path(stateFile)), os.RemoveAll(n.path(snapshotDir)))
	if err != nil { // the state is empty: Raft reads all of the log
		t.Fatal(err)
	}
	if _, err := n.tryOpen(); !errors.Is(err, logstore.ErrDamaged) {
		t.Errorf("opened: %v; want logstore.ErrDamaged", err)
	}
}

// R7: damage in the state of a node that was stopped in order is never served:
// a reading of it fails the node, the check after the start too, and the next
// start heals it.
func TestDamageAfterAStopInOrder(t *testing.T) {
	t.Parallel()
	for name, find := range map[string]func(*Store){
		"read": func(s *Store) {
			if err := s.View(func(v board.View) error { count(v, "a"); return nil }); !errors.Is(err, ErrDamaged) {
				t.Errorf("a damaged value was served (%v)", err)
			}
		},
		"checked": nil,
	} {
		n, _, seq, hash := stopped(t, nil)
		good := readFile(t, n.path(stateFile))
		writeFile(t, n.path(stateFile), flipAt(good, bytes.LastIndex(good, []byte("40"))))
		n.tune = func(c *Config) {
			if c.CheckAfter = time.Hour; find == nil {
				c.CheckAfter = time.Millisecond
			}
		}
		s := n.open()
		if fileExists(n.path(asideFile)) {
			t.Fatalf("%s: all of the state was read at a start after a stop in order", name)
		}
		if find != nil {
			find(s)
		}
		select {
		case <-s.Failed():
		case <-ctx(t).Done():
			t.Fatalf("%s: the damage was not found", name)
		}
		n.close()
		s = n.open()
		if !fileExists(n.path(asideFile)) {
			t.Errorf("%s: the damaged state was not set aside", name)
		}
		if err := s.WaitSeq(ctx(t), seq); err != nil || s.Hash() != hash || counter(t, s, "a") != 40 {
			t.Errorf("%s: healed to a = %d (%v)", name, counter(t, s, "a"), err)
		}
	}
}

// A state that differs from its own hash with every checksum good (a value of
// another time, say) is found by the check after the start as well.
func TestStateThatDiffersFromItsHash(t *testing.T) {
	t.Parallel()
	n, _, seq, hash := stopped(t, nil)
	changeMeta(t, n, func(m *meta) { m.Sum.add(sum{lo: 1}) })
	writeMarker(t, n, marker{Server: n.server})
	n.tune = func(c *Config) { c.CheckAfter = time.Millisecond }
	s := n.open()
	select {
	case <-s.Failed():
	case <-ctx(t).Done():
		t.Fatal("not found")
	}
	n.close()
	s = n.open()
	if err := s.WaitSeq(ctx(t), seq); err != nil || s.Hash() != hash {
		t.Errorf("not healed (%v)", err)
	}
}

// The list of snapshots that Raft is shown is the real one as soon as it runs:
// a follower that is far behind must get a snapshot that exists.
func TestStartSnapsEndsWithTheStart(t *testing.T) {
	real := raft.NewInmemSnapshotStore()
	s := &startSnaps{SnapshotStore: real}
	s.only.Store(&raft.SnapshotMeta{ID: "state"})
	if l, err := s.List(); err != nil || len(l) != 1 || l[0].ID != "state" {
		t.Errorf("while it starts: %v, %v", l, err)
	}
	s.only.Store(nil)
	if l, err := s.List(); err != nil || len(l) != 0 {
		t.Errorf("afterwards: %v, %v", l, err)
	}
}
