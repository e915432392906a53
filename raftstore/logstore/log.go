package logstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

var (
	_ Store                  = (*Log)(nil)
	_ raft.MonotonicLogStore = (*Log)(nil)
)

// Log is an open log folder: one of the two stores, behind the latch, the watchdog and the counters.
type Log struct {
	kind Kind
	dir  string
	in   inner
	lock *os.File
	opts Options

	turn   chan struct{} // one slot: who holds it writes
	failed chan struct{}
	once   sync.Once
	err    atomic.Pointer[error]
	hung   atomic.Bool
	closed atomic.Bool

	mu    sync.Mutex // guards sizes
	sizes []entrySize
	bytes atomic.Int64

	count counters
}

type entrySize struct {
	index uint64
	n     uint32
}

func newLog(kind Kind, dir string, opts Options) *Log {
	return &Log{kind: kind, dir: dir, opts: opts, turn: make(chan struct{}, 1), failed: make(chan struct{})}
}

// Kind is the kind of the store.
func (l *Log) Kind() Kind { return l.kind }

// Failed is closed at the first write that failed or hung. The node must stop then; Err says why.
func (l *Log) Failed() <-chan struct{} { return l.failed }

// Err is the first failure, nil while there is none.
func (l *Log) Err() error {
	if p := l.err.Load(); p != nil {
		return *p
	}
	return nil
}

func (l *Log) latch(err error) {
	l.once.Do(func() {
		err = fmt.Errorf("log store %s: a write failed, the node must stop: %w", l.dir, err)
		l.err.Store(&err)
		close(l.failed)
	})
}

// write is the one door to the disk. Only one goroutine is inside, so that no sync can run beside one that fails and
// report success for what that one lost.
func (l *Log) write(do func() error) error {
	select {
	case l.turn <- struct{}{}:
	case <-l.failed:
		return l.Err()
	}
	defer func() { <-l.turn }()
	if err := l.Err(); err != nil {
		return err
	}
	if l.closed.Load() {
		return ErrClosed
	}
	begin := time.Now()
	unwatch := l.watch()
	err := do()
	unwatch()
	if errors.Is(err, ErrOrder) {
		return err
	}
	l.count.took.add(time.Since(begin))
	if err != nil {
		l.latch(err)
	}
	return l.Err() // also after a hang: the node has been told that this write is lost
}

// watch starts the watchdog for one write.
func (l *Log) watch() (stop func()) {
	if l.opts.Watch.Slow <= 0 {
		return func() {}
	}
	slow := l.opts.Watch.Slow
	return Watchdog(slow, func() {
		if !l.hung.CompareAndSwap(false, true) {
			return
		}
		if l.opts.Watch.OnHang != nil {
			l.opts.Watch.OnHang()
		}
		l.latch(fmt.Errorf("%w: no answer from the disk for %v", ErrHung, slow))
	})
}

// StoreLog implements raft.LogStore.
func (l *Log) StoreLog(e *raft.Log) error { return l.StoreLogs([]*raft.Log{e}) }

// StoreLogs appends entries and returns when they are on the disk: all or none of them. ErrOrder if they do not
// follow the last one (WAL: directly; Bolt: a gap is allowed).
func (l *Log) StoreLogs(entries []*raft.Log) error {
	if len(entries) == 0 {
		return nil
	}
	return l.write(func() error {
		if err := l.inOrder(entries); err != nil {
			return err
		}
		if err := l.in.StoreLogs(entries); err != nil {
			return err
		}
		l.learn(entries)
		return nil
	})
}

func (l *Log) inOrder(entries []*raft.Log) error {
	last, err := l.in.LastIndex()
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch {
		case e.Index == 0, last > 0 && e.Index <= last:
			return fmt.Errorf("%w: %d after %d", ErrOrder, e.Index, last)
		case last > 0 && e.Index > last+1 && l.in.IsMonotonic():
			return fmt.Errorf("%w: a gap: %d after %d", ErrOrder, e.Index, last)
		}
		last = e.Index
	}
	return nil
}

// learn counts entries that are stored.
func (l *Log) learn(entries []*raft.Log) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := int64(0)
	for _, e := range entries {
		n := encodedSize(e)
		l.sizes = append(l.sizes, entrySize{e.Index, uint32(n)})
		sum += int64(n)
	}
	l.bytes.Add(sum)
	l.count.appends.Add(1)
	l.count.entries.Add(uint64(len(entries)))
	l.count.bytes.Add(uint64(sum))
}

// readAll visits every entry once: the sizes are known then, and unless lazy what is damaged shows.
func (l *Log) readAll(lazy bool) error {
	err := l.in.each(lazy, func(index uint64, n int) {
		l.sizes = append(l.sizes, entrySize{index, uint32(n)})
		l.bytes.Add(int64(n))
	})
	if err != nil {
		return err
	}
	first, err1 := l.in.FirstIndex()
	last, err2 := l.in.LastIndex()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if n := len(l.sizes); n > 0 && (l.sizes[0].index != first || l.sizes[n-1].index != last) || n == 0 && last != 0 {
		return fmt.Errorf("%w: the files hold %d entries, the store says %d to %d", ErrDamaged, n, first, last)
	}
	return nil
}

