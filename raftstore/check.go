package raftstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"

	"muster/board"
	"muster/raftstore/logstore"
)

// ErrNoStore is Check's word for a folder that holds nothing of a store.
var ErrNoStore = errors.New("there is no store here")

// Report is what Check found.
type Report struct {
	State     *StateReport     // nil: there is none
	Snapshots []SnapshotReport // newest first
	Log       *logstore.Report // nil: there is none
	Server    string           // whose store it is, by the marker
	Open      bool             // the node was not stopped in order; the next start of another boot rebuilds the state
	Backup    *BackupReport    // when the file is one, and nothing else is told
	Faults    []string         // one line each; none: all is well
	Aside     []string         // files set aside by an earlier start
}

// BackupReport is what is in a backup's file.
type BackupReport struct {
	About
	Records uint64
}

// StateReport is what is in a state file or a snapshot.
type StateReport struct {
	Path               string
	Seq, Applied, Term uint64
	Time               int64 // board time, ms
	Era                uint64
	Hash               [16]byte
	Bytes              int64
}

// SnapshotReport is a snapshot in a store's folder.
type SnapshotReport struct {
	ID    string
	Index uint64 // Raft's: a few entries without data may lie between Applied and it
	StateReport
}

// Check reads a store that no node runs on, or a single state or snapshot
// file, and changes nothing: every checksum, and every hash counted anew. The
// error is for what could not be read at all; faults are in the report.
// ErrLocked and logstore.ErrLocked: a node runs on it.
func Check(path string) (*Report, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	r := &Report{}
	if !info.IsDir() {
		return r, r.file(path)
	}
	m, err := readMarker(path)
	switch {
	case err == nil:
		r.Server, r.Open = m.Server, m.Open
	case !errors.Is(err, os.ErrNotExist):
		r.fault(err)
	}
	if err := r.checkLog(filepath.Join(path, logDir)); err != nil {
		return r, err
	}
	if err := r.checkState(filepath.Join(path, stateFile)); err != nil {
		return r, err
	}
	if err := r.checkSnapshots(filepath.Join(path, snapshotDir)); err != nil {
		return r, err
	}
	for _, name := range []string{asideFile, snapshotAside} {
		if fileExists(filepath.Join(path, name)) {
			r.Aside = append(r.Aside, name)
		}
	}
	r.fits()
	if r.State == nil && r.Log == nil && len(r.Snapshots) == 0 && len(r.Faults) == 0 {
		return r, fmt.Errorf("%s: %w", path, ErrNoStore)
	}
	return r, nil
}

func (r *Report) fault(err error) { r.Faults = append(r.Faults, err.Error()) }

func (r *Report) checkLog(dir string) error {
	if !fileExists(dir) {
		return nil
	}
	l, err := logstore.Check(dir)
	switch {
	case err == nil:
		r.Log = &l
	case errors.Is(err, logstore.ErrLocked):
		return err
	case !errors.Is(err, logstore.ErrMissing):
		r.fault(err)
	}
	return nil
}

func (r *Report) checkState(path string) error {
	if !fileExists(path) {
		return nil
	}
	h, err := verifyFile(context.Background(), path)
	if errors.Is(err, ErrLocked) {
		return err
	}
	if err != nil {
		r.fault(err)
		return nil
	}
	st := stateReport(path, h)
	r.State = &st
	return nil
}

func stateReport(path string, h header) StateReport {
	return StateReport{
		Path: path, Seq: h.Meta.Seq, Applied: h.Meta.Applied, Term: h.Meta.Term, Time: h.Meta.Time,
		Era: h.Era, Hash: h.Meta.Sum.bytes(), Bytes: h.Size,
	}
}

