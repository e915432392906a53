package logstore

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
	"go.etcd.io/bbolt"
)

// Report is what Check found in a folder.
type Report struct {
	Kind        Kind
	First, Last uint64 // 0 if the log is empty
	Entries     uint64
	Bytes       int64 // encoded entries
	Stable      int   // stable values
	Segments    int   // WAL only

	// Unfinished says what the next Open will repair by itself: the traces of a write that was cut off.
	Unfinished []string
}

// Check reads a log store that no node runs on, and changes nothing: it does not repair, nor make the folder. Every
// entry and every checksum is read. Errors: ErrMissing, ErrLocked, ErrDamaged (with the report so far).
func Check(dir string) (Report, error) {
	var r Report
	kind, err := detect(dir)
	if err != nil {
		return r, err
	}
	if kind == "" {
		return r, fmt.Errorf("log store %s: %w", dir, ErrMissing)
	}
	r.Kind = kind
	if _, err := os.Stat(filepath.Join(dir, lockFile)); err == nil {
		lock, err := lockDir(dir)
		if err != nil {
			return r, err
		}
		defer lock.Close()
	}
	err = caught(func() error {
		if kind == WAL {
			return r.checkWAL(dir)
		}
		return r.checkBolt(filepath.Join(dir, boltFile))
	})
	if err != nil {
		return r, openError(dir, err)
	}
	return r, nil
}

func readOnly(path string) (*bbolt.DB, error) {
	if err := checkBoltFile(path); err != nil {
		return nil, err
	}
	return bbolt.Open(path, 0, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
}

func (r *Report) add(e *raft.Log) {
	if r.First == 0 {
		r.First = e.Index
	}
	r.Last = e.Index
	r.Entries++
	r.Bytes += int64(encodedSize(e))
}

func (r *Report) checkBolt(path string) error {
	db, err := readOnly(path)
	if err != nil {
		return err
	}
	if err := hasBuckets(db); err != nil {
		return errors.Join(err, db.Close())
	}
	err = db.View(func(tx *bbolt.Tx) error {
		r.Stable = tx.Bucket(boltStable).Stats().KeyN
		return tx.Bucket(boltEntries).ForEach(func(k, v []byte) error {
			var e raft.Log
			if err := decodeEntry(v, &e); err != nil {
				return err
			}
			if index := binary.BigEndian.Uint64(k); e.Index != index {
				return fmt.Errorf("%w: entry %d lies at %d", ErrDamaged, e.Index, index)
			}
			r.add(&e)
			return nil
		})
	})
	return errors.Join(err, db.Close())
}

func (r *Report) checkWAL(dir string) error {
	state, err := r.walState(filepath.Join(dir, walMetaFile))
	if err != nil {
		return err
	}
	r.Segments = len(state.Segments)
	next := uint64(0)
	for i, info := range state.Segments {
		if next != 0 && info.BaseIndex != next {
			return fmt.Errorf("%w: segment %d should begin with entry %d", ErrDamaged, info.BaseIndex, next)
		}
		sealed := !info.SealTime.IsZero()
		if !sealed && i != len(state.Segments)-1 {
			return fmt.Errorf("%w: segment %d is open and not the last", ErrDamaged, info.BaseIndex)
		}
		if err := r.checkSegment(dir, info, sealed); err != nil {
			return err
		}
		next = info.MaxIndex + 1
	}
	return nil
}

func (r *Report) walState(path string) (types.PersistentState, error) {
	var state types.PersistentState
	db, err := readOnly(path)
	if err != nil {
		return state, err
	}
	err = db.View(func(tx *bbolt.Tx) error {
		meta, stable := tx.Bucket([]byte(metadb.MetaBucket)), tx.Bucket([]byte(metadb.StableBucket))
		if meta == nil || stable == nil {
			return fmt.Errorf("%w: %s has no buckets", ErrDamaged, walMetaFile)
		}
		r.Stable = stable.Stats().KeyN
		if raw := meta.Get([]byte(metadb.MetaKey)); raw != nil {
			return json.Unmarshal(raw, &state)
		}
		return nil
	})
	return state, errors.Join(err, db.Close())
}

// checkSegment reads one segment, as its meta data says it is: sealed ones must be whole, the last may end in an
// append that was cut off.
func (r *Report) checkSegment(dir string, info types.SegmentInfo, sealed bool) error {
	name := segment.FileName(info)
	b, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, os.ErrNotExist) && !sealed {
		r.Unfinished = append(r.Unfinished, "segment "+name+" is not made yet")
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	scan, err := scanSegment(b, info)
	if err != nil {
		return err
	}
	last := info.BaseIndex + uint64(scan.entries) - 1
	switch {
	case sealed && (uint64(scan.sealed) != info.IndexStart || last < info.MaxIndex || scan.dirty != 0):
		return fmt.Errorf("%w: segment %s is not whole", ErrDamaged, name)
	case sealed:
		last = info.MaxIndex
	case scan.sealed != 0:
		r.Unfinished = append(r.Unfinished, "segment "+name+" is full and not marked so yet")
	}
	if scan.dirty != 0 {
		r.Unfinished = append(r.Unfinished, fmt.Sprintf("segment %s ends in %d bytes of an append that was cut off",
			name, scan.dirty-scan.end))
	}
	return eachEntry(b[:scan.end], func(i int, raw []byte) error {
		index := info.BaseIndex + uint64(i)
		if index < info.MinIndex || index > last {
			return nil
		}
		var e raft.Log
		if err := decodeEntry(raw, &e); err != nil {
			return fmt.Errorf("entry %d: %w", index, err)
		}
		if e.Index != index {
			return fmt.Errorf("%w: entry %d lies at %d", ErrDamaged, e.Index, index)
		}
		r.add(&e)
		return nil
	})
}

// eachEntry visits the entries of a scanned segment.
func eachEntry(b []byte, fn func(i int, raw []byte) error) error {
	i := 0
	for off := int64(segmentHead); off+frameHead <= int64(len(b)); {
		kind, n, ok := frameAt(b[off:])
		if !ok {
			return nil
		}
		if kind == frameEntry {
			size := int64(binary.LittleEndian.Uint32(b[off+4:]))
			if err := fn(i, b[off+frameHead:off+frameHead+size]); err != nil {
				return err
			}
			i++
		}
		off += n
	}
	return nil
}
