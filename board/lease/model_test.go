package lease

import (
	"flag"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"
)

var modelLong = flag.Bool("model.long", false, "search the model for minutes instead of seconds")

func (r result) report(t *testing.T, name string, d time.Duration) {
	t.Helper()
	t.Logf("%-34s %8d states, depth %2d, complete %-5v %6d drained, %.1f s", name, r.states, r.depth, r.complete, r.drained, d.Seconds())
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

func TestDraft(t *testing.T) {
	for _, sc := range []scenario{
		{name: "keep,words,force", runs: 2, nodes: 1, keep: true, words: true, bud: mBud{Force: 1}},
		{name: "keep,lease,words", runs: 2, nodes: 1, keep: true, words: true, lease: true, mix: true},
		{name: "lease", runs: 2, nodes: 2, asym: true, lease: true},
	} {
		w := &world{product(), sc}
		at := time.Now()
		w.bfs(8000000, 500).report(t, sc.name, time.Since(at))
	}
	_ = rand.New
}
