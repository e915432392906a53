package board

import (
	"slices"
	"strings"
	"testing"
)

// picky is a workflow in which selection can be told apart.
const picky = `
version: 1
name: picky
params: {limit: 3}
initial: '{{ payload.to ?? "open" }}'
statuses:
  open:
    stored_as: todo
    on:
      go:
        - {by: [manager], guard: payload.n > params.limit, target: big}
        - {by: [manager], guard: payload.n > 0, validators: [{when: payload.n == 2, refuse: 'two is {{ payload.n }}'}], target: small}
        - {by: [manager], guard: payload.n > 1, target: big}
        - {by: [platform], target: small}
      choose: [{target: '{{ payload.to }}'}]
      both: [{target: small, do: [{comment: own}]}]
      broken: [{guard: payload.a + 1 > 0, target: small}]
      twice: [{do: [{comment: one}, {comment: two}, {set: {priority: card.priority + 1}}, {set: {priority: card.priority + 10}}]}]
      stuck: [{target: small, do: [{comment: lost}, {link: {after: payload.card}}]}]
      nothing: [{guard: payload.yes}]
      promote: [{guard: payload.never}]
  small: {stored_as: todo, on: {back: [{target: open}]}}
  big: {stored_as: todo, enter: [{comment: 'big now'}], on: {back: [{target: open}]}}
on:
  both: [{do: [{comment: general}]}]
  note: [{by: [member], do: [{comment: '{{ payload.text }}'}]}]
  say: [{do: [{comment: '{{ payload.text }}'}]}]
dispatch: {start: start, order: [-card.priority]}
`

// WFL-05, WFL-06, WFL-08, WFL-11: the first transition whose by admits the
// sender and whose guard holds is taken; a validator refuses it, and the next one is not tried.
func TestSelection(t *testing.T) {
	for _, c := range []struct {
		name  string
		by    Actor
		n     any
		to    string
		check string
		words string
	}{
		{"first guard", manager, 5.0, "big", "", ""},
		{"second transition", manager, 1.0, "small", "", ""},
		{"validator stops the search", manager, 2.0, "", "validator", "two is 2"},
		{"no guard holds", manager, 0.0, "", NoTransition, "now you can: muster "},
		{"nil is no number and no guard", manager, nil, "", NoTransition, ""},
		{"by does not admit", member, 5.0, "", NoTransition, "member"},
		{"by admits the platform only to its own", Platform(), 5.0, "small", "", ""},
		{"a viewer says nothing", viewer, 5.0, "", "sender", "viewer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, picky)
			id := w.add("x", nil)
			_, err := w.fire(id, "go", c.by, "n", c.n)
			if c.to == "" {
				refused(t, err, c.check, c.words)
				w.status(id, "open")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			w.status(id, c.to)
		})
	}
}

// WFL-03: the status's own transitions are tried before the workflow's.
func TestOwnTransitionsComeFirst(t *testing.T) {
	w := newWorld(t, picky)
	id := w.add("x", nil)
	w.must(id, "both", manager)
	w.status(id, "small")
	w.must(id, "both", manager) // in small only the workflow has it
	if got := comments(w, id); !slices.Equal(got, []string{"own", "general"}) {
		t.Fatalf("comments %q", got)
	}
}

// WFL-07: the target is a template in the card's scope; without one the card
// stays; one that names no status is a refusal, and nothing is written.
func TestTargetIsATemplate(t *testing.T) {
	w := newWorld(t, picky)
	id := w.add("x", nil)
	seq := w.v.Seq()
	_, err := w.fire(id, "choose", manager, "to", "nowhere")
	refused(t, err, "expression", `"nowhere" is no status`)
	if w.v.Seq() != seq {
		t.Fatal("a refusal wrote something")
	}
	w.must(id, "choose", manager, "to", "")
	w.status(id, "open")
	w.must(id, "choose", manager, "to", "big")
	w.status(id, "big")
	if got := comments(w, id); !slices.Equal(got, []string{"big now"}) {
		t.Fatalf("enter actions: comments %q", got)
	}
	if c := w.card(id); c.Previous != "open" || c.Stored != "todo" {
		t.Fatalf("previous %q stored %q", c.Previous, c.Stored)
	}
}

// WFL-09, ERR-01: an observation that no transition takes is told apart from
// every other failure, and a transition that does nothing writes nothing.
func TestNothingTakesTheEvent(t *testing.T) {
	w := newWorld(t, picky)
	id := w.add("x", nil)
	_, err := w.fire(id, "stale", Platform())
	refused(t, err, NoTransition, "")
	if err.Hint != "" {
		t.Fatalf("the platform is told what people could do: %s", err.Hint)
	}
	m, err := w.fire(id, "nothing", manager, "yes", true)
	if err != nil || m.Event != nil {
		t.Fatalf("%v %v", m, err)
	}
	if len(w.events(id)) != 0 {
		t.Fatal("a transition without target and actions wrote an event")
	}
	_, err = w.fire(id, "unheard", manager)
	var can []string
	for _, e := range []string{"both", "broken", "choose", "go", "note", "nothing", "say", "stuck", "twice"} {
		can = append(can, Command(e, id))
	}
	refused(t, err, NoTransition, strings.Join(can, "; "))
}

// WFL-10: everything of a firing is one transaction; what fails late leaves nothing behind.
func TestAFailedActionLeavesNothing(t *testing.T) {
	w := newWorld(t, picky)
	id := w.add("x", nil)
	before, seq := w.card(id), w.v.Seq()
	_, err := w.fire(id, "stuck", manager, "card", "web-99")
	refused(t, err, "link", "web-99")
	if w.v.Seq() != seq || len(comments(w, id)) != 0 || w.card(id).LastEvent != before.LastEvent {
		t.Fatal("a refused firing wrote something")
	}
	_, err = w.fire(id, "broken", manager, "a", "text")
	refused(t, err, "expression", "workflow 1")
}

