//go:build failpoint

package launcher

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"muster/board"
)

var (
	kills    = flag.Int("kills", 50, "nodes and keepers killed at points of their work (make prove-4: 500)")
	killSeed = flag.Uint64("kills.seed", 0, "seed of the choices; 0 takes one and prints it")
)

// points of node and keeper, for tests that choose.
var points = []point{
	atBeforeWrite, atAfterWrite, atFolder, atPrepared, atSpec, atSpawned, atBarred, atSend, atAnswered, atWord, atReap, atReaped,
	atRecorded, atReleased, atDead, atExit,
}

// dying makes the next node, or one of its keepers, die at a point when it is passed
// for the count-th time. The file is gone when it has.
func (p *nodeProcess) dying(at point, count int) (once string) {
	p.t.Helper()
	once = filepath.Join(p.t.TempDir(), "once")
	must(p.t, os.WriteFile(once, nil, 0o600))
	p.env = []string{envPoint + "=" + string(at) + ":" + strconv.Itoa(count), envOnce + "=" + once}
	p.restart()
	return once
}

// try asks; a node that died is started again and asked once more.
func (p *nodeProcess) try(o order) answer {
	p.t.Helper()
	a, ok := p.ask(o)
	if !ok {
		p.restart()
		a, _ = p.ask(o)
	}
	return a
}

// Invariants 1 and 2, M-12: a node that dies at any point of a start, its report or
// its stop starts nothing twice, and all is told in the end.
func TestNodeDiesAtEveryPoint(t *testing.T) {
	for _, c := range []struct {
		at       point
		stop     bool
		from, to int // how often the point is passed before the node dies there
	}{
		{atBeforeWrite, false, 1, 2},
		{atAfterWrite, false, 1, 4}, // taken, launched, exited, outcomes
		{atFolder, false, 1, 1},
		{atPrepared, false, 1, 1},
		{atSpec, false, 1, 1},
		{atSpawned, false, 1, 1},
		{atSend, false, 1, 3},
		{atAnswered, false, 1, 3},
		{atAfterWrite, true, 3, 5}, // the stop and what follows
		{atBarred, true, 1, 1},
	} {
		t.Run(fmt.Sprintf("%s/stop=%v", c.at, c.stop), func(t *testing.T) {
			t.Parallel()
			died := 0
			for count := c.from; count <= c.to && diesAt(t, c.at, count, c.stop); count++ {
				died++
			}
			if died == 0 && c.at != atBarred { // a stop may find its session dead already
				t.Errorf("the node was never killed at %q: nobody passes there", c.at)
			}
		})
	}
}

// diesAt runs one session on a node that dies once; false when it never did.
func diesAt(t *testing.T, at point, count int, stop bool) bool {
	t.Helper()
	p := newProcess(t)
	once := p.dying(at, count)
	marks := filepath.Join(t.TempDir(), "marks")
	o := order{Op: "file", Profile: "sh", Script: `echo "$MUSTER_RUN" >> ` + marks}
	if stop {
		o.Script += "; while :; do sleep 0.05; done"
	}
	if _, ok := p.ask(o); !ok {
		p.restart()
	}
	if stop {
		p.until("the start", func(a answer) bool {
			return len(a.Runs) > 0 && (a.Runs[0].Launched != 0 && marked(marks) || a.Runs[0].Gone != "")
		})
		p.try(order{Op: "event", Card: "web-1", Event: "cancel"})
	}
	end := p.until("every session gone and every report told", allGone)
	b, _ := os.ReadFile(marks)
	for _, r := range end.Runs {
		if started := bytes.Contains(b, []byte(r.ID+"\n")); started != (r.Launched != 0) {
			t.Errorf("%s %d: run %s executed: %v, told as launched: %v (gone %q)\n%s", at, count, r.ID, started, r.Launched != 0, r.Gone, p.logText())
		}
	}
	p.agrees(end, marks)
	return !exists(once)
}

func marked(path string) bool {
	b, _ := os.ReadFile(path)
	return bytes.HasSuffix(b, []byte("\n"))
}

