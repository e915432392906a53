package launcher

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// Invariant 18: a pid that another process got after the session's end, on purpose,
// is that other process's: it is neither ended nor taken for the session.
func TestPIDUsedAgainOnPurpose(t *testing.T) {
	const last = "/proc/sys/kernel/ns_last_pid"
	if f, err := os.OpenFile(last, os.O_WRONLY, 0); err != nil {
		t.Skip("needs root: a pid is used again on purpose")
	} else {
		f.Close()
	}
	k := testKeepers(t)
	dir, spec := testSpec(t, sh(":"), nil)
	first := exec.Command("/bin/sleep", "1000")
	must(t, first.Start())
	pid := first.Process.Pid
	p := &Proc{PID: pid, Start: startOf(pid), Boot: BootID(), Nonce: spec.Nonce}
	must(t, first.Process.Kill())
	_ = first.Wait()
	var other *exec.Cmd
	eventually(t, "the same pid, later", func() bool {
		if os.WriteFile(last, []byte(strconv.Itoa(pid-1)), 0) != nil {
			return false
		}
		c := exec.Command("/bin/sleep", "1000")
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		must(t, c.Start())
		if c.Process.Pid == pid && startOf(pid) != p.Start {
			other = c
			return true
		}
		_ = c.Process.Kill()
		_ = c.Wait()
		return false
	})
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	must(t, WriteProc(dir, p))
	if s, err := k.Adopt(t.Context(), dir); s != nil || err != nil {
		t.Errorf("adopted %v, %v", s, err)
	}
	must(t, k.End(context.Background(), dir))
	if !alive(pid) {
		t.Error("the process that got the pid was ended")
	}
	if e := ReadExitMust(dir); e == nil || e.Code != nil || !exists(filepath.Join(dir, fileExit)) {
		t.Errorf("record %+v, want an end without a code", e)
	}
}
