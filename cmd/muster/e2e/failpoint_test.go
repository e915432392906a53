package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A binary has points at which a test kills it only when it is built for that.
func TestNoFailpointsInARelease(t *testing.T) {
	t.Parallel()
	const name, variable = "muster/launcher.failEnv", "MUSTER_FAILPOINT_ONCE"
	armed := filepath.Join(t.TempDir(), "muster")
	if out, err := exec.Command("go", "build", "-tags", "failpoint", "-o", armed, "muster/cmd/muster").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for path, want := range map[string]bool{armed: true, binary: false} {
		out, err := exec.Command("go", "tool", "nm", path).Output()
		if err != nil {
			t.Fatalf("nm: %v", err)
		}
		if got := strings.Contains(string(out), name) || holds(t, path, variable); got != want {
			t.Errorf("%s: failpoints in it: %v, want %v", filepath.Base(path), got, want)
		}
	}
}

func holds(t *testing.T, path, text string) bool {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(b, []byte(text))
}
