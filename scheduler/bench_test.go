package scheduler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"muster/board"
)

// crowd is a rig whose board has so many cards that wait for room (sessions hold
// the slots of its machine), besides one card that nobody is assigned to.
type crowd struct {
	*rig
	round int
	loose string
}

// newCrowd files one card of each kind through Exec and copies the rest, in key
// order, in one transaction: a state in memory is filled by appending.
func newCrowd(b *testing.B, cards int) *crowd {
	r := newRig(b, shell, "atlas")
	r.set("n-atlas", board.Reading{State: board.NodeOnline, Slots: 2, Pressure: "normal"})
	c := &crowd{rig: r}
	pattern := r.add("sh")
	c.loose = r.add("")
	c.copies(b, pattern, cards, 1_000_000)
	c.begin()
	c.rounds() // fills both slots; the others are given their reasons
	if c.session() == nil {
		b.Fatal("no session was started")
	}
	return c
}

// session is one of those that are not gone.
func (c *crowd) session() (run *board.Run) {
	board.EachHeld(c.v, "", func(h *board.Held) bool { run = board.GetRun(c.v, h.Run); return false })
	return run
}

// rename gives a stored card another id: the field is found by its length and text.
func rename(b *testing.B, stored []byte, from, to string) []byte {
	at := strings.Index(string(stored), from)
	if at < 1 || int(stored[at-1]) != len(from) {
		b.Fatalf("card %s: its id is not where it is looked for", from)
	}
	out := append(slices.Clone(stored[:at-1]), byte(len(to)))
	return append(append(out, to...), stored[at+len(from):]...)
}

// rounds is what Run does until nothing is left to do, without waiting.
func (c *crowd) rounds() {
	for range 1000 {
		c.loop.round(context.Background())
		if len(c.loop.dirty) == 0 && !c.loop.free && len(c.subs[0].c) == 0 {
			return
		}
	}
	c.t.Fatal("the loop finds no rest")
}

// change comments on the loose card.
func (c *crowd) change() {
	c.comment(c.loose)
	<-c.subs[0].c
	c.loop.take()
}

// BenchmarkRoundOneChange is goal P7: a round after one card has changed. The
// counter must be the same for every number of cards.
func BenchmarkRoundOneChange(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("%d-cards", n), func(b *testing.B) {
			c := newCrowd(b, n)
			before, rounds := c.loop.Examined(), 0
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				c.change()
				b.StartTimer()
				c.loop.round(context.Background())
				rounds++
			}
			b.ReportMetric(float64(c.loop.Examined()-before)/float64(rounds), "examined/round")
		})
	}
}

// BenchmarkRoundOneEnd is a round after one session has ended, so that one of
// all that wait can start.
func BenchmarkRoundOneEnd(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("%d-cards", n), func(b *testing.B) {
			c := newCrowd(b, n)
			c.measure(b, c.end)
		})
	}
}

// BenchmarkPlan is a whole plan from nothing, as when leadership begins.
func BenchmarkPlan(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("%d-cards", n), func(b *testing.B) {
			c := newCrowd(b, n)
			b.ReportAllocs()
			for b.Loop() {
				starts, waits := Plan(c.input())
				if len(starts) > 0 || len(waits) < n {
					b.Fatalf("%d starts and %d waits of %d cards", len(starts), len(waits), n)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "us/card")
		})
	}
}
