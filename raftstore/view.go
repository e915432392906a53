package raftstore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime/debug"
	"strings"
	"unsafe"

	"go.etcd.io/bbolt"

	"muster/board"
)

// view reads one bbolt transaction as a board.View. The first value whose
// checksum does not hold is remembered in err; what was read with it must be
// thrown away.
type view struct {
	tx   *bbolt.Tx
	tabs [maxTable + 1]*bbolt.Bucket
	m    meta
	err  error
}

var _ board.View = (*view)(nil)

func newView(tx *bbolt.Tx) (*view, error) {
	m, err := readMeta(tx)
	return &view{tx: tx, m: m}, err
}

func tableName(t board.Table) []byte { return []byte{byte(t)} }

// raw is the bytes of s, which bbolt does not change.
func raw(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

func (v *view) bucket(t board.Table) *bbolt.Bucket {
	if t < 1 || int(t) > board.Tables {
		return nil
	}
	if v.tabs[t] == nil {
		v.tabs[t] = v.tx.Bucket(tableName(t))
	}
	if v.tabs[t] == nil && v.err == nil {
		v.err = fmt.Errorf("%w: table %s is missing", ErrDamaged, t)
	}
	return v.tabs[t]
}

func (v *view) open(t board.Table, key string, stored []byte) []byte {
	val, _, ok := open(t, key, stored)
	if !ok && v.err == nil {
		v.err = fmt.Errorf("%w: checksum of %s %q does not hold", ErrDamaged, t, key)
	}
	if !ok {
		return nil
	}
	return val
}

// Get implements board.View.
func (v *view) Get(t board.Table, key string) []byte {
	b := v.bucket(t)
	if b == nil || key == "" {
		return nil
	}
	stored := b.Get(raw(key))
	if stored == nil {
		return nil
	}
	return v.open(t, key, stored)
}

// Has implements board.View.
func (v *view) Has(t board.Table, key string) bool {
	b := v.bucket(t)
	return b != nil && key != "" && b.Get(raw(key)) != nil
}

// Scan implements board.View.
func (v *view) Scan(t board.Table, prefix, from string, fn func(key string, val []byte) bool) {
	b := v.bucket(t)
	if b == nil {
		return
	}
	c := b.Cursor()
	for k, stored := c.Seek([]byte(max(prefix, from))); k != nil && bytes.HasPrefix(k, raw(prefix)); k, stored = c.Next() {
		key := string(k)
		val := v.open(t, key, stored)
		if v.err != nil || !fn(key, val) {
			return
		}
	}
}

// Last implements board.View.
func (v *view) Last(t board.Table, prefix string) (string, []byte) {
	b := v.bucket(t)
	if b == nil {
		return "", nil
	}
	c := b.Cursor()
	k, stored := seekAfter(c, prefix)
	if k == nil || !bytes.HasPrefix(k, raw(prefix)) {
		return "", nil
	}
	key := string(k)
	return key, v.open(t, key, stored)
}

// seekAfter finds the last key that is not behind all keys with the prefix.
func seekAfter(c *bbolt.Cursor, prefix string) (k, val []byte) {
	next := []byte(prefix)
	for len(next) > 0 && next[len(next)-1] == 0xff {
		next = next[:len(next)-1]
	}
	if len(next) == 0 {
		return c.Last()
	}
	next[len(next)-1]++
	if k, _ := c.Seek(next); k == nil {
		return c.Last()
	}
	return c.Prev()
}

// Seq implements board.View.
func (v *view) Seq() uint64 { return v.m.Seq }

// Time implements board.View.
func (v *view) Time() int64 { return v.m.Time }

// mark finds a remembered hash; seq 0 is the newest.
func (v *view) mark(seq uint64) (at uint64, hash [16]byte, ok bool) {
	b := v.tx.Bucket(marksBucket)
	if b == nil {
		return 0, hash, false
	}
	var k, h []byte
	if seq == 0 {
		k, h = b.Cursor().Last()
	} else {
		k = binary.BigEndian.AppendUint64(nil, seq)
		h = b.Get(k)
	}
	if len(k) != 8 || len(h) != 16 {
		return 0, hash, false
	}
	return binary.BigEndian.Uint64(k), [16]byte(h), true
}

// guarded runs fn, which reads a memory map: a page that is damaged or cannot be
// read becomes ErrDamaged. Any other panic goes on.
func guarded(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if !isDamage(p) {
			panic(p)
		}
		err = fmt.Errorf("%w: %v", ErrDamaged, p)
	}()
	return fn()
}

// isDamage tells a fault on a memory map and an assertion of bbolt from a mistake of ours.
func isDamage(p any) bool {
	if _, ok := p.(interface{ Addr() uintptr }); ok {
		return true
	}
	s, ok := p.(string)
	return ok && (strings.HasPrefix(s, "assertion failed") || strings.HasPrefix(s, "page ") ||
		strings.HasPrefix(s, "invalid page") || strings.HasPrefix(s, "freepages"))
}
