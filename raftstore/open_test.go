package raftstore

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"muster/raftstore/logstore"
)

// stopped is a fleet of one that has counted to 40, made a snapshot at 20, and
// was stopped in order. Its state file of the time of 10 is old.
func stopped(t *testing.T, tune func(*Config)) (n *rigNode, old []byte, seq uint64, hash [16]byte) {
	t.Helper()
	n, s := single(t, tune)
	must(t, s.Do(ctx(t), toyN(verbFill, "x", 200, 300)))
	upTo := func(c int) {
		for counter(t, s, "a") < c {
			must(t, s.Do(ctx(t), toy(verbAdd, "a")))
		}
	}
	upTo(10)
	n.close()
	old = readFile(t, n.path(stateFile))
	s = n.open()
	waitLeads(t, s)
	upTo(20)
	if err := s.Snapshot(ctx(t)); err != nil {
		t.Fatal(err)
	}
	upTo(40)
	_, seq = s.Applied()
	hash = s.Hash()
	n.close()
	return n, old, seq, hash
}

// copied is a stopped node again, in a folder of its own.
func (n *rigNode) copied(t *testing.T) *rigNode {
	t.Helper()
	c := newRig(t).node("n1", n.tune)
	if err := os.CopyFS(c.dir, os.DirFS(n.dir)); err != nil {
		t.Fatal(err)
	}
	return c
}

func (n *rigNode) path(name string) string { return filepath.Join(n.dir, name) }

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Invariant 8, M-32: a state file deleted, rolled back, cut off, damaged, of
// another boot or of another store is restored from snapshot and log; what is
// served afterwards has no gap.
func TestBadStateFileIsRebuilt(t *testing.T) {
	t.Parallel()
	n, old, seq, hash := stopped(t, nil)
	state := n.path(stateFile)
	good, mark := readFile(t, state), readFile(t, n.path(markerFile))
	cases := []struct {
		name  string
		harm  func()
		aside bool // the file is distrusted, and kept
	}{
		{"nothing", func() {}, false},
		{"deleted", func() { _ = os.Remove(state) }, false},
		{"empty", func() { writeFile(t, state, nil) }, true},
		{"rolled back behind the snapshot", func() { writeFile(t, state, old) }, true},
		{"cut off", func() { writeFile(t, state, good[:len(good)/2]) }, true},
		{"cut to the metas", func() { writeFile(t, state, good[:2*os.Getpagesize()]) }, true},
		{"zeroes", func() { writeFile(t, state, make([]byte, len(good))) }, true},
		{"value flipped", func() {
			writeFile(t, state, flipAt(good, bytes.LastIndex(good, []byte("40"))))
			writeMarker(t, n, killed(n))
		}, true},
		{"list of free pages flipped", func() {
			m, _ := newestMeta(good, os.Getpagesize())
			writeFile(t, state, flipAt(good, int(m.free)*m.pageSize+pageHead))
		}, true},
		{"marker gone", func() { _ = os.Remove(n.path(markerFile)) }, true},
		{"marker cut off", func() { writeFile(t, n.path(markerFile), mark[:5]) }, true},
		{"of another store", func() { writeMarker(t, n, marker{Server: "n1/other", Boot: "b"}) }, true},
		{"open in another boot", func() { writeMarker(t, n, marker{Server: n.server, Boot: "earlier", Open: true}) }, true},
		{"half a restore left", func() { writeFile(t, n.path(restoreFile), good[:5000]) }, false},
	}
	for _, c := range cases {
		writeFile(t, state, good)
		writeFile(t, n.path(markerFile), mark)
		_ = os.Remove(n.path(asideFile))
		c.harm()
		s := n.open()
		if c.aside != fileExists(n.path(asideFile)) {
			t.Errorf("%s: set aside: %t, want %t", c.name, !c.aside, c.aside)
		}
		if c.aside || c.name == "deleted" { // rebuilt from the snapshot: the log brings the rest
			if _, got := s.Applied(); got > seq {
				t.Errorf("%s: opened at Seq %d of %d", c.name, got, seq)
			}
		}
		if err := s.WaitSeq(ctx(t), seq); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if s.Hash() != hash || counter(t, s, "a") != 40 || s.Stats().RefusedSeq > 0 {
			t.Errorf("%s: rebuilt to a = %d, %+v", c.name, counter(t, s, "a"), s.Stats())
		}
		n.close()
	}
}

// killed is the marker that the death of a node's process leaves.
func killed(n *rigNode) marker { return marker{Server: n.server, Boot: bootID(), Open: true} }

func flipAt(b []byte, at int) []byte {
	out := bytes.Clone(b)
	out[at] ^= 1
	return out
}

