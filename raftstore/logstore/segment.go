package logstore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/raft-wal/types"
)

// The form of a raft-wal segment: a header of 32 bytes, then frames aligned to 8: an entry, an index of all offsets
// (once, when the segment is full), or a commit with the CRC-32C of all bytes since the commit before (the first
// one's includes the header). One append is its entries, perhaps the index, and one commit; then one sync.
const (
	segmentHead  = 32
	segmentMagic = 0x58eb6b0d
	frameHead    = 8
	frameEntry   = 1
	frameIndex   = 2
	frameCommit  = 3
)

// segmentScan is what a segment's bytes say.
type segmentScan struct {
	entries int   // entries whose commit holds
	end     int64 // where the last commit that holds ends; 0 if there is none
	sealed  int64 // where the index array starts; 0 if the segment is not full
	dirty   int64 // where bytes behind end stop that are not zero: an append that was never finished; 0 if none
}

// scanSegment checks every commit of a segment. raft-wal itself checks the last one only, and takes anything behind
// it as proof that it is whole; so bytes of an older, torn append can vouch for a newer, torn one. A commit that does
// not hold is a torn append and ends the segment, unless a later one holds: appends are synced one after the other,
// so then it was whole once, and is damaged now.
func scanSegment(b []byte, info types.SegmentInfo) (segmentScan, error) {
	var s segmentScan
	var torn bool
	start, pending, index := int64(0), 0, int64(0)
	for off := int64(segmentHead); off+frameHead <= int64(len(b)) && s.sealed == 0; {
		kind, n, ok := frameAt(b[off:])
		if !ok {
			break
		}
		switch kind {
		case frameEntry:
			pending++
		case frameIndex:
			index = off + frameHead
		case frameCommit:
			whole := crc32.Checksum(b[start:off], castagnoli) == binary.LittleEndian.Uint32(b[off+4:])
			if whole && torn {
				return s, fmt.Errorf("%w: segment %d: bytes before offset %d have changed since they were written",
					ErrDamaged, info.BaseIndex, start)
			}
			if whole {
				s.entries, s.end, s.sealed = s.entries+pending, off+frameHead, index
			}
			torn = torn || !whole
			start, pending, index = off+frameHead, 0, 0
		}
		off += n
	}
	if s.end > 0 && !headMatches(b, info) {
		return s, fmt.Errorf("%w: segment %d holds another one's entries", ErrDamaged, info.BaseIndex)
	}
	if n := lastByte(b[s.end:]); n > 0 {
		s.dirty = s.end + n
	}
	return s, nil
}

// lastByte is the length of b without the zeros at its end, most of which were never written.
func lastByte(b []byte) int64 {
	var zeros [4096]byte
	for len(b) >= len(zeros) && bytes.Equal(b[len(b)-len(zeros):], zeros[:]) {
		b = b[:len(b)-len(zeros)]
	}
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	return int64(len(b))
}

// frameAt returns the kind of the frame at the start of b and its length with head and padding.
func frameAt(b []byte) (kind byte, length int64, ok bool) {
	kind, n := b[0], int64(binary.LittleEndian.Uint32(b[4:]))
	if b[1]|b[2]|b[3] != 0 {
		return 0, 0, false
	}
	switch kind {
	case frameEntry, frameIndex:
		length = frameHead + (n+frameHead-1)/frameHead*frameHead
		return kind, length, length <= int64(len(b))
	case frameCommit:
		return kind, frameHead, true
	}
	return 0, 0, false
}

func headMatches(b []byte, info types.SegmentInfo) bool {
	le := binary.LittleEndian
	return le.Uint64(b) == segmentMagic && le.Uint64(b[8:]) == info.BaseIndex &&
		le.Uint64(b[16:]) == info.ID && le.Uint64(b[24:]) == info.Codec
}
