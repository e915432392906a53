package logstore

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"
)

var (
	killRestarts = flag.Int("kill.restarts", 50, "restarts of the kill loop, of each kind")
	killDisk     = flag.Bool("kill.disk", false, "kill loop on the disk of TMPDIR, not in memory")
	killSeed     = flag.Uint64("kill.seed", uint64(time.Now().UnixNano()), "seed of the kill loop")
)

// A real process works on the store, truncating its tail again and again, and is killed -9 at random moments (also
// while it opens). The next one opens the folder, always; every acknowledged operation is there, byte for byte, and
// the one on its way is there whole or not at all.
func TestKillLoop(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, kind Kind) {
		t.Logf("-kill.seed=%d", *killSeed)
		rng := rand.New(rand.NewPCG(*killSeed, 2))
		dir, g, begin := memDir(t)+"/log", newLedger(), time.Now()
		if *killDisk {
			dir = t.TempDir() + "/log"
		}
		for i := range *killRestarts {
			p := startChild(t, kind, dir, rng.Uint64())
			if err := untilKilled(p, g, rng); err != nil {
				p.cmd.Process.Kill()
				t.Fatalf("restart %d: %v", i, err)
			}
			if i%10 != 9 && i != *killRestarts-1 {
				continue
			}
			l, err := Open(kind, dir, Options{SegmentSize: childSegment, MustExist: g.opened})
			if err != nil {
				t.Fatalf("after restart %d: %v", i, err)
			}
			s, err := look(l)
			if err == nil {
				err = g.check(s)
			}
			if err != nil {
				t.Fatalf("after restart %d: %v", i, err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if g.acks < *killRestarts {
			t.Errorf("only %d operations acknowledged in %d lives: the loop shows nothing", g.acks, *killRestarts)
		}
		t.Logf("%s: %d kills, %d operations acknowledged, nothing lost, %v", kind, *killRestarts, g.acks,
			time.Since(begin).Round(time.Millisecond))
	})
}

// untilKilled hears the child until a random number of words or a random time from its start, and kills it.
func untilKilled(p *process, g *ledger, rng *rand.Rand) error {
	words, late := 1+rng.IntN(120), time.After(time.Minute)
	if rng.IntN(3) == 0 { // in the middle of opening
		words, late = 1<<30, time.After(time.Duration(rng.IntN(60))*time.Millisecond)
	}
	for words > 0 {
		select {
		case w, ok := <-p.words:
			if !ok {
				return p.kill(g.hear)
			}
			if err := g.hear(w); err != nil {
				return err
			}
			words--
		case <-late:
			words = 0
		}
	}
	return p.kill(g.hear)
}
