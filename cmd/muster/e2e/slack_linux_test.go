package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Every thread of a node may sleep half a millisecond longer than asked, also that of Go's which sleeps most, and
// whether or not the node may say so of threads that are there already.
func TestNodeSleepsAreEased(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("the slack of another process's threads is read by root only")
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Skip("setpriv (util-linux) is not here, and takes the privilege away from the second node")
	}
	f := newFleetAt(t, 2, 1, func(i int, m *machine) {
		if i == 1 {
			m.prefix = []string{setpriv, "--bounding-set", "-sys_nice"}
		}
	})
	for _, m := range f.machines {
		threads, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(m.pid()), "task"))
		if err != nil || len(threads) == 0 {
			t.Fatalf("threads of %s: %d (%v)", m.name, len(threads), err)
		}
		for _, x := range threads {
			b, err := os.ReadFile(filepath.Join("/proc", x.Name(), "timerslack_ns"))
			if os.IsNotExist(err) {
				continue // it has ended
			}
			if got := strings.TrimSpace(string(b)); err != nil || got != "500000" {
				t.Errorf("%s: a thread has slack %s ns (%v), want 500000", m.name, got, err)
			}
		}
	}
}
