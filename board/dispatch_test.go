package board

import (
	"fmt"
	"strings"
	"testing"
)

// CAP-09, CAP-10, LAU-03, LAU-06, M-13: what was claimed and not launched yet counts
// as what was claimed: profile, model, harness, status entered, slot; never as the card's assignee.
func TestABareClaimCountsAsItStands(t *testing.T) {
	w := newWorld(t, strings.Replace(fmt.Sprintf(reviewed, "[]"), "rev: {harness: command,", "rev: {harness: command, model: large,", 1))
	c := &capCase{world: w}
	id := c.in("review", nil)
	r := w.claimed(id)
	h := GetHeld(w.v, r.ID)
	if h.Profile != "rev" || h.Model != "large" || h.Harness != "command" || h.Status != "reviewing" || h.Stored != "running" || h.Slot != "reviewer" || h.Role != "reviewer" || h.Node != "n-atlas" {
		t.Fatalf("held %+v", h)
	}
	other := c.in("review", func(card *Card) { card.Model = "small" })
	if h := GetHeld(w.v, w.claimed(other).ID); h.Model != "small" {
		t.Fatalf("CAP-10: the card's model comes before its profile's: %+v", h)
	}
}

// CAP-11: what names no model counts as that, and is not taken for another's.
func TestNoModelIsAGroup(t *testing.T) {
	c := newCaps(t, "[{description: m, counts: runs, scope: model, max: 1}]")
	c.hold(c.in("ready", nil), "worker", "n-atlas", func(h *Held) { h.Model = "large" })
	id := c.in("ready", nil)
	c.begin()
	c.want("beside a large one", c.admit(id, "n-atlas"), "")
	c.hold(c.in("ready", nil), "worker", "n-atlas", nil)
	c.begin()
	c.want("beside one without a model", c.admit(id, "n-atlas"), "1 of 1")
}

// CAP-07: a card has one place in caps of runs and cards, however many of its sessions are not gone.
func TestOnePlaceACard(t *testing.T) {
	for counts, words := range map[string]string{"runs": "", "cards": "", "sessions": "2 of 2"} {
		c := newCaps(t, "[{description: d, counts: "+counts+", scope: machine, max: 2}]")
		two := c.in("review", nil)
		c.hold(two, "worker", "n-atlas", nil)
		c.hold(two, "reviewer", "n-atlas", nil)
		id := c.in("ready", nil)
		c.begin()
		c.want(counts, c.admit(id, "n-atlas"), words)
	}
}

// CAP-19, CAP-20: a review that starts is a session of its own beside its card's
// implementer, on the same machine and in the same round; one that goes on is none.
func TestAReviewIsAnotherSession(t *testing.T) {
	c := newCaps(t, "[{description: d, counts: sessions, scope: machine, max: 2, where: {dispatch: true}}]")
	a := c.in("review", nil)
	c.hold(a, "worker", "n-atlas", nil)
	c.begin()
	c.take(a, "n-atlas")
	if n := c.room.Held("n-atlas"); n != 2 {
		t.Fatalf("%d sessions, want the implementer's and the review's", n)
	}
	c.want("a third", c.admit(c.in("ready", nil), "n-atlas"), "2 of 2")
}

// CAP-23: what Hermes limits, the default workflow does, each with words for people.
func TestDefaultCaps(t *testing.T) {
	for _, x := range []struct{ params, words string }{
		{`{}`, ""},
		{`{"max_running":0}`, `board "web" is full (0 of 0 runs; cap: runs of this board)`},
		{`{"max_fleet":0}`, "the fleet is full (0 of 0 runs; cap: runs of the fleet)"},
		{`{"max_per_profile":0}`, `profile "sh" is full (0 of 0 runs; cap: runs of one profile)`},
		{`{"slots":0}`, "atlas is full (0 of 0 sessions; cap: sessions on one machine)"},
	} {
		w := newWorld(t, commands)
		w.params("web", x.params)
		if strings.Contains(x.params, "slots") { // the machine's own word (CAP-25)
			w.nodes["n-atlas"] = Reading{State: NodeOnline, Slots: 0}
		}
		err := w.start(w.add("x", func(c *Card) { c.Assignee = "sh" }))
		switch {
		case x.words == "" && err != nil:
			t.Errorf("%s: %v", x.params, err)
		case x.words != "":
			refused(t, err, "cap", x.words)
		}
	}
}

