package logstore

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	walfs "github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// walStore is raft-wal with our encoding, and with the repairs of walMeta before it opens.
type walStore struct {
	*wal.WAL
	dir   string
	disk  *walDisk
	found []types.SegmentInfo
	tail  *mapped // the last segment as it was found; dropped when each has visited it
}

// walDisk counts the syncs of all files of a WAL and remembers the first error: raft-wal changes segments in the
// background, logs what fails there, and then says only "sealed" to the next append.
type walDisk struct {
	*walfs.FS
	sync  atomic.Uint64
	cause atomic.Pointer[error]
	fault func(op string) error
}

func openWAL(dir string, opts Options) (*walStore, error) {
	if err := checkBoltFile(filepath.Join(dir, walMetaFile)); err != nil {
		return nil, err
	}
	disk := &walDisk{FS: walfs.New(), fault: opts.Fault}
	meta := &walMeta{dir: dir, disk: disk, segmentSize: opts.SegmentSize}
	w, err := wal.Open(dir,
		wal.WithSegmentFiler(walFiler{segment.NewFiler(dir, disk)}),
		wal.WithMetaStore(meta),
		wal.WithCodec(walCodec{}),
		wal.WithSegmentSize(opts.SegmentSize),
		wal.WithLogger(hclog.New(&hclog.LoggerOptions{
			Level: hclog.Warn, DisableTime: true, Output: logLines{opts.Logger},
		})),
	)
	if err != nil {
		meta.tail.drop()
		return nil, errors.Join(err, meta.Close()) // raft-wal leaves it open, and locked
	}
	return &walStore{WAL: w, dir: dir, disk: disk, found: meta.found, tail: meta.tail}, nil
}

// walFiler names our encoding in the head of every segment. raft-wal v0.4.1 writes the number of its own into segments
// and meta data whatever it was given, and refuses to open them again; walMeta does the same for the meta data.
type walFiler struct{ *segment.Filer }

func (f walFiler) Create(i types.SegmentInfo) (types.SegmentWriter, error) {
	i.Codec = codecID
	return f.Filer.Create(i)
}

func (f walFiler) RecoverTail(i types.SegmentInfo) (types.SegmentWriter, error) {
	i.Codec = codecID
	return f.Filer.RecoverTail(i)
}

// logLines hands raft-wal's lines to our log.
type logLines struct{ log *slog.Logger }

func (w logLines) Write(p []byte) (int, error) {
	w.log.Warn("raft-wal", "line", strings.TrimSpace(string(p)))
	return len(p), nil
}

func (s *walStore) syncs() uint64 { return s.disk.sync.Load() }

func (s *walStore) StoreLogs(entries []*raft.Log) error {
	err := s.WAL.StoreLogs(entries)
	if cause := s.disk.cause.Load(); err != nil && cause != nil && !errors.Is(err, *cause) {
		return fmt.Errorf("%w: after %w", err, *cause)
	}
	return err
}

func (s *walStore) StoreLog(e *raft.Log) error { return s.StoreLogs([]*raft.Log{e}) }

func (s *walStore) GetLog(index uint64, e *raft.Log) error {
	err := s.WAL.GetLog(index, e)
	switch {
	case errors.Is(err, raft.ErrLogNotFound):
		return raft.ErrLogNotFound // raft compares with ==
	case errors.Is(err, wal.ErrCorrupt):
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	case err == nil && e.Index != index:
		return fmt.Errorf("%w: entry %d lies at %d", ErrDamaged, e.Index, index)
	}
	return err
}

func (d *walDisk) do(op string, syncs uint64, fn func() error) error {
	err := error(nil)
	if d.fault != nil {
		err = d.fault(op)
	}
	if err == nil {
		d.sync.Add(syncs)
		err = fn()
	}
	if err != nil {
		d.cause.CompareAndSwap(nil, &err)
	}
	return err
}

