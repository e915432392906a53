package node

import (
	"io/fs"
	"syscall"
)

func bornOf(path string) (b born, err error) {
	var s syscall.Stat_t
	if err := syscall.Lstat(path, &s); err != nil {
		return b, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	return born{Inode: s.Ino, At: s.Birthtimespec.Nano()}, nil
}
