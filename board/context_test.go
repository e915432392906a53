package board

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// WFL-27, EXP-09, IDL-10: what a session may say, for every status, role and surface of the
// default workflow; what a validator refuses now is listed with its reason.
func TestDoorsGolden(t *testing.T) {
	w := agents(t)
	wf := w.flow("web").wf
	var b strings.Builder
	for _, surface := range []string{"headless", "pane"} {
		profile := map[string]string{"headless": "claude", "pane": "claude-pane"}[surface]
		id := w.add("a card", func(c *Card) { c.Assignee = profile })
		w.started(id)
		for _, status := range wf.Order {
			for _, role := range []string{"implementer", "reviewer"} {
				w.set(id, func(c *Card) { c.Status, c.Stored = status, wf.StoredAs(status) })
				s, err := NewScope(w.v, w.ws, GetBoard(w.v, "web"), w.card(id), w.now, nil)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&b, "== %s, %s, %s\n%s\n\n", status, role, surface, strings.ReplaceAll(s.Doors(role), id, "web-1"))
			}
		}
	}
	const file = "testdata/doors.golden"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != string(want) {
		t.Errorf("%s differs (go test ./board -update writes it anew):\n%s", file, got)
	}
	for _, words := range []string{"Refused as things are now:\n  muster complete --summary TEXT", "# a review is wanted here", "counts as failed", "Your terminal stays open"} {
		if !strings.Contains(string(want), words) {
			t.Errorf("no %q in %s", words, file)
		}
	}
}

// BRD-20, SUB-02, INV-27: what a session is told of a card, and of the card it is a part of, is
// bounded however much there is; what is left out is named, with the command that shows it.
func TestContextIsBoundedAsAWhole(t *testing.T) {
	w := newWorld(t, commands)
	fill := func(id string) {
		w.write(func(x *tx) *Error { x.putBody(id, strings.Repeat("b", 200<<10)); return nil })
		for i := range 45 {
			w.must(id, "comment", manager, "text", fmt.Sprintf("word %d %s", i, strings.Repeat("c", 20<<10)))
		}
		for range 40 {
			p := w.add(strings.Repeat("t", 1000), nil)
			w.write(func(x *tx) *Error { return x.addLink(id, p) })
		}
	}
	arc := w.add("arc", nil)
	fill(arc)
	id := w.add("part", func(c *Card) { c.SubtaskOf = arc })
	fill(id)
	w.write(func(x *tx) *Error {
		c := GetCard(x, id)
		c.Runs = 15
		for n := uint64(1); n <= 15; n++ {
			x.putRun(&Run{ID: RunID(id, n), Card: id, N: n, Role: "implementer", State: RunEnded, Outcome: "crashed", Error: strings.Repeat("e", 500)})
		}
		x.putCard(c)
		return nil
	})
	s, err := NewScope(w.v, w.ws, GetBoard(w.v, "web"), w.card(id), w.now, nil)
	if err != nil {
		t.Fatal(err)
	}
	own, above := s.Context(), s.arcText()
	if len(own) > maxContext || len(above) > maxArc+100 || len(own)+len(above) > 90<<10 {
		t.Fatalf("%d and %d bytes", len(own), len(above))
	}
	for _, words := range []string{"(the rest: muster card show " + id + ")", "(10 more are left out: muster card show " + id + ")",
		"(older ones are left out: muster runs " + id + ")", "older ones are left out: muster card show " + id, "word 44 "} {
		if !strings.Contains(own, words) {
			t.Errorf("the context does not say %q", words)
		}
	}
	if strings.Contains(own, id+".5,") || !strings.Contains(own, id+".6,") {
		t.Error("not the newest ten attempts")
	}
	if !strings.Contains(above, "word 44 ") || !strings.Contains(above, "older ones are left out: muster card show "+arc) {
		t.Error("the arc's newest words are not there")
	}
	w.set(id, func(c *Card) { c.Assignee, c.Status, c.Stored, c.Runs = "agent", "ready", "ready", 0 })
	if _, err := w.firing(id, firing{Event: "start", Actor: manager, Force: true, Why: "x", Start: &startCtx{Node: "n-atlas"}}); err != nil {
		t.Fatalf("a card about which much was said does not start: %v", err)
	}
}

// TRI-06, TRI-07, INV-08: the reviewer is told the whole card: its text, its thread, the summary it was handed over with.
func TestReviewerIsToldTheCard(t *testing.T) {
	w := agents(t)
	w.params("web", `{"reviewer":"rev"}`)
	id := w.add("x", func(c *Card) { c.Assignee = "claude" })
	w.write(func(x *tx) *Error { x.putBody(id, "the acceptance"); return nil })
	r := w.started(id)
	w.must(id, "request_review", asRun(r.ID), "summary", "it works, I ran it")
	w.exited(r.ID, 0)
	rev := w.claimed(id)
	for _, words := range []string{"the acceptance", "it works, I ran it", "request-changes", "muster complete", "Somebody else did the work"} {
		if s := w.spec(rev); !strings.Contains(s.Prompt, words) {
			t.Errorf("the reviewer's prompt has no %q", words)
		}
	}
}

// TRI-05: by itself only ideas of people, never one that got stuck, and none when it is switched off.
func TestTriageByItself(t *testing.T) {
	w := agents(t)
	idea := func(by Actor) string {
		return w.addBy("web", by, "idea", func(c *Card) { c.Assignee = "claude-pane" }, map[string]any{"triage": true})
	}
	if err := w.start(idea(manager)); err != nil {
		t.Fatal(err)
	}
	refused(t, w.start(idea(Platform())), NoTransition, "")
	stuck := idea(manager)
	w.set(stuck, func(c *Card) { c.Blocks = map[string]int64{"needs_input": 2} })
	refused(t, w.start(stuck), NoTransition, "")
	off := idea(manager)
	w.params("web", `{"auto_decompose":false}`)
	refused(t, w.start(off), NoTransition, "")
	if _, err := w.firing(off, firing{Event: "start", Actor: manager, Start: &startCtx{Node: "n-atlas"}}); err != nil {
		t.Fatal(err) // TRI-03: a manager's start
	}
}

// SUB-01, SUB-02: a part is completed by its arc's session; a manager may start it on its own, and it is told of its arc.
func TestPartsOfAnArc(t *testing.T) {
	w := agents(t)
	arc := w.add("arc", func(c *Card) { c.Assignee = "claude" })
	w.must(arc, "comment", manager, "text", "the owner's ruling")
	r := w.started(arc)
	part := w.add("part", func(c *Card) { c.SubtaskOf, c.Assignee = arc, "claude" })
	own := w.add("own", func(c *Card) { c.SubtaskOf, c.Assignee = arc, "claude" })
	refused(t, w.start(part), "validator", "is worked by the session of "+arc)
	w.must(part, "complete", asRun(r.ID), "summary", "done by the arc")
	w.status(part, "done")
	if _, err := w.firing(own, firing{Event: "start", Actor: manager, Start: &startCtx{Node: "n-atlas"}}); err != nil {
		t.Fatal(err)
	}
	mine := GetRun(w.v, w.card(own).Run)
	if s := w.spec(mine); !strings.Contains(s.Prompt, "the owner's ruling") {
		t.Fatalf("%s", s.Prompt)
	}
	w.launched(mine)
	_, err := w.fire(own, "complete", asRun(r.ID), "summary", "not mine any more")
	if err == nil {
		t.Fatal("the arc's session completes a part that has a run of its own")
	}
}
