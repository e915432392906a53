package raftstore

import (
	"context"
	"errors"
	"time"
)

// A start reads what it must: everything after a machine went down with the
// store open, the state alone after its process was killed, neither after a
// stop in order. What it has left unread is read while the node runs; damage
// fails the store, and the start after that reads everything.
const (
	checkAfter = 30 * time.Second     // from the start; and from a check that had to give way
	checkPause = 2 * time.Millisecond // between two entries of the log
)

// verifier is the part of a log that reads itself.
type verifier interface {
	Verify(ctx context.Context, pause time.Duration) error
}

// verifyLater reads state and log, each if the start has not. Errors are
// latched where they are found.
func (s *Store) verifyLater(state, log bool) {
	for wait := s.cfg.CheckAfter; state || log; wait = checkAfter {
		select {
		case <-time.After(wait):
		case <-s.ctx.Done():
			return
		}
		if state {
			state = errors.Is(s.verifyState(), errCancelled)
		}
		if v, ok := s.logs.LogStore.(verifier); ok && log {
			_ = v.Verify(s.ctx, checkPause) // it latches itself
		}
		log = false
	}
}

// verifyState counts the hash of the state as a snapshot does before it is
// written: in one reading that gives way to a writer and to a restore.
func (s *Store) verifyState() error {
	p, err := s.state.snapshot(0, s.fail)
	if err != nil {
		return err
	}
	if !p.begin() {
		return errCancelled
	}
	defer p.end()
	if s.cfg.persist != nil {
		s.cfg.persist()
	}
	err = guarded(p.verify)
	if errors.Is(err, ErrDamaged) {
		s.fail(err)
	}
	return err
}
