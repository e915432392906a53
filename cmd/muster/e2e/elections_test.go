package e2e

import (
	"flag"
	"fmt"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

var elections = flag.Duration("elections", 0, "how long three nodes hold their leader while every core is busy (make prove-7: 10m); 0 leaves it out")

// busy keeps every core at work for the length of the test, as compilers and tests do.
func busy(t *testing.T) {
	t.Helper()
	for range runtime.NumCPU() {
		cmd := exec.Command("sh", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
}

// goals.md P5, invariant 17: with every core at 100 % by others, three nodes with
// the timers of a LAN keep their leader: no election that nothing called for.
func TestNoElectionWithoutCause(t *testing.T) {
	if *elections == 0 {
		t.Skip("needs -elections=10m: to hold a leader while every core is busy, on a machine that does nothing else (make prove-7)")
	}
	f := newFleet(t, 3, 4)
	f.apply("600")
	f.leader()
	f.sameState()
	busy(t)
	first, err := f.machines[0].status()
	if err != nil {
		t.Fatal(err)
	}
	term, last, called, filed := first.Term, first.Leader, 0, 0
	end := time.Now().Add(*elections)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for now := range tick.C {
		if now.After(end) {
			break
		}
		if filed%5 == 0 {
			f.add(f.machines[filed%3], fmt.Sprintf("card %d", filed), "true", nil)
		}
		filed++
		s, err := f.machines[filed%3].status()
		if err != nil {
			t.Fatal(err)
		}
		if s.Term > term {
			called += int(s.Term - term)
			t.Errorf("%s: term %d and leader %s after term %d and leader %s, and nothing was broken", time.Now().Format("15:04:05.000"), s.Term, s.Leader, term, last)
			term, last = s.Term, s.Leader
		}
	}
	t.Logf("%s with %d cores at 100 %%: %d elections without a cause", *elections, runtime.NumCPU(), called)
}
