package lease

import (
	"flag"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"
)

var (
	modelLong = flag.Bool("model.long", false, "search the model for minutes (make model)")
	modelMost = flag.Int("model.states", 4<<20, "with -model.long: most states of one scenario")
	modelSeed = flag.Int64("model.seed", 1, "seed of the model's random walks")
)

// The scenarios. Short searches the first ones to their end and the beginning of
// the others; long gives each up to -model.states.
var exhaustive = []scenario{
	{name: "two nodes", runs: 2, nodes: 2, asym: true},
	{name: "two nodes, verdict from outside", runs: 2, nodes: 2, asym: true, bud: mBud{Out: 1}},
	{name: "words, crash, exit", runs: 2, nodes: 1, words: true, bud: mBud{Crash: 1, Exit: 1}},
	{name: "kept session, words", runs: 2, nodes: 1, keep: true, words: true},
}

var bounded = []scenario{
	{name: "lease", runs: 2, nodes: 2, asym: true, lease: true},
	{name: "lease shorter than fresh", runs: 2, nodes: 2, asym: true, lease: true, hasty: true, bud: mBud{Change: 1}},
	{name: "lease, leader change", runs: 2, nodes: 2, asym: true, lease: true, bud: mBud{Change: 1}},
	{name: "lease, crash, verdict", runs: 2, nodes: 2, asym: true, lease: true, bud: mBud{Crash: 1, Out: 1}},
	{name: "lease, sleep", runs: 2, nodes: 2, asym: true, lease: true, bud: mBud{Sleep: 1}},
	{name: "lease, node stopped", runs: 2, nodes: 2, asym: true, lease: true, bud: mBud{Stop: 1}},
	{name: "verdict, crash", runs: 2, nodes: 2, asym: true, bud: mBud{Out: 1, Crash: 1}},
	{name: "verdict, ESTOP", runs: 2, nodes: 2, asym: true, bud: mBud{Out: 1, Estop: 1}},
	{name: "verdict, reboot", runs: 2, nodes: 2, asym: true, bud: mBud{Out: 1, Reboot: 1}},
	{name: "verdict, leader change", runs: 2, nodes: 2, asym: true, bud: mBud{Out: 1, Change: 1}},
	{name: "keeper killed, crash", runs: 2, nodes: 2, asym: true, bud: mBud{Keeper: 1, Crash: 1}},
	{name: "manager's word", runs: 2, nodes: 2, asym: true, bud: mBud{Force: 1}},
	{name: "headless, crash, exit", runs: 2, nodes: 1, headless: true, words: true, bud: mBud{Crash: 1, Exit: 1}},
	{name: "kept, verdict", runs: 2, nodes: 1, keep: true, words: true, bud: mBud{Out: 1}},
	{name: "kept, close", runs: 2, nodes: 1, keep: true, words: true, bud: mBud{Close: 1}},
	{name: "kept, crash, exit", runs: 2, nodes: 1, keep: true, words: true, bud: mBud{Crash: 1, Exit: 1}},
	{name: "kept, ESTOP, exit", runs: 2, nodes: 1, keep: true, words: true, bud: mBud{Estop: 1, Exit: 1}},
	{name: "kept, keeper killed, ESTOP", runs: 2, nodes: 1, keep: true, words: true, bud: mBud{Keeper: 1, Estop: 1}},
	{name: "kept, manager's word", runs: 2, nodes: 1, keep: true, words: true, bud: mBud{Force: 1}},
	{name: "kept, some leased", runs: 2, nodes: 1, keep: true, words: true, lease: true, mix: true},
	{name: "kept twice, verdict", runs: 3, nodes: 1, keep: true, words: true, bud: mBud{Out: 1}},
}

// wild are walked at random: three runs, both nodes at fault, everything at once.
var wild = []scenario{
	{name: "walks: leases", runs: 3, nodes: 2, lease: true, words: true,
		bud: mBud{Crash: 2, Sleep: 2, Reboot: 1, Stop: 1, Change: 2, Estop: 1, Out: 2, Exit: 1, Keeper: 1}},
	{name: "walks: kept, some leased", runs: 3, nodes: 2, lease: true, mix: true, keep: true, words: true,
		bud: mBud{Crash: 2, Sleep: 1, Reboot: 1, Stop: 1, Change: 1, Estop: 1, Out: 1, Exit: 1, Close: 1, Keeper: 1}},
	{name: "walks: kept, managers", runs: 3, nodes: 2, keep: true, words: true,
		bud: mBud{Crash: 2, Change: 1, Estop: 1, Out: 1, Exit: 1, Close: 1, Force: 1}},
	{name: "walks: headless", runs: 3, nodes: 2, headless: true, words: true, lease: true, mix: true,
		bud: mBud{Crash: 2, Sleep: 1, Change: 1, Out: 1, Exit: 1, Force: 1, Close: 1}},
}

// TestModel searches the product's own step functions for a history that breaks
// invariant 1, 2, 3 or 20: in seconds, or in minutes with -model.long.
func TestModel(t *testing.T) {
	limit, drainEvery, walks, steps := 25000, 100, 300, 150
	if *modelLong {
		limit, drainEvery, walks, steps = *modelMost, 100, 20000, 200
	}
	var taken [aEnd]int
	add := func(r result) {
		for c, n := range r.steps {
			taken[c] += n
		}
	}
	for _, sc := range exhaustive {
		add(search(t, sc, 1<<20, drainEvery, true))
	}
	for _, sc := range bounded {
		add(search(t, sc, limit, drainEvery, false))
	}
	for _, sc := range wild {
		add(walk(t, sc, walks, steps))
	}
	for c, n := range taken { // a search that never comes to a step says nothing about it
		switch text := actText[actCode(c)]; {
		case text == "":
		case (actCode(c) == aDeposed || actCode(c) == aEarly) != (n == 0):
			t.Errorf("%q was taken %d times", text, n)
		}
	}
}

func search(t *testing.T, sc scenario, limit, drainEvery int, whole bool) result {
	t.Helper()
	w := &world{product(), sc}
	at := time.Now()
	res := w.bfs(limit, drainEvery)
	res.report(t, sc.name, time.Since(at))
	if whole && !res.complete {
		t.Errorf("%s: no longer searched to its end within %d states", sc.name, limit)
	}
	return res
}

func walk(t *testing.T, sc scenario, walks, steps int) result {
	t.Helper()
	w := &world{product(), sc}
	w.m.pushLate = true
	at := time.Now()
	res := w.walk(rand.New(rand.NewSource(*modelSeed)), walks, steps)
	res.report(t, sc.name, time.Since(at))
	return res
}

func (r result) report(t *testing.T, name string, d time.Duration) {
	t.Helper()
	how := "bounded"
	if r.complete {
		how = "complete"
	}
	t.Logf("%-32s %8d states, depth %2d, %-8s %6d drained, %.1f s", name, r.states, r.depth, how, r.drained, d.Seconds())
	if r.bad == bOK {
		return
	}
	var b strings.Builder
	for i, a := range r.trace {
		if a.c == aEnd {
			fmt.Fprintf(&b, "      -- the faults stop --\n")
			continue
		}
		fmt.Fprintf(&b, "  %3d %s\n", i+1, a)
	}
	t.Errorf("%s: %s: %s, after %d steps:\n%s", name, badText[r.bad], r.why, len(r.trace), b.String())
}
