package board

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// indexed holds the index of a card's needs against what it is made of.
func (w *world) indexed(card string) {
	w.t.Helper()
	var want, got []string
	line := func(n *Need) string { return fmt.Sprint(n.Card, n.Run, n.Kind, n.Text, n.Since, n.Until) }
	add := func(n *Need) {
		if n != nil {
			want = append(want, line(n))
		}
	}
	add(w.card(card).need())
	EachRun(w.v, card, func(r *Run) bool { add(r.need()); return true })
	EachDelivery(w.v, card, func(d *Delivery) bool { add(d.need(w.v)); return true })
	for _, n := range NeedsOf(w.v, card) {
		got = append(got, line(n))
	}
	if !slices.Equal(want, got) {
		w.t.Fatalf("index of needs: %q, want %q", got, want)
	}
}

// needs of a card, as "kind: text".
func (w *world) needs(card string) (list []string) {
	w.indexed(card)
	for _, n := range NeedsOf(w.v, card) {
		list = append(list, n.Kind+": "+n.Text)
	}
	return list
}

func (w *world) wantNeeds(card string, want ...string) {
	w.t.Helper()
	got := w.needs(card)
	ok := len(got) == len(want)
	for i := 0; ok && i < len(want); i++ {
		ok = strings.Contains(got[i], want[i])
	}
	if !ok {
		w.t.Fatalf("card %s needs a person for %q, want %q", card, got, want)
	}
}

// A card that waits for a person's review says so, from the moment it does; not one that
// a profile reviews, whoever names or takes away the reviewer.
func TestReviewThatWaitsForAPerson(t *testing.T) {
	w := agents(t)
	id := w.add("x", func(c *Card) { c.Assignee = "claude" })
	r := w.started(id)
	w.wantNeeds(id)
	w.must(id, "request_review", asRun(r.ID), "summary", "done")
	w.wantNeeds(id, "review: it waits for a person's review: muster complete "+id)
	since := w.card(id).Attention.Since
	w.after(60)
	w.must(id, "comment", member, "text", "I look at it")
	if c := w.card(id); c.Attention.Since != since {
		t.Error("a comment made it wait anew")
	}
	w.params("web", `{"reviewer":"rev"}`)
	w.ask(Platform(), VReasons, Reasons{Cards: []CardReason{{Card: id, Check: "cap", Text: "full"}}})
	w.wantNeeds(id)
	w.params("web", `{}`)
	w.ask(Platform(), VReasons, Reasons{Cards: []CardReason{{Card: id, Check: "guard", Text: "nobody starts it"}}})
	w.wantNeeds(id, "review: ")
	w.must(id, "request_changes", manager, "text", "no")
	w.wantNeeds(id)
}

// Invariant 20: a card that waits for a profile waits for a person, and says how it is given one, until it has one.
func TestCardWithoutAProfileNeedsAPerson(t *testing.T) {
	w := agents(t)
	id := w.add("x", nil)
	w.wantNeeds(id)
	for _, check := range []string{"unassigned", "profile"} {
		w.ask(Platform(), VReasons, Reasons{Cards: []CardReason{{Card: id, Check: check, Text: "nobody plays implementer"}}})
		w.wantNeeds(id, check+": nobody plays implementer: muster card edit "+id+" --assignee PROFILE")
	}
	w.ask(Platform(), VReasons, Reasons{Cards: []CardReason{{Card: id, Check: "cap", Text: "full"}}})
	w.wantNeeds(id)
	w.ask(Platform(), VReasons, Reasons{Cards: []CardReason{{Card: id, Check: "unassigned", Text: "nobody"}}})
	w.must(id, "cancel", manager)
	w.wantNeeds(id)
}

