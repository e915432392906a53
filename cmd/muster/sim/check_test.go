package sim

import (
	"strings"
	"testing"

	"muster/board"
	"muster/launcher"
)

// put writes records into a state, past every rule.
func put(v *board.MemView, recs ...any) {
	txn := board.Txn{Ops: []board.Op{{Table: board.TBoard, Key: "web", Val: board.Encode(&board.Board{Slug: "web", Prefix: "a"})}}}
	for _, r := range recs {
		var op board.Op
		switch r := r.(type) {
		case *board.Held:
			op = board.Op{Table: board.THeld, Key: r.Run, Val: board.Encode(r)}
		case *board.Run:
			op = board.Op{Table: board.TRun, Key: board.RunKey(r.ID), Val: board.Encode(r)}
		case *board.Card:
			op = board.Op{Table: board.TCard, Key: r.ID, Val: board.Encode(r)}
		case *board.Node:
			op = board.Op{Table: board.TNode, Key: r.ID, Val: board.Encode(r)}
		case *board.Order:
			op = board.Op{Table: board.TOrder, Key: board.OrderKey(r.Node, r.ID), Val: board.Encode(r)}
		}
		txn.Ops = append(txn.Ops, op)
	}
	v.Apply(&txn)
}

func held(run, card, node string) []any {
	return []any{&board.Held{Run: run, Card: card, Board: "web", Slot: "worker", Node: node, Profile: "sh"},
		&board.Run{ID: run, Card: card, Board: "web", Node: node, State: board.RunRunning}}
}

// CheckState finds each thing that may not be.
func TestCheckStateFindsWrongStates(t *testing.T) {
	one := &board.Node{ID: "n1", Slots: 1}
	big := &board.Node{ID: "n1", Slots: 20}
	for _, c := range []struct {
		says string
		recs []any
	}{
		{"", append(held("a-1.1", "a-1", "n1"), one)},
		{"2 sessions at machine n1, which takes 1", append(append(held("a-1.1", "a-1", "n1"), held("a-2.1", "a-2", "n1")...), one)},
		{"slot a-1/worker is held by", append(append(held("a-1.1", "a-1", "n1"), held("a-1.2", "a-1", "n1")...), big)},
		{"there is no such run", []any{&board.Held{Run: "a-1.1", Card: "a-1", Slot: "worker", Node: "n1"}, big}},
		{"is held, and gone", []any{&board.Held{Run: "a-1.1", Card: "a-1", Slot: "worker", Node: "n1"}, &board.Run{ID: "a-1.1", Card: "a-1", Node: "n1", Gone: board.GoneReport}, big}},
		{"its run is on n2", []any{&board.Held{Run: "a-1.1", Card: "a-1", Slot: "worker", Node: "n1"}, &board.Run{ID: "a-1.1", Card: "a-1", Node: "n2"}, big}},
		{"which is over", []any{&board.Card{ID: "a-1", Board: "web", Run: "a-1.1"}, &board.Run{ID: "a-1.1", Card: "a-1", State: board.RunEnded}}},
		{"sessions at board web", func() (list []any) {
			for _, card := range []string{"a-1", "a-2", "a-3", "a-4", "a-5", "a-6", "a-7"} {
				list = append(list, held(card+".1", card, "n1")...)
			}
			return append(list, big)
		}()},
	} {
		v := board.NewMemView()
		put(v, c.recs...)
		got := strings.Join(CheckState(v, nil), "; ")
		if (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%q, want %q", got, c.says)
		}
	}
}

// Stuck finds each thing that stands still.
func TestStuckFindsWhatStandsStill(t *testing.T) {
	for _, c := range []struct {
		says string
		recs []any
	}{
		{"", []any{&board.Card{ID: "a-1", Board: "web", Stored: "done"}, &board.Card{ID: "a-2", Board: "web", Stored: "blocked"}}},
		{"nothing says why", []any{&board.Card{ID: "a-1", Board: "web", Stored: "ready", Status: "ready"}}},
		{"no room (cap)", []any{&board.Card{ID: "a-1", Board: "web", Stored: "ready", Status: "ready", Waits: board.Reason{Check: "cap", Text: "no room"}}}},
		{"goes on", []any{&board.Card{ID: "a-1", Board: "web", Stored: "running", Run: "a-1.1"}}},
		{"is held", held("a-1.1", "a-1", "n1")},
		{"order o1 (start of a-1.1) is pending", []any{&board.Node{ID: "n1"}, &board.Order{ID: "o1", Node: "n1", Kind: "start", Run: "a-1.1", State: board.OrderPending}}},
	} {
		v := board.NewMemView()
		put(v, c.recs...)
		got := strings.Join(Stuck(v), "; ")
		if (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%q, want %q", got, c.says)
		}
	}
}

// What is watched while a fleet runs is found, too: second sessions, states that differ, reads that go back.
func TestWatchersFindViolations(t *testing.T) {
	for _, c := range []struct {
		says string
		do   func(f *Fleet)
	}{
		{"", func(f *Fleet) {
			m, s := f.machines[0], &launcher.Spec{Run: "a-1.1", Card: "a-1", Slot: "worker"}
			m.saw(s, true)
			m.saw(s, false)
			m.saw(&launcher.Spec{Run: "a-1.2", Card: "a-1", Slot: "worker"}, true)
		}},
		{"began 2 sessions", func(f *Fleet) {
			m, s := f.machines[0], &launcher.Spec{Run: "a-1.1", Card: "a-1", Slot: "worker"}
			m.saw(s, true)
			m.saw(s, false)
			f.machines[1].saw(s, true)
		}},
		{"while that of a-1.1 lived", func(f *Fleet) {
			f.machines[0].saw(&launcher.Spec{Run: "a-1.1", Card: "a-1", Slot: "worker"}, true)
			f.machines[1].saw(&launcher.Spec{Run: "a-1.2", Card: "a-1", Slot: "worker"}, true)
		}},
		{"m2 has another state", func(f *Fleet) {
			f.sameState("m1", func() (uint64, [16]byte) { return 5, [16]byte{1} })
			f.sameState("m2", func() (uint64, [16]byte) { return 6, [16]byte{2} })
			f.sameState("m2", func() (uint64, [16]byte) { return 5, [16]byte{2} })
		}},
		{"a read goes back", func(f *Fleet) {
			u := f.user(0, &cards{})
			u.back("m1", 5)
			u.back("m2", 4)
			u.back("m1", 4)
		}},
	} {
		f := New(Config{Seed: 1, Nodes: 2})
		c.do(f)
		got := strings.Join(f.report().Violation, "; ")
		if (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%q, want %q", got, c.says)
		}
	}
}
