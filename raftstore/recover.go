package raftstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"
)

// openState brings the state into use: the file that is there, if it can be
// trusted and is not behind the newest snapshot; else one made from snapshot
// and log. What is not trusted is set aside, never opened for writing.
// It returns the snapshots, newest first.
func (s *Store) openState(m marker, unmarked error) ([]*raft.SnapshotMeta, error) {
	if err := os.RemoveAll(filepath.Join(s.cfg.Dir, restoreFile)); err != nil {
		return nil, err
	}
	list, err := s.snaps.List()
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	there := fileExists(s.state.path())
	s.unread.state = there && m.closed(unmarked, s.cfg.Server)
	why, err := s.distrust(m, unmarked, list)
	if err != nil {
		return nil, err
	}
	if why != "" && there {
		s.log.Warn("state is set aside and rebuilt from snapshot and log", "reason", why)
		if err := s.cfg.Fault("state-aside"); err != nil {
			return nil, err
		}
		if err := SetAside(s.cfg.Dir); err != nil {
			return nil, err
		}
		there = false
	}
	if err := (marker{Server: s.cfg.Server, Boot: s.cfg.BootID, Open: true}).write(s.cfg.Dir, s.cfg.Fault); err != nil {
		return nil, fmt.Errorf("write %s: %w", markerFile, err)
	}
	if there {
		err = s.state.use()
	} else {
		list, err = s.rebuild(list)
	}
	if err != nil {
		return nil, err
	}
	return list, s.whole(list)
}

// distrust says why the state file must not be used; "" if it may, or if there is none.
// After a stop in order its values are not read (unread.state): see verifyLater.
func (s *Store) distrust(m marker, unmarked error, list []*raft.SnapshotMeta) (string, error) {
	if !fileExists(s.state.path()) {
		return "", nil
	}
	if why := m.trust(unmarked, s.cfg.Server, s.cfg.BootID); why != "" {
		return why, nil
	}
	read := verifyFile
	if s.unread.state {
		read = peekFile
		if free, err := freeSum(s.state.path()); err == nil && free != m.Free {
			return "the list of its free pages is not what it was when it was closed", nil
		} else if errors.Is(err, ErrDamaged) {
			return err.Error(), nil
		}
	}
	h, err := read(context.Background(), s.state.path())
	if errors.Is(err, ErrDamaged) {
		return err.Error(), nil
	}
	if err != nil || len(list) == 0 {
		return "", err
	}
	newest, err := s.peek(list[0])
	if err != nil { // only Raft's index of it is known, which may be a few entries without data higher than the state's
		newest = header{Era: h.Era, EraTag: h.EraTag, Meta: meta{Applied: list[0].Index}}
	}
	old, err := behind(h.Era, h.EraTag, h.Meta.Applied, newest)
	if old {
		return fmt.Sprintf("it is at entry %d of era %d, behind the newest snapshot (%d, era %d)",
			h.Meta.Applied, h.Era, newest.Meta.Applied, newest.Era), nil
	}
	return "", err
}

// peek reads the header of a snapshot without checking the rest of it.
func (s *Store) peek(m *raft.SnapshotMeta) (header, error) {
	if p, ok := s.snaps.(peeker); ok {
		r, err := p.peek(m.ID)
		if err != nil {
			return header{}, err
		}
		defer r.Close()
		return readHeader(r)
	}
	_, r, err := s.snaps.Open(m.ID)
	if err != nil {
		return header{}, err
	}
	defer r.Close()
	return readHeader(r)
}

// rebuild makes the state from the newest snapshot that holds, or empty if
// there was none. A newer one that does not hold is set aside, but only if the
// log reaches back to the older: Raft starts from the newest it finds.
func (s *Store) rebuild(list []*raft.SnapshotMeta) ([]*raft.SnapshotMeta, error) {
	for len(list) > 0 {
		err := s.restoreFrom(list[0])
		if err == nil {
			return list, nil
		}
		if !errors.Is(err, ErrDamaged) {
			return nil, err
		}
		s.log.Error("newest snapshot does not hold", "snapshot", list[0].ID, "err", err)
		list = list[1:]
		from := uint64(0)
		if len(list) > 0 {
			from = list[0].Index
		}
		if err := s.reaches(from); err != nil {
			return nil, err
		}
		if err := s.dropSnapshot(); err != nil {
			return nil, err
		}
	}
	if err := s.reaches(0); err != nil {
		return nil, err
	}
	return nil, s.state.use()
}

func (s *Store) restoreFrom(m *raft.SnapshotMeta) error {
	_, r, err := s.snaps.Open(m.ID)
	if err != nil {
		return fmt.Errorf("%w: snapshot %s: %w", ErrDamaged, m.ID, err)
	}
	defer r.Close()
	_, err = s.state.restore(r)
	return err
}

// reaches tells whether the log holds every entry after an index.
func (s *Store) reaches(index uint64) error {
	first, err := s.logs.FirstIndex()
	if err != nil {
		return err
	}
	if first > index+1 {
		return fmt.Errorf("%w: the log begins at %d, after entry %d: move the folder aside and let the node rejoin under a new store id",
			ErrNoRebuild, first, index)
	}
	return nil
}

// whole checks that state, snapshot and log fit together, before Raft runs:
// Raft delivers what comes after the newest snapshot.
func (s *Store) whole(list []*raft.SnapshotMeta) error {
	snap := uint64(0)
	if len(list) > 0 {
		snap = list[0].Index
	}
	last, err := s.logs.LastIndex()
	if err != nil {
		return err
	}
	if last > snap {
		if err := s.reaches(snap); err != nil {
			return err
		}
	}
	m := s.state.now()
	need := m.Applied
	if m.Floor > 0 {
		need = m.Floor
	}
	if max(last, snap) < need {
		return fmt.Errorf("%w: log or vote were lost or rolled back (log at %d, state at %d): move the folder aside and let the node rejoin under a new store id",
			ErrLogBehind, max(last, snap), need)
	}
	return nil
}

func fileExists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
