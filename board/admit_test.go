package board

import (
	"fmt"
	"testing"
)

const capped = `
version: 1
name: web
extends: default
profiles:
  sh: {harness: command, capacity: 2, args: [true]}
  py: {harness: command, args: [true]}
dispatch:
  capacity: %s
`

// EXP-11, CAP-02..04, CAP-12, M-13: caps by count, scope, filter and maximum; null is none and 0 is one.
func TestCaps(t *testing.T) {
	for _, c := range []struct {
		name, caps string
		fits       int // of four starts: two of sh, then two of py
		words      string
	}{
		{"null is no cap", `[{description: d, counts: runs, scope: fleet, max: null}]`, 4, ""},
		{"empty text is no cap", `[{description: d, counts: runs, scope: fleet, max: params.max_fleet}]`, 4, ""},
		{"zero is a maximum", `[{description: d, counts: runs, scope: fleet, max: 0}]`, 0, "the fleet is full (0 of 0 runs; cap: d)"},
		{"fleet", `[{description: d, counts: runs, scope: fleet, max: 3}]`, 3, "the fleet is full (3 of 3 runs; cap: d)"},
		{"machine", `[{description: d, counts: sessions, scope: machine, max: 2}]`, 2, "atlas is full (2 of 2 sessions; cap: d)"},
		{"profile", `[{description: d, counts: runs, scope: assignee, max: 'profile.capacity ?? 1'}]`, 3, `profile "py" is full (1 of 1 runs; cap: d)`},
		{"where", `[{description: d, counts: runs, scope: board, where: {assignee: sh}, max: 1}]`, 1, `board "web" is full (1 of 1 runs; cap: d)`},
		{"where, alternatives", `[{description: d, counts: runs, scope: board, where: {assignee: [sh, py]}, max: 1}]`, 1, "full"},
		{"unless", `[{description: d, counts: runs, scope: board, unless: {assignee: sh}, max: 1}]`, 3, "full (1 of 1 runs"},
		{"status is the one entered", `[{description: d, counts: runs, scope: board, where: {status: running}, max: 1}]`, 1, "full"},
		{"starts of a round", `[{description: d, counts: starts, scope: machine, max: 2}]`, 2, "atlas is full (2 of 2 starts this round; cap: d)"},
		{"first refusal wins", `[{description: a, counts: cards, scope: fleet, max: 2}, {description: b, counts: runs, scope: fleet, max: 2}]`, 2, "cap: a"},
		{"a card", `[{description: d, counts: sessions, scope: card, max: 0}]`, 0, "card web-1 is full"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, fmt.Sprintf(capped, c.caps))
			w.params("web", `{"max_fleet":""}`)
			for i, profile := range []string{"sh", "sh", "py", "py"} {
				id := w.add("x", func(card *Card) { card.Assignee = profile })
				err := w.start(id)
				if i < c.fits && err != nil {
					t.Fatalf("start %d: %v", i+1, err)
				}
				if i == c.fits {
					refused(t, err, "cap", c.words)
				}
				if i >= c.fits {
					return
				}
			}
		})
	}
}

// M-35, M-13: a run with its verdict leaves caps of runs, but its session keeps
// its place on the machine until it is gone.
func TestPlacesWaitForGone(t *testing.T) {
	w := newWorld(t, fmt.Sprintf(capped, `[{description: m, counts: sessions, scope: machine, max: 1}, {description: r, counts: runs, scope: machine, max: 1}, {description: f, counts: runs, scope: fleet, max: 1}]`))
	one, two := w.add("one", func(c *Card) { c.Assignee = "py" }), w.add("two", func(c *Card) { c.Assignee = "py" })
	r := w.started(one)
	w.must(one, "cancel", manager)
	refused(t, w.start(two), "cap", "atlas is full (1 of 1 sessions")
	room := NewRoom(w.v, w.ws)
	for _, c := range room.caps {
		n := int64(0)
		for _, g := range c.groups {
			n += c.size(&group{rows: g.rows, cards: g.cards}, w.now)
		}
		if want := map[string]int64{"m": 1, "r": 1, "f": 0}[c.cap.Description]; n != want {
			t.Errorf("cap %s counts %d, want %d", c.cap.Description, n, want)
		}
	}
	w.gone(r.ID)
	w.started(two)
}

// CAP-22, M-15: a round is the last params.round seconds of board time.
func TestStartsOfARound(t *testing.T) {
	w := newWorld(t, fmt.Sprintf(capped, `[{description: d, counts: starts, scope: machine, max: 1}]`))
	a, b := w.add("a", func(c *Card) { c.Assignee = "py" }), w.add("b", func(c *Card) { c.Assignee = "py" })
	w.started(a)
	w.after(59.9)
	refused(t, w.start(b), "cap", "starts")
	w.after(0.1)
	w.started(b)
	if n := NewRoom(w.v, w.ws).Started("n-atlas", 60_000, w.now); n != 1 {
		t.Fatalf("%d started", n)
	}
}

// M-13: caps of machine and fleet bind every board, whichever file they stand
// in; the refusal names that board; a board's own cap binds nobody else.
func TestCapsOfOtherBoards(t *testing.T) {
	w := newWorld(t, fmt.Sprintf(capped, `[{description: mine, counts: runs, scope: board, max: 0}, {description: wide, counts: runs, scope: fleet, max: params.max_fleet}]`))
	w.params("web", `{"max_fleet":1}`)
	w.board("ops", fmt.Sprintf(capped, `[]`))
	add := func() string { return w.addBy("ops", manager, "x", func(c *Card) { c.Assignee = "py" }, nil) }
	w.started(add())
	refused(t, w.start(add()), "cap", "the fleet is full (1 of 1 runs; cap: wide, of board web)")
	same := newWorld(t, "")
	same.board("two", "")
	if n, one := len(NewRoom(same.v, same.ws).caps), len(same.flow("web").wf.Dispatch.Capacity); n >= 2*one {
		t.Fatalf("%d caps for two boards with the same workflow of %d", n, one)
	}
}

