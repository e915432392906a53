package mesh

import (
	"time"

	"golang.org/x/sys/unix"
)

// BootClock is the time since the machine started, sleep included
// (CLOCK_BOOTTIME). No step of the wall clock moves it. It is what leases count
// with: Go's own clock stands still while the machine sleeps.
func BootClock() time.Duration { return readClock(unix.CLOCK_BOOTTIME) }

// AwakeClock is the time since the machine started, sleep not included.
func AwakeClock() time.Duration { return readClock(unix.CLOCK_MONOTONIC) }

func readClock(id int32) time.Duration {
	var ts unix.Timespec
	// It cannot fail for a clock that exists, and both do since Linux 2.6.39.
	_ = unix.ClockGettime(id, &ts)
	return time.Duration(ts.Nano())
}
