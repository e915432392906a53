package raftstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"

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
)

// wholeFile tells whether a bbolt file is as long as its newest meta page says.
// bbolt does not look, and reading a page behind the end of a memory map is a
// fault.
func wholeFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	head := make([]byte, 2*maxPage)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return err
	}
	head = head[:n]
	size := os.Getpagesize()
	need, ok := newestMeta(head, size)
	for size = 1 << 12; !ok && size <= maxPage; size <<= 1 {
		need, ok = newestMeta(head, size)
	}
	switch {
	case !ok:
		return fmt.Errorf("%s: %w: no meta page that holds", path, ErrDamaged)
	case info.Size() < need:
		return fmt.Errorf("%s: %w: cut off at %d of %d bytes", path, ErrDamaged, info.Size(), need)
	}
	return nil
}

// newestMeta finds the bytes that the newest valid meta page says are in use.
func newestMeta(head []byte, pageSize int) (need int64, ok bool) {
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
			newest, need, ok = txid, int64(u64(40))*int64(pageSize), true
		}
	}
	return need, ok
}
