package launcher

import (
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// KernelSlack is how much later than asked the kernel ends sleeps by itself, ns.
const KernelSlack = 50_000

// plainSleeps gives this thread, and what it starts, the slack that programs
// expect. A node and its keepers have more, which they would pass on.
func plainSleeps() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, KernelSlack, 0, 0, 0) }

// startPlain starts a program of a person from a process that has more slack.
func startPlain(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ns, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err == nil && ns > KernelSlack {
		plainSleeps()
		defer func() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(ns), 0, 0, 0) }()
	}
	return cmd.Start()
}
