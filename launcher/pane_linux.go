package launcher

import (
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const getTermios, setTermios = unix.TCGETS, unix.TCSETS

// ends waits for the end of a process that is not ours, and tells whether it came in time.
func ends(pid int, within time.Duration) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err == unix.ESRCH
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	defer f.Close()
	until := time.Now().Add(within)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(max(0, time.Until(until)).Milliseconds()))
		if err != unix.EINTR {
			return err == nil && n > 0
		}
	}
}

// listenFolder opens a socket in a folder whose path may be longer than the name
// of a socket may be.
func listenFolder(dir, name string) (*net.UnixListener, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: "/proc/self/fd/" + itoa(int(d.Fd())) + "/" + name, Net: "unix"})
	if err == nil {
		l.SetUnlinkOnClose(false) // that name means nothing later
	}
	return l, err
}
