package tmux

import (
	"io/fs"
	"os"
	"syscall"
)

// mine tells whether a file is this user's own.
func mine(st fs.FileInfo) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == os.Getuid()
}