// BRD-08, BRD-09: every change is an event with its sender and payload; comments
// carry the sender as author, in the order they were said.
func TestEventsAndComments(t *testing.T) {
	w := newWorld(t, picky)
	id := w.add("x", nil)
	m, err := w.fire(id, "twice", manager, "a", 1.5)
	if err != nil {
		t.Fatal(err)
	}
	if m.Event.Kind != "twice" || string(m.Event.Payload) != `{"a":1.5}` || m.Event.Actor.Name != manager.Name || m.Event.From != "" {
		t.Fatalf("event %+v", m.Event)
	}
	if got := comments(w, id); !slices.Equal(got, []string{"one", "two"}) {
		t.Fatalf("comments %q", got)
	}
	EachComment(w.v, w.card(id), func(c *Comment) bool {
		if c.Author.Name != manager.Name || c.At != w.now {
			t.Errorf("comment by %+v at %d", c.Author, c.At)
		}
		return true
	})
	if p := w.card(id).Priority; p != 11 { // a later action sees the earlier one
		t.Fatalf("priority %d", p)
	}
	w.must(id, "say", manager, "text", "  ")
	if n := len(comments(w, id)); n != 2 {
		t.Fatalf("an empty comment was stored: %d", n)
	}
	_, err = w.fire(id, "say", manager, "text", strings.Repeat("x", maxPayload))
	refused(t, err, "", "payload")
}

// WFL-11: a member sends what names nobody, or member; a manager may do as much.
func TestRolesOfPeople(t *testing.T) {
	w := newWorld(t, picky)
	id := w.add("x", nil)
	w.must(id, "say", member, "text", "a")
	w.must(id, "note", member, "text", "b")
	w.must(id, "note", manager, "text", "c")
	_, err := w.fire(id, "go", member, "n", 1.0)
	refused(t, err, NoTransition, "")
}

// SUP: only the fleet says what it observes, whatever `by` says; the default
// workflow's `stale` names nobody.
func TestFleetEventsComeFromTheFleet(t *testing.T) {
	w := newWorld(t, commands)
	id := w.add("x", func(c *Card) { c.Assignee = "sh" })
	run := w.started(id)
	for _, a := range []Actor{manager, member, asRun(run.ID)} {
		for _, e := range []string{"promote", "exited", "session_lost", "timed_out", "stale", "machine_offline", "orphaned", "spawn_failed", "session_idle", "hook_done"} {
			_, err := w.fire(id, e, a)
			refused(t, err, "sender", "fleet")
		}
	}
}

// WFL-11, INV-10: a run's role holds on its own card while it is the current
// run; on the parts of its card it is an implementer; elsewhere it only comments, where a link is.
func TestRolesOfRuns(t *testing.T) {
	w := newWorld(t, commands)
	id := w.add("arc", func(c *Card) { c.Assignee = "agent" })
	run := w.started(id)
	part := w.addBy("web", asRun(run.ID), "part", func(c *Card) { c.SubtaskOf = id }, nil)
	other := w.add("other", nil)
	after := w.add("after", nil, id)
	w.status(part, "ready")
	w.must(part, "complete", asRun(run.ID), "summary", "did it")
	w.status(part, "done")
	_, err := w.fire(other, "comment", asRun(run.ID), "text", "hello")
	refused(t, err, "sender", "its own card")
	w.must(after, "comment", asRun(run.ID), "text", "hello")
	_, err = w.fire(after, "block", asRun(run.ID), "kind", "transient", "reason", "x")
	refused(t, err, "sender", "")
	w.must(id, "request_review", asRun(run.ID), "summary", "done")
	_, err = w.fire(id, "comment", asRun(run.ID), "text", "one more word")
	refused(t, err, "superseded", "")
}

// BRD-13: a card has a status of the workflow and what it is stored as; initial
// is a template, and it may not name what has a run or what is not there.
func TestInitialStatus(t *testing.T) {
	w := newWorld(t, commands)
	parent := w.add("parent", nil)
	for _, c := range []struct {
		name, status, stored string
		id                   string
	}{
		{"nothing holds it", "ready", "ready", w.add("a", nil)},
		{"it waits", "todo", "todo", w.add("b", nil, parent)},
		{"its time has not come", "todo", "todo", w.add("c", func(c *Card) { c.StartAfter = w.now + 5000 })},
		{"an idea", "triage", "triage", w.addBy("web", manager, "d", nil, map[string]any{"triage": true})},
		{"a session's find", "triage", "triage", w.addBy("web", asRun("web-1.1"), "e", nil, nil)},
	} {
		if got := w.card(c.id); got.Status != c.status || got.Stored != c.stored {
			t.Errorf("%s: %s stored as %s, want %s stored as %s", c.name, got.Status, got.Stored, c.status, c.stored)
		}
	}
	if d := w.dues(DueCard); len(d) != 1 || d[0].At != w.now+5000 {
		t.Fatalf("due times %v", d)
	}
	p := newWorld(t, picky)
	err := p.try(func(x *tx) *Error {
		b := GetBoard(x, "web")
		return x.initial(b, x.mintCard(b), map[string]any{"to": "nowhere"})
	})
	refused(t, err, "target", "nowhere")
}

func comments(w *world, card string) (list []string) {
	EachComment(w.v, w.card(card), func(c *Comment) bool {
		list = append(list, c.Body)
		return true
	})
	return list
}
