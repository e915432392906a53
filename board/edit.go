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
	if err := t.unchanged(c, a.Was); err != nil {
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

// unchanged refuses an edit that was written against other values than the card has now.
func (t *tx) unchanged(c *Card, was *CardFields) *Error {
	if was == nil {
		return nil
	}
	num := func(p *int64) int64 {
		if p == nil {
			return 0
		}
		return *p
	}
	for _, x := range []struct {
		name  string
		other bool
	}{
		{"title", was.Title != nil && *was.Title != c.Title}, {"body", was.Body != nil && *was.Body != GetBody(t, c.ID)},
		{"assignee", was.Assignee != nil && *was.Assignee != c.Assignee}, {"machine", was.Machine != nil && *was.Machine != c.Machine},
		{"priority", was.Priority != nil && *was.Priority != c.Priority}, {"skills", was.Skills != nil && !slices.Equal(*was.Skills, c.Skills)},
		{"model", was.Model != nil && *was.Model != c.Model}, {"max_runtime", was.MaxRuntime != nil && *was.MaxRuntime != num(c.MaxRuntime)},
		{"max_retries", was.MaxRetries != nil && *was.MaxRetries != num(c.MaxRetries)}, {"goal", was.Goal != nil && *was.Goal != c.Goal},
		{"goal_max_turns", was.GoalMaxTurns != nil && *was.GoalMaxTurns != num(c.GoalMaxTurns)}, {"workspace", was.Workspace != nil && *was.Workspace != c.Workspace},
		{"branch", was.Branch != nil && *was.Branch != c.Branch}, {"kind", was.Kind != nil && *was.Kind != c.Kind},
		{"start_after", was.StartAfter != nil && *was.StartAfter != c.StartAfter},
		{"labels", slices.ContainsFunc(sortedKeys(was.Labels), func(k string) bool { return was.Labels[k] != c.Labels[k] })},
	} {
		if x.other {
			return Errorf(Conflict, "card %s: its %s was changed meanwhile", c.ID, x.name).WithCheck("changed").WithHint("look again: muster card show %s", c.ID)
		}
	}
	return nil
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
