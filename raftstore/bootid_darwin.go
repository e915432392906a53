package raftstore

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootID names this boot of the machine; "" if it cannot be told.
func bootID() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}

// bootClock counts from the boot of the machine, sleep included (which CLOCK_MONOTONIC does on this system).
func bootClock() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(ts.Nano())
}