// DeleteRange removes the entries from lo to hi inclusive: a prefix or a suffix of the log (or all of it), else
// ErrOrder.
func (l *Log) DeleteRange(lo, hi uint64) error {
	return l.write(func() error {
		first, err := l.in.FirstIndex()
		if err != nil {
			return err
		}
		last, err := l.in.LastIndex()
		if err != nil {
			return err
		}
		if lo > hi || last == 0 || hi < first || lo > last {
			return nil
		}
		if lo > first && hi < last {
			return fmt.Errorf("%w: cannot cut %d to %d out of %d to %d", ErrOrder, lo, hi, first, last)
		}
		if err := l.in.DeleteRange(lo, hi); err != nil {
			return err
		}
		l.count.truncations.Add(1)
		l.forget(lo, hi)
		return nil
	})
}

func (l *Log) forget(lo, hi uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := sort.Search(len(l.sizes), func(i int) bool { return l.sizes[i].index >= lo })
	b := sort.Search(len(l.sizes), func(i int) bool { return l.sizes[i].index > hi })
	for _, s := range l.sizes[a:b] {
		l.bytes.Add(-int64(s.n))
	}
	if a == 0 {
		l.sizes = append([]entrySize(nil), l.sizes[b:]...) // a copy: the old array would be kept for ever
		return
	}
	l.sizes = append(l.sizes[:a], l.sizes[b:]...)
}

// FirstIndex implements raft.LogStore: 0 while the log is empty.
func (l *Log) FirstIndex() (uint64, error) { return l.in.FirstIndex() }

// LastIndex implements raft.LogStore: 0 while the log is empty.
func (l *Log) LastIndex() (uint64, error) { return l.in.LastIndex() }

// GetLog implements raft.LogStore: raft.ErrLogNotFound if there is none; ErrDamaged, which also latches, if the
// entry's checksum does not hold.
func (l *Log) GetLog(index uint64, e *raft.Log) error {
	err := l.in.GetLog(index, e)
	if err != nil && errors.Is(err, ErrDamaged) {
		l.latch(err)
	}
	return err
}

// Verify reads every entry that the log holds, as it is used meanwhile, and pauses between any two. It is what a lazy
// Open has left out. ErrDamaged, which also latches; the cause of ctx.
func (l *Log) Verify(ctx context.Context, pause time.Duration) error {
	index, err := l.FirstIndex()
	if err != nil {
		return err
	}
	for ; ; index++ {
		first, err1 := l.FirstIndex()
		last, err2 := l.LastIndex()
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		if index = max(index, first, 1); index > last {
			return nil
		}
		var e raft.Log
		if err := l.GetLog(index, &e); err != nil && !errors.Is(err, raft.ErrLogNotFound) { // not found: cut off meanwhile
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// IsMonotonic implements raft.MonotonicLogStore.
func (l *Log) IsMonotonic() bool { return l.in.IsMonotonic() }

// Set implements raft.StableStore: on the disk when it returns.
func (l *Log) Set(key, val []byte) error {
	return l.write(func() error { l.count.stable.Add(1); return l.in.Set(key, val) })
}

// Get implements raft.StableStore: nil without error if the key was never set.
func (l *Log) Get(key []byte) ([]byte, error) { return l.in.Get(key) }

// SetUint64 implements raft.StableStore: on the disk when it returns.
func (l *Log) SetUint64(key []byte, val uint64) error {
	return l.write(func() error { l.count.stable.Add(1); return l.in.SetUint64(key, val) })
}

// GetUint64 implements raft.StableStore: 0 without error if the key was never set.
func (l *Log) GetUint64(key []byte) (uint64, error) { return l.in.GetUint64(key) }

// Bytes implements Store.
func (l *Log) Bytes() int64 { return l.bytes.Load() }

// BytesFrom is the encoded size of the live entries from index on: what a follower at that index still needs.
func (l *Log) BytesFrom(index uint64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := int64(0)
	for i := len(l.sizes) - 1; i >= 0 && l.sizes[i].index >= index; i-- {
		sum += int64(l.sizes[i].n)
	}
	return sum
}

// Close waits for the write on its way, closes the files and frees the folder; a second call does nothing. If a
// write hangs it returns ErrHung at once and frees nothing: only the end of the process does.
func (l *Log) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	hung := make(chan struct{})
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-l.failed:
			if l.hung.Load() {
				close(hung)
			}
		case <-stop:
		}
	}()
	select {
	case l.turn <- struct{}{}:
	case <-hung:
		return l.Err()
	}
	defer func() { <-l.turn }()
	return errors.Join(l.in.Close(), l.lock.Close())
}
