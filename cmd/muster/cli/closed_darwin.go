package cli

import "golang.org/x/sys/unix"

// waitClosed waits until nobody reads what is written to a pipe or socket; false when
// that cannot be told.
func waitClosed(fd int) bool {
	kq, err := unix.Kqueue()
	if err != nil {
		return false
	}
	defer unix.Close(kq)
	var ev unix.Kevent_t
	unix.SetKevent(&ev, fd, unix.EVFILT_WRITE, unix.EV_ADD|unix.EV_CLEAR)
	for change := []unix.Kevent_t{ev}; ; change = nil {
		out := make([]unix.Kevent_t, 1)
		n, err := unix.Kevent(kq, change, out, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return false
		case n > 0 && out[0].Flags&unix.EV_EOF != 0:
			return true
		}
	}
}
