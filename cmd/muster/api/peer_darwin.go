package api

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerCred is the user and process at the other end of a unix socket.
func peerCred(c net.Conn) (uid, pid int, ok bool) {
	u, is := c.(*net.UnixConn)
	if !is {
		return 0, 0, false
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0, 0, false
	}
	err = raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
		if err != nil {
			return
		}
		uid, ok = int(cred.Uid), true
		pid, _ = unix.GetsockoptInt(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	})
	return uid, pid, ok && err == nil
}