// A session that asks whether it may, asks a person something or is at a limit needs a person from
// its node's word on until it works again or is gone; the card's events say so, once.
func TestSessionThatAsks(t *testing.T) {
	w := agents(t)
	id := w.add("x", func(c *Card) { c.Assignee = "claude-pane" })
	r := w.started(id)
	waits := func() (n int) {
		for _, k := range w.events(id) {
			if k == "session_waits" {
				n++
			}
		}
		return n
	}
	for i, kind := range []string{TurnPermission, TurnQuestion, TurnLimit} {
		rep := Report{Kind: ReportIdle, For: kind, Text: "may I rm -rf /?", ResetAt: w.now + 5}
		w.report(r.ID, rep)
		rep.Run = r.ID
		seq := w.v.Seq()
		w.ask(Actor{Kind: ActorNode, Node: r.Node}, VReport, rep)
		if w.v.Seq() != seq {
			t.Error("what is no news was written")
		}
		w.wantNeeds(id, kind+": may I rm")
		if n := NeedsOf(w.v, id)[0]; n.Until != rep.ResetAt || n.Run != r.ID || n.Board != "web" {
			t.Errorf("%+v", n)
		}
		if p := w.payload(id, "session_waits"); waits() != i+1 || p["for"] != kind || p["text"] != rep.Text {
			t.Errorf("%d events, %v", waits(), p)
		}
		if !GetRun(w.v, r.ID).Session.Waiting {
			t.Error("the workflow is not told that it waits")
		}
		w.report(r.ID, Report{Kind: ReportBusy})
		w.wantNeeds(id)
	}
	w.report(r.ID, Report{Kind: ReportIdle, For: "a mood"})
	w.wantNeeds(id)
	w.report(r.ID, Report{Kind: ReportIdle, For: TurnQuestion})
	w.wantNeeds(id, "question: ")
	w.report(r.ID, Report{Kind: ReportExited})
	w.wantNeeds(id)
}

// A pane that does not take what is to be told to it needs a person, and not any more when it does.
func TestDeafPane(t *testing.T) {
	w := agents(t)
	id := w.add("x", func(c *Card) { c.Assignee = "claude-pane" })
	r := w.started(id)
	w.report(r.ID, Report{Kind: ReportDeaf, Error: "it does not show ❯"})
	w.wantNeeds(id, "deaf: it does not show ❯")
	w.report(r.ID, Report{Kind: ReportIdle, For: TurnPermission, Text: "?"})
	w.wantNeeds(id, "permission: ?")
	w.report(r.ID, Report{Kind: ReportBusy})
	w.report(r.ID, Report{Kind: ReportHears})
	w.wantNeeds(id)
}

// Words of which nobody knows whether they were read are shown until the next run is told.
func TestUndeliveredWordsNeedAPerson(t *testing.T) {
	w := agents(t)
	id := w.add("x", func(c *Card) { c.Assignee = "claude-pane" })
	w.started(id)
	w.ok(VSend, Send{To: id, Text: "stop that\nat once"})
	w.wantNeeds(id)
	o := w.orders(OrderDeliver)[0]
	w.ask(Actor{Kind: ActorNode, Node: "n-atlas"}, VDelivered, Delivered{Order: o.ID, State: "unknown", Error: "its node ended"})
	w.wantNeeds(id, "undelivered: its node ended: ann@atlas: stop that")
	w.must(id, "cancel", manager)
	w.wantNeeds(id)
}

const turns = `
version: 1
name: web
extends: default
profiles: {claude-pane: {harness: claude-code, surface: pane}}
dispatch:
  capacity:
    - {description: turns, counts: turns, scope: fleet, max: 1}
`

// SES-21: a cap on turns counts a session until its node tells that it is idle, also when that is after
// its run's end; one that asks something is in the middle of its turn.
func TestTurnsAreCounted(t *testing.T) {
	w := agentsOf(t, turns)
	one, two := w.add("x", func(c *Card) { c.Assignee = "claude-pane" }), w.add("y", func(c *Card) { c.Assignee = "claude-pane" })
	r := w.started(one)
	full := func(when string) {
		t.Helper()
		if err := w.start(two); err == nil || err.Check != "cap" {
			t.Fatalf("%s: a second turn begins (%v)", when, err)
		}
	}
	full("nothing was told")
	w.report(r.ID, Report{Kind: ReportIdle, For: TurnPermission})
	full("it asks")
	w.must(one, "block", asRun(r.ID), "kind", "needs_input", "reason", "?")
	full("its run is over, its turn is not")
	w.report(r.ID, Report{Kind: ReportIdle})
	if err := w.start(two); err != nil {
		t.Fatal(err)
	}
	w.report(r.ID, Report{Kind: ReportBusy})
	if h := GetHeld(w.v, r.ID); h == nil || h.Idle || !h.Ended {
		t.Errorf("%+v", h)
	}
}