func (r *Report) checkSnapshots(dir string) error {
	list, err := snapshotFiles(dir)
	if err != nil {
		return err
	}
	for _, path := range list {
		id := filepath.Base(filepath.Dir(path))
		h, err := verifySnapshot(path)
		if err != nil {
			r.fault(fmt.Errorf("snapshot %s: %w", id, err))
			continue
		}
		var meta struct{ Index uint64 }
		if b, err := os.ReadFile(filepath.Join(filepath.Dir(path), "meta.json")); err != nil || json.Unmarshal(b, &meta) != nil {
			r.fault(fmt.Errorf("snapshot %s: its meta file cannot be read", id))
		}
		r.Snapshots = append(r.Snapshots, SnapshotReport{ID: id, Index: meta.Index, StateReport: stateReport(path, h)})
	}
	sort.Slice(r.Snapshots, func(i, j int) bool { return r.Snapshots[i].Applied > r.Snapshots[j].Applied })
	return nil
}

// verifySnapshot checks a snapshot file by way of a copy: its state lies behind a header.
func verifySnapshot(path string) (header, error) {
	f, err := os.Open(path)
	if err != nil {
		return header{}, err
	}
	defer f.Close()
	h, err := readHeader(f)
	if err != nil {
		return h, err
	}
	tmp, err := os.CreateTemp("", "muster-check-*.db")
	if err != nil {
		return h, err
	}
	defer os.Remove(tmp.Name())
	_, err = io.CopyN(tmp, f, h.Size)
	if err := errors.Join(err, tmp.Close()); err != nil {
		return h, fmt.Errorf("%w: cut off: %w", ErrDamaged, err)
	}
	got, err := verifyFile(context.Background(), tmp.Name())
	if err == nil && (got.Meta != h.Meta || got.Era != h.Era || got.EraTag != h.EraTag) {
		err = fmt.Errorf("%w: its file is not the one its header names", ErrDamaged)
	}
	return h, err
}

// file checks a single state or snapshot file.
func (r *Report) file(path string) error {
	if r.backup(path) {
		return nil
	}
	h, err := verifySnapshot(path)
	if errors.Is(err, ErrDamaged) {
		if _, no := wholeFile(path); no == nil { // a state, then, and not a snapshot
			h, err = verifyFile(context.Background(), path)
		}
	}
	if errors.Is(err, ErrLocked) {
		return err
	}
	if err != nil {
		r.fault(err)
		return nil
	}
	st := stateReport(path, h)
	r.State = &st
	return nil
}

// backup reads a file that says that it is a backup, all of it; false: it is none.
func (r *Report) backup(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false // and the next to look tells why
	}
	defer f.Close()
	magic := make([]byte, len(archiveMagic)-2) // of whatever version
	if _, err := io.ReadFull(f, magic); err != nil || string(magic) != archiveMagic[:len(magic)] {
		return false
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		r.fault(err)
		return true
	}
	b := BackupReport{}
	if err := ReadBackup(f, func(a About) error { b.About = a; return nil }, func(board.Table, string, []byte) error { b.Records++; return nil }); err != nil {
		r.fault(err)
	}
	r.Backup = &b
	return true
}

// fits looks for gaps between state, snapshot and log.
func (r *Report) fits() {
	var snap SnapshotReport
	if len(r.Snapshots) > 0 {
		snap = r.Snapshots[0]
	}
	if r.State != nil && r.State.Applied < snap.Applied {
		r.fault(fmt.Errorf("the state (at entry %d) is behind the newest snapshot (at %d); the next start restores it", r.State.Applied, snap.Applied))
	}
	if r.Log == nil {
		return
	}
	reach := snap.Index
	if r.State != nil {
		reach = max(reach, r.State.Applied)
		if r.State.Applied > max(r.Log.Last, snap.Index) {
			r.fault(fmt.Errorf("the log ends at %d, before the state (at %d): log or vote were lost", r.Log.Last, r.State.Applied))
		}
	}
	if r.Log.First > reach+1 {
		r.fault(fmt.Errorf("the log begins at %d and nothing reaches up to it", r.Log.First))
	}
}
