package board

import (
	"fmt"
	"strings"
	"testing"
)

const reviewed = `
version: 1
name: web
extends: default
params: {reviewer: rev, rate_limit_cooldown: 0}
profiles:
  sh: {harness: command, args: [true]}
  rev: {harness: command, verdict: explicit, args: [true]}
  git: {harness: command, verdict: explicit, args: [true], requires: '"git" in machine.tools'}
  two: {harness: command, verdict: explicit, capacity: 0, args: [true]}
dispatch:
  capacity: %s
`

// capCase is a fleet of atlas (and borea) whose caps are tried one start at a time.
type capCase struct {
	*world
	room *Room
}

func newCaps(t *testing.T, caps string) *capCase {
	w := newWorld(t, fmt.Sprintf(reviewed, caps))
	w.node("borea", 4)
	return &capCase{world: w}
}

// in files a card that waits in a status.
func (c *capCase) in(status string, fn func(*Card)) string {
	id := c.add("x", func(card *Card) { card.Assignee = "sh" })
	c.set(id, func(card *Card) {
		card.Status, card.Stored = status, c.flow("web").wf.StoredAs(status)
		if fn != nil {
			fn(card)
		}
	})
	return id
}

// begin reads the state: what is taken afterwards is this round's.
func (c *capCase) begin() *Room {
	c.room = NewRoom(c.v, c.ws)
	return c.room
}

// plan is a start of a card on a node, as a round would make it.
func (c *capCase) plan(id, node string) (*Scope, *Candidate) {
	c.t.Helper()
	s, err := NewScope(c.v, c.ws, GetBoard(c.v, "web"), c.card(id), c.now, c.env().Nodes)
	if err != nil {
		c.t.Fatal(err)
	}
	p, refusal := s.PlanStart()
	if refusal != nil {
		c.t.Fatal(refusal)
	}
	s.At(GetNode(c.v, node), c.nodes[node], 0).Playing(p.Profile)
	return s, s.Candidate(p, node)
}

// admit says why a start has no place; "" when it has one.
func (c *capCase) admit(id, node string) string {
	c.t.Helper()
	err, _ := c.room.Admit(c.plan(id, node))
	if err == nil {
		return ""
	}
	return err.Message
}

func (c *capCase) take(id, node string) {
	c.t.Helper()
	if why := c.admit(id, node); why != "" {
		c.t.Fatalf("%s has no place on %s: %s", id, node, why)
	}
	_, cand := c.plan(id, node)
	c.room.Take(cand, c.now)
}

// hold is a session of a card that is not gone.
func (c *capCase) hold(id, slot, node string, fn func(*Held)) {
	h := &Held{Run: id + ".9" + slot[:1], Card: id, Board: "web", Slot: slot, Node: node, Profile: "sh", Harness: "command", Status: "running", Stored: "running", Since: c.now - 3600_000}
	if fn != nil {
		fn(h)
	}
	c.write(func(x *tx) *Error { x.putHeld(h); return nil })
}

func (c *capCase) want(what, got, words string) {
	c.t.Helper()
	if words == "" && got != "" || words != "" && !strings.Contains(got, words) {
		c.t.Fatalf("%s: %q, want %q", what, got, words)
	}
}

// CAP-13: a card whose implementer session is counted is not held back when its
// review starts. CAP-14: where the dispatcher's sessions are counted the place is
// the slot's, and the review needs one. CAP-16: a list that holds true is not true.
func TestSlotRule(t *testing.T) {
	for _, x := range []struct{ name, where, words string }{
		{"CAP-13 by card", "", ""},
		{"CAP-14 by slot", ", where: {dispatch: true}", "atlas is full (1 of 1 sessions"},
		{"CAP-16 a list", ", where: {dispatch: [true]}", ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := newCaps(t, "[{description: d, counts: sessions, scope: machine, max: 1"+x.where+"}]")
			id := c.in("review", nil)
			c.hold(id, "worker", "n-atlas", nil)
			c.begin()
			c.want("its review", c.admit(id, "n-atlas"), x.words)
			c.want("another card", c.admit(c.in("ready", nil), "n-atlas"), "1 of 1")
		})
	}
}

