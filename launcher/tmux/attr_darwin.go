package tmux

import "syscall"

// attr: macOS ends no process with another.
func attr() *syscall.SysProcAttr { return nil }