func writeMarker(t testing.TB, n *rigNode, m marker) {
	t.Helper()
	if err := m.write(n.dir, func(string) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

// R7: a flipped bit anywhere in the state file is found and healed when the node
// was not stopped in order (else: TestDamageAfterAStopInOrder), or lies in bytes
// that nobody uses; it is never served.
func TestFlippedBitsAreHealedOrHarmless(t *testing.T) {
	t.Parallel()
	n, _, seq, hash := stopped(t, nil)
	good := readFile(t, n.path(stateFile))
	used := good
	if m, ok := newestMeta(good, os.Getpagesize()); ok {
		used = good[:m.need]
	}
	rng := rand.New(rand.NewPCG(uint64(*seed), 1))
	healed := 0
	for i := range *flips {
		at, bit := rng.IntN(len(used)), byte(1)<<rng.IntN(8)
		if i == 0 { // one that must be found
			at = bytes.LastIndex(good, []byte("40"))
		}
		b := bytes.Clone(good)
		b[at] ^= bit
		writeFile(t, n.path(stateFile), b)
		writeMarker(t, n, killed(n))
		_ = os.Remove(n.path(asideFile))
		s, err := n.tryOpen()
		if err != nil {
			t.Fatalf("flip %d at %d (seed %d): %v", i, at, *seed, err)
		}
		if err := s.WaitSeq(ctx(t), seq); err != nil {
			t.Fatalf("flip %d at %d (seed %d): %v", i, at, *seed, err)
		}
		if s.Hash() != hash || counter(t, s, "a") != 40 {
			t.Fatalf("flip %d at %d (seed %d): served a = %d", i, at, *seed, counter(t, s, "a"))
		}
		if fileExists(n.path(asideFile)) {
			healed++
		}
		n.close()
	}
	t.Logf("%d flips in %d bytes: %d found and healed, the rest in bytes without use", *flips, len(used), healed)
	if healed == 0 {
		t.Fatal("no flip was found: this test tests nothing")
	}
}

// A state that is behind the log but not behind the snapshot is good: Raft replays the rest.
func TestStateFileAboveTheSnapshotIsKept(t *testing.T) {
	t.Parallel()
	n, s := single(t, nil)
	if err := s.Snapshot(ctx(t)); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		must(t, s.Do(ctx(t), toy(verbAdd, "a")))
	}
	n.close()
	old := readFile(t, n.path(stateFile))
	s = n.open()
	waitLeads(t, s)
	for range 5 {
		must(t, s.Do(ctx(t), toy(verbAdd, "a")))
	}
	n.close()
	writeFile(t, n.path(stateFile), old)
	writeMarker(t, n, killed(n))
	s = n.open()
	if fileExists(n.path(asideFile)) {
		t.Fatal("a good state was set aside")
	}
	waitLeads(t, s)
	if got := counter(t, s, "a"); got != 10 {
		t.Fatalf("a is %d, want 10", got)
	}
}

// M-32: with the log lost or rolled back the node must not vote.
func TestLogBehindTheStateIsRefused(t *testing.T) {
	t.Parallel()
	n, s := single(t, nil)
	for range 5 {
		must(t, s.Do(ctx(t), toy(verbAdd, "a")))
	}
	n.close()
	before := copyDir(t, n.path(logDir))
	s = n.open()
	waitLeads(t, s)
	for range 5 {
		must(t, s.Do(ctx(t), toy(verbAdd, "a")))
	}
	n.close()
	if err := os.RemoveAll(n.path(logDir)); err != nil {
		t.Fatal(err)
	}
	if _, err := n.tryOpen(); !errors.Is(err, ErrLogBehind) {
		t.Fatalf("without a log: %v, want ErrLogBehind", err)
	}
	if err := os.RemoveAll(n.path(logDir)); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(n.path(logDir), os.DirFS(before)); err != nil {
		t.Fatal(err)
	}
	if _, err := n.tryOpen(); !errors.Is(err, ErrLogBehind) {
		t.Fatalf("with a log rolled back: %v, want ErrLogBehind", err)
	}
	n.tune = func(c *Config) { c.MustExist = true }
	if err := os.RemoveAll(n.path(logDir)); err != nil {
		t.Fatal(err)
	}
	if _, err := n.tryOpen(); !errors.Is(err, logstore.ErrMissing) {
		t.Fatalf("with a log that must exist: %v, want logstore.ErrMissing", err)
	}
}

func copyDir(t testing.TB, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// A snapshot that does not hold is set aside if the log reaches back to the one
// before; else the node says that it must rejoin, and serves nothing.
func TestDamagedSnapshot(t *testing.T) {
	t.Parallel()
	for _, trailing := range []uint64{10_000, 1} {
		n, _, seq, hash := stopped(t, func(c *Config) {
			c.LogKind = logstore.Bolt
			c.Snapshots.Trailing, c.Snapshots.Keep = trailing, 0
		})
		files, err := filepath.Glob(n.path("snapshots/*/state.bin"))
		if err != nil || len(files) != 1 {
			t.Fatalf("snapshots: %v, %v", files, err)
		}
		b := readFile(t, files[0])
		writeFile(t, files[0], flipAt(b, len(b)/2))
		if err := os.Remove(n.path(stateFile)); err != nil {
			t.Fatal(err)
		}
		s, err := n.tryOpen()
		if trailing == 1 {
			if !errors.Is(err, ErrNoRebuild) {
				t.Fatalf("short log: %v, want ErrNoRebuild", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := s.WaitSeq(ctx(t), seq); err != nil || s.Hash() != hash {
			t.Fatalf("long log: %v, a = %d", err, counter(t, s, "a"))
		}
	}
}

// What fails while a store is opened or closed leaves it openable.
func TestOpenAndCloseAreSafeAtEachStep(t *testing.T) {
	t.Parallel()
	base, _, seq, hash := stopped(t, nil)
	for _, op := range []string{"state-aside", "marker-write", "restore-create", "restore-sync", "restore-check", "restore-rename", "restore-syncdir", "state-open", "state-sync"} {
		n := base.copied(t)
		writeMarker(t, n, marker{Server: n.server, Boot: "earlier", Open: true})
		n.tune = func(c *Config) {
			c.Fault = func(at string) error {
				if at == op {
					return fmt.Errorf("injected at %s", at)
				}
				return nil
			}
		}
		s, err := n.tryOpen()
		if op == "state-sync" { // the close fails: the marker must go on saying open
			if err != nil {
				t.Fatal(err)
			}
			n.take()
			if s.Close() == nil {
				t.Error("close without sync was called clean")
			}
			if m, err := readMarker(n.dir); err != nil || !m.Open {
				t.Errorf("marker after a failed sync: %+v, %v", m, err)
			}
		} else if err == nil {
			t.Errorf("%s: open did not fail", op)
		}
		n.tune = nil
		s = n.open()
		if err := s.WaitSeq(ctx(t), seq); err != nil || s.Hash() != hash {
			t.Errorf("%s: afterwards %v, a = %d", op, err, counter(t, s, "a"))
		}
		n.close()
	}
}

// A second daemon on the folder is told so at once.
func TestSecondStoreOnAFolderIsRefused(t *testing.T) {
	t.Parallel()
	n, _ := single(t, nil)
	other := &rigNode{rig: n.rig, server: n.server, dir: n.dir}
	if _, err := other.tryOpen(); !errors.Is(err, logstore.ErrLocked) {
		t.Fatalf("second open: %v, want ErrLocked", err)
	}
	must(t, n.s.Do(ctx(t), toy(verbAdd, "a")))
}

func TestSetAsideRebuilds(t *testing.T) {
	t.Parallel()
	n, _, seq, hash := stopped(t, nil)
	if err := SetAside(n.dir); err != nil {
		t.Fatal(err)
	}
	s := n.open()
	if err := s.WaitSeq(ctx(t), seq); err != nil || s.Hash() != hash {
		t.Fatalf("rebuilt: %v", err)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	n, _, seq, hash := stopped(t, nil)
	r, err := Check(n.dir)
	if err != nil || len(r.Faults) > 0 || r.State == nil || r.State.Seq != seq || r.State.Hash != hash || r.Open || r.Server != n.server ||
		len(r.Snapshots) != 1 || r.Log == nil || r.Log.Entries == 0 {
		t.Fatalf("check of a good store: %v, %+v", err, r)
	}
	snap := n.path("snapshots/" + r.Snapshots[0].ID + "/state.bin")
	for _, path := range []string{n.path(stateFile), snap} {
		one, err := Check(path)
		if err != nil || len(one.Faults) > 0 || one.State == nil || one.State.Seq == 0 {
			t.Errorf("check of %s: %v, %+v", path, err, one)
		}
		b := readFile(t, path)
		writeFile(t, path, b[:len(b)/2])
		if one, err = Check(path); err != nil || len(one.Faults) != 1 {
			t.Errorf("check of a file cut off: %v, %+v", err, one)
		}
		if all, err := Check(n.dir); err != nil || len(all.Faults) == 0 {
			t.Errorf("check of a store with %s cut off: %v, %+v", path, err, all)
		}
		writeFile(t, path, b)
	}
	if _, err := Check(n.path("nothing")); err == nil {
		t.Error("check of nothing")
	}
	n.open()
	if _, err := Check(n.dir); !errors.Is(err, logstore.ErrLocked) {
		t.Errorf("check of a running store: %v, want ErrLocked", err)
	}
}

// Architecture §7: a snapshot for which the disk has no room is not begun; it is made when there is room.
func TestNoSnapshotWithoutRoom(t *testing.T) {
	t.Parallel()
	var room atomic.Bool
	asked := make(chan int64, 100)
	_, s := single(t, func(c *Config) {
		c.Snapshots.Entries, c.Snapshots.Every, c.Snapshots.Trailing = 1, time.Hour, 1
		c.Room = func(bytes int64) bool { asked <- bytes; return room.Load() }
	})
	must(t, s.Do(ctx(t), toy(verbAdd, "a")))
	s.snapshotNow()
	if n := s.lastSnapshot(); n != 0 {
		t.Errorf("a snapshot at %d was made without room", n)
	}
	select {
	case n := <-asked:
		if n < 4096 {
			t.Errorf("room was asked for %d bytes, want the size of the state", n)
		}
	default:
		t.Error("nobody asked for room")
	}
	room.Store(true)
	s.snapshotNow()
	if s.lastSnapshot() == 0 {
		t.Error("no snapshot with room")
	}
}