// CAP-14: a session attached by hand gives the dispatcher's slot no place, and takes none.
func TestSlotRuleByHand(t *testing.T) {
	c := newCaps(t, "[{description: d, counts: sessions, scope: machine, max: 1, where: {dispatch: true}}, {description: all, counts: sessions, scope: fleet, max: 2}]")
	id := c.in("ready", nil)
	c.hold(id, "worker", "n-atlas", func(h *Held) { h.Manual = true })
	c.begin()
	c.want("beside one by hand", c.admit(id, "n-atlas"), "")
	c.hold(c.in("ready", nil), "worker", "n-borea", func(h *Held) { h.Manual = true })
	c.begin()
	c.want("M-14: what was attached by hand is counted", c.admit(c.in("ready", nil), "n-atlas"), "the fleet is full (2 of 2")
}

// CAP-19, CAP-20: a session that goes on is not counted twice; reviews of one
// round do not hide behind the sessions of their implementers.
func TestTakeBySlot(t *testing.T) {
	c := newCaps(t, "[{description: d, counts: sessions, scope: machine, max: 3, where: {dispatch: true}}]")
	a, b := c.in("review", nil), c.in("review", nil)
	c.hold(a, "worker", "n-atlas", nil)
	c.hold(b, "worker", "n-atlas", nil)
	c.begin()
	c.take(a, "n-atlas")
	c.want("CAP-20 the second review", c.admit(b, "n-atlas"), "3 of 3")
	c = newCaps(t, "[{description: d, counts: sessions, scope: machine, max: 2}]")
	a = c.in("ready", nil)
	c.hold(a, "worker", "n-atlas", func(h *Held) { h.Ended = true })
	c.begin()
	c.take(a, "n-atlas") // keeps the session it has
	c.want("CAP-19 another card", c.admit(c.in("ready", nil), "n-atlas"), "")
	if n := c.room.Held("n-atlas"); n != 1 {
		t.Fatalf("a session that goes on counts %d times", n)
	}
}

const oneKept = "[{description: d, counts: sessions, scope: machine, max: 2, reserve: {for: {status: reviewing}, slots: %s}}]"

// CAP-15, CAP-17, CAP-18, CAP-24, M-13: whom a place is kept for, and from whom.
func TestReserve(t *testing.T) {
	onBorea := func(card *Card) { card.Machine = "borea" }
	for _, x := range []struct {
		name  string
		slots string
		set   func(c *capCase)
		words string // of a ready card on atlas, where one of two places is taken
	}{
		{"nobody waits", "1", func(*capCase) {}, ""},
		{"CAP-15 a review waits", "1", func(c *capCase) { c.in("review", nil) }, "1 of 2 sessions, 1 kept for status reviewing"},
		{"CAP-15 all slots are kept for one", "2", func(c *capCase) { c.in("review", nil) }, "1 of 2 sessions, 2 kept"},
		{"CAP-17 no number is none", "params.max_fleet", func(c *capCase) { c.in("review", nil) }, ""},
		{"M-13 bound to this machine", "1", func(c *capCase) { c.in("review", func(card *Card) { card.Machine = "atlas" }) }, "1 kept"},
		{"M-13 bound to another machine", "1", func(c *capCase) { c.in("review", onBorea) }, ""},
		{"M-13 can not start here", "1", func(c *capCase) { c.params("web", `{"reviewer":"git"}`); c.in("review", nil) }, ""},
		{"M-13 its profile is full", "1", func(c *capCase) {
			c.params("web", `{"reviewer":"two"}`) // capacity 0
			c.in("review", nil)
		}, ""},
		{"M-13 its previous session is not gone", "1", func(c *capCase) {
			c.hold(c.in("review", nil), "worker", "n-borea", func(h *Held) { h.Stopping, h.Ended = true, true })
		}, ""},
		{"M-13 its board is paused", "1", func(c *capCase) {
			c.in("review", nil)
			c.write(func(x *tx) *Error {
				b := GetBoard(x, "web")
				b.PausedAt, b.PausedBy = 1, "ann"
				x.putBoard(b)
				return nil
			})
		}, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := newCaps(t, fmt.Sprintf(strings.Replace(oneKept, "}]", "}, {description: p, counts: runs, scope: assignee, max: profile.capacity}]", 1), x.slots))
			c.hold(c.in("ready", nil), "worker", "n-atlas", nil)
			x.set(c)
			ready := c.in("ready", nil)
			c.begin()
			c.want("a ready card", c.admit(ready, "n-atlas"), x.words)
		})
	}
	c := newCaps(t, fmt.Sprintf(oneKept, "1"))
	c.hold(c.in("ready", nil), "worker", "n-atlas", nil)
	first, ready, second := c.in("review", nil), c.in("ready", nil), c.in("ready", nil)
	c.begin()
	c.want("CAP-24 the review itself sees all", c.admit(first, "n-atlas"), "")
	c.take(first, "n-borea")
	c.want("CAP-18 one that was started this round keeps nothing", c.admit(ready, "n-atlas"), "")
	c.take(ready, "n-atlas")
	c.want("full", c.admit(second, "n-atlas"), "2 of 2 sessions;")
}