// LAU-05, LAU-07, LAU-08, M-14: a start that is refused leaves nothing: no run that
// is put off, no order, no place; the card waits as before, and starts when there is room.
func TestARefusedStartLeavesNothing(t *testing.T) {
	w := newWorld(t, fmt.Sprintf(capped, `[{description: d, counts: sessions, scope: fleet, where: {dispatch: true}, max: 1}]`))
	one, two := w.add("one", func(c *Card) { c.Assignee = "py" }), w.add("two", func(c *Card) { c.Assignee = "py" })
	run := w.started(one)
	seq := w.v.Seq()
	refused(t, w.through(byAnn, VStart, Start{Card: two}, "n-atlas"), "cap", "1 of 1")
	refused(t, w.start(two), "cap", "1 of 1")
	c := w.card(two)
	if w.v.Seq() != seq || c.Run != "" || c.Runs != 0 || c.Status != "ready" || len(w.orders(OrderStart)) != 1 || NewRoom(w.v, w.ws).OfCard(two) {
		t.Fatalf("a refused start left something: %+v", c)
	}
	w.exit(one, 0)
	if r := w.started(two); r.N != 1 || GetRun(w.v, run.ID).Gone == "" {
		t.Fatalf("run %+v", r)
	}
}

// Invariant 22: a cap that cannot be counted holds up the cards of its own board, and no other's.
func TestACapThatCanNotBeCounted(t *testing.T) {
	for _, bad := range []string{"max: params.bad", "max: 9, reserve: {for: {status: reviewing}, slots: params.bad}"} {
		w := newWorld(t, fmt.Sprintf(capped, `[]`))
		w.board("ops", fmt.Sprintf(strings.Replace(capped, "profiles:", "params: {bad: many}\nprofiles:", 1), "[{description: d, counts: runs, scope: fleet, "+bad+"}]"))
		if err := w.start(w.add("x", func(c *Card) { c.Assignee = "py" })); err != nil {
			t.Errorf("%s: another board's card is held: %v", bad, err)
		}
		refused(t, w.start(w.addBy("ops", manager, "x", func(c *Card) { c.Assignee = "py" }, nil)), "expression", "many")
	}
}

// HST-03: a machine has one spelling in the state, however it was named.
func TestMachinesAreKnownByTheirNames(t *testing.T) {
	w := newWorld(t, commands)
	for _, ref := range []string{"atlas", "n-atlas", "n-at"} {
		res := w.ask(person, VCardAdd, CardAdd{CardFields: CardFields{Title: &ref, Machine: &ref}, Board: "web"})
		if res.Err != nil {
			t.Fatal(res.Err)
		}
	}
	EachCard(w.v, nil, func(c *Card) bool {
		if c.Machine != "atlas" {
			t.Errorf("%s: the card is on %q", c.Title, c.Machine)
		}
		return true
	})
}

// HST-01, M-05: where a start is bound: a pane to the card's machine, headless to the
// board's home before that; a card that names none is placed anywhere.
func TestBound(t *testing.T) {
	for _, x := range []struct{ profile, home, machine, want string }{
		{"sh", "", "", ""}, {"sh", "", "borea", "borea"}, {"sh", "atlas", "", "atlas"}, {"sh", "atlas", "borea", "atlas"},
		{"claude-pane", "atlas", "borea", "borea"}, {"claude-pane", "atlas", "", ""},
	} {
		w := newWorld(t, commands)
		w.node("borea", 4)
		id := w.add("x", func(c *Card) { c.Machine = x.machine })
		b := GetBoard(w.v, "web")
		b.Home = x.home
		s, err := NewScope(w.v, w.ws, b, w.card(id), w.now, nil)
		if err != nil {
			t.Fatal(err)
		}
		if ref, _ := s.Bound(s.Workflow().Profile(x.profile)); ref != x.want {
			t.Errorf("%+v: bound to %q", x, ref)
		}
	}
}
