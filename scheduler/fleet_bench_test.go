package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"muster/board"
)

// machines of the fleets below.
const hallMachines = 50

// newHall is a fleet of 50 simulated machines, full: of its cards nine in ten are
// done, one in ten waits, and beside them one in a hundred (at least one a machine)
// runs. What waits is commented on in turn.
func newHall(b *testing.B, cards int) *crowd {
	names := make([]string, hallMachines)
	for i := range names {
		names[i] = fmt.Sprintf("m%02d", i)
	}
	r := newRig(b, shell, names...)
	r.watch = func(*board.Request, *board.Result, board.View, board.View, *board.Env) {} // counting all rows at each start is not what is measured
	slots := int64(max(cards/100, hallMachines) / hallMachines)
	for _, n := range names {
		r.set("n-"+n, board.Reading{State: board.NodeOnline, Slots: slots, Pressure: "normal"})
	}
	c := &crowd{rig: r}
	done, waits := r.add("sh"), r.add("sh")
	c.loose = waits
	r.person(board.VEvent, board.FireEvent{Card: done, Event: "complete"})
	c.copies(b, done, cards*9/10, 1_000_000)
	c.copies(b, waits, cards/10+int(slots)*hallMachines, 2_000_000)
	c.begin()
	c.rounds()
	running := 0
	board.EachHeld(r.v, "", func(*board.Held) bool { running++; return true })
	if running != int(slots)*hallMachines {
		b.Fatalf("%d run, want %d on each of %d machines", running, slots, hallMachines)
	}
	return c
}

// copies adds a card n times, under ids from a number on.
func (c *crowd) copies(b *testing.B, pattern string, n, from int) {
	prefix, _, _ := strings.Cut(pattern, "-")
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s-%d", prefix, from+i)
	}
	slices.Sort(ids)
	stored := c.v.Get(board.TCard, pattern)
	txn := board.Txn{Time: c.now()}
	for _, id := range ids {
		txn.Ops = append(txn.Ops, board.Op{Table: board.TCard, Key: id, Val: rename(b, stored, pattern, id)})
	}
	c.v.Apply(&txn)
}

// begin is a new term: its loop has read the state.
func (c *crowd) begin() {
	f := &rigFeed{c: make(chan struct{}, 1), all: true}
	c.subs = []*rigFeed{f}
	c.loop = New(Config{Store: c.rig, Feed: f, Contacts: rigContacts{c.rig}, Workflows: c.ws, Now: c.now})
	c.loop.scan()
}

// end ends one session, and the loop hears of it.
func (c *crowd) end() {
	run := c.session()
	c.launch(run)
	c.exit(run, 0)
	<-c.subs[0].c
	c.loop.take()
}

// changes comments on so many cards that wait, and the loop hears of it.
func (c *crowd) changes(n int) {
	for range n {
		for { // the next that still waits
			c.round++
			card := board.GetCard(c.v, fmt.Sprintf("%s-%d", strings.Split(c.loose, "-")[0], 2_000_000+c.round%4000))
			if card != nil && card.Status == "ready" {
				c.comment(card.ID)
				break
			}
		}
	}
	<-c.subs[0].c
	c.loop.take()
}

func (c *crowd) comment(card string) {
	args, _ := json.Marshal(board.FireEvent{Card: card, Event: "comment", Payload: map[string]any{"text": "a word"}})
	res := c.Do(context.Background(), &board.Request{Actor: board.Actor{Kind: board.ActorPerson, Name: "ann", Node: c.fleetNode()}, Verb: board.VEvent, Args: args})
	if res.Err != nil {
		c.t.Fatal(res.Err)
	}
}

// fleetNode is some node, whose user speaks.
func (c *crowd) fleetNode() (id string) {
	board.EachNode(c.v, func(n *board.Node) bool { id = n.ID; return false })
	return id
}

// measure times one round after something has happened, and counts what it looked at.
func (c *crowd) measure(b *testing.B, happens func()) {
	var examined uint64
	rounds := 0
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		happens()
		before := c.loop.Examined()
		b.StartTimer()
		c.loop.round(context.Background())
		b.StopTimer()
		examined += c.loop.Examined() - before
		rounds++
		c.rounds() // what this one has started is heard of
		b.StartTimer()
	}
	b.ReportMetric(float64(examined)/float64(rounds), "examined/round")
}

// BenchmarkFleetOneEnd is goal P7a: a round in which one session of a full fleet
// has ended. Time, allocations and cards examined must not grow with the board.
func BenchmarkFleetOneEnd(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("%d-cards", n), func(b *testing.B) {
			c := newHall(b, n)
			c.measure(b, c.end)
		})
	}
}

// BenchmarkFleetTenChanges is goal P7a by its own words: ten waiting cards change.
func BenchmarkFleetTenChanges(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("%d-cards", n), func(b *testing.B) {
			c := newHall(b, n)
			c.measure(b, func() { c.changes(10) })
		})
	}
}

// BenchmarkFleetChanges is goal P7b: what a round costs grows with the changes.
func BenchmarkFleetChanges(b *testing.B) {
	c := newHall(b, 100_000)
	for _, n := range []int{10, 100} {
		b.Run(fmt.Sprintf("%d-changes", n), func(b *testing.B) { c.measure(b, func() { c.changes(n) }) })
	}
}

// BenchmarkFleetFirstRound is what a new leader does until it has planned once: it
// reads the state and looks at every card that waits.
func BenchmarkFleetFirstRound(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("%d-cards", n), func(b *testing.B) {
			c := newHall(b, n)
			b.ReportAllocs()
			var examined uint64
			for b.Loop() {
				c.begin()
				c.loop.round(context.Background())
				examined = c.loop.Examined()
			}
			b.ReportMetric(float64(examined), "examined/round")
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "us/card")
		})
	}
}
