package logstore

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

var errDisk = errors.New("disk says no")

// breaking fails the named operation once, from when armed is set on.
type breaking struct {
	op    string
	armed atomic.Bool
	fired atomic.Int32
}

func (b *breaking) fault(op string) error {
	if op == b.op && b.armed.CompareAndSwap(true, false) {
		b.fired.Add(1)
		return errDisk
	}
	return nil
}

// Class "a retried fsync reports success": the first failed write or sync is the last one, although the disk would
// take the next.
func TestLatch(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		op   string
		do   func(l *Log) error
	}{
		{WAL, "write", func(l *Log) error { return l.StoreLogs(entries(11, 12)) }},
		{WAL, "sync", func(l *Log) error { return l.StoreLogs(entries(11, 12)) }},
		{WAL, "meta", func(l *Log) error { return l.SetUint64([]byte("term"), 2) }},
		{WAL, "meta", func(l *Log) error { return l.Set([]byte("vote"), []byte("you")) }},
		{WAL, "sync", func(l *Log) error { return l.DeleteRange(8, 10) }},
		{WAL, "create", func(l *Log) error { return l.DeleteRange(8, 10) }},
		{Bolt, "commit", func(l *Log) error { return l.StoreLog(entry(11, 300)) }},
		{Bolt, "commit", func(l *Log) error { return l.SetUint64([]byte("term"), 2) }},
		{Bolt, "commit", func(l *Log) error { return l.DeleteRange(1, 3) }},
	} {
		t.Run(string(c.kind)+"/"+c.op, func(t *testing.T) {
			b := &breaking{op: c.op}
			dir := t.TempDir()
			l := mustOpen(t, c.kind, dir, Options{Fault: b.fault})
			mustStore(t, l, 1, 10)
			b.armed.Store(true)
			first := c.do(l)
			if !errors.Is(first, errDisk) || b.fired.Load() != 1 {
				t.Fatalf("the failing write says %v", first)
			}
			select {
			case <-l.Failed():
			default:
				t.Error("Failed is not closed")
			}
			for name, again := range map[string]func() error{
				"append":   func() error { return l.StoreLogs(entries(11, 12)) },
				"set":      func() error { return l.Set([]byte("k"), []byte("v")) },
				"number":   func() error { return l.SetUint64([]byte("n"), 1) },
				"truncate": func() error { return l.DeleteRange(1, 2) },
			} {
				if err := again(); err != first {
					t.Errorf("%s after the failure: %v, want the first error", name, err)
				}
			}
			wantEntry(t, l, entry(5, 300)) // reads go on
			if err := l.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			mustOpen(t, c.kind, dir, Options{})
		})
	}
}

// raft-wal changes segments in the background and only logs what fails there: the next append must say it.
func TestLatchOfAFailedRotation(t *testing.T) {
	b := &breaking{op: "create"}
	dir := t.TempDir()
	l := mustOpen(t, WAL, dir, Options{Fault: b.fault})
	b.armed.Store(true)
	var err error
	i := uint64(1)
	for ; err == nil && i < 1000; i++ {
		err = l.StoreLog(entry(i, 300))
	}
	if !errors.Is(err, errDisk) || l.Err() == nil {
		t.Fatalf("append %d after a failed change of segments: %v, want the disk's error", i, err)
	}
	last := i - 2
	l = reopen(t, l)
	wantRange(t, l, 1, last)
	mustStore(t, l, last+1, last+100)
}

