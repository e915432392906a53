package launcher

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// punchHole gives the disk space of a part of a file back; it reads as zeros.
func punchHole(f *os.File, from, n int64) error {
	return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, from, n)
}

// written gives a channel that is closed at the next write to a file. The kernel
// tells it, once: a quiet session costs its keeper nothing, a loud one a look now
// and then.
func written(path string) (wrote <-chan struct{}, closeWatch func(), err error) {
	never := make(chan struct{})
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return never, func() {}, os.NewSyscallError("inotify_init1", err)
	}
	f := os.NewFile(uintptr(fd), "inotify")
	if _, err := unix.InotifyAddWatch(fd, path, unix.IN_MODIFY|unix.IN_ONESHOT); err != nil {
		return never, func() {}, errors.Join(os.NewSyscallError("inotify_add_watch", err), f.Close())
	}
	told := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		var b [512]byte
		if _, err := f.Read(b[:]); err == nil {
			close(told)
		}
	})
	return told, func() { f.Close(); wg.Wait() }, nil
}
