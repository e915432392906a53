package api

import (
	"os"
	"path/filepath"
	"syscall"
)

// Held tells whether a process holds a node's data folder: the node runs, starts or ends. False also of what is no such folder.
func Held(data string) bool {
	f, err := os.OpenFile(filepath.Join(data, "lock"), os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil
}
