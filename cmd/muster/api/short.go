package api

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// maxSocketPath is what fits into a unix socket's address on every system we build for.
const maxSocketPath = 100

// shortPath is a path to the same socket that fits into its address: on Linux
// through the open folder; elsewhere a long path is refused, in words.
func shortPath(path string) (short string, done func(), err error) {
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	if runtime.GOOS != "linux" {
		return "", nil, fmt.Errorf("the path has %d bytes; a socket's may have %d here: use a shorter --data folder", len(path), maxSocketPath)
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), filepath.Base(path)), func() { d.Close() }, nil
}
