package workspace

import "syscall"

// gitAttr: a killed node's git goes on to its end here; its lock is waited for.
func gitAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