// CAP-13: a cap does not hold back a card that it counts already; CAP-19: what a round takes, later candidates see.
func TestTakeAndKeep(t *testing.T) {
	w := newWorld(t, fmt.Sprintf(capped, `[{description: d, counts: sessions, scope: machine, max: 1}]`))
	a, b := w.add("a", func(c *Card) { c.Assignee = "py" }), w.add("b", func(c *Card) { c.Assignee = "py" })
	room := NewRoom(w.v, w.ws)
	plan := func(id string) (*Scope, *Candidate) {
		s, err := NewScope(w.v, w.ws, GetBoard(w.v, "web"), w.card(id), w.now, w.env().Nodes)
		if err != nil {
			t.Fatal(err)
		}
		s.At(GetNode(w.v, "n-atlas"), w.nodes["n-atlas"], 0)
		p, perr := s.PlanStart()
		if perr != nil {
			t.Fatal(perr)
		}
		return s, s.Candidate(p, "n-atlas")
	}
	s, cand := plan(a)
	if err, _ := room.Admit(s, cand); err != nil {
		t.Fatal(err)
	}
	room.Take(cand, w.now)
	if err, _ := room.Admit(s, cand); err != nil {
		t.Fatalf("a card that is counted is held back: %v", err)
	}
	s, cand = plan(b)
	err, _ := room.Admit(s, cand)
	refused(t, err, "cap", "1 of 1")
}

// DSP-02, DSP-03, DSP-06, WFL-16, WFL-18: a plan comes from the target status and
// guards alone, of transitions that the platform may send.
func TestPlanStart(t *testing.T) {
	w := newWorld(t, `
version: 1
name: p
params: {who: null}
roles: {r: params.who}
initial: '{{ payload.to ?? "a" }}'
statuses:
  a:
    stored_as: ready
    on:
      start:
        - {by: [manager], target: b}
        - {guard: card.priority > 5, target: empty}
        - {by: [platform], validators: [{when: 1 == 1, refuse: never}], target: b, do: [{claim: {role: r}}]}
  b: {stored_as: running, run: {role: other, session: 's-{{ card.priority }}', prompt: 'x'}}
  empty: {stored_as: todo}
profiles: {sh: {harness: command, args: [true]}, py: {harness: command, model: small, args: [true]}}
dispatch: {start: start}
`)
	plan := func(id string) (*StartPlan, *Error) {
		s, err := NewScope(w.v, w.ws, GetBoard(w.v, "web"), w.card(id), w.now, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s.PlanStart()
	}
	id := w.add("x", func(c *Card) { c.Assignee, c.Priority = "sh", 2 })
	p, err := plan(id)
	if err != nil {
		t.Fatal(err)
	}
	if p.Target != "b" || p.Stored != "running" || p.Role != "r" || p.Slot != "s-2" || p.Profile.Name != "sh" {
		t.Fatalf("%+v", p)
	}
	w.params("web", `{"who":"py"}`)
	if p, _ := plan(id); p.Profile.Name != "py" {
		t.Fatal("the role's expression does not come first")
	}
	w.params("web", `{"who":"zz"}`)
	_, err = plan(id)
	refused(t, err, "profile", "zz")
	w.params("web", "{}")
	_, err = plan(w.add("y", nil))
	refused(t, err, "unassigned", "r")
	_, err = plan(w.add("z", func(c *Card) { c.Priority = 6 }))
	refused(t, err, "no_run", "empty")
	_, err = plan(w.addBy("web", manager, "w", nil, map[string]any{"to": "empty"}))
	refused(t, err, NoTransition, "")
	if wf := w.flow("web").wf; !wf.Startable("a") || wf.Startable("empty") {
		t.Fatal("startable statuses")
	}
}

// M-05, LCK-02, MEM: where a profile may run.
func TestFits(t *testing.T) {
	w := newWorld(t, `
version: 1
name: p
extends: default
profiles:
  any: {harness: command, args: [true], requires: '"git" in machine.tools && machine.labels.os == "linux"'}
  named: {harness: command, args: [true], placement: named}
`)
	id := w.add("x", nil)
	wf := w.flow("web").wf
	fits := func(profile string) *Error {
		s, err := NewScope(w.v, w.ws, GetBoard(w.v, "web"), w.card(id), w.now, w.env().Nodes)
		if err != nil {
			t.Fatal(err)
		}
		return s.At(GetNode(w.v, "n-atlas"), w.nodes["n-atlas"], 0).Fits(wf.Profile(profile))
	}
	refused(t, fits("any"), "requires", "git")
	w.edit("atlas", func(n *Node) { n.Tools, n.Labels = []string{"git"}, map[string]string{"os": "linux"} })
	if err := fits("any"); err != nil {
		t.Fatal(err)
	}
	refused(t, fits("named"), "machine", "names none")
	w.set(id, func(c *Card) { c.Machine = "atlas" })
	if err := fits("named"); err != nil {
		t.Fatal(err)
	}
	w.set(id, func(c *Card) { c.Machine = "nowhere" })
	refused(t, fits("named"), "machine", "nowhere")
	refused(t, fits("claude"), "machine", "")
}
