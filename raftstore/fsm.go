package raftstore

import (
	"errors"
	"io"
	"runtime"
	"time"

	"github.com/hashicorp/raft"

	"muster/board"
	"muster/raftstore/logstore"
)

// fsm is what Raft drives. It decides nothing.
type fsm struct{ s *Store }

var _ raft.BatchingFSM = fsm{}

// Apply implements raft.FSM.
func (f fsm) Apply(l *raft.Log) any { return f.ApplyBatch([]*raft.Log{l})[0] }

// stall is how long a write of the state waits for a snapshot that reads it
// (the file outgrew its memory map) before the snapshot is given up.
const stall = 500 * time.Millisecond

// ApplyBatch implements raft.BatchingFSM. When the state cannot be written the
// store fails and this goroutine of Raft ends: nothing later is applied, and
// whoever waits has the store's end beside it.
func (f fsm) ApplyBatch(logs []*raft.Log) []any {
	s := f.s
	if err := s.ahead.durable(logs[len(logs)-1].Index); err != nil {
		runtime.Goexit() // the store has failed
	}
	var keys []Key
	var dirty func(board.Table, string)
	told := s.feed.watched()
	if told {
		dirty = func(t board.Table, key string) { keys = append(keys, Key{t, key}) }
	}
	unstall := time.AfterFunc(stall, func() { s.state.cancelSnapshots(false) })
	unwatch := s.watchState()
	begun := time.Now()
	out, err := s.state.apply(logs, dirty, &s.count)
	s.count.apply.add(time.Since(begun))
	unstall.Stop()
	unwatch()
	if err != nil {
		s.fail(err)
	}
	if s.Err() != nil { // also after a hang: nobody may be answered any more
		runtime.Goexit()
	}
	s.feed.changed(keys, told)
	s.moved.broadcast()
	return out
}

// Snapshot implements raft.FSM: it opens a reading and nothing more.
func (f fsm) Snapshot() (raft.FSMSnapshot, error) {
	p, err := f.s.state.snapshot(f.s.cfg.Snapshots.Rate, f.s.fail)
	if err != nil {
		return nil, err
	}
	p.begun = f.s.cfg.persist
	return p, nil
}

// Restore implements raft.FSM.
func (f fsm) Restore(r io.ReadCloser) error {
	s := f.s
	kept, err := s.state.restore(r)
	var swap *swapError
	if errors.As(err, &swap) {
		s.fail(err)
	}
	if err != nil {
		return err
	}
	if kept {
		s.log.Info("snapshot is not newer than the state, which stays", "applied", s.state.now().Applied)
		return nil
	}
	s.count.reset.Add(1)
	s.log.Info("state restored from a snapshot", "applied", s.state.now().Applied, "seq", s.state.now().Seq)
	s.feed.all()
	s.moved.broadcast()
	return nil
}

// watchState starts the watchdog on one write of the state.
func (s *Store) watchState() (stop func()) {
	if s.cfg.SlowDisk < 0 {
		return func() {}
	}
	unyield := s.yield.watch()
	unwatch := logstore.Watchdog(s.cfg.SlowDisk, func() {
		s.closeTransport()
		s.fail(ErrHung)
	})
	return func() { unwatch(); unyield() }
}
