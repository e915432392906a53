package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/board"
)

// Invariants 1, 2, 4, 5, 7: cards filed at all three nodes, twenty at a time,
// sessions across a leader killed -9 and restarted, the answer of every tenth
// request thrown away and asked for again under the same id through another node.
// Every card is done, ran once, and is there once.
func TestSpine(t *testing.T) {
	rng := random(t)
	n, cards, slots, longest := 3, 40, 12, 2.0
	if *rounds > 0 {
		n, cards, slots, longest = *rounds, 200, 20, 5.0
	} else {
		t.Parallel()
	}
	f := newFleet(t, 3, slots)
	f.apply("600")
	for i := range n {
		at := f.spineRound(rng, i, cards, longest)
		t.Logf("round %d of %d: %d cards done, each once; state %s on three nodes", i+1, n, cards, at)
	}
}

func (f *fleet) spineRound(rng *rand.Rand, round, cards int, longest float64) string {
	t := f.t
	out := filepath.Join(f.dir, fmt.Sprintf("lines%d", round))
	durations := make([]float64, cards)
	for i := range durations {
		durations[i] = 0.2 + rng.Float64()*(longest-0.2)
	}
	killAfter := time.Duration(300+rng.IntN(1700)) * time.Millisecond
	victim := f.leader()
	ids := make([]string, cards)
	var wg sync.WaitGroup
	wg.Go(func() {
		<-time.After(killAfter)
		victim.kill()
		<-time.After(500 * time.Millisecond)
		victim.start()
	})
	work := make(chan int)
	for range 20 {
		wg.Go(func() {
			for i := range work {
				ids[i] = f.fileOne(i, round, out, durations[i])
			}
		})
	}
	for i := range cards {
		work <- i
	}
	close(work)
	wg.Wait()
	f.allDone(ids, round)
	f.onceEach(ids, out)
	if t.Failed() {
		t.FailNow()
	}
	return f.sameState()
}

// fileOne files a card; of every tenth the answer is thrown away and asked for
// again, under the same id, through another node.
func (f *fleet) fileOne(i, round int, out string, secs float64) string {
	m := f.machines[i%3]
	script := fmt.Sprintf("echo start $MUSTER_CARD $MUSTER_RUN >> %s\nsleep %.2f\necho end $MUSTER_CARD $MUSTER_RUN >> %s\n", out, secs, out)
	a := cardAdd(fmt.Sprintf("round %d card %d", round, i), script, nil)
	id := f.mint(m)
	data, err := f.try(m, board.VCardAdd, a, id)
	if err != nil {
		f.t.Errorf("card %d: %v", i, err)
		return ""
	}
	if i%10 == 0 {
		again, err := f.try(f.machines[(i+1)%3], board.VCardAdd, a, id)
		if err != nil || again["id"] != data["id"] {
			f.t.Errorf("card %d asked for again: %v (%v), first answer %v", i, again["id"], err, data["id"])
		}
	}
	return data["id"].(string)
}

// allDone waits until every card is done, and checks that each acknowledged one is there once.
func (f *fleet) allDone(ids []string, round int) {
	prefix := fmt.Sprintf("round %d card ", round)
	f.eventually(120*time.Second, "all done", func() (bool, string) {
		list, err := f.machines[0].cards()
		if err != nil {
			return false, err.Error()
		}
		var open []string
		titles := map[string]int{}
		there := map[string]bool{}
		for _, c := range list {
			if !strings.HasPrefix(c.Title, prefix) {
				continue
			}
			titles[c.Title]++
			there[c.ID] = true
			if c.Status != "done" {
				why := ""
				if c.Reason != nil {
					why = c.Reason.Text
				}
				open = append(open, fmt.Sprintf("%s %s %s", c.ID, c.Status, why))
			}
		}
		for title, n := range titles {
			if n != 1 {
				f.t.Fatalf("%q is there %d times", title, n)
			}
		}
		for _, id := range ids {
			if !there[id] {
				return false, "acknowledged card " + id + " is not there"
			}
		}
		if len(titles) != len(ids) {
			f.t.Fatalf("%d cards, %d were acknowledged", len(titles), len(ids))
		}
		return len(open) == 0, fmt.Sprintf("%d open: %s", len(open), strings.Join(open, "; "))
	})
}

// onceEach checks that every card's script began once and ended once, under one run.
func (f *fleet) onceEach(ids []string, out string) {
	f.t.Helper()
	b, err := os.ReadFile(out)
	if err != nil {
		f.t.Fatal(err)
	}
	lines := map[string][]string{}
	for line := range strings.Lines(string(b)) {
		w := strings.Fields(line)
		if len(w) != 3 {
			f.t.Errorf("broken line %q", line)
			continue
		}
		lines[w[1]] = append(lines[w[1]], w[0]+" "+w[2])
	}
	for _, id := range ids {
		l := lines[id]
		if len(l) != 2 || !strings.HasPrefix(l[0], "start ") || l[1] != strings.Replace(l[0], "start", "end", 1) {
			f.t.Errorf("card %s: its script left %q, want one start and one end of one run", id, l)
		}
	}
}
