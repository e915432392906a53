package launcher

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// watcher tells when something in a run's folder has changed. The kernel tells
// it, so that a log that is followed costs nothing while nothing is written.
type watcher struct{ f *os.File }

func watch(dir string) (*watcher, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	f := os.NewFile(uintptr(fd), "inotify")
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_MODIFY|unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_DELETE_SELF); err != nil {
		f.Close()
		return nil, os.NewSyscallError("inotify_add_watch", err)
	}
	return &watcher{f}, nil
}

// wait comes back after a change, or when ctx ends.
func (w *watcher) wait(ctx context.Context) {
	defer context.AfterFunc(ctx, func() { _ = w.f.SetReadDeadline(time.Unix(1, 0)) })()
	var b [4096]byte
	_, _ = w.f.Read(b[:]) // whatever it was: the caller looks
}

func (w *watcher) close() { w.f.Close() }
