package launcher

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// samePeer tells whether the other end is the user of this process, or root.
func samePeer(c net.Conn) bool {
	uc, ok := c.(*net.UnixConn)
	if !ok {
		return false
	}
	raw, err := uc.SyscallConn()
	if err != nil {
		return false
	}
	allowed := false
	err = raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		allowed = err == nil && (cred.Uid == 0 || int(cred.Uid) == os.Getuid())
	})
	return err == nil && allowed
}

// keeperOf is the process behind a connection to a keeper's socket.
func keeperOf(c net.Conn) (pid int, ok bool) {
	uc, isUnix := c.(*net.UnixConn)
	if !isUnix {
		return 0, false
	}
	raw, err := uc.SyscallConn()
	if err != nil {
		return 0, false
	}
	err = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	return pid, err == nil && pid > 0
}

func dupTo(from, to int) error { return unix.Dup3(from, to, 0) }

// dialFolder connects to a socket in a folder whose path may be longer than
// the name of a socket may be.
func dialFolder(dir, name string) (net.Conn, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return net.Dial("unix", "/proc/self/fd/"+itoa(int(d.Fd()))+"/"+name)
}
