package raftstoretest

import (
	"fmt"
	"sync"

	"github.com/hashicorp/raft"

	"muster/raftstore"
	"muster/raftstore/logstore"
)

// Disk is a log in memory that outlives the processes that write to it, as a disk
// does. It refuses gaps, as the log of production does. Safe for concurrent use.
type Disk struct {
	mu     sync.Mutex
	first  uint64 // index of logs[0]
	logs   []*raft.Log
	values map[string][]byte
	terms  map[string]uint64
}

// NewDisk is an empty log.
func NewDisk() *Disk { return &Disk{values: map[string][]byte{}, terms: map[string]uint64{}} }

// Open is the log for one process. Before each write gate is asked, with what is
// written and of how many entries: so many of them reach the disk, and with an error the process
// is told that it failed. It may also take its time, as a slow disk does, and it is asked
// again, with 0, once the entries are stored and the process has not heard of it.
func (d *Disk) Open(gate func(op string, entries int) (int, error)) raftstore.LogStore {
	return &log{Disk: d, gate: gate, failed: make(chan struct{})}
}

type log struct {
	*Disk
	gate   func(op string, entries int) (int, error)
	once   sync.Once
	err    error
	failed chan struct{}
}

// fail latches, as a log does whose write failed.
func (l *log) fail(err error) error {
	if err != nil {
		l.once.Do(func() { l.err = err; close(l.failed) })
	}
	return err
}

func (l *log) StoreLog(e *raft.Log) error { return l.StoreLogs([]*raft.Log{e}) }

func (l *log) StoreLogs(list []*raft.Log) error {
	if l.Err() != nil {
		return l.Err()
	}
	n, err := l.gate("log-append", len(list))
	if e := l.append(list[:n]); e != nil {
		return e
	}
	if err == nil {
		_, err = l.gate("log-appended", 0)
	}
	return l.fail(err)
}

func (d *Disk) append(list []*raft.Log) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range list {
		if len(d.logs) == 0 {
			d.first = e.Index
		}
		if want := d.first + uint64(len(d.logs)); e.Index != want {
			return fmt.Errorf("%w: entry %d, want %d", logstore.ErrOrder, e.Index, want)
		}
		c := *e
		d.logs = append(d.logs, &c)
	}
	return nil
}

func (l *log) DeleteRange(lo, hi uint64) error {
	if _, err := l.gate("log-cut", 0); err != nil {
		return l.fail(err)
	}
	return l.cut(lo, hi)
}

func (d *Disk) cut(lo, hi uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	last := d.last()
	if lo > hi || last == 0 || hi < d.first || lo > last {
		return nil
	}
	switch {
	case lo <= d.first && hi >= last:
		d.logs = nil
	case lo <= d.first:
		d.logs = append([]*raft.Log(nil), d.logs[hi+1-d.first:]...)
		d.first = hi + 1
	case hi >= last:
		d.logs = d.logs[:lo-d.first]
	default:
		return fmt.Errorf("%w: cannot cut %d to %d out of %d to %d", logstore.ErrOrder, lo, hi, d.first, last)
	}
	return nil
}

func (d *Disk) last() uint64 {
	if len(d.logs) == 0 {
		return 0
	}
	return d.first + uint64(len(d.logs)) - 1
}

// FirstIndex implements raft.LogStore.
func (d *Disk) FirstIndex() (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.logs) == 0 {
		return 0, nil
	}
	return d.first, nil
}

// LastIndex implements raft.LogStore.
func (d *Disk) LastIndex() (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last(), nil
}

// GetLog implements raft.LogStore.
func (d *Disk) GetLog(index uint64, e *raft.Log) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.logs) == 0 || index < d.first || index > d.last() {
		return raft.ErrLogNotFound
	}
	*e = *d.logs[index-d.first]
	return nil
}

// IsMonotonic implements raft.MonotonicLogStore.
func (d *Disk) IsMonotonic() bool { return true }

// BytesFrom implements raftstore.LogStore.
func (d *Disk) BytesFrom(index uint64) (n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := len(d.logs) - 1; i >= 0 && d.logs[i].Index >= index; i-- {
		n += int64(len(d.logs[i].Data)) + 32
	}
	return n
}

func (l *log) Set(key, val []byte) error {
	if _, err := l.gate("log-value", 0); err != nil {
		return l.fail(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.values[string(key)] = append([]byte(nil), val...)
	return nil
}

// Get implements raft.StableStore.
func (d *Disk) Get(key []byte) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]byte(nil), d.values[string(key)]...), nil
}

func (l *log) SetUint64(key []byte, val uint64) error {
	if _, err := l.gate("log-term", 0); err != nil {
		return l.fail(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.terms[string(key)] = val
	return nil
}

// GetUint64 implements raft.StableStore.
func (d *Disk) GetUint64(key []byte) (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.terms[string(key)], nil
}

func (l *log) Failed() <-chan struct{} { return l.failed }

func (l *log) Err() error {
	select {
	case <-l.failed:
		return l.err
	default:
		return nil
	}
}

func (l *log) Close() error { return nil }
