package raftstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// restore replaces the state by a snapshot. The state is the old one, whole,
// until the rename, and the new one, whole, after it. A snapshot of the same
// era that is not newer leaves the state as it is (kept is true): Raft then
// sends entries that the state has, and they are skipped.
func (s *state) restore(r io.Reader) (kept bool, err error) {
	h, err := readHeader(r)
	if err != nil {
		return false, err
	}
	newer, err := s.older(h)
	if err != nil {
		return false, err
	}
	if !newer {
		return true, s.setFloor(h.Meta.Applied)
	}
	tmp := filepath.Join(s.dir, restoreFile)
	if err := s.fetch(tmp, r, h); err != nil {
		return false, errors.Join(err, os.RemoveAll(tmp))
	}
	s.cancelSnapshots(true)
	if err := s.fault("restore-rename"); err != nil {
		return false, err
	}
	if err := os.Rename(tmp, s.path()); err != nil {
		return false, err
	}
	if err := s.fault("restore-syncdir"); err != nil {
		return false, &swapError{err}
	}
	if err := syncDir(s.dir); err != nil {
		return false, &swapError{err}
	}
	s.retire()
	if err := s.use(); err != nil {
		return false, &swapError{err}
	}
	return false, nil
}

// swapError is a failure after the point of no return: the file is the new one
// and cannot be used in this process.
type swapError struct{ err error }

func (e *swapError) Error() string { return "put the restored state in use: " + e.err.Error() }
func (e *swapError) Unwrap() error { return e.err }

// older tells whether the state is behind a snapshot: by era, then by index.
func (s *state) older(h header) (bool, error) {
	if s.pub.Load() == nil {
		return true, nil // there is no state yet
	}
	var era, tag uint64
	err := s.read(func(v *view) error { era, tag = eraOf(v); return nil })
	if err != nil {
		return false, err
	}
	return behind(era, tag, s.now().Applied, h)
}

func behind(era, tag, applied uint64, h header) (bool, error) {
	if era == h.Era && tag != h.EraTag {
		return false, fmt.Errorf("%w (era %d): this fleet was recovered twice; the nodes of one side must rejoin the other", ErrOtherEra, era)
	}
	return era < h.Era || era == h.Era && applied < h.Meta.Applied, nil
}

// setFloor notes that the log was reset to an index below the state's, so that
// the next start does not take it for a log that was lost.
func (s *state) setFloor(index uint64) error {
	if index >= s.m.Applied {
		return nil
	}
	g, err := s.acquire()
	if err != nil {
		return err
	}
	defer s.release(g)
	m := s.m
	m.Floor = index
	err = g.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(metaBucket).Put(metaKey, m.encode()) })
	if err == nil {
		s.m = m
		s.publish()
	}
	return err
}

// fetch writes the file of a snapshot beside the state, synced, and checks all of it.
func (s *state) fetch(tmp string, r io.Reader, h header) error {
	if err := s.fault("restore-create"); err != nil {
		return err
	}
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.CopyN(f, r, h.Size); err != nil {
		return fmt.Errorf("%w: snapshot is cut off: %w", ErrDamaged, err)
	}
	if err := s.fault("restore-sync"); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := s.fault("restore-check"); err != nil {
		return err
	}
	got, err := verifyFile(context.Background(), tmp)
	if err != nil {
		return err
	}
	if got.Meta.Sum != h.Meta.Sum || got.Meta.Seq != h.Meta.Seq || got.Meta.Applied != h.Meta.Applied {
		return fmt.Errorf("%w: the snapshot's file is not the one its header names", ErrDamaged)
	}
	return nil
}

// verifyFile reads a whole state file, changing nothing: every page that is in
// use, every checksum, and the hash counted anew against the one stored.
func verifyFile(ctx context.Context, path string) (header, error) {
	return readState(path, func(v *view) error {
		got, err := sumAll(ctx, v.tx)
		if err == nil && v.err == nil && got != v.m.Sum {
			err = fmt.Errorf("%w: its hash at Seq %d is not the one it was counted to", ErrDamaged, v.m.Seq)
		}
		return err
	})
}

// peekFile reads what a state file says of itself, and that it is not cut off.
func peekFile(_ context.Context, path string) (header, error) {
	return readState(path, func(*view) error { return nil })
}

// readState opens a state file for reading and lets more read the rest of it.
func readState(path string, more func(*view) error) (h header, err error) {
	if _, err := wholeFile(path); err != nil {
		return h, err
	}
	var db *bbolt.DB
	err = guarded(func() error {
		opt := boltOptions(0)
		opt.ReadOnly = true // else bbolt walks the pages in a goroutine of its own, where a fault ends the process
		if db, err = bbolt.Open(path, 0o600, opt); err != nil {
			return boltError(path, err)
		}
		return db.View(func(tx *bbolt.Tx) error {
			v, err := newView(tx)
			if err != nil {
				return err
			}
			h.Meta, h.Size = v.m, tx.Size()
			h.Era, h.EraTag = eraOf(v)
			if _, _, _, err := readConf(tx); err != nil {
				return err
			}
			return errors.Join(more(v), v.err)
		})
	})
	if db != nil {
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		return h, fmt.Errorf("%s: %w", path, err)
	}
	return h, nil
}
