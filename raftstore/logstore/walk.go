package logstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
	"go.etcd.io/bbolt"
)

// Reading all entries of a store, in order. raft-wal's GetLog reads 64 KiB for every entry, so its segments are read
// here, a file at a time.

// A visitor is told of every entry: its index and its bytes on disk.
type visitor func(index uint64, n int)

// A walk visits every live entry of segments.
type walk struct {
	dir        string
	lazy       bool // of full segments only the index at their end is read
	visit      visitor
	entry      func(raw []byte) // told of each entry's bytes, if it is set
	unfinished func(string)     // told of what the next Open will repair

	tail *mapped // the last segment, if it was scanned already
}

// segments walks all segments. Sealed ones must be whole, as their meta data says; the last may end in an append that
// was cut off, and unfinished is told so.
func (w *walk) segments(all []types.SegmentInfo) error {
	next := uint64(0)
	for i, info := range all {
		sealed := !info.SealTime.IsZero()
		switch {
		case next != 0 && info.BaseIndex != next:
			return fmt.Errorf("%w: segment %d should begin with entry %d", ErrDamaged, info.BaseIndex, next)
		case !sealed && i != len(all)-1:
			return fmt.Errorf("%w: segment %d is open and not the last", ErrDamaged, info.BaseIndex)
		}
		one := w.segment
		if sealed && w.lazy {
			one = w.index
		}
		if err := one(info); err != nil {
			return err
		}
		next = info.MaxIndex + 1
	}
	return nil
}

func (w *walk) segment(info types.SegmentInfo) error {
	name, sealed := segment.FileName(info), !info.SealTime.IsZero()
	t := w.tail
	if t == nil || t.id != info.ID {
		var err error
		t, err = scanFile(filepath.Join(w.dir, name), info)
		if errors.Is(err, os.ErrNotExist) && !sealed {
			w.unfinished("segment " + name + " is not made yet")
			return nil
		}
		if err != nil {
			return err
		}
		defer t.drop()
	}
	scan := t.scan
	last := info.BaseIndex + uint64(scan.entries) - 1
	switch {
	case sealed && (uint64(scan.sealed) != info.IndexStart || last < info.MaxIndex || scan.dirty != 0):
		return fmt.Errorf("%w: segment %s is not whole", ErrDamaged, name)
	case sealed:
		last = info.MaxIndex
	case scan.sealed != 0:
		w.unfinished("segment " + name + " is full and not marked so yet")
	}
	if scan.dirty != 0 {
		w.unfinished(fmt.Sprintf("segment %s ends in %d bytes of an append that was cut off", name, scan.dirty-scan.end))
	}
	return eachEntry(t.b[:scan.end], func(i int, raw []byte) error {
		index := info.BaseIndex + uint64(i)
		if index < info.MinIndex || index > last {
			return nil
		}
		if err := visitEntry(index, raw, w.visit); err != nil || w.entry == nil {
			return err
		}
		w.entry(raw)
		return nil
	})
}

// index visits the entries of a sealed segment by the array of offsets at its end: which are there and how long they
// are, but not what is in them.
func (w *walk) index(info types.SegmentInfo) error {
	name := segment.FileName(info)
	broken := fmt.Errorf("%w: segment %s is not whole", ErrDamaged, name)
	f, err := os.Open(filepath.Join(w.dir, name))
	if err != nil {
		return err
	}
	defer f.Close()
	head, err := readAt(f, 0, segmentHead)
	if err != nil || !headMatches(head, info) || info.IndexStart < segmentHead+frameHead || info.MaxIndex < info.BaseIndex {
		return errors.Join(broken, err)
	}
	frame, err := readAt(f, int64(info.IndexStart)-frameHead, frameHead)
	if err != nil {
		return errors.Join(broken, err)
	}
	n := int64(binary.LittleEndian.Uint32(frame[4:]))
	if frame[0] != frameIndex || n%4 != 0 || uint64(n/4) < info.MaxIndex-info.BaseIndex+1 {
		return broken
	}
	offsets, err := readAt(f, int64(info.IndexStart), n)
	if err != nil {
		return errors.Join(broken, err)
	}
	from, end := uint32(0), uint32(info.IndexStart)-frameHead
	for i := range uint64(n / 4) {
		from = binary.LittleEndian.Uint32(offsets[4*i:])
		to := end
		if i+1 < uint64(n/4) {
			to = binary.LittleEndian.Uint32(offsets[4*i+4:])
		}
		if from < segmentHead || to < from+frameHead || to > end {
			return broken
		}
		if index := info.BaseIndex + i; index >= info.MinIndex && index <= info.MaxIndex {
			w.visit(index, int(to-from-frameHead))
		}
	}
	return nil
}

// readAt reads n bytes at an offset of a file that must have them.
func readAt(f *os.File, off, n int64) ([]byte, error) {
	if info, err := f.Stat(); err != nil || off < 0 || off+n > info.Size() {
		return nil, errors.Join(io.ErrUnexpectedEOF, err)
	}
	b := make([]byte, n)
	_, err := f.ReadAt(b, off)
	return b, err
}

func visitEntry(index uint64, raw []byte, visit visitor) error {
	at, err := checkEntry(raw)
	if err != nil {
		return fmt.Errorf("entry %d: %w", index, err)
	}
	if at != index {
		return fmt.Errorf("%w: entry %d lies at %d", ErrDamaged, at, index)
	}
	visit(index, len(raw))
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

// walkBucket visits every entry of a bbolt store; lazy reads their keys only.
func walkBucket(tx *bbolt.Tx, lazy bool, visit visitor) error {
	return tx.Bucket(boltEntries).ForEach(func(k, v []byte) error {
		index := binary.BigEndian.Uint64(k)
		if lazy {
			visit(index, len(v))
			return nil
		}
		return visitEntry(index, v, visit)
	})
}

func (s *boltStore) each(lazy bool, visit visitor) error {
	return s.db.View(func(tx *bbolt.Tx) error { return walkBucket(tx, lazy, visit) })
}

// each visits what the repaired folder held when it was opened.
func (s *walStore) each(lazy bool, visit visitor) error {
	w := walk{dir: s.dir, lazy: lazy, visit: visit, unfinished: func(string) {}, tail: s.tail}
	defer func() { s.tail.drop(); s.tail = nil }()
	return w.segments(s.found)
}
