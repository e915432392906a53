package launcher

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

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
		cred, err := unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
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
		pid, _ = unix.GetsockoptInt(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	})
	return pid, err == nil && pid > 0
}

func dupTo(from, to int) error { return unix.Dup2(from, to) }

// dialFolder connects to a socket in a folder.
func dialFolder(dir, name string) (net.Conn, error) {
	path := filepath.Join(dir, name)
	if len(path) > 103 {
		return nil, fmt.Errorf("the path of %s is longer than a socket's name may be on macOS (103 bytes): use a shorter data folder", path)
	}
	return net.Dial("unix", path)
}
