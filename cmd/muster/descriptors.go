package main

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// sealDescriptors keeps what the starter of this process left open from being
// passed on. Keepers, sessions and the server of terminal panes outlive a node: a
// lock or a pipe of the shell, the timer or the service that started it would be
// held for as long as they live, and who waits for its end would wait for ever.
func sealDescriptors() {
	list, err := os.ReadDir("/dev/fd")
	if err != nil { // no such folder here: nothing that can be known
		return
	}
	for _, e := range list {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}
