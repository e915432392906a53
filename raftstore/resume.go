package raftstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync/atomic"

	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"
)

// Raft begins after its newest snapshot: it reads every entry behind it at the
// start, for changes of the configuration, and hands all of them to the FSM
// once more. The state knows better: it holds an applied index, and beside it
// Raft's configuration as of there. So at the start Raft is shown one snapshot
// that ends where the state does; it is never opened (NoSnapshotRestoreOnStart),
// and afterwards only those on the disk are shown.

// confKey is the row of the meta bucket with Raft's newest applied configuration.
var confKey = []byte("conf")

// putConf keeps the configuration of a log entry, in the transaction of its index.
func putConf(tx *bbolt.Tx, l *raft.Log) error {
	b := binary.BigEndian.AppendUint64(nil, l.Index)
	b = append(b, l.Data...)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	return tx.Bucket(metaBucket).Put(confKey, b)
}

// readConf reads it. ok is false if the state has none: nothing was applied yet.
func readConf(tx *bbolt.Tx) (c raft.Configuration, index uint64, ok bool, err error) {
	b := tx.Bucket(metaBucket).Get(confKey)
	if b == nil {
		return c, 0, false, nil
	}
	n := len(b) - 4
	if n < 8 || crc32.Checksum(b[:n], castagnoli) != binary.LittleEndian.Uint32(b[n:]) {
		return c, 0, false, fmt.Errorf("%w: checksum of the configuration does not hold", ErrDamaged)
	}
	defer func() { // Raft's decoder panics
		if recover() != nil {
			ok, err = false, fmt.Errorf("%w: the configuration cannot be read", ErrDamaged)
		}
	}()
	return raft.DecodeConfiguration(b[8:n]), binary.BigEndian.Uint64(b), true, nil
}

// resumed is what Raft is shown at the start: a snapshot that ends where the
// state does, nil if the state is not ahead of the newest one. The entry there
// must be the one that the state has applied; another one's term means that the
// log was replaced or rolled back (ErrLogBehind).
func (s *Store) resumed(list []*raft.SnapshotMeta) (*raft.SnapshotMeta, error) {
	m := s.state.now()
	if m.Floor > 0 || len(list) > 0 && list[0].Index >= m.Applied {
		return nil, nil
	}
	r := &raft.SnapshotMeta{Version: raft.SnapshotVersionMax, ID: "state", Index: m.Applied, Term: m.Term}
	found := false
	err := s.state.read(func(v *view) (err error) {
		r.Configuration, r.ConfigurationIndex, found, err = readConf(v.tx)
		return err
	})
	if err != nil || !found {
		return nil, err
	}
	var e raft.Log
	if err := s.logs.GetLog(m.Applied, &e); err != nil {
		return nil, fmt.Errorf("entry %d, the state's last: %w", m.Applied, err)
	}
	if e.Term != m.Term {
		return nil, fmt.Errorf("%w: log or vote were lost or rolled back (entry %d is of term %d, the state's of %d): move the folder aside and let the node rejoin under a new store id",
			ErrLogBehind, m.Applied, e.Term, m.Term)
	}
	return r, nil
}

// startSnaps shows Raft one snapshot until it has started, then those that are there.
type startSnaps struct {
	raft.SnapshotStore
	only atomic.Pointer[raft.SnapshotMeta]
}

// List implements raft.SnapshotStore.
func (s *startSnaps) List() ([]*raft.SnapshotMeta, error) {
	if m := s.only.Load(); m != nil {
		return []*raft.SnapshotMeta{m}, nil
	}
	return s.SnapshotStore.List()
}

// newRaft makes a Raft. It panics over an entry that it cannot read; the log has
// failed the store then, and that is the error.
func (s *Store) newRaft(log raft.LogStore, snaps raft.SnapshotStore) (r *raft.Raft, err error) {
	defer func() {
		if s.Err() == nil {
			return // a panic of another kind is nobody's to hide
		}
		_ = recover()
		err = errors.Join(s.Err(), err)
	}()
	return raft.NewRaft(s.cfg.raftConfig(), fsm{s}, log, s.logs, snaps, s.trans)
}

// startRaft starts Raft where the state is.
func (s *Store) startRaft(list []*raft.SnapshotMeta) error {
	snaps := &startSnaps{SnapshotStore: s.snaps}
	from, err := s.resumed(list)
	if err != nil {
		return err
	}
	snaps.only.Store(from)
	cache, err := raft.NewLogCache(logCache, s.logs)
	if err != nil {
		return err
	}
	s.ahead.open(cache, s.logs)
	r, err := s.newRaft(&s.ahead, snaps)
	snaps.only.Store(nil)
	if err != nil {
		return fmt.Errorf("start raft: %w", err)
	}
	s.logs.running.Store(true)
	s.raft.Store(r)
	return s.Err()
}
