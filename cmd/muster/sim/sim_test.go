package sim

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var (
	histories = flag.Int("histories", 3, "how many histories are played")
	seed      = flag.Uint64("seed", 1, "of the first history")
	nodes     = flag.Int("nodes", 0, "how many nodes each has; 0: by the seed")
	verbose   = flag.Bool("nodelog", false, "print what the nodes log")
)

// bubble runs fn in fake time. Raft leaves futures unanswered when it is shut down: who waits for one stays behind, and
// the bubble says so at its end.
func bubble(t *testing.T, fn func(t *testing.T)) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil && !strings.Contains(fmt.Sprint(p), "blocked goroutines remain") {
			panic(p)
		}
	}()
	synctest.Test(t, fn)
}

// fast is a folder in memory where there is one.
func fast(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "sim")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func nodesOf(seed uint64) int {
	if *nodes > 0 {
		return *nodes
	}
	return []int{3, 3, 5, 1, 3, 4, 3, 7, 5, 2, 3, 9}[seed%12]
}

func play(t *testing.T, seed uint64) (r *Report) {
	cfg := Config{Seed: seed, Nodes: nodesOf(seed), Dir: fast(t), Settle: synctest.Wait}
	if *verbose {
		cfg.Log = func(s string) { fmt.Fprintln(os.Stderr, s) }
	}
	bubble(t, func(*testing.T) { r = Run(cfg) })
	return r
}

func TestFleetHistories(t *testing.T) {
	begin := time.Now()
	total := map[string]int{}
	for i := range *histories {
		s := *seed + uint64(i)
		t.Run(fmt.Sprint("seed", s), func(t *testing.T) {
			at := time.Now()
			r := play(t, s)
			if r == nil {
				t.Fatal("no report")
			}
			r.Violation = append(r.Violation, Linear(r.Ops, time.Minute)...)
			for k, n := range r.Counts {
				total[k] += n
			}
			t.Logf("%d nodes, %v of fake time in %v", r.Nodes, r.Length, time.Since(at).Round(time.Millisecond))
			if len(r.Violation) > 0 {
				t.Errorf("seed %d:\n%s\n\n%s", s, strings.Join(r.Violation, "\n"), strings.Join(r.Notes, "\n"))
			}
		})
	}
	took := time.Since(begin)
	var list []string
	for k, n := range total {
		list = append(list, fmt.Sprintf("%7d  %s", n, k))
	}
	slices.SortFunc(list, func(a, b string) int { return strings.Compare(a[9:], b[9:]) })
	t.Logf("%d histories, %.1f a minute\n%s", *histories, float64(*histories)/took.Minutes(), strings.Join(list, "\n"))
}
