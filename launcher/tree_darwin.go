package launcher

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// treeLimits says in words what this system cannot do.
func treeLimits() string {
	return "on macOS a session's tree is its process group: a child that makes a session of its own is not followed, and a session outlives its keeper's violent death until its node sees it"
}

// tree is what a keeper started and is to end: its process group.
type tree struct {
	pid  int
	leaf string
	mem  memLeaf
	told bool
}

func (t *tree) signal(sig syscall.Signal) {
	if t.pid > 1 {
		_ = syscall.Kill(-t.pid, sig) // dead meanwhile is what we want
	}
}

// term tells the group, once, to end; there is nothing to look at again.
func (t *tree) term() (look time.Duration) {
	if !t.told {
		t.told = true
		t.signal(syscall.SIGTERM)
		t.signal(syscall.SIGCONT) // a stopped process takes no TERM
	}
	return 0
}

func (t *tree) kill() { t.signal(syscall.SIGKILL) }

func (t *tree) empty() bool { return t.pid <= 1 || syscall.Kill(-t.pid, 0) == syscall.ESRCH }

// reap collects dead children and tells each; empty is true when nothing of
// the group lives.
func (t *tree) reap(ended func(pid int, ws syscall.WaitStatus)) (empty bool) {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return t.empty()
		case pid == 0:
			return false
		default:
			ended(pid, ws)
		}
	}
}

func becomeReaper() error { return nil }

// startOf is when a process was started (microseconds), 0 when there is none.
func startOf(pid int) int64 {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(k.Proc.P_pid) != pid {
		return 0
	}
	t := k.Proc.P_starttime
	return t.Sec*1e6 + int64(t.Usec)
}

// endTree kills the recorded group of a run whose keeper is gone, in the boot
// it was made in, and only while its leader is the recorded process or is gone.
func endTree(ctx context.Context, nonce string, p *Proc) error {
	if p == nil || p.Boot != BootID() {
		return nil
	}
	if at := startOf(p.PID); at != 0 && at != p.Start {
		return nil // the pid is somebody else's: the group has ended
	}
	t := tree{pid: p.PID}
	for wait := time.Millisecond; wait < 2*time.Second; wait *= 2 {
		if t.empty() {
			return nil
		}
		t.kill()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
	return fmt.Errorf("the process group %d does not die of KILL", p.PID)
}

func inTree(pid int, keepers map[int]bool) bool {
	for range 64 {
		if keepers[pid] {
			return true
		}
		k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
		if err != nil || pid <= 1 {
			return false
		}
		pid = int(k.Eproc.Ppid)
	}
	return false
}

func makeCgroup(nonce string) (path string, dir *os.File) { return "", nil }
func removeCgroup(path string)                            {}

// keeperAttr is how a keeper is started: its own session, so that the end of
// the node, of its terminal or of its service leaves it running.
func keeperAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func sessionAttr(leaf, tty *os.File) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Setctty: tty != nil}
}
