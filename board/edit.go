package board

import "slices"

// cardEdit changes fields of a card, and says which of them count at once and
// which with the next run: one that is under way keeps what it was claimed with
// (BRD-16, M-22).
func cardEdit(t *tx) (any, *Error) {
	a, err := args[CardEdit](t)
	if err != nil {
		return nil, err
	}
	b, c, err := t.card(a.Card)
	if err != nil {
		return nil, err
	}
	if err := t.setFields(b, c, &a.CardFields); err != nil {
		return nil, err
	}
	t.event(c, Event{Kind: "edited"})
	t.putDue(c.StartAfter, DueCard, c.ID)
	t.putCard(c)
	t.offerPromote(c.ID)
	out := map[string]any{"id": c.ID}
	now, next := a.takesEffect()
	if c.Run == "" {
		now, next = append(now, next...), nil
		slices.Sort(now)
	} else {
		out["run"] = c.Run
	}
	if len(now) > 0 {
		out["now"] = now
	}
	if len(next) > 0 {
		out["next_run"] = next
	}
	return out, nil
}

// takesEffect are the given fields by when they count while a run is under way:
// what expressions read counts at once, what a run was claimed with when the next one is.
func (f *CardFields) takesEffect() (now, next []string) {
	for _, x := range []struct {
		name  string
		given bool
		next  bool
	}{
		{"title", f.Title != nil, true}, {"body", f.Body != nil, true}, {"assignee", f.Assignee != nil, true}, {"machine", f.Machine != nil, true},
		{"priority", f.Priority != nil, false}, {"skills", f.Skills != nil, true}, {"model", f.Model != nil, true},
		{"max_runtime", f.MaxRuntime != nil, true}, {"max_retries", f.MaxRetries != nil, false}, {"goal", f.Goal != nil, false},
		{"goal_max_turns", f.GoalMaxTurns != nil, false}, {"workspace", f.Workspace != nil, true}, {"branch", f.Branch != nil, true},
		{"kind", f.Kind != nil, false}, {"labels", f.Labels != nil, false}, {"start_after", f.StartAfter != nil, false},
	} {
		switch {
		case !x.given:
		case x.next:
			next = append(next, x.name)
		default:
			now = append(now, x.name)
		}
	}
	return now, next
}
