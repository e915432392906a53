package raftstore

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"muster/raftstore/logstore"
)

// LogStore is what the store needs of the log on disk. *logstore.Log is one, raftstoretest has one in memory.
//
// Its methods may be called at the same time. Above all Set and SetUint64, with Raft's term and vote, run beside a
// StoreLogs: the leader's own entry is written by a goroutine of its own ([ahead]), and Raft does not wait for it when
// it votes. Writes of entries, and DeleteRange, come one at a time and in their order.
type LogStore interface {
	raft.LogStore
	raft.StableStore
	IsMonotonic() bool
	BytesFrom(index uint64) int64
	Failed() <-chan struct{}
	Err() error
	Close() error
}

const logDir = "log"

// openLog opens the log; lazy leaves entries unread until they are asked for.
func (s *Store) openLog(lazy bool) (LogStore, error) {
	if s.cfg.OpenLog != nil {
		return s.cfg.OpenLog()
	}
	return logstore.Open(s.cfg.LogKind, filepath.Join(s.cfg.Dir, logDir), logstore.Options{
		MustExist: s.cfg.MustExist,
		Lazy:      lazy,
		Logger:    s.log,
		Fault:     s.logFault(),
		Watch: logstore.Watch{
			Slow:   max(s.cfg.SlowDisk, 0),
			OnHang: s.closeTransport, // heartbeats stop, so that others elect
		},
	})
}

// logFault passes the test's way to break an operation on to the log.
func (s *Store) logFault() func(string) error {
	if s.cfg.Fault == nil {
		return nil
	}
	return func(op string) error { return s.cfg.Fault("log-" + op) }
}

// raftLog stands between Raft and the log. Raft panics when a term cannot be
// written or an entry cannot be read: here the store fails instead, and the
// goroutine of Raft ends, so that the node can stop in order.
type raftLog struct {
	LogStore
	fail    func(error)
	watch   func() (stop func()) // looks at a write: a leader whose disk is late yields
	applied func() uint64        // what the state has applied
	running atomic.Bool          // Raft's own goroutines call (before, NewRaft does, on ours)
}

func (l *raftLog) failed(err error) {
	if err != nil && !errors.Is(err, logstore.ErrOrder) {
		l.fail(err)
	}
}

func (l *raftLog) lethal(err error) {
	if err == nil {
		return
	}
	l.fail(err)
	if l.running.Load() {
		runtime.Goexit()
	}
}

// GetLog implements raft.LogStore.
func (l *raftLog) GetLog(index uint64, e *raft.Log) error {
	err := l.LogStore.GetLog(index, e)
	if err != nil && !errors.Is(err, raft.ErrLogNotFound) {
		l.lethal(err)
	}
	return err
}

// StoreLog implements raft.LogStore.
func (l *raftLog) StoreLog(e *raft.Log) error {
	defer l.watch()()
	err := l.LogStore.StoreLog(e)
	l.failed(err)
	return err
}

// StoreLogs implements raft.LogStore.
func (l *raftLog) StoreLogs(list []*raft.Log) error {
	defer l.watch()()
	err := l.LogStore.StoreLogs(list)
	l.failed(err)
	return err
}

// DeleteRange implements raft.LogStore. Raft cuts off the end of the log where the
// leader's differs. What the state has applied was committed, so a leader that
// differs there has lost what was acknowledged (a vote was given with lost state):
// this node's state is not the fleet's any more, and it must not go on serving it.
func (l *raftLog) DeleteRange(lo, hi uint64) error {
	if err := l.cutsApplied(lo, hi); err != nil {
		l.fail(err)
		return err
	}
	defer l.watch()()
	err := l.LogStore.DeleteRange(lo, hi)
	l.failed(err)
	return err
}

func (l *raftLog) cutsApplied(lo, hi uint64) error {
	if !l.running.Load() || lo > l.applied() {
		return nil
	}
	first, err := l.FirstIndex()
	if err != nil {
		return err
	}
	last, err := l.LastIndex()
	if err != nil || lo <= first || hi < last {
		return err // the beginning, or all of it: behind a snapshot
	}
	return fmt.Errorf("%w: entry %d and later ones, of which %d are applied here", ErrDiverged, lo, l.applied()-lo+1)
}

// Set implements raft.StableStore.
func (l *raftLog) Set(key, val []byte) error {
	defer l.watch()()
	err := l.LogStore.Set(key, val)
	l.failed(err)
	return err
}

// SetUint64 implements raft.StableStore.
func (l *raftLog) SetUint64(key []byte, val uint64) error {
	defer l.watch()() // also where lethal ends this goroutine
	err := l.LogStore.SetUint64(key, val)
	l.lethal(err)
	return err
}

// IsMonotonic implements raft.MonotonicLogStore: it must be forwarded, or Raft leaves a gap after an installed snapshot.
func (l *raftLog) IsMonotonic() bool { return l.LogStore.IsMonotonic() }
