package board

import (
	"fmt"
	"slices"
	"testing"
)

// filled has n cards in ready besides; sessions of them are held on other nodes.
func filled(b *testing.B, n, held int) (*world, string) {
	b.Helper()
	w := newWorld(b, commands)
	var ids []string
	for i := range n {
		ids = append(ids, fmt.Sprintf("web-%d", i+1))
	}
	slices.Sort(ids) // in key order a MemView is filled by appending
	txn := Txn{Time: w.now}
	for _, id := range ids {
		txn.Ops = append(txn.Ops, Op{Table: TCard, Key: id, Val: marshal(&Card{ID: id, Board: "web", Title: "card", Status: "ready", Stored: "ready", Assignee: "sh", Created: w.now, Creator: manager})})
	}
	for i := range held {
		id := fmt.Sprintf("old-%06d.1", i)
		txn.Ops = append(txn.Ops, Op{Table: THeld, Key: id, Val: marshal(&Held{Run: id, Card: fmt.Sprintf("old-%06d", i), Board: "web", Node: fmt.Sprintf("n-%d", i%50), Profile: "sh", Harness: "command", Status: "running", Stored: "running", Slot: "worker"})})
	}
	w.v.Apply(&txn)
	w.write(func(x *tx) *Error {
		board := GetBoard(x, "web")
		board.NextCard = uint64(n)
		x.putBoard(board)
		return nil
	})
	w.nodes["n-atlas"] = Reading{State: NodeOnline, Slots: 1 << 20}
	return w, w.add("the one", func(c *Card) { c.Assignee = "sh" })
}

func benchFire(b *testing.B, w *world, id string, f firing) {
	b.Helper()
	env, req := w.env(), &Request{Actor: f.Actor}
	b.ReportAllocs()
	for b.Loop() {
		x := newTx(w.v, req, env)
		if _, err := x.fire(GetBoard(x, "web"), GetCard(x, id), f); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFireComment(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		b.Run(fmt.Sprintf("%d-cards", n), func(b *testing.B) {
			w, id := filled(b, n, 0)
			benchFire(b, w, id, firing{Event: "comment", Actor: manager, Payload: map[string]any{"text": "a word"}})
		})
	}
}

func BenchmarkFireStart(b *testing.B) {
	for _, c := range []struct{ cards, held int }{{1000, 0}, {1000, 200}, {100_000, 200}} {
		b.Run(fmt.Sprintf("%d-cards-%d-sessions", c.cards, c.held), func(b *testing.B) {
			w, id := filled(b, c.cards, c.held)
			benchFire(b, w, id, firing{Event: "start", Actor: Platform(), Start: &startCtx{Node: "n-atlas"}})
		})
	}
}

func BenchmarkFireExited(b *testing.B) {
	w, id := filled(b, 1000, 0)
	if err := w.start(id); err != nil {
		b.Fatal(err)
	}
	benchFire(b, w, id, firing{Event: "exited", Actor: Platform(), Payload: map[string]any{"code": 0.0}})
}

func BenchmarkPlanStart(b *testing.B) {
	w, id := filled(b, 1000, 0)
	board, card := GetBoard(w.v, "web"), w.card(id)
	b.ReportAllocs()
	for b.Loop() {
		s, err := NewScope(w.v, w.ws, board, card, w.now, nil)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.PlanStart(); err != nil {
			b.Fatal(err)
		}
	}
}
