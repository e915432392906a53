package logstore

import (
	"errors"
	"io"
	"os"

	"github.com/hashicorp/raft-wal/types"
	"golang.org/x/sys/unix"
)

// mapped is a segment file as it was when it was scanned, up to the hole at its end: segments are made at their full
// length, and most of the last one was never written. A memory map, because reading 16 MB into fresh memory costs more
// than checking them. (A fault on it becomes an error in caught.)
type mapped struct {
	id   uint64
	b    []byte
	scan segmentScan
	free func()
}

// drop gives the memory back; the bytes must not be used any more.
func (m *mapped) drop() {
	if m != nil && m.free != nil {
		m.free()
		m.b, m.free = nil, nil
	}
}

// scanFile maps a segment file and scans it.
func scanFile(path string, info types.SegmentInfo) (*mapped, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		return nil, err
	}
	n := written(f, stat.Size())
	m := &mapped{id: info.ID}
	if n > 0 {
		if b, err := unix.Mmap(int(f.Fd()), 0, int(n), unix.PROT_READ, unix.MAP_SHARED); err == nil {
			m.b, m.free = b, func() { _ = unix.Munmap(b) }
		} else { // not every file system maps its files
			m.b = make([]byte, n)
			if _, err := io.ReadFull(f, m.b); err != nil {
				return nil, err
			}
		}
	}
	if m.scan, err = scanSegment(m.b, info); err != nil {
		m.drop()
		return nil, err
	}
	return m, nil
}

// written is where the hole at the end of a file begins; its length where the file system does not tell.
func written(f *os.File, size int64) int64 {
	end := int64(0)
	for end < size {
		data, err := unix.Seek(int(f.Fd()), end, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break // only a hole is left
		}
		if err != nil {
			end = size
			break
		}
		if end, err = unix.Seek(int(f.Fd()), data, unix.SEEK_HOLE); err != nil || end <= data {
			end = size
		}
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return size // the read that follows says why
	}
	return min(end, size)
}
