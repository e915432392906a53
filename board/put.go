package board

import "strings"

// putStatus moves a card to any status without a run, whatever the workflow
// says (M-22): for a manager who finds a card where nothing takes it out. No
// transition is taken and nothing is entered; a run that it has is ended and stopped.
func putStatus(t *tx) (any, *Error) {
	a, err := args[CardPut](t)
	if err != nil {
		return nil, err
	}
	b, c, err := t.card(a.Card)
	if err != nil {
		return nil, err
	}
	fl, err := t.flow(b)
	if err != nil {
		return nil, err
	}
	to := fl.wf.Statuses[a.Status]
	switch {
	case strings.TrimSpace(a.Why) == "":
		return nil, Errorf(Invalid, "card %s: say why it is put somewhere by hand", c.ID).WithHint("--why TEXT")
	case to == nil:
		return nil, Errorf(Invalid, "board %s has no status %q", b.Slug, clip(a.Status, 60)).WithHint("it has: %s", strings.Join(fl.wf.Order, ", "))
	case to.Run != nil:
		return nil, Errorf(Refused, "card %s: in %q a session works, and none is started so", c.ID, a.Status).WithCheck("run_status").
			WithHint("put it where it waits, then: muster start %s", c.ID)
	}
	if r := GetRun(t, c.Run); r != nil {
		if err := t.reachable(r, &FireEvent{Card: c.ID, Event: "reclaim", Force: a.Force}); err != nil {
			return nil, err
		}
		t.part(c, r, "put", "put")
		if a.Force {
			t.forceGone(c.ID, a.Why)
		}
	}
	from := c.Status
	if from != to.Name {
		c.Previous = from
	}
	if fl.wf.Statuses[c.Previous] == nil {
		c.Previous = ""
	}
	c.Status, c.Stored, c.LastFree = to.Name, to.StoredAs, t.env.Now
	c.Waits, c.Attention = Reason{}, Reason{}
	t.event(c, Event{Kind: "put", From: from, To: c.Status, Payload: jsonOf(map[string]any{"why": clip(a.Why, 500)})})
	t.putCard(c)
	t.offerPromote(c.ID)
	return map[string]any{"id": c.ID, "from": from, "to": GetCard(t, c.ID).Status}, nil
}
