package scheduler

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster/board"
)

// M-12: a node that refuses three starts in a row is passed by for a minute, then
// for twice as long; another reading of it ends that.
func TestLoopSetsANodeAside(t *testing.T) {
	inBubble(t, shell, []string{"atlas"}, func(r *rig) {
		id := r.add("sh")
		refuse := func(times int) {
			r.t.Helper()
			for range times {
				synctest.Wait()
				runs := r.current()
				if len(runs) != 1 {
					r.t.Fatalf("%d runs; %s waits for %+v", len(runs), id, r.card(id).Waits)
				}
				r.report("n-atlas", board.Report{Kind: board.ReportRefused, Run: runs[0].ID, Error: "no room"})
			}
			synctest.Wait()
			if until, why := r.loop.Aside("n-atlas"); until == 0 || !strings.Contains(why, "no room") { // what a dry run is told
				r.t.Fatalf("from outside, atlas is passed by until %d: %q", until, why)
			}
			if w := r.card(id).Waits; r.card(id).Run != "" || w.Check != "set_aside" || !strings.Contains(w.Text, "no room") {
				r.t.Fatalf("after refusals: run %q, waits for %+v", r.card(id).Run, w)
			}
		}
		refuse(3)
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if r.card(id).Run != "" {
			r.t.Fatal("asked again within a minute")
		}
		time.Sleep(time.Second)
		refuse(1)
		time.Sleep(119 * time.Second)
		synctest.Wait()
		if r.card(id).Run != "" {
			r.t.Fatal("asked again within two minutes")
		}
		r.set("n-atlas", board.Reading{State: board.NodeOnline, Slots: 3, Pressure: "normal"})
		r.loop.Poke()
		synctest.Wait()
		if r.card(id).Run == "" {
			r.t.Fatal("another reading does not end it")
		}
		run := r.current()[0]
		r.launch(run)
		r.exit(run, 0)
		synctest.Wait()
		if len(r.loop.asides.nodes) != 0 {
			r.t.Fatal("a launch does not end it")
		}
	})
}
