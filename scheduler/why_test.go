package scheduler

import (
	"strings"
	"testing"
	"testing/synctest"

	"muster/board"
)

// Whatever holds a card, `why` says what a person can type about it.
func TestWhySaysWhatToType(t *testing.T) {
	r := newRig(t, shell+"  pane: {harness: claude-code, surface: pane}\n", "atlas", "borea")
	fix := func(id, check string, want ...string) {
		t.Helper()
		a, err := Why(r.input(), id, true)
		if err != nil || a.Check != check {
			t.Fatalf("why %s: %+v (%v)", id, a, err)
		}
		for _, w := range want {
			if !strings.Contains(a.Fix, w) {
				t.Errorf("why %s (%s) helps with %q, not with %q", id, check, a.Fix, w)
			}
		}
	}
	review := r.add("sh")
	r.person(board.VCardPut, board.CardPut{Card: review, Status: "review", Why: "x"})
	fix(review, board.NoTransition, "a person", "muster complete "+review+" --summary", "muster request-changes "+review)

	bound := r.add("sh", machine("borea"))
	free := r.add("sh")
	r.person(board.VPause, board.Pause{Board: "default", Why: "x"})
	if a, _ := Why(r.input(), free, true); a.Fix != "muster resume --board default" {
		t.Errorf("of a paused board: %q", a.Fix)
	}
	r.person(board.VPause, board.Pause{Why: "x"})
	if a, _ := Why(r.input(), free, true); a.Fix != "muster resume" {
		t.Errorf("of a paused fleet: %q", a.Fix)
	}
	r.person(board.VResume, board.Pause{})
	r.person(board.VResume, board.Pause{Board: "default"})

	r.person(board.VDrain, board.Drain{Node: "borea"})
	fix(bound, "drain", "muster node undrain", "muster move "+bound+" --machine any")
	estop := r.state("n-atlas")
	estop.Estop = true
	r.set("n-atlas", estop)
	if a, _ := Why(r.input(), free, true); !strings.Contains(a.Text, "atlas") || !strings.Contains(a.Text, "borea") || strings.Contains(a.Text, noOther) {
		t.Errorf("two machines refuse it for two reasons, and it says %q", a.Text)
	}
	r.online("atlas")
	r.person(board.VDrain, board.Drain{Node: "borea", End: true})
	r.set("n-borea", board.Reading{State: board.NodeUnknown})
	fix(bound, "machine_unknown", "bring the machine back", "muster move "+bound+" --machine any")
	r.online("borea")

	lost := r.add("sh")
	r.person(board.VCardEdit, board.CardEdit{Card: lost, CardFields: board.CardFields{Assignee: new(string)}})
	fix(lost, "unassigned", "muster card edit "+lost+" --assignee PROFILE; profiles: ", "pane, ")

	pane := r.add("pane")
	fix(pane, "surface", "tmux")
	r.must(board.Actor{Kind: board.ActorNode, Node: "n-borea"}, board.VNodeUp, board.NodeUp{ID: "n-borea", Name: "borea", Slots: 2, Panes: true, Harnesses: []string{"command", "claude-code"}})
	r.startAll()
	fix(pane, "running", "muster attach "+pane, "muster log "+pane)
}

// M-31: the place that why tells is that of the loop's queue, which is asked for one card; without a loop it is counted.
func TestWhyKnowsItsPlace(t *testing.T) {
	inBubble(t, shell+"  other: {harness: command, args: [make]}\n", []string{"atlas"}, func(r *rig) {
		r.person(board.VPause, board.Pause{Why: "x"})
		var ids []string
		for i := range 6 {
			p := int64(i % 3)
			ids = append(ids, r.add([]string{"sh", "other"}[i%2], func(a *board.CardAdd) { a.Priority = &p }))
		}
		synctest.Wait()
		asked, seen := 0, map[int]bool{}
		for _, id := range ids {
			in := r.input()
			counted, err := Why(in, id, true)
			in.Rank = func(c *Candidate) int { asked++; return r.loop.Rank(c) }
			ranked, err2 := Why(in, id, true)
			if err != nil || err2 != nil || counted.Position != ranked.Position || ranked.Check != "pause" {
				t.Fatalf("%s is %+v by the loop, %+v by counting", id, ranked, counted)
			}
			seen[ranked.Position] = true
		}
		if len(seen) != len(ids) || asked != len(ids) {
			t.Errorf("places %v, the loop was asked %d times", seen, asked)
		}
	})
}
