package raftstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"

	"muster/raftstore/logstore"
)

// Open opens the store in cfg.Dir, or makes it: the log first (it also says
// whether another process is there), then the state, which is checked whole
// and rebuilt from snapshot and log where it cannot be trusted, then Raft.
// Errors: ErrLocked and logstore's, ErrNoRebuild, ErrLogBehind, ErrOtherEra, ErrCopied.
func Open(cfg Config) (*Store, error) {
	cfg.fill()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg, log: cfg.Logger.With("component", "raftstore"), failed: make(chan struct{})}
	s.ctx, s.stop = context.WithCancelCause(context.Background())
	s.feed.subs = map[*Sub]struct{}{}
	s.state = newState(s.ctx, cfg.Dir, cfg.MmapSize, cfg.Fault)
	s.ahead.fail, s.ahead.leads = s.fail, func() bool { return s.raft.Load().State() == raft.Leader }
	if s.cfg.SlowDisk > 0 {
		s.yield.after = lateFactor * s.cfg.Timers.Election
	}
	s.trans = &honest{transport: newTransport(s.ctx, &s.cfg), commit: s.ahead.commit, hold: func() error { return s.yield.wait(s.ctx) }}
	s.votes = newConfirmer(s)
	s.exec = newExecutor(s)
	if err := s.open(); err != nil {
		s.stop(err)
		s.closeTransport()
		if r := s.raft.Load(); r != nil {
			s.waitAll(func() { _ = r.Shutdown().Error() })
		}
		return nil, errors.Join(err, s.closeFiles(false))
	}
	s.tasks.Go(s.exec.run)
	s.tasks.Go(s.watchLeader)
	s.tasks.Go(s.trigger)
	s.tasks.Go(s.watchLog)
	s.tasks.Go(func() { s.verifyLater(s.unread.state, s.unread.log) })
	return s, nil
}

// logCache is how many of the newest entries are kept in memory for followers; entries are large.
const logCache = 64

func (s *Store) open() error {
	if err := os.MkdirAll(s.cfg.Dir, 0o700); err != nil {
		return fmt.Errorf("raftstore: %w", err)
	}
	m, unmarked := readMarker(s.cfg.Dir)
	s.unread.log = m.up(unmarked, s.cfg.Server, s.cfg.BootID)
	logs, err := s.openLog(s.unread.log)
	if err != nil {
		return err
	}
	s.logs = &raftLog{LogStore: logs, fail: s.fail, watch: s.yield.watch, applied: func() uint64 { return s.state.now().Applied }}
	if s.snaps = s.cfg.snaps; s.snaps == nil {
		own, err := openSnapshots(s.cfg.Dir, s.cfg.Logger)
		if err != nil {
			return err
		}
		own.fault = s.cfg.Fault
		s.snaps = own
	}
	list, err := s.openState(m, unmarked)
	if err == nil {
		err = s.mayReturn(list)
	}
	if err == nil {
		err = s.startRaft(list)
	}
	if err != nil {
		return fmt.Errorf("raftstore %s: %w", s.cfg.Dir, err)
	}
	s.accept()
	return nil
}

// Bootstrap makes this server the only voter of a new fleet. It is refused where there is any state.
func (s *Store) Bootstrap() error {
	r := s.raft.Load()
	err := s.await(context.Background(), r.BootstrapCluster(raft.Configuration{Servers: []raft.Server{{
		Suffrage: raft.Voter, ID: raft.ServerID(s.cfg.Server), Address: raft.ServerAddress(nodeOf(s.cfg.Server)),
	}}}))
	if err != nil {
		return fmt.Errorf("make a new fleet: %w", err)
	}
	return nil
}

// watchLeader tells of a leader that this node has lost or found elsewhere; what
// becomes of its own leadership the executor tells. The observer never holds up
// Raft: it has one slot, and what does not fit is in it already.
func (s *Store) watchLeader() {
	seen := make(chan raft.Observation, 1)
	o := raft.NewObserver(seen, false, func(o *raft.Observation) bool {
		_, is := o.Data.(raft.LeaderObservation)
		return is
	})
	r := s.raft.Load()
	r.RegisterObserver(o)
	defer r.DeregisterObserver(o)
	signal(s.exec.changed) // a leader found before the observer was there
	for {
		select {
		case <-seen:
			signal(s.exec.changed)
		case <-s.ctx.Done():
			return
		}
	}
}

// watchLog fails the store when the log latches by itself.
func (s *Store) watchLog() {
	select {
	case <-s.logs.Failed():
		s.fail(s.logs.Err())
	case <-s.ctx.Done():
	}
}

// closeWait is how long Close waits for goroutines that a hung disk may hold.
const closeWait = 5 * time.Second

// Close stops the store: the executor first (what waits is answered), then
// Raft, then the state, synced and marked as closed, then the log. A second
// call does nothing. After a failure nothing is marked as closed.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		s.stop(ErrClosed)
		r := s.raft.Load()
		down := r.Shutdown()
		clean := s.waitAll(func() { s.tasks.Wait(); _ = down.Error(); _ = s.ahead.settle() })
		s.closeTransport()
		if !clean {
			s.closeErr = errors.Join(s.Err(), ErrHung) // files stay open: only the end of the process frees them
			return
		}
		s.closeErr = s.closeFiles(s.Err() == nil)
	})
	return s.closeErr
}

// abandon is what a kill -9 leaves behind, for tests: files are closed as they
// are, nothing is synced, nothing is marked.
func (s *Store) abandon() {
	s.closeOnce.Do(func() {
		s.closeTransport()
		s.stop(ErrClosed)
		down := s.raft.Load().Shutdown()
		if s.waitAll(func() { s.tasks.Wait(); _ = down.Error(); _ = s.ahead.settle() }) {
			s.closeErr = s.closeFiles(false)
		}
	})
}

func (s *Store) waitAll(fn func()) bool {
	done := make(chan struct{})
	go func() { fn(); close(done) }()
	select {
	case <-done:
		return true
	case <-time.After(closeWait):
		return false
	}
}

// closeFiles closes what is open. clean syncs the state before the marker says
// that it is closed; the other order would trust a file that is not on the disk.
func (s *Store) closeFiles(clean bool) error {
	err := s.state.close(clean)
	if clean && err == nil {
		var free uint32
		if free, err = freeSum(s.state.path()); err == nil {
			err = marker{Server: s.cfg.Server, Boot: s.cfg.BootID, Free: free}.write(s.cfg.Dir, s.cfg.Fault)
		}
	}
	if e := s.Err(); errors.Is(e, ErrDamaged) || errors.Is(e, logstore.ErrDamaged) {
		err = errors.Join(err, marker{Server: s.cfg.Server, Boot: s.cfg.BootID, Open: true, Suspect: true}.write(s.cfg.Dir, s.cfg.Fault))
	}
	if s.logs != nil {
		err = errors.Join(err, s.logs.Close())
	}
	return err
}

// SetAside makes the next Open rebuild the state of a closed store from
// snapshot and log: for a node whose hash is not that of the others (invariant
// 7). The old file is kept beside it.
func SetAside(dir string) error {
	err := os.Rename(filepath.Join(dir, stateFile), filepath.Join(dir, asideFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return errors.Join(err, syncDir(dir))
}