func (d *walDisk) Create(dir, name string, size uint64) (f types.WritableFile, err error) {
	err = d.do("create", 0, func() error { f, err = d.FS.Create(dir, name, size); return err })
	return &walFile{WritableFile: f, disk: d}, err
}

// OpenWriter is used for the tail found at Open. Its file would not sync its name at the first sync, as a file from
// Create does; Open has synced the folder.
func (d *walDisk) OpenWriter(dir, name string) (types.WritableFile, error) {
	f, err := d.FS.OpenWriter(dir, name)
	return &walFile{WritableFile: f, disk: d}, err
}

type walFile struct {
	types.WritableFile
	disk *walDisk
}

func (f *walFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.disk.do("write", 0, func() error { n, err = f.WritableFile.WriteAt(p, off); return err })
	if errors.Is(err, ErrShort) {
		n, werr := f.WritableFile.WriteAt(p[:len(p)/2], off)
		return n, errors.Join(err, werr)
	}
	return n, err
}

func (f *walFile) Sync() error { return f.disk.do("sync", 1, f.WritableFile.Sync) }

// walMeta is raft-wal's meta store (segments and stable values, in bbolt), with two repairs of the last segment when
// it is loaded, which raft-wal v0.4.1 lacks.
//
// Bytes of a torn append are set to zero: see scanSegment.
//
// A segment that is full on disk but not in the meta data (the process died in between; raft-wal changes segments
// after the append has returned) is marked as full: raft-wal would open it, and then refuse every append for ever.
type walMeta struct {
	metadb.BoltMetaDB
	dir         string
	disk        *walDisk
	segmentSize int
	found       []types.SegmentInfo // after the repairs
	tail        *mapped
}

func (m *walMeta) Load(dir string) (types.PersistentState, error) {
	state, err := m.repaired(dir)
	m.found = state.Segments
	return state, err
}

func (m *walMeta) repaired(dir string) (types.PersistentState, error) {
	state, err := m.BoltMetaDB.Load(dir)
	if err != nil || len(state.Segments) == 0 {
		return state, err
	}
	tail := &state.Segments[len(state.Segments)-1]
	if !tail.SealTime.IsZero() {
		return state, nil
	}
	m.tail, err = repairTail(filepath.Join(dir, segment.FileName(*tail)), *tail)
	if err != nil || m.tail == nil || m.tail.scan.sealed == 0 {
		return state, err
	}
	scan := m.tail.scan
	now := time.Now()
	tail.SealTime, tail.IndexStart = now, uint64(scan.sealed)
	tail.MaxIndex = tail.BaseIndex + uint64(scan.entries) - 1
	state.Segments = append(state.Segments, types.SegmentInfo{
		ID: state.NextSegmentID, BaseIndex: tail.MaxIndex + 1, MinIndex: tail.MaxIndex + 1,
		Codec: codecID, CreateTime: now, SizeLimit: uint32(m.segmentSize),
	})
	state.NextSegmentID++
	return state, m.CommitState(state)
}

// repairTail checks the last segment and sets what was never finished to zero. A missing file is an empty segment:
// raft-wal makes the file after its meta data and syncs its name with the first append.
func repairTail(path string, info types.SegmentInfo) (*mapped, error) {
	m, err := scanFile(path, info)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil || m.scan.dirty == 0 {
		return m, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		m.drop()
		return nil, err
	}
	_, err = f.WriteAt(make([]byte, m.scan.dirty-m.scan.end), m.scan.end)
	m.scan.dirty = 0
	return m, errors.Join(err, f.Sync(), f.Close())
}

func (m *walMeta) CommitState(s types.PersistentState) error {
	for i := range s.Segments {
		s.Segments[i].Codec = codecID
	}
	return m.disk.do("meta", 2, func() error { return m.BoltMetaDB.CommitState(s) })
}

func (m *walMeta) SetStable(key, val []byte) error {
	return m.disk.do("meta", 2, func() error { return m.BoltMetaDB.SetStable(key, val) })
}