// Invariant 22: a review that no machine takes keeps no place of its board; one that only has no room, or whose earlier
// session still ends, keeps its own.
func TestReserveForWhatCanStartNowhere(t *testing.T) {
	for _, x := range []struct {
		name  string
		set   func(c *capCase)
		words string // of a ready card, where one of two places is taken
	}{
		{"a review waits", func(c *capCase) { c.in("review", nil) }, "1 kept"},
		{"its machine is full", func(c *capCase) {
			c.in("review", nil)
			c.hold(c.in("ready", nil), "worker", "n-borea", func(h *Held) { h.Board = "x" })
		}, "1 kept"},
		{"its previous session is not gone", func(c *capCase) {
			c.hold(c.in("review", nil), "reviewer", "n-borea", func(h *Held) { h.Board, h.Stopping, h.Ended = "x", true, true })
		}, "1 kept"},
		{"its reviewer is on no machine", func(c *capCase) { c.params("web", `{"reviewer":"git"}`); c.in("review", nil) }, ""},
		{"its machine is not there", func(c *capCase) { c.in("review", func(card *Card) { card.Machine = "nowhere" }) }, ""},
		{"all machines are drained", func(c *capCase) {
			c.in("review", nil)
			for _, n := range []string{"atlas", "borea"} {
				c.edit(n, func(n *Node) { n.Draining = true })
			}
		}, ""},
		{"many of them, and one that could", func(c *capCase) {
			for range 20 {
				c.in("review", func(card *Card) { card.Machine = "nowhere" })
			}
			c.in("review", nil)
		}, "1 kept"},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := newCaps(t, "[{description: d, counts: runs, scope: board, max: 2, reserve: {for: {status: reviewing}, slots: 1}}]")
			c.hold(c.in("ready", nil), "worker", "n-atlas", nil)
			x.set(c)
			ready := c.in("ready", nil)
			c.begin()
			c.want("a ready card", c.admit(ready, "n-atlas"), x.words)
		})
	}
}

// CAP-15: a waiting card that has a place in the count already keeps none, by
// card, also where the cap counts slots.
func TestReserveNotForTheCounted(t *testing.T) {
	c := newCaps(t, "[{description: d, counts: sessions, scope: board, where: {dispatch: true}, max: 2, reserve: {for: {status: reviewing}, slots: 1}}]")
	c.hold(c.in("review", nil), "worker", "n-borea", nil)
	ready := c.in("ready", nil)
	c.begin()
	c.want("beside a review whose implementer is counted", c.admit(ready, "n-atlas"), "")
	c.in("review", nil)
	c.begin()
	c.want("beside one that is not", c.admit(ready, "n-atlas"), "1 of 2 sessions, 1 kept")
}

// CAP-22, M-15: running cards take nothing of a round; what ended within it does;
// and the refusal says when the round lets go.
func TestStartsCountWhatEnded(t *testing.T) {
	w := newWorld(t, fmt.Sprintf(capped, `[{description: d, counts: starts, scope: machine, max: 1}]`))
	a, b := w.add("a", func(c *Card) { c.Assignee = "py" }), w.add("b", func(c *Card) { c.Assignee = "py" })
	run := w.started(a)
	began := w.now
	w.after(10)
	w.must(a, "cancel", manager)
	w.gone(run.ID)
	if n := NewRoom(w.v, w.ws).Held("n-atlas"); n != 0 {
		t.Fatalf("%d sessions are left", n)
	}
	refused(t, w.start(b), "cap", "1 of 1 starts this round")
	if n := startedOn(w.v, "n-atlas", w.now-60_000); n != 1 || NewRoom(w.v, w.ws).Started("n-atlas", 60_000, w.now) != 1 {
		t.Fatalf("tick.local_started is %d", n)
	}
	c := &capCase{world: w}
	if _, until := c.begin().Admit(c.plan(b, "n-atlas")); until != began+60_000 {
		t.Fatalf("the round lets go at %d, want %d", until, began+60_000)
	}
	w.after(50)
	running := w.started(b)
	w.after(60)
	if why := c.begin().Held("n-atlas"); why != 1 || running.Gone != "" {
		t.Fatal("the second is to run on")
	}
	c.want("a third, while the second runs on", c.admit(w.add("c", func(c *Card) { c.Assignee = "py" }), "n-atlas"), "")
}

