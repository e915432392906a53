package logstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
	"go.etcd.io/bbolt"
)

// Reading all entries of a store, in order. raft-wal's GetLog reads 64 KiB for every entry, so its segments are read
// here, a file at a time.

// walkSegments visits every live entry. Sealed segments must be whole, as their meta data says; the last may end in an
// append that was cut off, and unfinished is told so.
func walkSegments(dir string, all []types.SegmentInfo, visit func(*raft.Log), unfinished func(string)) error {
	next := uint64(0)
	for i, info := range all {
		sealed := !info.SealTime.IsZero()
		switch {
		case next != 0 && info.BaseIndex != next:
			return fmt.Errorf("%w: segment %d should begin with entry %d", ErrDamaged, info.BaseIndex, next)
		case !sealed && i != len(all)-1:
			return fmt.Errorf("%w: segment %d is open and not the last", ErrDamaged, info.BaseIndex)
		}
		if err := walkSegment(dir, info, sealed, visit, unfinished); err != nil {
			return err
		}
		next = info.MaxIndex + 1
	}
	return nil
}

func walkSegment(dir string, info types.SegmentInfo, sealed bool, visit func(*raft.Log), unfinished func(string)) error {
	name := segment.FileName(info)
	b, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, os.ErrNotExist) && !sealed {
		unfinished("segment " + name + " is not made yet")
		return nil
	}
	if err != nil {
		return err
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
		unfinished("segment " + name + " is full and not marked so yet")
	}
	if scan.dirty != 0 {
		unfinished(fmt.Sprintf("segment %s ends in %d bytes of an append that was cut off", name, scan.dirty-scan.end))
	}
	return eachEntry(b[:scan.end], func(i int, raw []byte) error {
		index := info.BaseIndex + uint64(i)
		if index < info.MinIndex || index > last {
			return nil
		}
		return visitEntry(index, raw, visit)
	})
}

func visitEntry(index uint64, raw []byte, visit func(*raft.Log)) error {
	var e raft.Log
	if err := decodeEntry(raw, &e); err != nil {
		return fmt.Errorf("entry %d: %w", index, err)
	}
	if e.Index != index {
		return fmt.Errorf("%w: entry %d lies at %d", ErrDamaged, e.Index, index)
	}
	visit(&e)
	return nil
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

// walkBucket visits every entry of a bbolt store.
func walkBucket(tx *bbolt.Tx, visit func(*raft.Log)) error {
	return tx.Bucket(boltEntries).ForEach(func(k, v []byte) error {
		return visitEntry(binary.BigEndian.Uint64(k), v, visit)
	})
}

func (s *boltStore) each(visit func(*raft.Log)) error {
	return s.db.View(func(tx *bbolt.Tx) error { return walkBucket(tx, visit) })
}

// each visits what the repaired folder held when it was opened.
func (s *walStore) each(visit func(*raft.Log)) error {
	return walkSegments(s.dir, s.found, visit, func(string) {})
}
