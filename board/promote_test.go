package board

import (
	"slices"
	"testing"
)

// BRD-10, BRD-12, SUB-04: a card waits for what it is linked to; only done
// satisfies, also when it was archived after; a cancelled one does not.
func TestOnlyDoneSatisfies(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []string
		ready  bool
	}{
		{"done", []string{"complete"}, true},
		{"archived after done", []string{"complete", "archive"}, true},
		{"cancelled", []string{"cancel"}, false},
		{"archived after cancelled", []string{"cancel", "archive"}, false},
		{"reopened", []string{"complete", "reopen"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, commands)
			parent := w.add("parent", nil)
			for _, e := range c.events {
				w.must(parent, e, manager)
			}
			id := w.add("child", func(c *Card) { c.Assignee = "sh" }, parent)
			w.status(id, map[bool]string{true: "ready", false: "todo"}[c.ready])
			if got := Waiting(w.v, w.ws, id); (len(got) == 0) != c.ready {
				t.Fatalf("waits for %v", got)
			}
		})
	}
}

// SUB-04: the last parent's end promotes its children in the same transaction.
func TestChildrenArePromotedWithTheirParent(t *testing.T) {
	w := newWorld(t, commands)
	a, b := w.add("a", nil), w.add("b", nil)
	child := w.add("child", nil, a, b)
	late := w.add("late", func(c *Card) { c.StartAfter = w.now + 60_000 }, a)
	w.must(a, "complete", manager)
	w.status(child, "todo")
	seq := w.v.Seq()
	w.must(b, "complete", manager)
	w.status(child, "ready")
	w.status(late, "todo")
	if w.v.Seq() != seq+1 {
		t.Fatal("more than one transaction")
	}
	if e := w.lastEvent(child, "promote"); e.Actor.Kind != ActorPlatform || e.From != "todo" || e.To != "ready" {
		t.Fatalf("%+v", e)
	}
	if w.card(child).LastFree != w.now {
		t.Fatal("a promotion sets the card free")
	}
	w.after(60)
	w.must(late, "promote", Platform())
	w.status(late, "ready")
}

// A card that comes into a status that handles promote is offered it at once.
func TestPromotedAtOnce(t *testing.T) {
	w := newWorld(t, commands)
	id := w.add("x", nil)
	w.must(id, "complete", manager)
	w.must(id, "reopen", manager, "why", "not so") // target is todo, and nothing holds it
	w.status(id, "ready")
	if got := w.events(id); !slices.Equal(got, []string{"complete", "reopen", "promote"}) {
		t.Fatalf("events %v", got)
	}
}

// Many children: fifty in the same transaction, the others by due times at once (M-01 bounds a transaction).
func TestManyChildren(t *testing.T) {
	w := newWorld(t, commands)
	parent := w.add("parent", nil)
	var ids []string
	for range maxPromotions + 20 {
		ids = append(ids, w.add("c", nil, parent))
	}
	w.must(parent, "complete", manager)
	ready := 0
	for _, id := range ids {
		if w.card(id).Status == "ready" {
			ready++
		}
	}
	if ready != maxPromotions || len(w.dues(DueCard)) != 20 {
		t.Fatalf("%d promoted, %d due", ready, len(w.dues(DueCard)))
	}
}

// Invariant 22: a card whose promotion fails holds up nobody, and nothing of its attempt is left.
func TestAPoisonedChildHoldsUpNobody(t *testing.T) {
	w := newWorld(t, commands)
	w.board("bad", "version: 1\nname: bad\ninitial: todo\nstatuses:\n  todo: {stored_as: todo, on: {promote: [{target: todo2, do: [{comment: 'half'}, {link: {after: card.id}}]}]}}\n  todo2: {stored_as: todo}\ndispatch: {start: start}\n")
	parent := w.add("parent", nil)
	poison := w.addBy("bad", manager, "poison", nil, nil, parent)
	fine := w.add("fine", nil, parent)
	w.must(parent, "complete", manager)
	w.status(parent, "done")
	w.status(fine, "ready")
	w.status(poison, "todo")
	if len(comments(w, poison)) != 0 {
		t.Fatal("half of a failed promotion is left")
	}
	EachEvent(w.v, "", func(key string, e *Event) bool { // not by the card's chain: what nobody names is left, too
		if e.Card == poison {
			t.Errorf("event %s (%s) of a failed promotion is left", key, e.Kind)
		}
		return true
	})
}

