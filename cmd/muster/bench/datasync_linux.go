package bench

import (
	"os"
	"syscall"
)

// datasync waits until the file's data is on the disk.
func datasync(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
