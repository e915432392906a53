package e2e

import "golang.org/x/sys/unix"

// endOf names a process now; what it returns waits for its end.
func endOf(pid int) (wait func(), err error) {
	queue, err := unix.Kqueue()
	if err != nil {
		return nil, err
	}
	event := unix.Kevent_t{Ident: uint64(pid), Filter: unix.EVFILT_PROC, Flags: unix.EV_ADD | unix.EV_ONESHOT, Fflags: unix.NOTE_EXIT}
	if _, err := unix.Kevent(queue, []unix.Kevent_t{event}, nil, nil); err != nil {
		unix.Close(queue)
		return nil, err
	}
	return func() {
		defer unix.Close(queue)
		for {
			if _, err := unix.Kevent(queue, nil, make([]unix.Kevent_t, 1), nil); err != unix.EINTR {
				return
			}
		}
	}, nil
}
