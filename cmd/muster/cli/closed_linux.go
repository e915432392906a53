package cli

import "golang.org/x/sys/unix"

// waitClosed waits until nobody reads what is written to a pipe or socket; false when
// that cannot be told.
func waitClosed(fd int) bool {
	for {
		p := []unix.PollFd{{Fd: int32(fd)}} // errors and hang-ups are told without being asked for
		_, err := unix.Poll(p, -1)
		if err == unix.EINTR {
			continue
		}
		return err == nil && p[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
	}
}
