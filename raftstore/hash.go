package raftstore

import (
	"encoding/binary"
	"math/bits"

	"github.com/zeebo/xxh3"

	"muster/board"
)

// sum is the running hash of the whole state: the hashes of all its keys with
// their values, added up, so that the order of writing does not matter and one
// change costs one addition and one subtraction.
type sum struct{ lo, hi uint64 }

// hashOf is what one key with its value adds to the sum. Its low half is the
// value's checksum as well, so a value is hashed once to be written.
func hashOf(t board.Table, key string, val []byte) sum {
	h := xxh3.Hash128Seed(val, xxh3.HashStringSeed(key, uint64(t)))
	return sum{h.Lo, h.Hi}
}

func (s *sum) add(x sum) {
	var c uint64
	s.lo, c = bits.Add64(s.lo, x.lo, 0)
	s.hi, _ = bits.Add64(s.hi, x.hi, c)
}

func (s *sum) sub(x sum) {
	var b uint64
	s.lo, b = bits.Sub64(s.lo, x.lo, 0)
	s.hi, _ = bits.Sub64(s.hi, x.hi, b)
}

func (s sum) bytes() (b [16]byte) {
	binary.BigEndian.PutUint64(b[:], s.hi)
	binary.BigEndian.PutUint64(b[8:], s.lo)
	return b
}

// checkLen is the number of bytes of checksum in front of every stored value.
// (No stored value is empty because of it, so bbolt's nil means absent.)
const checkLen = 4

func seal(dst []byte, h sum, val []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(h.lo))
	return append(dst, val...)
}

// open takes the checksum off a stored value; false if it does not hold.
func open(t board.Table, key string, stored []byte) (val []byte, h sum, ok bool) {
	if len(stored) < checkLen {
		return nil, sum{}, false
	}
	val = stored[checkLen:]
	h = hashOf(t, key, val)
	return val, h, binary.LittleEndian.Uint32(stored) == uint32(h.lo)
}
