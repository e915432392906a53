package scheduler

import (
	"strings"
	"testing"

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
	r.person(board.VDrain, board.Drain{Node: "borea", End: true})
	r.set("n-borea", board.Reading{State: board.NodeUnknown})
	fix(bound, "machine_unknown", "bring the machine back", "muster move "+bound+" --machine any")
	r.online("borea")

	pane := r.add("pane")
	fix(pane, "surface", "tmux")
	r.must(board.Actor{Kind: board.ActorNode, Node: "n-borea"}, board.VNodeUp, board.NodeUp{ID: "n-borea", Name: "borea", Slots: 2, Panes: true, Harnesses: []string{"command", "claude-code"}})
	r.startAll()
	fix(pane, "running", "muster attach "+pane, "muster log "+pane)
}
