package workspace

import "syscall"

// gitAttr lets git die with its node: what it had begun is found by its lock.
func gitAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
