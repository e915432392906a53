package launcher

import (
	"net"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const getTermios, setTermios = unix.TIOCGETA, unix.TIOCSETA

// ends waits for the end of a process that is not ours, and tells whether it came in time.
func ends(pid int, within time.Duration) bool {
	kq, err := unix.Kqueue()
	if err != nil {
		return false
	}
	defer unix.Close(kq)
	var ev unix.Kevent_t
	unix.SetKevent(&ev, pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	ev.Fflags = unix.NOTE_EXIT
	until := time.Now().Add(within)
	for {
		wait := unix.NsecToTimespec(int64(max(0, time.Until(until))))
		out := make([]unix.Kevent_t, 1)
		n, err := unix.Kevent(kq, []unix.Kevent_t{ev}, out, &wait)
		if err != unix.EINTR {
			return err == unix.ESRCH || n > 0
		}
	}
}

// listenFolder opens a socket in a folder.
func listenFolder(dir, name string) (*net.UnixListener, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, name), Net: "unix"})
	if err == nil {
		l.SetUnlinkOnClose(false)
	}
	return l, err
}