// agrees holds the machine against the state when all runs are gone: no run ran twice,
// none ran of which the state has neither start nor end (a start is not told of a run
// that was stopped meanwhile, its end is), no folder is without its run, and
// no process of any session of this node lives.
func (p *nodeProcess) agrees(end answer, marks string) {
	p.t.Helper()
	b, _ := os.ReadFile(marks)
	ran := map[string]int{}
	for _, id := range strings.Fields(string(b)) {
		ran[id]++
	}
	known := map[string]*board.Run{}
	for _, r := range end.Runs {
		known[r.ID] = r
		if s := end.Cards[r.Card]; s == "running" {
			p.t.Errorf("card %s is still running", r.Card)
		}
	}
	for id, n := range ran {
		if r := known[id]; n > 1 || r == nil || r.Launched == 0 && r.Means == "" {
			p.t.Errorf("run %s was executed %d times; the state has %+v\n%s", id, n, r, p.logText())
		}
	}
	names, err := os.ReadDir(filepath.Join(p.dir, "runs"))
	must(p.t, err)
	for _, e := range names {
		if known[e.Name()] == nil {
			p.t.Errorf("folder %s is of no run", e.Name())
		}
	}
	for _, q := range processes() {
		env, err := os.ReadFile("/proc/" + strconv.Itoa(q.pid) + "/environ")
		if err == nil && !q.zombie && bytes.Contains(env, []byte("MUSTER_SOCKET="+p.dir+"/")) {
			p.t.Errorf("process %d of this node lives after all its runs are gone: %q", q.pid, env)
		}
	}
}

// Invariants 1, 2 and 18: nodes and keepers killed with -9 at points of their work,
// chosen at random, while sessions start, end, are stopped, lose their keepers and
// speak. After each, machine and state agree.
func TestKills(t *testing.T) {
	seed := *killSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d (again with -kills.seed=%d)", seed, seed)
	var mu sync.Mutex
	done, at := 0, map[point]int{}
	const worlds = 4
	t.Run("worlds", func(t *testing.T) {
		for w := range worlds {
			t.Run(strconv.Itoa(w), func(t *testing.T) {
				t.Parallel()
				rnd := rand.New(rand.NewPCG(seed, uint64(w)))
				var p *nodeProcess
				for round := 0; !t.Failed(); round++ {
					if round%8 == 0 { // a state is replayed at each start
						p = newProcess(t)
					}
					pt := points[rnd.IntN(len(points))]
					died := p.killRound(rnd, pt)
					mu.Lock()
					if died {
						done, at[pt] = done+1, at[pt]+1
					}
					enough := done >= *kills
					mu.Unlock()
					if enough {
						return
					}
				}
			})
		}
	})
	t.Logf("%d kills: %v", done, at)
	for _, pt := range points {
		if *kills >= 500 && at[pt] == 0 {
			t.Errorf("nobody was ever killed at %q", pt)
		}
	}
}

// killRound starts some sessions while somebody dies at a point, waits for their end,
// and looks. False: nobody came by.
func (p *nodeProcess) killRound(rnd *rand.Rand, at point) bool {
	p.t.Helper()
	once := p.dying(at, 1+rnd.IntN(4))
	marks := filepath.Join(p.dir, "marks")
	const mark = `echo "$MUSTER_RUN" >> `
	long := mark + marks + "; while :; do sleep 0.05; done"
	p.try(order{Op: "file", Profile: "sh", Script: mark + marks + "; exit " + strconv.Itoa(rnd.IntN(2))})
	stopped := p.try(order{Op: "file", Profile: "sh", Script: long}).Run
	bereft := p.try(order{Op: "file", Profile: "sh", Script: long}).Run
	speaks := p.try(order{Op: "file", Profile: "agent", Script: long}).Run
	up := func(run string) func(answer) bool {
		return func(a answer) bool {
			for _, r := range a.Runs {
				if r.ID == run && (r.Launched != 0 || r.Gone != "") {
					return true
				}
			}
			return run == ""
		}
	}
	p.until("a session to stop", up(stopped))
	p.until("a session to lose its keeper", up(bereft))
	if proc, err := ReadProc(filepath.Join(p.dir, "runs", bereft)); err == nil && startOf(proc.Keeper) != 0 {
		_ = syscall.Kill(proc.Keeper, syscall.SIGKILL)
	}
	p.until("a session to speak", up(speaks))
	p.try(order{Op: "say", Run: speaks, Event: "request_review", Wait: 5 * time.Second})
	for _, run := range []string{stopped, bereft, speaks} {
		p.try(order{Op: "event", Card: board.CardOfRun(run), Event: "cancel"})
	}
	end := p.until("every session gone and every report told", func(a answer) bool {
		for id, s := range a.Cards { // a crash starts its card again, unless it is cancelled
			if s == "ready" || s == "running" {
				p.try(order{Op: "event", Card: id, Event: "cancel"})
				return false
			}
		}
		return allGone(a)
	})
	p.agrees(end, marks)
	return !exists(once)
}
