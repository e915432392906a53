package board

// sender gives the roles the sender has on this card (WFL-11), and refuses who has no say.
func (st *step) sender() ([]string, *Error) {
	a, c := &st.f.Actor, st.c
	if FleetEvent(st.f.Event) && a.Kind != ActorPlatform {
		return nil, Errorf(Refused, "%s is said by the fleet itself, when it sees it", st.f.Event).WithCheck("sender").
			WithHint("see: muster card show %s", c.ID)
	}
	switch a.Kind {
	case ActorPlatform:
		a.Role = "platform"
		return []string{"platform"}, nil
	case ActorPerson:
		switch a.Role {
		case "manager":
			return []string{"manager", "member"}, nil
		case "member":
			return []string{"member"}, nil
		}
		return nil, Errorf(Refused, "%s may look, and say nothing (role %q)", a.Name, a.Role).WithCheck("sender")
	case ActorRun:
		role, err := st.runRole()
		if err != nil {
			return nil, err
		}
		a.Role = role
		st.s.From(*a, st.f.Payload)
		return []string{role}, nil
	}
	return nil, Errorf(Refused, "card %s: a %s sends no events of the workflow", c.ID, a.Kind).WithCheck("sender")
}

// runRole is the role of a session on the card: that of its run on its own
// card, implementer on the parts of it; elsewhere it may only comment, where a link is.
func (st *step) runRole() (string, *Error) {
	r := GetRun(st.t, st.f.Actor.Run)
	if r == nil || r.State == RunEnded {
		return "", Errorf(Refused, "run %s has ended: what it says does not count any more", st.f.Actor.Run).WithCheck("superseded")
	}
	switch c := st.c; {
	case r.Card == c.ID && c.Run == r.ID:
		return r.Role, nil
	case r.Card == c.ID:
		return "", Errorf(Refused, "run %s is not the run of card %s any more", r.ID, c.ID).WithCheck("superseded")
	case c.SubtaskOf == r.Card:
		return "implementer", nil
	case st.f.Event == "comment" && linked(st.t, c.ID, r.Card):
		return "linked", nil
	}
	return "", Errorf(Refused, "a session speaks of its own card (%s) and its parts, not of %s", r.Card, st.c.ID).WithCheck("sender").
		WithHint("file what you notice as a card of its own: muster card add TITLE")
}

func linked(v View, a, b string) bool {
	return v.Has(TLink, LinkKey(a, b)) || v.Has(TLink, LinkKey(b, a))
}