// Promotions that cause promotions end, whatever the workflow says.
func TestPromotionsEnd(t *testing.T) {
	w := newWorld(t, "version: 1\nname: ring\ninitial: a\nstatuses:\n  a: {stored_as: todo, on: {promote: [{target: b}], go: [{target: b}]}}\n  b: {stored_as: todo, on: {promote: [{target: a}]}}\ndispatch: {start: start}\n")
	id := w.add("x", nil)
	w.must(id, "go", manager)
	if n := len(w.events(id)); n != 1+maxDepth {
		t.Fatalf("%d events", n)
	}
}

// BRD-10: links do not go in circles, and only between cards that are there.
func TestLinks(t *testing.T) {
	w := newWorld(t, commands)
	a := w.add("a", nil)
	b := w.add("b", nil, a)
	c := w.add("c", nil, b)
	link := func(child, parent string) *Error {
		return w.try(func(x *tx) *Error { return x.addLink(child, parent) })
	}
	refused(t, link(a, c), "link", "wait for each other")
	refused(t, link(a, a), "link", "itself")
	refused(t, link(a, "web-77"), "link", "no card")
	refused(t, link("web-77", a), "link", "no card")
	if err := link(c, b); err != nil {
		t.Fatalf("a link that is there: %v", err)
	}
	if err := link(c, a); err != nil {
		t.Fatal(err)
	}
	if got := Parents(w.v, c); !slices.Equal(got, []string{a, b}) {
		t.Fatalf("parents %v", got)
	}
	if got := Children(w.v, a); !slices.Equal(got, []string{b, c}) {
		t.Fatalf("children %v", got)
	}
}

// TRI-02: decompose files the parts, each done before the card; their actor is
// the platform, so they start by themselves; the card is worked last.
func TestDecompose(t *testing.T) {
	w := newWorld(t, commands)
	id := w.addBy("web", manager, "big", func(c *Card) { c.Machine = "atlas" }, map[string]any{"triage": true})
	w.status(id, "triage")
	w.must(id, "decompose", manager, "children", []any{
		map[string]any{"title": "one", "body": "first", "profile": "sh"},
		map[string]any{"title": "two"},
	})
	w.status(id, "todo")
	parts := Parents(w.v, id)
	if len(parts) != 2 {
		t.Fatalf("parts %v", parts)
	}
	one, two := w.card(parts[0]), w.card(parts[1])
	if one.Title != "one" || one.Assignee != "sh" || one.Machine != "atlas" || GetBody(w.v, one.ID) != "first" || one.Creator.Kind != ActorPlatform || one.Status != "ready" {
		t.Fatalf("%+v", one)
	}
	if two.Title != "two" || two.Assignee != "" || two.Status != "ready" {
		t.Fatalf("%+v", two)
	}
	for _, p := range parts {
		w.must(p, "complete", manager)
	}
	w.status(id, "ready")
	seq := w.v.Seq()
	tri := w.addBy("web", manager, "big", nil, map[string]any{"triage": true})
	_, err := w.fire(tri, "decompose", manager, "children", []any{map[string]any{"body": "no title"}})
	refused(t, err, "field", "title")
	if w.v.Seq() != seq+1 {
		t.Fatal("half a decomposition is left")
	}
}

