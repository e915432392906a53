package bench

import (
	"os"
	"syscall"
)

// Datasync waits until the file's data is on the disk.
func Datasync(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