// M-15: what of starts is remembered is bounded: by the next claims after an hour.
func TestStartsAreForgotten(t *testing.T) {
	w := newWorld(t, fmt.Sprintf(capped, `[]`))
	for range 3 {
		w.started(w.add("x", func(c *Card) { c.Assignee = "py" }))
	}
	w.after(3601)
	w.started(w.add("x", func(c *Card) { c.Assignee = "py" }))
	n := 0
	w.v.Scan(TStart, "", "", func(string, []byte) bool { n++; return true })
	if n != 1 {
		t.Fatalf("%d starts are remembered, want 1", n)
	}
}

// CAP-03, CAP-04: a machine is named in a filter as people name it; unless counts
// out and an empty one counts nothing out.
func TestFilterNamesMachines(t *testing.T) {
	c := newCaps(t, "[{description: d, counts: runs, scope: fleet, where: {machine: atlas}, unless: {}, max: 0}]")
	id := c.in("ready", nil)
	c.begin()
	c.want("on atlas", c.admit(id, "n-atlas"), "0 of 0")
	c.want("on borea", c.admit(id, "n-borea"), "")
}

// The memory of a profile is held against what its machine has, less what starts
// there have asked for that the reading cannot show; without a reading nothing is (INV-01).
func TestFitsMemory(t *testing.T) {
	w := newWorld(t, crowded)
	w.node("borea", 4)
	c := &capCase{world: w}
	a := w.add("a", func(c *Card) { c.Assignee = "py" })
	b := w.add("b", func(c *Card) { c.Assignee = "py" })
	room := c.begin()
	fits := func(id string, free int64, age int64) *Error {
		s, cand := c.plan(id, "n-atlas")
		s.At(GetNode(w.v, "n-atlas"), Reading{State: NodeOnline, FreeMB: free, AgeMS: age}, 0)
		return s.FitsMemory(w.flow("web").wf.Profile(cand.Profile), room)
	}
	refused(t, fits(a, 1000, 0), "memory", "1000 MB")
	if err := fits(a, 1500, 0); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]*Error{"not known": fits(a, 0, 0), "too old": fits(a, 10, 60_000)} {
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	_, cand := c.plan(a, "n-atlas")
	room.Take(cand, w.now)
	refused(t, fits(b, 1500, 0), "memory", "1024 MB of it promised")
	w.after(120)
	if err := fits(b, 1500, 0); err != nil {
		t.Fatalf("what runs for long shows in the reading: %v", err)
	}
}

// M-13: a review that could start here keeps its place, however many wait that
// could not: cards that name another machine are not asked, and those that last
// waited for something else than room are asked last.
func TestReserveBehindMany(t *testing.T) {
	for _, x := range []struct {
		name string
		fn   func(*Card)
	}{
		{"bound elsewhere", func(c *Card) { c.Machine = "borea" }},
		{"held by themselves", func(c *Card) { c.Waits, c.StartAfter = Reason{Check: "validator"}, 1<<60 }},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := newCaps(t, fmt.Sprintf(oneKept, "1"))
			c.write(func(w *tx) *Error { // a review has a guard of its own here
				doc := GetWorkflowDoc(w, "web", 1)
				doc.Source = append(doc.Source, "statuses: {review: {on: {start: [{by: [platform, manager], guard: card.due, target: reviewing, do: [{claim: {role: reviewer}}]}]}}}\n"...)
				w.put(TWorkflow, WorkflowKey("web", 1), doc)
				return nil
			})
			c.hold(c.in("ready", nil), "worker", "n-atlas", nil)
			for range 2 * maxLook { // ids are in order as text: the last one must not be among the first that are looked at
				c.in("review", x.fn)
			}
			ready := c.in("ready", nil)
			c.begin()
			c.want("nobody could start", c.admit(ready, "n-atlas"), "")
			c.in("review", nil)
			c.begin()
			c.want("the last of them could", c.admit(ready, "n-atlas"), "1 kept")
		})
	}
}

// CAP-24: a place that is kept for reviews is kept from other cards, and from no review.
func TestAKeptPlaceIsForEveryReview(t *testing.T) {
	c := newCaps(t, fmt.Sprintf(oneKept, "1"))
	c.hold(c.in("ready", nil), "worker", "n-atlas", nil)
	first, second, ready := c.in("review", nil), c.in("review", nil), c.in("ready", nil)
	c.begin()
	c.want("a review", c.admit(first, "n-atlas"), "")
	c.want("another review", c.admit(second, "n-atlas"), "")
	c.want("a ready card", c.admit(ready, "n-atlas"), "1 kept")
}
