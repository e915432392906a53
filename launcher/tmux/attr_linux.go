package tmux

import "syscall"

// attr has the client end with the process that reads it. A server that ends waits for what it has still to tell a client, and
// the client for the server: without a reader, neither would end. (The server, which the client starts, is asked nothing.)
func attr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
