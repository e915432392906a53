package board

import "testing"

// Who looked at a session, typed and left stands in the card's history under their own name, by the word of
// the session's machine and of no other; it changes nothing else of the card.
func TestLooksAreRecorded(t *testing.T) {
	w := agents(t)
	id := w.add("x", func(c *Card) { c.Assignee = "claude" })
	r := w.started(id)
	was := *w.card(id)
	say := func(node, run string, l *Look) Result {
		return w.ask(Actor{Kind: ActorNode, Node: node}, VReport, Report{Kind: ReportLooked, Run: run, Look: l})
	}
	for word, kind := range map[string]string{LookBegan: "attached", LookTyped: "typed", LookEnded: "detached"} {
		if res := say("n-atlas", r.ID, &Look{Word: word, Who: "ann@borg", At: "n-borg", Seconds: 7, Typed: 3}); res.Err != nil {
			t.Fatal(res.Err)
		}
		if e := w.lastEvent(id, kind); e.Actor.Kind != ActorPerson || e.Actor.Name != "ann@borg" || e.Run != r.ID || e.Card != id {
			t.Errorf("%s: %+v", kind, e)
		}
	}
	if p := w.payload(id, "detached"); p["seconds"] != 7.0 || p["typed"] != 3.0 || p["machine"] != "atlas" {
		t.Errorf("detached: %v", p)
	}
	if now := *w.card(id); now.Status != was.Status || now.Run != was.Run {
		t.Errorf("a look changed the card: %+v", now)
	}
	for name, res := range map[string]Result{
		"of another machine": say("n-borg", r.ID, &Look{Word: LookBegan, Who: "ann@borg"}),
		"of nobody":          say("n-atlas", r.ID, &Look{Word: LookBegan}),
		"without a look":     say("n-atlas", r.ID, nil),
		"with another word":  say("n-atlas", r.ID, &Look{Word: "peeped", Who: "ann@borg"}),
	} {
		if res.Err == nil {
			t.Errorf("%s: it was taken", name)
		}
	}
	if res := say("n-atlas", "", &Look{Word: LookBegan, Who: "ann@borg", Shell: true}); res.Err != nil { // on a machine, of no card
		t.Fatal(res.Err)
	}
}
