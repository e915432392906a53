package logstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// bbolt checks nothing but its two meta pages when it opens a file, and meets a broken page later with a panic, some
// of them in goroutines of its own where nobody can catch it. So the pages that are in use are looked at first.

const (
	boltMagic      = 0xED0CDAED
	boltVersion    = 2
	boltPageHead   = 16
	boltBranch     = 1
	boltLeaf       = 2
	boltFreelist   = 16
	boltIsBucket   = 1
	boltNoFreelist = ^uint64(0)
	boltDepth      = 64
)

var native = binary.NativeEndian

// boltPages walks the pages of a bbolt file.
type boltPages struct {
	r     io.ReaderAt
	size  int64
	page  int64  // bytes a page
	high  uint64 // first page number that was never used
	taken map[uint64]bool
}

// checkBoltFile reads every page in use and fails with ErrDamaged if bbolt would trip over one. A missing file is
// fine.
func checkBoltFile(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	w := boltPages{r: f, size: info.Size(), taken: map[uint64]bool{}}
	if err := w.check(); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, info.Name(), err)
	}
	return nil
}

// check finds the newest meta page that is whole, as bbolt does, and walks from its root.
func (w *boltPages) check() error {
	root, freelist, err := w.meta()
	if err != nil {
		return err
	}
	if freelist != boltNoFreelist {
		b, err := w.read(freelist)
		if err != nil {
			return err
		}
		if native.Uint16(b[8:]) != boltFreelist {
			return fmt.Errorf("page %d should be the free list", freelist)
		}
	}
	return w.tree(root, 0)
}

func (w *boltPages) meta() (root, freelist uint64, err error) {
	newest, found := uint64(0), false
	for _, off := range w.metaOffsets() {
		m := make([]byte, 64)
		if _, err := w.r.ReadAt(m, off+boltPageHead); err != nil {
			continue
		}
		sum := fnv.New64a()
		sum.Write(m[:56])
		txid := native.Uint64(m[48:])
		if native.Uint32(m) != boltMagic || native.Uint32(m[4:]) != boltVersion ||
			native.Uint64(m[56:]) != sum.Sum64() || found && txid < newest {
			continue
		}
		found, newest = true, txid
		w.page, w.high = int64(native.Uint32(m[8:])), native.Uint64(m[40:])
		root, freelist = native.Uint64(m[16:]), native.Uint64(m[32:])
	}
	if !found {
		return 0, 0, errors.New("neither meta page is whole")
	}
	if w.page < 512 || w.page > 1<<20 || int64(w.high) > w.size/w.page {
		return 0, 0, fmt.Errorf("%d bytes are too few for %d pages of %d", w.size, w.high, w.page)
	}
	return root, freelist, nil
}

// metaOffsets are the places of the two meta pages: the second one's depends on the page size, which is that of the
// machine that made the file.
func (w *boltPages) metaOffsets() []int64 {
	out := []int64{0}
	for size := int64(1 << 10); size <= 1<<16; size <<= 1 {
		out = append(out, size)
	}
	return out
}

// read returns one page with its overflow, as long as it says it is.
func (w *boltPages) read(id uint64) ([]byte, error) {
	if id < 2 || id >= w.high {
		return nil, fmt.Errorf("page %d is out of range", id)
	}
	if w.taken[id] {
		return nil, fmt.Errorf("page %d is used twice", id)
	}
	w.taken[id] = true
	b := make([]byte, w.page)
	if _, err := w.r.ReadAt(b, int64(id)*w.page); err != nil {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	if got := native.Uint64(b); got != id {
		return nil, fmt.Errorf("page %d says it is %d", id, got)
	}
	over := uint64(native.Uint32(b[12:]))
	if over == 0 {
		return b, nil
	}
	if id+over >= w.high {
		return nil, fmt.Errorf("page %d is longer than the file", id)
	}
	more := make([]byte, int64(over)*w.page)
	if _, err := w.r.ReadAt(more, int64(id+1)*w.page); err != nil {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	return append(b, more...), nil
}

func (w *boltPages) tree(id uint64, depth int) error {
	if depth > boltDepth {
		return fmt.Errorf("page %d is too deep", id)
	}
	b, err := w.read(id)
	if err != nil {
		return err
	}
	if err := w.elements(b, depth); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

// elements checks a page's table and follows it. Positions count from their own element.
func (w *boltPages) elements(b []byte, depth int) error {
	kind, n := native.Uint16(b[8:]), int(native.Uint16(b[10:]))
	if kind != boltBranch && kind != boltLeaf {
		return fmt.Errorf("is of kind %d", kind)
	}
	if boltPageHead+n*16 > len(b) || kind == boltBranch && n == 0 {
		return fmt.Errorf("cannot have %d elements", n)
	}
	var last []byte
	for i := range n {
		at := boltPageHead + i*16
		e := b[at : at+16]
		if kind == boltBranch {
			key, ok := cut(b, at, native.Uint32(e), native.Uint32(e[4:]))
			if !ok || i > 0 && bytes.Compare(last, key) >= 0 {
				return fmt.Errorf("key %d is broken", i)
			}
			last = key
			if err := w.tree(native.Uint64(e[8:]), depth+1); err != nil {
				return err
			}
			continue
		}
		key, ok1 := cut(b, at, native.Uint32(e[4:]), native.Uint32(e[8:]))
		val, ok2 := cut(b, at+int(native.Uint32(e[8:])), native.Uint32(e[4:]), native.Uint32(e[12:]))
		if !ok1 || !ok2 || i > 0 && bytes.Compare(last, key) >= 0 {
			return fmt.Errorf("key %d is broken", i)
		}
		last = key
		if native.Uint32(e)&boltIsBucket != 0 {
			if err := w.bucket(val, depth); err != nil {
				return fmt.Errorf("bucket %q: %w", key, err)
			}
		}
	}
	return nil
}

// bucket follows a bucket to its root page, or checks the page it carries within itself.
func (w *boltPages) bucket(val []byte, depth int) error {
	if len(val) < 16 {
		return errors.New("is cut short")
	}
	if root := native.Uint64(val); root != 0 {
		return w.tree(root, depth+1)
	}
	if len(val) < 16+boltPageHead {
		return errors.New("is cut short")
	}
	return w.elements(val[16:], depth+1)
}

func cut(b []byte, at int, pos, n uint32) ([]byte, bool) {
	from := int64(at) + int64(pos)
	to := from + int64(n)
	if from > int64(len(b)) || to > int64(len(b)) {
		return nil, false
	}
	return b[from:to], true
}