// TRI-01, the action `set`: fields take their kinds, nil clears, and text is bounded.
func TestSpecifySetsFields(t *testing.T) {
	w := newWorld(t, commands)
	id := w.addBy("web", manager, "idea", nil, map[string]any{"triage": true})
	w.must(id, "specify", manager, "title", "clear", "body", "how")
	if c := w.card(id); c.Title != "clear" || GetBody(w.v, id) != "how" || c.Status != "ready" {
		t.Fatalf("%+v", c)
	}
	c := &Card{ID: "web-1", Labels: map[string]string{"old": "1"}}
	x := newTx(w.v, &Request{}, w.env())
	for name, v := range map[string]any{"priority": 3.0, "max_runtime": 60.0, "skills": []any{"a"}, "labels": map[string]any{"k": "v"}, "goal_mode": true, "start_after": 5.5, "machine": nil} {
		if err := setField(x, c, name, v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if c.Priority != 3 || *c.MaxRuntime != 60 || c.Skills[0] != "a" || c.Labels["k"] != "v" || len(c.Labels) != 1 || !c.Goal || c.StartAfter != 5500 {
		t.Fatalf("%+v", c)
	}
	for name, v := range map[string]any{"priority": "high", "goal_mode": "yes", "skills": "a", "labels": "a", "title": "two\nlines", "machine": 3.0, "branch": string(make([]byte, 2000))} {
		if setField(x, c, name, v) == nil {
			t.Errorf("%s took %v", name, v)
		}
	}
	if err := setField(x, c, "max_runtime", nil); err != nil || c.MaxRuntime != nil {
		t.Fatal("nil does not clear")
	}
}

// Invariant 24: what a session says decides no profile beyond its own and those
// that params.session_profiles lists, no machine, no workspace; a profile is given by whom its who names.
func TestWhoMayGiveACard(t *testing.T) {
	w := newWorld(t, commands)
	split := func(by Actor, id, profile string) *Error {
		_, err := w.fire(id, "decompose", by, "children", []any{map[string]any{"title": "part", "profile": profile}})
		return err
	}
	idea := func() (string, *Run) {
		id := w.addBy("web", manager, "idea", func(c *Card) { c.Assignee = "agent" }, map[string]any{"triage": true})
		w.nodes["n-atlas"] = Reading{State: NodeOnline, Slots: 100}
		if _, err := w.firing(id, firing{Event: "start", Actor: manager, Start: &startCtx{Node: "n-atlas"}}); err != nil {
			t.Fatal(err)
		}
		return id, w.launched(GetRun(w.v, w.card(id).Run))
	}
	id, r := idea()
	refused(t, split(asRun(r.ID), id, "sh"), "who", "its own profile (agent)")
	refused(t, split(asRun(r.ID), id, "nobody"), "profile", "agent, claude")
	w.params("web", `{"session_profiles":["sh"]}`)
	if err := split(asRun(r.ID), id, "sh"); err != nil {
		t.Fatal(err)
	}
	w.params("web", `{"default_assignee":"agent"}`)
	id, r = idea()
	if err := split(asRun(r.ID), id, "agent"); err != nil {
		t.Fatal(err)
	}
	fl := w.flow("web")
	refused(t, mayGive(fl, member, "", "sh"), "who", "manager") // a command runs what the card says
	for _, ok := range []*Error{mayGive(fl, manager, "", "sh"), mayGive(fl, member, "", "claude"), mayGive(fl, manager, "", "claude"), mayGive(fl, Platform(), "", "sh")} {
		if ok != nil {
			t.Error(ok)
		}
	}
	st := &step{t: newTx(w.v, &Request{}, w.env()), c: w.card(id), f: firing{Actor: asRun(r.ID)}, s: &Scope{flow: fl}}
	refused(t, st.maySet("machine", "brick"), "who", "machine")
	refused(t, st.maySet("workspace", "dir:/etc"), "who", "workspace")
	if err := st.maySet("machine", ""); err != nil {
		t.Error(err)
	}
}
