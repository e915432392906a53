package raftstoretest

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/bits"
	"time"

	"github.com/zeebo/xxh3"
	"go.etcd.io/bbolt"

	"muster/board"
)

// Alter changes the first value of a table in a state file that no node has open
// (and that was not closed in order: the file is not the same any more), and makes
// the value's checksum, the state's hash and the meta row fit. What they look like
// is told in raftstore's DESIGN.md; that they fit, its own check says.
func Alter(path string, table board.Table) error {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true, Timeout: time.Second})
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b, meta := tx.Bucket([]byte{byte(table)}), tx.Bucket([]byte("meta"))
		if b == nil || meta == nil {
			return errors.New("no state, or no such table")
		}
		key, stored := b.Cursor().First()
		if len(stored) < 5 {
			return errors.New("the table is empty")
		}
		old := append([]byte(nil), stored[4:]...)
		val := append([]byte(nil), old...)
		val[len(val)-1] ^= 1
		less, more := hashOf(table, key, old), hashOf(table, key, val)
		if err := b.Put(key, append(binary.LittleEndian.AppendUint32(nil, uint32(more.Lo)), val...)); err != nil {
			return err
		}
		return meta.Put([]byte("m"), changedSum(meta.Get([]byte("m")), less, more))
	})
	return errors.Join(err, db.Close())
}

func hashOf(table board.Table, key, val []byte) xxh3.Uint128 {
	return xxh3.Hash128Seed(val, xxh3.HashSeed(key, uint64(table)))
}

// changedSum is a meta row whose state hash has one value less and another more.
func changedSum(row []byte, less, more xxh3.Uint128) []byte {
	const hi, lo = 1 + 8*4, 1 + 8*5
	m := append([]byte(nil), row...)
	h, l := binary.BigEndian.Uint64(m[hi:]), binary.BigEndian.Uint64(m[lo:])
	l, borrow := bits.Sub64(l, less.Lo, 0)
	h, _ = bits.Sub64(h, less.Hi, borrow)
	l, carry := bits.Add64(l, more.Lo, 0)
	h, _ = bits.Add64(h, more.Hi, carry)
	binary.BigEndian.PutUint64(m[hi:], h)
	binary.BigEndian.PutUint64(m[lo:], l)
	end := len(m) - 4
	binary.LittleEndian.PutUint32(m[end:], crc32.Checksum(m[:end], crc32.MakeTable(crc32.Castagnoli)))
	return m
}
