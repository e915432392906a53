package e2e

import (
	"context"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The demo, as a person runs it: it ends well within a minute of a quiet
// machine, its four checks hold, and it leaves nothing behind.
func TestDemo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "demo")
	cmd.Env = append(cmd.Environ(), "TMPDIR="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if n := strings.Count(string(out), "  ok   invariant "); n != 4 {
		t.Errorf("%d invariants are in order, want 4:\n%s", n, out)
	}
	if !regexp.MustCompile(`kill -9 \d+: \w+, the leader`).Match(out) {
		t.Errorf("nobody was killed:\n%s", out)
	}
	left, err := exec.Command("ls", "-A", dir).Output()
	if err != nil || len(left) > 0 {
		t.Errorf("it leaves %q behind (%v)", left, err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	t.Log(lines[len(lines)-3])
}
