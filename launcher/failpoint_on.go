//go:build failpoint

package launcher

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// The point, how often it is passed first, and a file: whoever removes it dies.
const (
	envPoint = "MUSTER_FAILPOINT"
	envOnce  = "MUSTER_FAILPOINT_ONCE"
)

var failPassed int64

// at kills this process with -9 at the point that the environment names.
func at(p point) {
	name, count, _ := strings.Cut(os.Getenv(envPoint), ":")
	if string(p) != name {
		return
	}
	n, _ := strconv.ParseInt(count, 10, 64)
	if atomic.AddInt64(&failPassed, 1) < n || os.Remove(os.Getenv(envOnce)) != nil {
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// failEnv hands the point to keepers.
func failEnv() []string {
	return []string{envPoint + "=" + os.Getenv(envPoint), envOnce + "=" + os.Getenv(envOnce)}
}
