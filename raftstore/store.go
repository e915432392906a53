package raftstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"muster/board"
	"muster/raftstore/logstore"
)

// Store is this machine's copy of the fleet's state, and its part in keeping
// all copies the same.
type Store struct {
	cfg   Config
	log   *slog.Logger
	count tallies

	state *state
	logs  *raftLog
	ahead ahead // in front of logs
	snaps raft.SnapshotStore
	trans *honest
	yield yield // while the disk is late
	raft  atomic.Pointer[raft.Raft]

	unread struct{ state, log bool } // by the start: see verify.go

	feed  feed
	moved broadcast // something was applied
	exec  *executor
	votes *confirmer

	stop      context.CancelCauseFunc
	ctx       context.Context // ends with Close or with the first failure
	tasks     sync.WaitGroup
	closeOnce sync.Once
	closeErr  error
	cutOnce   sync.Once

	failOnce sync.Once
	failed   chan struct{}
	err      atomic.Pointer[error]
}

// Failed is closed when the store cannot go on: a write of log or state
// failed or hangs, or the state is damaged. Nobody is answered as done after
// that. The node must stop; Err says why.
func (s *Store) Failed() <-chan struct{} { return s.failed }

// Err is the first failure, nil while there is none.
func (s *Store) Err() error {
	if p := s.err.Load(); p != nil {
		return *p
	}
	return nil
}

// fail latches the store. It may be called from anywhere, also from Raft's own
// goroutines, and does not wait.
func (s *Store) fail(err error) {
	s.failOnce.Do(func() {
		err = fmt.Errorf("raftstore %s: the node must stop: %w", s.cfg.Dir, err)
		s.err.Store(&err)
		s.log.Error("store failed", "err", err)
		s.closeTransport() // first of all: heartbeats stop, others elect
		s.stop(err)
		if r := s.raft.Load(); r != nil {
			r.Shutdown() // its future is not waited for: a hung write would never answer
		}
		close(s.failed)
	})
}

func (s *Store) closeTransport() {
	s.cutOnce.Do(func() {
		_ = s.trans.Close()
	})
}

// View gives fn one consistent reading of the local state: one Seq, whole. fn
// must be short: it must not wait, send on a channel or write to a network.
// Values are valid inside fn only. Errors: fn's own, ErrDamaged (the store has
// failed then), ErrClosed.
func (s *Store) View(fn func(board.View) error) error {
	err := s.state.read(func(v *view) error { return fn(v) })
	if errors.Is(err, ErrDamaged) {
		s.fail(err)
	}
	return err
}

// Applied is the last log entry that the local state has looked at, and the
// number of transactions in it.
func (s *Store) Applied() (index, seq uint64) {
	m := s.state.now()
	return m.Applied, m.Seq
}

// LastIndex is where this node's log ends.
func (s *Store) LastIndex() uint64 { return s.raft.Load().LastIndex() }

// CommitIndex is an index whose state holds all that this node has told or
// executed so far. On the leader it covers every request that was answered.
// (Raft's own commit index may be of an entry without data, which no state
// ever shows as applied.)
func (s *Store) CommitIndex() uint64 { return s.state.now().Applied }

// Hash is the hash of the local state, order-free; equal Seqs have equal hashes on all nodes.
func (s *Store) Hash() [16]byte { return s.state.now().Sum.bytes() }

// SeqHash is Seq and hash of one moment.
func (s *Store) SeqHash() (seq uint64, hash [16]byte) {
	m := s.state.now()
	return m.Seq, m.Sum.bytes()
}

// Mark returns the hash remembered at a Seq (every 1,000th, the newest 64); 0 asks for the newest.
func (s *Store) Mark(seq uint64) (at uint64, hash [16]byte, ok bool) {
	err := s.state.read(func(v *view) error {
		at, hash, ok = v.mark(seq)
		return nil
	})
	return at, hash, ok && err == nil
}

// Term is Raft's current term: the answer to another voter's AskTerm.
func (s *Store) Term() uint64 {
	if r := s.raft.Load(); r != nil {
		return r.CurrentTerm()
	}
	return 0
}

// Leader is the server id of the leader as far as this node knows, "" for none, and this node's term.
func (s *Store) Leader() (server string, term uint64) {
	r := s.raft.Load()
	if r == nil {
		return "", 0
	}
	_, id := r.LeaderWithID()
	return string(id), r.CurrentTerm()
}

// LeaderTerm is the term this node leads in; ok only while its executor is ready in that term.
func (s *Store) LeaderTerm() (term uint64, ok bool) {
	t := s.exec.term.Load()
	return t, t != 0 && s.exec.leads(s.raft.Load(), t)
}

// LeaderChanged has one slot and is filled when LeaderTerm or Leader may have changed. There is one such channel: one reader.
func (s *Store) LeaderChanged() <-chan struct{} { return s.exec.changed }

// BoardTime is, on the leader, the board time now (ms); elsewhere the time of the newest transaction.
func (s *Store) BoardTime() int64 {
	if t, ok := s.exec.clock.now(); ok && s.exec.term.Load() != 0 {
		return t
	}
	return s.state.now().Time
}

// ClockOff is how far this machine's clock was from the voters' median when it last began a term.
func (s *Store) ClockOff() time.Duration { return time.Duration(s.exec.clock.off.Load()) }

// WaitSeq returns when the local state holds Seq.
func (s *Store) WaitSeq(ctx context.Context, seq uint64) error {
	return s.wait(ctx, func(m meta) bool { return m.Seq >= seq })
}

func (s *Store) wait(ctx context.Context, ok func(meta) bool) error {
	for {
		c := s.moved.wait()
		if ok(s.state.now()) {
			return nil
		}
		select {
		case <-c:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		}
	}
}

// Stats are counts since Open.
type Stats struct {
	Batches, Entries, Txns, Ops              uint64 // applied: bbolt transactions, log entries, transactions, keys
	Skipped, RefusedSeq, RefusedTerm, Resets uint64 // entries below the applied index; refused by a rule; states replaced
	LogBytes                                 int64  // of the live log
	Rounds, Questions                        uint64 // of the executor: batches, and those that wrote nothing

	LogWrites, LogEntries, LogWritten, LogSyncs uint64 // of the log on disk: appends, entries and bytes in them, fsyncs of any kind

	Commit Times // on the leader: from an entry's way into the log until its transactions are in the state here
	Apply  Times // of a batch of committed entries, into the state
}

// Stats returns the counts so far.
func (s *Store) Stats() Stats {
	c := &s.count
	var disk logstore.Stats
	if l, ok := s.logs.LogStore.(interface{ Stats() logstore.Stats }); ok { // a log of a test need not count
		disk = l.Stats()
	}
	return Stats{
		LogWrites: disk.Appends, LogEntries: disk.Entries, LogWritten: disk.Bytes, LogSyncs: disk.Syncs,
		Batches: c.batches.Load(), Entries: c.entries.Load(), Txns: c.txns.Load(), Ops: c.ops.Load(),
		Skipped: c.skipped.Load(), RefusedSeq: c.refusedSeq.Load(), RefusedTerm: c.refusedTerm.Load(), Resets: c.reset.Load(),
		LogBytes: s.logs.BytesFrom(0),
		Rounds:   s.exec.rounds.Load(), Questions: s.exec.questions.Load(),
		Commit: c.commit.read(), Apply: c.apply.read(),
	}
}

// await waits for a future of Raft with the store's end beside it: Raft leaves futures unanswered when it is shut down.
func (s *Store) await(ctx context.Context, f raft.Future) error {
	done := make(chan error, 1)
	go func() { done <- f.Error() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
}
