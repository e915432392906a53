package raftstore

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"muster/board"
	"muster/raftstore/logstore"
)

// memSink is a snapshot in memory.
type memSink struct {
	bytes.Buffer
	closed, cancelled bool
	slow              func()
}

func (m *memSink) ID() string    { return "mem" }
func (m *memSink) Close() error  { m.closed = true; return nil }
func (m *memSink) Cancel() error { m.cancelled = true; return nil }
func (m *memSink) Write(b []byte) (int, error) {
	if m.slow != nil {
		m.slow()
	}
	return m.Buffer.Write(b)
}

// grow applies n transactions of a record of size bytes each.
func grow(t testing.TB, s *state, n, size int) {
	t.Helper()
	var c tallies
	for range n {
		m := s.now()
		val := bytes.Repeat([]byte{byte(m.Seq)}, size)
		op := board.Op{Table: board.TCard, Key: fmt.Sprintf("c-%06d", m.Seq), Val: val}
		out := applyAll(t, s, &c, command(m.Applied+1, 1, entry{Term: 1, Seq: m.Seq + 1, Txns: []board.Txn{txn(op, put("n", fmt.Sprint(m.Seq+1)))}}))
		if out[0] != nil {
			t.Fatal(out[0])
		}
	}
}

func takeSnapshot(t testing.TB, s *state) []byte {
	t.Helper()
	p, err := s.snapshot(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	var sink memSink
	if err := p.Persist(&sink); err != nil || !sink.closed {
		t.Fatalf("persist: %v, closed %t", err, sink.closed)
	}
	return sink.Bytes()
}

func TestSnapshotIsTheStateOfItsMoment(t *testing.T) {
	a, b := openMapped(t, 1<<20, nil), openTestState(t, nil)
	grow(t, a, 50, 300)
	p, err := a.snapshot(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := a.now()
	grow(t, a, 50, 300) // between Snapshot and Persist, and on a state that grows
	var sink memSink
	if err := p.Persist(&sink); err != nil {
		t.Fatal(err)
	}
	p.Release()
	if kept, err := b.restore(&sink); err != nil || kept {
		t.Fatalf("restore: kept %t, %v", kept, err)
	}
	if got := b.now(); got != want {
		t.Fatalf("restored %+v, want %+v", got, want)
	}
	if got := text(t, b, "n"); got != "50" {
		t.Fatalf("n is %q", got)
	}
	grow(t, b, 50, 300)
	if a.now().Sum != b.now().Sum {
		t.Fatal("the restored state went another way")
	}
}

// Persist counts the hash anew and discards a snapshot that differs.
func TestSnapshotOfADamagedStateIsDiscarded(t *testing.T) {
	s := openTestState(t, nil)
	grow(t, s, 10, 100)
	s.m.Sum.lo++ // the running hash is wrong by one: no checksum shows that
	grow(t, s, 1, 100)
	var told error
	p, err := s.snapshot(0, func(err error) { told = err })
	if err != nil {
		t.Fatal(err)
	}
	var sink memSink
	err = p.Persist(&sink)
	if !errors.Is(err, ErrDamaged) || sink.closed || !sink.cancelled || !errors.Is(told, ErrDamaged) {
		t.Fatalf("persist: %v; closed %t, cancelled %t, told %v", err, sink.closed, sink.cancelled, told)
	}
}

// Invariant 9: whatever fails on the way, the state is the old or the new one, whole.
func TestRestoreIsAtomic(t *testing.T) {
	src := openTestState(t, nil)
	grow(t, src, 80, 200)
	snap := takeSnapshot(t, src)
	for _, op := range []string{"restore-create", "restore-sync", "restore-check", "restore-rename", "restore-syncdir", "state-open"} {
		broken := false
		s := openTestState(t, func(at string) error {
			if broken && at == op {
				return errors.New("injected")
			}
			return nil
		})
		grow(t, s, 5, 200)
		old := s.now()
		broken = true
		_, err := s.restore(bytes.NewReader(snap))
		var swap *swapError
		after := op == "restore-syncdir" || op == "state-open"
		if err == nil || errors.As(err, &swap) != after {
			t.Errorf("%s: restore said %v; past the point of no return: want %t", op, err, after)
		}
		if !after && s.now() != old {
			t.Errorf("%s: state moved to %+v", op, s.now())
		}
		if !after && text(t, s, "n") != "5" {
			t.Errorf("%s: the old state cannot be read", op)
		}
		broken = false
		if err := s.close(false); err != nil { // the process dies here
			t.Fatal(err)
		}
		h, err := verifyFile(ctx(t), s.path())
		want := uint64(5)
		if after {
			want = 80
		}
		if err != nil || h.Meta.Seq != want {
			t.Errorf("%s: after the crash the file is at Seq %d (%v), want %d, whole", op, h.Meta.Seq, err, want)
		}
	}
}

func TestBrokenSnapshotIsNotRestored(t *testing.T) {
	src := openTestState(t, nil)
	grow(t, src, 80, 200)
	good := takeSnapshot(t, src)
	flip := func(at int) []byte {
		b := bytes.Clone(good)
		b[at] ^= 0x10
		return b
	}
	cases := map[string][]byte{
		"empty": nil, "header only": good[:headerSize], "cut off": good[:len(good)-5000], "header": flip(20),
		"value":      flip(bytes.LastIndex(good, bytes.Repeat([]byte{40}, 150)) + 20),
		"other file": append(bytes.Clone(good[:headerSize]), takeSnapshotOf(t, 80, 201)[headerSize:]...),
	}
	for name, b := range cases {
		s := openTestState(t, nil)
		grow(t, s, 5, 200)
		if _, err := s.restore(bytes.NewReader(b)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v, want ErrDamaged", name, err)
		}
		if s.now().Seq != 5 || text(t, s, "n") != "5" {
			t.Errorf("%s: the old state is gone", name)
		}
		if fileExists(filepath.Join(s.dir, restoreFile)) {
			t.Errorf("%s: %s is left", name, restoreFile)
		}
	}
}

func takeSnapshotOf(t testing.TB, n, size int) []byte {
	s := openTestState(t, nil)
	grow(t, s, n, size)
	return takeSnapshot(t, s)
}

// setEra writes a fleet record of an era as board encodes it: field 2 is the number, 3 the random half.
func setEra(t testing.TB, s *state, era uint64, tag string) {
	t.Helper()
	val := append([]byte{1, 2 << 2, byte(era << 1), 3<<2 | 1, byte(len(tag))}, tag...)
	var c tallies
	m := s.now()
	applyAll(t, s, &c, command(m.Applied+1, 1, entry{Term: 1, Seq: m.Seq + 1,
		Txns: []board.Txn{txn(board.Op{Table: board.TFleet, Key: board.FleetKey, Val: val})}}))
	err := s.read(func(v *view) error {
		if f := board.GetFleet(v); f == nil || f.Era != era || f.EraTag != tag {
			t.Fatalf("fleet record reads as %+v", f)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The rule of §9 and §6: same era and not newer leaves the state; an older era
// is replaced whatever its index; equal numbers with other halves refuse.
func TestWhichSnapshotReplacesTheState(t *testing.T) {
	make := func(n int, era uint64, tag string) *state {
		s := openTestState(t, nil)
		setEra(t, s, era, tag)
		grow(t, s, n, 50)
		return s
	}
	small, large := takeSnapshot(t, make(10, 1, "x")), takeSnapshot(t, make(40, 1, "x"))
	next := takeSnapshot(t, make(5, 2, "y"))
	cases := []struct {
		name    string
		have    *state
		snap    []byte
		kept    bool
		err     error
		applied uint64
	}{
		{"newer", make(20, 1, "x"), large, false, nil, 41},
		{"older", make(20, 1, "x"), small, true, nil, 21},
		{"the same", make(10, 1, "x"), small, true, nil, 11},
		{"next era, lower index", make(20, 1, "x"), next, false, nil, 6},
		{"former era, higher index", make(5, 2, "y"), large, true, nil, 6},
		{"same number, other half", make(20, 1, "z"), large, false, ErrOtherEra, 21},
	}
	for _, c := range cases {
		kept, err := c.have.restore(bytes.NewReader(c.snap))
		if kept != c.kept || !errors.Is(err, c.err) || c.have.now().Applied != c.applied {
			t.Errorf("%s: kept %t, %v, applied %d; want %t, %v, %d", c.name, kept, err, c.have.now().Applied, c.kept, c.err, c.applied)
		}
	}
}

// A restore waits for no snapshot: Raft's main loop, which the snapshot waits
// for, is itself waiting for the restore.
func TestRestoreCancelsRunningSnapshots(t *testing.T) {
	big := takeSnapshotOf(t, 100, 200)
	s := openTestState(t, nil)
	grow(t, s, 20, 200)
	pending, err := s.snapshot(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	running, err := s.snapshot(100, nil) // 100 bytes/s: never done
	if err != nil {
		t.Fatal(err)
	}
	wrote, persisted := make(chan struct{}, 100), make(chan error, 1)
	sink := &memSink{slow: func() { wrote <- struct{}{} }}
	go func() { persisted <- running.Persist(sink) }()
	<-wrote
	if kept, err := s.restore(bytes.NewReader(big)); kept || err != nil {
		t.Fatalf("restore: kept %t, %v", kept, err)
	}
	if err := <-persisted; !errors.Is(err, errCancelled) || sink.closed {
		t.Fatalf("running snapshot: %v, closed %t", err, sink.closed)
	}
	if err := pending.Persist(&memSink{}); !errors.Is(err, errCancelled) {
		t.Fatalf("pending snapshot: %v", err)
	}
	pending.Release()
	running.Release()
	if text(t, s, "n") != "100" {
		t.Fatal("the new state is not in use")
	}
}

// Readers of the old file finish on it; the next reading sees the new one.
func TestReadersLiveThroughARestore(t *testing.T) {
	big := takeSnapshotOf(t, 100, 200)
	s := openTestState(t, nil)
	grow(t, s, 20, 200)
	err := s.read(func(v *view) error {
		if _, err := s.restore(bytes.NewReader(big)); err != nil {
			return err
		}
		if n := string(v.Get(board.TText, "n")); n != "20" {
			return fmt.Errorf("the reading changed to %s", n)
		}
		return s.read(func(w *view) error { // nested: no reader keeps another out
			if n := string(w.Get(board.TText, "n")); n != "100" {
				return fmt.Errorf("a new reading sees %s", n)
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Invariant 10: a snapshot does not stall writes, also when the file outgrows
// its memory map meanwhile, which waits for readers: the snapshot gives way.
func TestWritesGoOnWhileASnapshotIsWritten(t *testing.T) {
	t.Parallel()
	var begun atomic.Int32
	_, s := single(t, func(c *Config) {
		c.Snapshots.Rate = 1000
		c.persist = func() { begun.Add(1) }
	})
	must(t, s.Do(ctx(t), toyN(verbFill, "x", 50, 500)))
	snap := make(chan error, 1)
	go func() { snap <- s.Snapshot(ctx(t)) }()
	waitFor(t, "snapshot begins", func() bool { return begun.Load() > 0 })
	begin := time.Now()
	for i := range 30 { // 3 MB: many times the first map
		must(t, s.Do(ctx(t), toyN(verbFill, fmt.Sprint("y", i), 100, 1000)))
	}
	t.Logf("30 writes of 100 kB beside a snapshot that never ends: %v", time.Since(begin))
	if err := <-snap; err == nil {
		t.Fatal("the snapshot of 1000 bytes/s was written: this test tests nothing")
	}
}

// §9: a follower far behind, or new, gets the snapshot; small Trailing forces it.
func TestNewReplicaIsRestoredFromASnapshot(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	tune := func(c *Config) {
		c.Snapshots.Trailing, c.Snapshots.Keep = 1, 1
		if c.Server == "n1/s1" {
			c.LogKind = logstore.Bolt // raft-wal goes on reading what was cut off inside its newest segment
		}
	}
	a := r.node("n1", tune)
	s := a.open()
	if err := s.Bootstrap(); err != nil {
		t.Fatal(err)
	}
	waitLeads(t, s)
	for range 80 { // more than the log cache holds
		must(t, s.Do(ctx(t), toy(verbAdd, "a")))
	}
	if err := s.Snapshot(ctx(t)); err != nil {
		t.Fatal(err)
	}
	b := r.node("n2", tune)
	sub := b.open().Subscribe(nil)
	<-sub.C
	sub.Take()
	if err := s.AddNonvoter(ctx(t), b.server); err != nil {
		t.Fatal(err)
	}
	same(t, []*rigNode{a, b})
	waitFor(t, "the replica is restored from a snapshot", func() bool { return b.s.Stats().Resets == 1 })
	<-sub.C
	if _, all := sub.Take(); !all {
		t.Fatal("a subscriber was not told to read everything again")
	}
	must(t, s.Do(ctx(t), toy(verbAdd, "a")))
	same(t, []*rigNode{a, b})
	b.kill()
	b.open() // log and state of a restored replica fit together
	same(t, []*rigNode{a, b})
}

var _ raft.SnapshotSink = (*memSink)(nil)