// One failed sync among many writers: nobody who comes after it succeeds, whatever the order of the goroutines.
func TestLatchAmongManyWriters(t *testing.T) {
	eachKind(t, func(t *testing.T, kind Kind) {
		op := map[Kind]string{WAL: "meta", Bolt: "commit"}[kind]
		b := &breaking{op: op}
		l := mustOpen(t, kind, t.TempDir(), Options{Fault: b.fault})
		b.armed.Store(true)
		var ok atomic.Int32
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 5 {
					if l.SetUint64([]byte("n"), 1) == nil {
						ok.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if ok.Load() != 0 {
			t.Errorf("%d writes succeeded after the first had failed", ok.Load())
		}
	})
}

// Entries and stable values are written at the same time: the leader's own entry is on its way to the disk while Raft
// writes a term and a vote. Each is there, also after the log was opened again.
func TestStableValuesBesideEntries(t *testing.T) {
	eachKind(t, func(t *testing.T, kind Kind) {
		l := mustOpen(t, kind, t.TempDir(), Options{})
		var wg sync.WaitGroup
		wg.Go(func() { mustStoreEach(t, l, 1, 100) })
		wg.Go(func() {
			for i := range uint64(100) {
				if err := errors.Join(l.SetUint64([]byte("term"), i), l.Set([]byte("vote"), []byte{byte(i)})); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Wait()
		l = reopen(t, l)
		wantRange(t, l, 1, 100)
		term, err := l.GetUint64([]byte("term"))
		vote, err2 := l.Get([]byte("vote"))
		if err != nil || err2 != nil || term != 99 || len(vote) != 1 || vote[0] != 99 {
			t.Errorf("term %d (%v), vote %v (%v)", term, err, vote, err2)
		}
	})
}

// mustStoreEach stores entries one by one.
func mustStoreEach(t *testing.T, l *Log, from, to uint64) {
	for i := from; i <= to; i++ {
		if err := l.StoreLogs(entries(i, i)); err != nil {
			t.Errorf("entry %d: %v", i, err)
		}
	}
}

// hanging is an inner store whose writes wait.
type hanging struct {
	inner
	release chan struct{}
}

func (h *hanging) StoreLogs([]*raft.Log) error { <-h.release; return nil }

// The watchdog speaks once, before the store latches; the write that comes back late has not succeeded; nobody waits
// behind it; Close does not wait for ever.
func TestHang(t *testing.T) {
	base := mustOpen(t, Bolt, t.TempDir(), Options{})
	synctest.Test(t, func(t *testing.T) {
		h := &hanging{inner: base.in, release: make(chan struct{})}
		var hangs atomic.Int32
		var l *Log
		l = newLog(Bolt, "dir", Options{Watch: Watch{Slow: 2 * time.Second, OnHang: func() {
			if l.Err() != nil {
				t.Error("latched before the transport was closed")
			}
			hangs.Add(1)
		}}})
		l.in = h
		late := make(chan error, 2)
		go func() { late <- l.StoreLogs(entries(1, 1)) }()
		synctest.Wait()
		go func() { late <- l.SetUint64([]byte("n"), 1) }()

		time.Sleep(1900 * time.Millisecond)
		synctest.Wait()
		if hangs.Load() != 0 || l.Err() != nil {
			t.Fatal("the watchdog spoke before its time")
		}
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		if hangs.Load() != 1 || !errors.Is(l.Err(), ErrHung) {
			t.Fatalf("after the limit: %d calls, %v", hangs.Load(), l.Err())
		}
		if err := <-late; !errors.Is(err, ErrHung) {
			t.Errorf("the write that waited behind: %v", err)
		}
		if err := l.Close(); !errors.Is(err, ErrHung) {
			t.Errorf("close while a write hangs: %v", err)
		}
		close(h.release)
		if err := <-late; !errors.Is(err, ErrHung) {
			t.Errorf("the late write: %v, want an error: its caller has been given up", err)
		}
		time.Sleep(10 * time.Second)
		if hangs.Load() != 1 {
			t.Errorf("OnHang was called %d times", hangs.Load())
		}
	})
}

func TestSlowButInTimeIsNoHang(t *testing.T) {
	base := mustOpen(t, Bolt, t.TempDir(), Options{})
	synctest.Test(t, func(t *testing.T) {
		h := &hanging{inner: base.in, release: make(chan struct{})}
		l := newLog(Bolt, "dir", Options{Watch: Watch{Slow: 2 * time.Second, OnHang: func() { t.Error("called") }}})
		l.in = h
		for i := uint64(1); i <= 3; i++ {
			go func() { time.Sleep(1500 * time.Millisecond); h.release <- struct{}{} }()
			if err := l.StoreLogs(entries(i, i)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(5 * time.Second)
		if s := l.Stats(); s.P50 < 1400*time.Millisecond || s.P50 > 1600*time.Millisecond || s.Max != 1500*time.Millisecond {
			t.Errorf("three writes of 1.5 s measured as p50 %v, max %v", s.P50, s.Max)
		}
	})
}

func TestClosed(t *testing.T) {
	eachKind(t, func(t *testing.T, kind Kind) {
		l := mustOpen(t, kind, t.TempDir(), Options{})
		if err := errors.Join(l.Close(), l.Close()); err != nil {
			t.Errorf("close twice: %v", err)
		}
		if err := l.StoreLogs(entries(1, 1)); !errors.Is(err, ErrClosed) {
			t.Errorf("append after close: %v", err)
		}
	})
}

func TestStats(t *testing.T) {
	for kind, syncs := range map[Kind][2]uint64{WAL: {10, 30}, Bolt: {20, 24}} {
		l := mustOpen(t, kind, t.TempDir(), Options{SegmentSize: 1 << 20})
		before := l.Stats().Syncs
		for i := uint64(1); i <= 10; i++ {
			mustStore(t, l, 2*i-1, 2*i)
		}
		s := l.Stats()
		if s.Appends != 10 || s.Entries != 20 || s.Bytes != uint64(l.Bytes()) || s.P50 == 0 || s.P99 < s.P50 || s.Max == 0 {
			t.Errorf("%s: %+v", kind, s)
		}
		if n := s.Syncs - before; n < syncs[0] || n > syncs[1] {
			t.Errorf("%s: %d syncs for ten appends, want %d to %d", kind, n, syncs[0], syncs[1])
		}
	}
}
