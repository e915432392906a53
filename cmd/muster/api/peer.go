package api

import "net"

// peerCred is the user and process at the other end of a unix socket, as the system says.
func peerCred(c net.Conn) (uid, pid int, ok bool) {
	u, is := c.(*net.UnixConn)
	if !is {
		return 0, 0, false
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0, 0, false
	}
	err = raw.Control(func(fd uintptr) { uid, pid, ok = credOf(int(fd)) })
	return uid, pid, ok && err == nil
}
