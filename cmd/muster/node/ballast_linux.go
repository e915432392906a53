package node

import (
	"os"

	"golang.org/x/sys/unix"
)

// reserve makes a file of so many bytes that are its own on the disk; errors.ErrUnsupported where a file system cannot.
func reserve(f *os.File, n int64) error {
	for {
		if err := unix.Fallocate(int(f.Fd()), 0, 0, n); err != unix.EINTR {
			return err
		}
	}
}
