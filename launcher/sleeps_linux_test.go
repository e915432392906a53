package launcher

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A node's long sleeps are its own: a session's timers, and those of a shell, are as exact as ever.
func TestSessionsSleepAsExactlyAsEver(t *testing.T) {
	t.Parallel()
	// A thread that is not unlocked ends with this test, and its slack with it.
	runtime.LockOSThread()
	must(t, unix.Prctl(unix.PR_SET_TIMERSLACK, 400_000, 0, 0, 0))
	const own = "/proc/self/timerslack_ns"
	if b, err := exec.Command("cat", own).Output(); err != nil || strings.TrimSpace(string(b)) != "400000" {
		t.Fatalf("what this thread starts has slack %q (%v): nothing to be undone", b, err)
	}
	k, out := testKeepers(t), filepath.Join(t.TempDir(), "slack")
	dir, _ := testSpec(t, sh(`cat `+own+` >"$1"`, out), nil)
	finish(t, start(t, k, dir), dir)
	if b, err := os.ReadFile(out); err != nil || strings.TrimSpace(string(b)) != "50000" {
		t.Errorf("the session's slack is %q (%v), want the kernel's 50000", b, err)
	}
	var said strings.Builder
	cmd := exec.Command("cat", own)
	cmd.Stdout = &said
	must(t, startPlain(cmd))
	must(t, cmd.Wait())
	if got := strings.TrimSpace(said.String()); got != "50000" {
		t.Errorf("a shell's slack is %s, want the kernel's 50000", got)
	}
	if b, err := exec.Command("cat", own).Output(); err != nil || strings.TrimSpace(string(b)) != "400000" {
		t.Errorf("afterwards the thread has slack %q (%v), want its own 400000", b, err)
	}
}
