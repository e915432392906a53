package raftstore

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/raft"
)

const (
	snapshotDir   = "snapshots"
	snapshotAside = "snapshot.aside"
	snapshotKeep  = 2
)

// peeker opens a snapshot without reading all of it first.
type peeker interface {
	peek(id string) (io.ReadCloser, error)
}

// snapStore is Raft's store of snapshot files, with two things added: what a
// crash left half written is removed at the start, and a finished snapshot's
// folder is synced as well (Raft syncs the files in it and the folder above).
type snapStore struct {
	*raft.FileSnapshotStore
	dir   string
	fault func(op string) error // tests: breaks one named operation
}

// entries are the names in a folder, in order; one that is not there has none. A folder's
// name is anything, so it is never part of a pattern.
func entries(dir string) (names []string, err error) {
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names, nil
}

// snapshotFiles are the states in a folder of snapshots. What was never finished (.tmp) is none: the next start removes it.
func snapshotFiles(dir string) (paths []string, err error) {
	names, err := entries(dir)
	for _, name := range names {
		path := filepath.Join(dir, name, "state.bin")
		if _, err := os.Stat(path); err == nil && filepath.Ext(name) != ".tmp" {
			paths = append(paths, path)
		}
	}
	return paths, err
}

func openSnapshots(dir string, log *slog.Logger) (*snapStore, error) {
	path := filepath.Join(dir, snapshotDir)
	half, err := entries(path)
	if err != nil {
		return nil, err
	}
	for _, name := range half {
		if filepath.Ext(name) != ".tmp" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(path, name)); err != nil {
			return nil, fmt.Errorf("remove unfinished snapshot: %w", err)
		}
	}
	fs, err := raft.NewFileSnapshotStoreWithLogger(dir, snapshotKeep, adaptLogger(log))
	if err != nil {
		return nil, fmt.Errorf("open snapshots: %w", err)
	}
	return &snapStore{FileSnapshotStore: fs, dir: path}, nil
}

// Create implements raft.SnapshotStore.
func (s *snapStore) Create(v raft.SnapshotVersion, index, term uint64, c raft.Configuration, ci uint64, t raft.Transport) (raft.SnapshotSink, error) {
	sink, err := s.FileSnapshotStore.Create(v, index, term, c, ci, t)
	if err != nil {
		return nil, err
	}
	return &snapSink{SnapshotSink: sink, dir: s.dir, fault: s.fault}, nil
}

func (s *snapStore) peek(id string) (io.ReadCloser, error) {
	return os.Open(filepath.Join(s.dir, filepath.Base(id), "state.bin"))
}

type snapSink struct {
	raft.SnapshotSink
	dir   string
	done  bool
	fault func(op string) error
}

// Write implements raft.SnapshotSink.
func (k *snapSink) Write(b []byte) (int, error) {
	if k.fault != nil {
		if err := k.fault("snapshot-write"); err != nil {
			return 0, err
		}
	}
	return k.SnapshotSink.Write(b)
}

// Close implements raft.SnapshotSink. It may be called twice.
func (k *snapSink) Close() error {
	if k.done {
		return nil
	}
	if k.fault != nil {
		if err := k.fault("snapshot-sync"); err != nil {
			return errors.Join(err, k.Cancel())
		}
	}
	k.done = true
	if err := k.SnapshotSink.Close(); err != nil {
		return err
	}
	return errors.Join(syncDir(filepath.Join(k.dir, k.ID())), syncDir(k.dir))
}

// Cancel implements raft.SnapshotSink.
func (k *snapSink) Cancel() error {
	if k.done {
		return nil
	}
	k.done = true
	return k.SnapshotSink.Cancel()
}

// dropSnapshot sets the newest snapshot aside.
func (s *Store) dropSnapshot() error {
	st, ok := s.snaps.(*snapStore)
	if !ok {
		return fmt.Errorf("%w: its snapshot store drops nothing", ErrNoRebuild)
	}
	list, err := st.List()
	if err != nil || len(list) == 0 {
		return err
	}
	aside := filepath.Join(s.cfg.Dir, snapshotAside)
	if err := os.RemoveAll(aside); err != nil {
		return err
	}
	id := list[0].ID
	if strings.ContainsRune(id, filepath.Separator) {
		return fmt.Errorf("snapshot id %q", id)
	}
	if err := os.Rename(filepath.Join(st.dir, id), aside); err != nil {
		return err
	}
	return syncDir(st.dir)
}
