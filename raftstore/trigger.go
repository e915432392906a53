package raftstore

import (
	"context"
	"errors"
	"os"
	"slices"
	"sort"
	"time"

	"github.com/hashicorp/raft"
)

// trigger makes snapshots, when there are enough entries or bytes behind the
// last one.
func (s *Store) trigger() {
	tick := time.NewTicker(s.cfg.Snapshots.Every)
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
			if s.due() {
				s.snapshotNow()
			}
		}
	}
}

// Snapshot makes a snapshot now and returns when it is on the disk. Nothing new to make one of is no error.
func (s *Store) Snapshot(ctx context.Context) error {
	s.setTrailing()
	err := s.await(ctx, s.raft.Load().Snapshot())
	if errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return nil
	}
	return err
}

func (s *Store) snapshotNow() {
	if !s.room() {
		s.log.Info("no snapshot: it would fill the disk")
		return
	}
	if err := s.Snapshot(s.ctx); err != nil && s.ctx.Err() == nil {
		s.log.Info("no snapshot this time", "err", err) // a configuration change is open, or a restore or the writer came between
	}
}

// room tells whether the disk can hold one more snapshot, which is as large as the
// state: one that fills the disk would stop the log, and with it the node.
func (s *Store) room() bool {
	if s.cfg.Room == nil {
		return true
	}
	f, err := os.Stat(s.state.path())
	return err != nil || s.cfg.Room(f.Size())
}

// due tells whether a snapshot is to be made, and whether it is this node's
// turn: voters take turns by the clock, so that no two write at once; the
// leader waits until there is a quarter more, so that it comes last. Whoever
// is far behind does not wait.
func (s *Store) due() bool {
	snap := s.lastSnapshot()
	last, err := s.logs.LastIndex()
	if err != nil || last <= snap {
		return false
	}
	n, b := float64(last-snap)/float64(s.cfg.Snapshots.Entries), float64(s.logs.BytesFrom(snap+1))/float64(s.cfg.Snapshots.Bytes)
	full := max(n, b)
	if s.cfg.Snapshots.Bytes <= 0 {
		full = n
	}
	if s.exec.term.Load() != 0 {
		full /= 1.25
	}
	return full >= 4 || full >= 1 && s.myTurn(s.cfg.Wall())
}

// turn is how long one voter has for itself.
const turn = 30 * time.Second

func (s *Store) myTurn(now time.Time) bool {
	var voters []string
	for _, v := range s.Servers() {
		if v.Voter {
			voters = append(voters, v.ID)
		}
	}
	slices.Sort(voters)
	i := slices.Index(voters, s.cfg.Server)
	return i < 0 || len(voters) < 2 || int(now.Unix()/int64(turn.Seconds()))%len(voters) == i
}

func (s *Store) lastSnapshot() uint64 {
	list, err := s.snaps.List()
	if err != nil || len(list) == 0 {
		return 0
	}
	return list[0].Index
}

// setTrailing keeps as much of the log behind a snapshot as Keep bytes hold,
// and never fewer than Trailing entries: a follower that has compacted what
// its leader does not know it has is otherwise sent back to an older snapshot,
// for ever.
func (s *Store) setTrailing() {
	first, err1 := s.logs.FirstIndex()
	last, err2 := s.logs.LastIndex()
	if err1 != nil || err2 != nil || first == 0 {
		return
	}
	n := sort.Search(int(last-first)+1, func(i int) bool { return s.logs.BytesFrom(first+uint64(i)) <= s.cfg.Snapshots.Keep })
	keep := max(s.cfg.Snapshots.Trailing, last-first+1-uint64(n))
	r := s.raft.Load()
	rc := r.ReloadableConfig()
	rc.TrailingLogs = keep
	if err := r.ReloadConfig(rc); err != nil {
		s.log.Warn("trailing entries cannot be set", "err", err)
	}
}
