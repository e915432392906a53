package raftstore

import (
	"context"
	"fmt"
	"testing"

	"muster/board"
)

// DSP-01: what is asked together is executed in its order, in one entry, whatever
// else waits; a request that is refused does not hold up the others.
func TestDoAllKeepsTheOrder(t *testing.T) {
	t.Parallel()
	s, g := gated(t, nil)
	release := g.hold()
	first := inFlight(t, s, toy(verbAdd, "a"))
	reqs := make([]*board.Request, 100)
	for i := range reqs {
		reqs[i] = toy(verbAdd, fmt.Sprint("k", i%7))
	}
	reqs[50] = toy(verbPanic, "k")
	before := s.Stats()
	done := make(chan []board.Result)
	go func() { done <- s.DoAll(ctx(t), reqs) }()
	waitFor(t, "100 wait", func() bool { return waiting(s) == 100 })
	release()
	results := <-done
	must(t, <-first)
	if n := s.Stats().Entries - before.Entries; n != 2 {
		t.Errorf("they made %d entries with the one before, want 2", n)
	}
	var last uint64
	for i, r := range results {
		if i == 50 {
			if r.Err == nil {
				t.Error("a request that panics has an outcome")
			}
			continue
		}
		if r.Err != nil || r.Seq <= last {
			t.Fatalf("request %d has Seq %d behind %d (%v)", i, r.Seq, last, r.Err)
		}
		last = r.Seq
	}
	over, cancel := context.WithCancel(ctx(t))
	cancel()
	release = g.hold()
	second := inFlight(t, s, toy(verbAdd, "a"))
	for i, r := range s.DoAll(over, reqs[:3]) {
		if !isCode(r, board.Unavailable, "") {
			t.Errorf("request %d, whose turn has not come when the caller gives up: %v", i, r.Err)
		}
	}
	release()
	must(t, <-second)
}
