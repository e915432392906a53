package main

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"muster/launcher"
)

// sleepSlack is how much later than asked the kernel may end a sleep of a
// node's threads, ns. Go has a thread that sleeps 20 us at a time as long as
// anything runs, to take the processor away from who waits in a system call.
// A node syncs a file for each batch, so that thread never rests: waking it, and
// passing processors on and back, is a quarter of a node's processor time. No
// timer of a node means anything below a millisecond.
const sleepSlack = 500_000

// easeSleeps gives all threads of a node that slack, when up or join is the first word (a node that is begun otherwise is only
// less thrifty). That of another thread is set by
// the privileged only; otherwise this program begins once more, since a process
// passes its own on to what it executes. Whoever has chosen another than the kernel's has decided.
func easeSleeps(args []string) {
	if len(args) < 2 || !slices.Contains([]string{"up", "join"}, args[1]) || !kernelsSlack() || slackOfAll(sleepSlack) == nil {
		return
	}
	self, err := os.Executable()
	if err != nil {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if unix.Prctl(unix.PR_SET_TIMERSLACK, sleepSlack, 0, 0, 0) == nil && !kernelsSlack() {
		_ = syscall.Exec(self, args, os.Environ()) // when it fails, this process is the node, and only less thrifty
	}
}

// kernelsSlack tells that nobody has chosen a slack for this thread.
func kernelsSlack() bool {
	ns, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	return err == nil && ns == launcher.KernelSlack
}

// slackOfAll sets the slack of every thread of this process; those to come have that of the thread that makes them.
func slackOfAll(ns int) error {
	for range 2 { // the second round finds what a thread of the first has made before its turn came
		list, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, e := range list {
			err := os.WriteFile(filepath.Join("/proc", e.Name(), "timerslack_ns"), strconv.AppendInt(nil, int64(ns), 10), 0)
			if err != nil && !os.IsNotExist(err) { // a thread may have ended
				return err
			}
		}
	}
	return nil
}
