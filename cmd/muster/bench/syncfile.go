package bench

import (
	"fmt"
	"io"
	"os"
)

const (
	syncBlock = 4 << 10
	syncLimit = 16 << 20 // begin anew: a bench must not fill the disk
)

// A syncFile appends 4 KiB and waits for the disk, as a log does.
type syncFile struct {
	f     *os.File
	size  int64
	block []byte
}

func newSyncFile(dir string) (*syncFile, error) {
	f, err := os.CreateTemp(dir, "muster-bench-*.sync")
	if err != nil {
		return nil, fmt.Errorf("file to sync: %w", err)
	}
	return &syncFile{f: f, block: make([]byte, syncBlock)}, nil
}

func (s *syncFile) appendAndSync() error {
	if s.size >= syncLimit {
		if err := s.f.Truncate(0); err != nil {
			return fmt.Errorf("shorten the file to sync: %w", err)
		}
		if _, err := s.f.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("shorten the file to sync: %w", err)
		}
		s.size = 0
	}
	if _, err := s.f.Write(s.block); err != nil {
		return fmt.Errorf("append: %w", err)
	}
	s.size += syncBlock
	if err := Datasync(s.f); err != nil {
		return fmt.Errorf("fdatasync: %w", err)
	}
	return nil
}

func (s *syncFile) close() {
	_ = s.f.Close()
	_ = os.Remove(s.f.Name())
}
