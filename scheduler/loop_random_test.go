package scheduler

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"muster/board"
)

// rounds is a cap of starts beside those of machine, profile and board.
const rounds = `
dispatch:
  capacity:
    - {counts: sessions, scope: machine, max: host.slots}
    - {counts: runs, scope: assignee, max: profile.capacity}
    - {counts: starts, scope: machine, max: 4}
`

// inFolder is a profile whose cards share a folder on each machine.
const inFolder = "  here: {parent: sh, workspace: {kind: dir, path: /srv/app}}\n"

// Invariant 21: no cap is exceeded by any transaction (see rig.noCapExceeded). No
// lost wake-up: whatever happens, when the loop is idle a plan from nothing finds nothing to start.
//
// The bubble says what went wrong and the property fails outside of it: rapid
// stops a property by a panic on its own goroutine, and inside a bubble that
// panic is another goroutine's and takes the whole test process with it.
func TestLoopMissesNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.IntRange(0, 8), 5, 40).Draw(rt, "steps")
		var wrong string
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, shell+inFolder+rounds, "atlas", "borea")
			r.perRound = 4
			ctx, cancel := context.WithCancel(t.Context())
			defer func() { cancel(); synctest.Wait() }()
			r.lead(ctx)
			var cards []string
			for i, s := range steps {
				r.randomStep(i, s, &cards)
				if s%3 == 0 {
					synctest.Wait()
				}
			}
			synctest.Wait()
			if list, _ := Plan(r.input()); len(list) > 0 {
				wrong = "the loop is idle and could start " + starts(list)
			}
			r.noOvercommit()
		})
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

func (r *rig) randomStep(i, s int, cards *[]string) {
	profiles := []string{"sh", "two", "east", "here", ""}
	switch s {
	case 0, 1, 2:
		var more []func(*board.CardAdd)
		if i%4 == 1 && len(*cards) > 0 {
			more = append(more, after((*cards)[i%len(*cards)]))
		}
		*cards = append(*cards, r.add(profiles[i%len(profiles)], append(more, priority(int64(i%3)))...))
	case 3, 4:
		if runs := r.current(); len(runs) > 0 {
			if runs[0].Launched == 0 {
				r.launch(runs[0])
			}
			r.exit(runs[0], int64([]int{0, 0, 1, 75}[i%4]))
		}
	case 5:
		id := []string{"n-atlas", "n-borea"}[i%2]
		x := r.state(id)
		x.Estop = !x.Estop
		r.set(id, x)
		r.loop.Poke()
	case 6:
		for _, id := range slices.Backward(*cards) {
			if c := r.card(id); c.Assignee == "" && c.Run == "" {
				who := "sh"
				r.person(board.VCardEdit, board.CardEdit{Card: id, CardFields: board.CardFields{Assignee: &who}})
				break
			}
		}
	case 7:
		for _, run := range r.current() {
			if run.Launched == 0 {
				r.report(run.Node, board.Report{Kind: board.ReportRefused, Run: run.ID, Error: "ESTOP"})
				break
			}
		}
	case 8:
		time.Sleep(time.Duration(i) * time.Second)
		synctest.Wait()
	}
}
