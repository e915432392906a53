package raftstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"io"
	"os"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// boltError sorts an error of opening a bbolt file.
func boltError(path string, err error) error {
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("%s: %w: a node runs on this folder; stop it first", path, ErrLocked)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum), errors.Is(err, bolterrors.ErrVersionMismatch):
		return fmt.Errorf("%s: %w: %w", path, ErrDamaged, err)
	}
	return fmt.Errorf("open %s: %w", path, err)
}

// Of a bbolt file's meta pages (they are the first two, each with its own
// checksum): magic, version, page size, flags, root, sequence, freelist, pages
// in use, transaction, checksum, after a page header of 16 bytes.
const (
	pageHead   = 16
	metaBody   = 64 // without the checksum's own 8 bytes: 56
	boltMagic  = 0xED0CDAED
	maxPage    = 1 << 16
	boltFormat = 2
	noFree     = ^uint64(0) // there is none: bbolt walks all pages instead
)

// wholeFile tells whether a bbolt file is as long as its newest meta page says.
// bbolt does not look, and reading a page behind the end of a memory map is a
// fault.
func wholeFile(path string) (boltMeta, error) {
	f, err := os.Open(path)
	if err != nil {
		return boltMeta{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return boltMeta{}, err
	}
	head := make([]byte, 2*maxPage)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return boltMeta{}, err
	}
	head = head[:n]
	size := os.Getpagesize()
	m, ok := newestMeta(head, size)
	for size = 1 << 12; !ok && size <= maxPage; size <<= 1 {
		m, ok = newestMeta(head, size)
	}
	switch {
	case !ok:
		return m, fmt.Errorf("%s: %w: no meta page that holds", path, ErrDamaged)
	case info.Size() < m.need:
		return m, fmt.Errorf("%s: %w: cut off at %d of %d bytes", path, ErrDamaged, info.Size(), m.need)
	}
	return m, nil
}

// saveFree writes the list of free pages into a state that is about to be
// closed, so that bbolt need not walk all pages to find it when it opens the
// file again. (A running state has none: it would be written by every commit.)
func saveFree(db *bbolt.DB) error {
	db.NoFreelistSync = false
	return guarded(func() error { return db.Update(func(*bbolt.Tx) error { return nil }) })
}

// freeSum is the checksum of a closed state's list of free pages, 0 if it has none.
func freeSum(path string) (uint32, error) {
	m, err := wholeFile(path)
	if err != nil || m.free == noFree {
		return 0, err
	}
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	at := int64(m.free) * int64(m.pageSize)
	head := make([]byte, pageHead)
	if _, err := f.ReadAt(head, at); err != nil {
		return 0, err
	}
	n := (1 + int64(binary.NativeEndian.Uint32(head[12:]))) * int64(m.pageSize) // with the pages it overflows into
	if at+n > m.need {
		return 0, fmt.Errorf("%s: %w: the list of free pages is longer than the file", path, ErrDamaged)
	}
	list := make([]byte, n)
	if _, err := f.ReadAt(list, at); err != nil {
		return 0, err
	}
	return max(1, crc32.Checksum(list, castagnoli)), nil
}

// boltMeta is what the newest valid meta page of a bbolt file says.
type boltMeta struct {
	need     int64  // bytes in use
	free     uint64 // page of the list of free pages, or noFree
	pageSize int
}

// newestMeta finds the newest valid meta page.
func newestMeta(head []byte, pageSize int) (m boltMeta, ok bool) {
	newest := uint64(0)
	for _, at := range []int{0, pageSize} {
		if len(head) < at+pageHead+metaBody {
			continue
		}
		b := head[at+pageHead : at+pageHead+metaBody]
		u32 := func(i int) uint32 { return binary.NativeEndian.Uint32(b[i:]) }
		u64 := func(i int) uint64 { return binary.NativeEndian.Uint64(b[i:]) }
		h := fnv.New64a()
		h.Write(b[:56])
		if u32(0) != boltMagic || u32(4) != boltFormat || int(u32(8)) != pageSize || h.Sum64() != u64(56) {
			continue
		}
		if txid := u64(48); !ok || txid > newest {
			newest, ok = txid, true
			m = boltMeta{need: int64(u64(40)) * int64(pageSize), free: u64(32), pageSize: pageSize}
		}
	}
	return m, ok
}
