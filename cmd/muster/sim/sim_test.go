package sim

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"muster/cmd/muster/history"
)

var (
	histories = flag.Int("histories", 0, "how many histories are played; 0: 30, and 6 under the race detector")
	seed      = flag.Uint64("seed", 1, "of the first history")
	nodes     = flag.Int("nodes", 0, "how many nodes each has; 0: by the seed")
	proof     = flag.String("proof", "", "add a line about this run to this file")
	commit    = flag.String("commit", "unknown", "what the line says of the tree")
	wide      = flag.Bool("wide", false, "users ask for all that can be asked of a fleet, and what is left is looked at afterwards")
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
	cfg := Config{Seed: seed, Nodes: nodesOf(seed), Dir: fast(t), Settle: synctest.Wait, Wide: *wide}
	if *verbose {
		cfg.Log = func(s string) { fmt.Fprintln(os.Stderr, s) }
	}
	bubble(t, func(*testing.T) { r = Run(cfg) })
	if r != nil && *wide {
		r.Violation = append(r.Violation, Aftermath(cfg)...)
	}
	return r
}

// often is how often everything of these must have happened in a run of many histories, or the run has shown nothing.
const often = 10

// wanted are the faults, refusals, exits and events of the workflow that a run must have seen.
var wanted = []string{
	"fault: kill -9", "fault: power cut", "fault: died at a write", "fault: cut off, both ways", "fault: cut off, one way", "fault: partition", "fault: sleep",
	"fault: clock step", "fault: disk full", "fault: disk slow", "fault: session vanishes", "fault: starts refused (ESTOP)", "fault: bad network", "fault: leadership handed over",
	"killed in log-append", "killed in log-appended", "killed in state-commit", "log write torn", "state torn", "write on a full disk",
	"node ended: full disk", "node started again by its supervisor",
	"answer lost", "request lost", "copy late", "message slow", "push twice",
	"request tried again through another node", "request of unknown outcome", "unknown outcome asked for again", "consistent read", "local read",
	"refusal refused (no_transition)", "refusal refused (superseded)", "refusal refused (pause)",
	"session succeeds", "session crashes", "session hangs", "session cannot be started", "session is turned away (rate limit)", "session says nothing of its work",
	"session speaks", "session killed with its machine", "session said request_review", "session said complete", "session said request_changes", "session said block",
	"event start", "event exited", "event complete", "event request_review", "event request_changes", "event block", "event comment", "event promote", "event reassign",
	"event reclaim", "event stop_run", "event cancel", "event archive", "event spawn_failed", "event timed_out",
	"card ends done", "card ends blocked", "card ends cancelled",
}

// wantedWide are what a run of wide histories must have seen besides.
var wantedWide = []string{
	"fault: slow follower", "fault: stopped in order", "message overtaken by a later one", "session adopted by the next process of its node",
	"refusal invalid", "refusal not_found", "refusal conflict", "refused board.apply",
	"done card.put", "done card.unlink", "done move", "done forget", "done pause", "done resume", "done node.drain",
	"done board.apply", "done board.set", "done subscribe", "done send", "done token.create", "done token.revoke", "done node.label",
	"done agent.declare", "done agent.end", "done agent.fork", "done import.begin", "done import.slice", "done import.end",
	"workflow saved while its cards are worked", "board copied", "done with a token", "lab: probe", "lab: shelve", "lab: grow",
	"session taken up again", "session filed a card", "event unblock", "event reopen", "event specify", "event decompose", "event adopt",
	"recorded agent_declared", "a month later",
}

// tally is what a run of histories has seen.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
	failed []uint64
	played int
}

func (y *tally) add(r *Report) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.played++
	for k, n := range r.Counts {
		y.counts[k] += n
	}
	if len(r.Violation) > 0 {
		y.failed = append(y.failed, r.Seed)
	}
}

// enough tells that three seeds have failed.
func (y *tally) enough() bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	return len(y.failed) >= 3
}

func (y *tally) table() string {
	var list []string
	for k, n := range y.counts {
		list = append(list, fmt.Sprintf("%7d  %s", n, k))
	}
	slices.SortFunc(list, func(a, b string) int { return strings.Compare(a[9:], b[9:]) })
	return strings.Join(list, "\n")
}

// Invariants 1 to 8, 12, 14, 17, 19 to 22: whole fleets under faults of every kind. A seed that fails prints its history.
func TestFleetHistories(t *testing.T) {
	if *histories == 0 {
		*histories = usual
	}
	begin := time.Now()
	y := &tally{counts: map[string]int{}}
	t.Run("history", func(t *testing.T) {
		for i := range *histories {
			s := *seed + uint64(i)
			t.Run(fmt.Sprint("seed", s), func(t *testing.T) {
				t.Parallel()
				if y.enough() {
					return // what fails again and again shows nothing new
				}
				r := play(t, s)
				if r == nil {
					t.Fatal("no report")
				}
				r.Violation = append(r.Violation, history.Linear(r.Ops, time.Minute)...)
				y.add(r)
				if len(r.Violation) > 0 {
					t.Errorf("seed %d, %d nodes:\n%s\n\n%s", s, r.Nodes, strings.Join(r.Violation, "\n"), strings.Join(r.Notes, "\n"))
				}
				if n := r.Counts["request"]; n < leastRequests {
					t.Errorf("seed %d: only %d requests", s, n)
				}
			})
		}
	})
	took := time.Since(begin)
	t.Logf("%d histories in %v, %.1f a minute\n%s", y.played, took.Round(time.Second), float64(y.played)/took.Minutes(), y.table())
	if y.played >= 30 && len(y.failed) == 0 {
		must := wanted
		if *wide {
			must = slices.Concat(wanted, wantedWide)
		}
		for _, what := range must {
			if y.counts[what] < often {
				t.Errorf("%q happened %d times in %d histories, want %d: the run shows nothing of it", what, y.counts[what], y.played, often)
			}
		}
	}
	y.prove(t, took)
}

// prove adds a line about this run to the file of -proof.
func (y *tally) prove(t *testing.T, took time.Duration) {
	if *proof == "" {
		return
	}
	keep := map[string]int{}
	for _, what := range wanted {
		keep[what] = y.counts[what]
	}
	line, err := json.Marshal(map[string]any{"what": "simulated histories", "commit": *commit, "date": time.Now().UTC().Format(time.DateOnly), "first_seed": *seed,
		"histories": y.played, "violations": len(y.failed), "failed_seeds": y.failed, "seconds": int(took.Seconds()), "counts": keep})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(*proof, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
