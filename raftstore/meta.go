package raftstore

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"go.etcd.io/bbolt"
)

// meta is the row that is written in the same transaction as the data it
// speaks of.
type meta struct {
	Applied, Term uint64 // last log entry that was looked at, and its term
	Seq           uint64 // transactions in the state
	Time          int64  // board time of the last one, ms
	Sum           sum
	Floor         uint64 // not 0: the log was reset to this index while the state was ahead of it
}

const (
	metaVersion = 1
	metaSize    = 1 + 8*7 + 4
)

var (
	metaBucket  = []byte("meta")
	metaKey     = []byte("m")
	marksBucket = []byte("marks") // Seq (8 bytes) -> state hash (16 bytes)
)

func (m *meta) encode() []byte {
	b := make([]byte, 1, metaSize)
	b[0] = metaVersion
	for _, v := range []uint64{m.Applied, m.Term, m.Seq, uint64(m.Time), m.Sum.hi, m.Sum.lo, m.Floor} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func decodeMeta(b []byte) (meta, error) {
	if len(b) != metaSize || b[0] != metaVersion {
		return meta{}, fmt.Errorf("%w: no meta row of version %d", ErrDamaged, metaVersion)
	}
	if crc32.Checksum(b[:metaSize-4], castagnoli) != binary.LittleEndian.Uint32(b[metaSize-4:]) {
		return meta{}, fmt.Errorf("%w: checksum of the meta row does not hold", ErrDamaged)
	}
	n := func(i int) uint64 { return binary.BigEndian.Uint64(b[1+8*i:]) }
	return meta{Applied: n(0), Term: n(1), Seq: n(2), Time: int64(n(3)), Sum: sum{hi: n(4), lo: n(5)}, Floor: n(6)}, nil
}

func readMeta(tx *bbolt.Tx) (meta, error) {
	b := tx.Bucket(metaBucket)
	if b == nil {
		return meta{}, fmt.Errorf("%w: no meta bucket", ErrDamaged)
	}
	return decodeMeta(b.Get(metaKey))
}

// Marks of the hash: every markEvery-th Seq, the newest markKeep of them.
const (
	markEvery = 1000
	markKeep  = 64
)

func writeMark(tx *bbolt.Tx, seq uint64, s sum) error {
	b := tx.Bucket(marksBucket)
	h := s.bytes()
	if err := b.Put(binary.BigEndian.AppendUint64(nil, seq), h[:]); err != nil {
		return err
	}
	if seq > markEvery*markKeep {
		return b.Delete(binary.BigEndian.AppendUint64(nil, seq-markEvery*markKeep))
	}
	return nil
}
