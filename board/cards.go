package board

import (
	"strings"
	"unicode"
)

const (
	runFiles    = 20  // cards a run may file (invariant 24)
	triageWaits = 100 // cards of sessions that may wait in triage on a board
)

// cardAdd files a card.
func cardAdd(t *tx) (any, *Error) {
	a, err := args[CardAdd](t)
	if err != nil {
		return nil, err
	}
	b, err := t.board(a.Board)
	if err != nil {
		return nil, err
	}
	if a.Title == nil || strings.TrimSpace(*a.Title) == "" {
		return nil, Errorf(Invalid, "a card needs a title")
	}
	if a.MaxRuntime != nil && *a.MaxRuntime == 0 {
		return nil, Errorf(Invalid, "max_runtime=0: a run takes at least a second; leave it out for no limit")
	}
	if err := t.runMayFile(b, &a); err != nil {
		return nil, err
	}
	c := t.mintCard(b)
	if err := t.setFields(b, c, &a.CardFields); err != nil {
		return nil, err
	}
	if a.SubtaskOf != "" {
		if GetCard(t, a.SubtaskOf) == nil {
			return nil, noCard(a.SubtaskOf)
		}
		c.SubtaskOf = a.SubtaskOf
	}
	t.putCard(c)
	for _, p := range a.After {
		if err := t.addLink(c.ID, p); err != nil {
			return nil, err
		}
	}
	if err := t.initial(b, c, map[string]any{"triage": a.Triage}); err != nil {
		return nil, err
	}
	t.event(c, Event{Kind: "created", To: c.Status, Payload: jsonOf(map[string]any{"title": c.Title})})
	t.putCard(c)
	t.offerPromote(c.ID) // it entered a status: one that handles promote may have nothing to wait for
	return map[string]any{"id": c.ID, "status": GetCard(t, c.ID).Status}, nil
}

// runMayFile bounds what sessions file: parts of their own card, or ideas in triage (invariant 24).
func (t *tx) runMayFile(b *Board, a *CardAdd) *Error {
	act := t.req.Actor
	if act.Kind != ActorRun {
		return nil
	}
	r := GetRun(t, act.Run)
	switch {
	case r.Board != b.Slug:
		return Errorf(Refused, "a session files cards on its own board, %s", r.Board)
	case a.SubtaskOf != "" && a.SubtaskOf != r.Card:
		return Errorf(Refused, "a session files subtasks of its own card, %s", r.Card)
	case a.Machine != nil && *a.Machine != "":
		return Errorf(Refused, "a session chooses no machine")
	case a.Workspace != nil && *a.Workspace != "":
		return Errorf(Refused, "a session chooses no workspace")
	}
	filed, waiting := 0, 0
	EachCard(t, b, func(c *Card) bool {
		if c.Creator.Run == act.Run {
			filed++
		}
		if c.Stored == "triage" && c.Creator.Kind == ActorRun {
			waiting++
		}
		return true
	})
	if filed >= runFiles {
		return Errorf(Exhausted, "run %s has filed %d cards; the bound is %d", r.ID, filed, runFiles).WithHint("say the rest in a comment")
	}
	if a.SubtaskOf == "" && waiting >= triageWaits {
		return Errorf(Exhausted, "%d cards of sessions wait in triage on board %s", waiting, b.Slug).WithHint("say it in a comment; people must look at triage first")
	}
	return nil
}

func noCard(id string) *Error {
	return Errorf(NotFound, "no card %q", clip(id, 60)).WithHint("see: muster card list")
}

// setFields validates and sets what a person gave; nil fields stay.
func (t *tx) setFields(b *Board, c *Card, f *CardFields) *Error {
	if f.Title != nil {
		if c.Title = strings.TrimSpace(*f.Title); c.Title == "" || len(c.Title) > maxTitle || strings.ContainsAny(c.Title, "\n\r") {
			return Errorf(Invalid, "a title is one line of at most %d bytes", maxTitle)
		}
	}
	if f.Body != nil {
		if len(*f.Body) > maxBody {
			return Errorf(Exhausted, "a body of %d bytes; the bound is %d", len(*f.Body), maxBody).WithHint("keep large text in files")
		}
		t.putBody(c.ID, *f.Body)
	}
	if err := t.setWho(b, c, f); err != nil {
		return err
	}
	for _, x := range []struct {
		name string
		val  *int64
		to   **int64
		low  int64
	}{{"max_runtime", f.MaxRuntime, &c.MaxRuntime, 0}, {"max_retries", f.MaxRetries, &c.MaxRetries, 0}, {"goal_max_turns", f.GoalMaxTurns, &c.GoalMaxTurns, 0}} {
		if x.val == nil {
			continue
		}
		if *x.val < x.low || *x.val > 1<<31 {
			return Errorf(Invalid, "%s=%d is out of range", x.name, *x.val)
		}
		v := *x.val
		*x.to = &v
	}
	set(&c.Priority, f.Priority)
	set(&c.Skills, f.Skills)
	set(&c.Model, f.Model)
	set(&c.Goal, f.Goal)
	set(&c.Kind, f.Kind)
	return t.setRest(c, f)
}

func set[T any](to *T, v *T) {
	if v != nil {
		*to = *v
	}
}

func (t *tx) setWho(b *Board, c *Card, f *CardFields) *Error {
	if f.Assignee != nil && *f.Assignee != "" && *f.Assignee != c.Assignee {
		fl, err := t.flow(b)
		if err != nil {
			return err
		}
		own := ""
		if r := GetRun(t, t.req.Actor.Run); r != nil {
			own = r.Profile
		}
		if err := mayGive(fl, t.req.Actor, own, *f.Assignee); err != nil {
			return err
		}
	}
	set(&c.Assignee, f.Assignee)
	if f.Machine != nil && *f.Machine != "" {
		n, err := FindNode(t, *f.Machine)
		if err != nil {
			return err
		}
		c.Machine = n.Name
		return nil
	}
	set(&c.Machine, f.Machine)
	return nil
}

func (t *tx) setRest(c *Card, f *CardFields) *Error {
	if err := setPlace(c, f); err != nil {
		return err
	}
	if f.StartAfter != nil && *f.StartAfter != c.StartAfter {
		if *f.StartAfter < 0 || *f.StartAfter > lastStart {
			return Errorf(Invalid, "start_after=%d is out of range: it is before 1970 or after 2200", *f.StartAfter)
		}
		t.delDue(c.StartAfter, DueCard, c.ID)
		c.StartAfter = *f.StartAfter
	}
	if len(f.Labels) > 0 {
		m := map[string]string{}
		for k, v := range c.Labels {
			m[k] = v
		}
		for k, v := range f.Labels {
			if k == "" || len(k)+len(v) > 300 {
				return Errorf(Invalid, "label %q is empty or too long", clip(k, 40))
			}
			if !oneLine(k) || !oneLine(v) || strings.Contains(k, "=") {
				return Errorf(Invalid, "label %q: a name and a value are one line each, and a name has no =", clip(k, 40))
			}
			if m[k] = v; v == "" {
				delete(m, k)
			}
		}
		if len(m) > 64 {
			return Errorf(Exhausted, "more than 64 labels on card %s", c.ID)
		}
		c.Labels = m
	}
	if len(c.Skills) > 64 {
		return Errorf(Exhausted, "more than 64 skills on card %s", c.ID)
	}
	return nil
}

// lastStart is the last moment that a card may wait for: the end of 2200, in ms.
const lastStart = 7_289_654_400_000 - 1

// oneLine says that a text holds no control character.
func oneLine(s string) bool { return !strings.ContainsFunc(s, unicode.IsControl) }

// card finds a card with its board, by id or an unambiguous prefix of one.
func (t *tx) card(id string) (*Board, *Card, *Error) {
	c := GetCard(t, id)
	if c == nil {
		return nil, nil, noCard(id)
	}
	b := GetBoard(t, c.Board)
	if b == nil {
		return nil, nil, noCard(id) // its board is still being imported
	}
	if b.Archived {
		return nil, nil, archived(b)
	}
	return b, c, nil
}

// cardLink makes a card wait for others.
func cardLink(t *tx) (any, *Error) { return t.relink("linked", t.addLink) }

// cardUnlink lets a card wait for them no longer: that may have been the last thing it waited for.
func cardUnlink(t *tx) (any, *Error) {
	return t.relink("unlinked", func(child, parent string) *Error {
		if !t.Has(TLink, LinkKey(child, parent)) {
			return Errorf(NotFound, "card %s does not wait for %s", child, clip(parent, 60)).WithHint("see: muster card show %s", child)
		}
		t.del(TLink, LinkKey(child, parent))
		t.del(TChild, ChildKey(parent, child))
		return nil
	})
}

// relink changes what a card waits for, all of it or nothing.
func (t *tx) relink(kind string, change func(child, parent string) *Error) (any, *Error) {
	a, err := args[CardLink](t)
	if err != nil {
		return nil, err
	}
	_, c, err := t.card(a.Card)
	if err != nil {
		return nil, err
	}
	if len(a.After) == 0 {
		return nil, Errorf(Invalid, "card %s: which card is it about? give --after ID", c.ID)
	}
	for _, p := range a.After {
		if err := change(c.ID, p); err != nil {
			return nil, err
		}
	}
	t.event(c, Event{Kind: kind, Payload: jsonOf(map[string]any{"after": a.After})})
	t.putCard(c)
	t.offerPromote(c.ID)
	return map[string]any{"id": c.ID}, nil
}

// offerPromote offers `promote` to a card whose waiting may just have ended.
func (t *tx) offerPromote(id string) {
	if c := GetCard(t, id); c != nil {
		_ = t.platformFire(c, nil, "promote", nil) // nothing takes it: nothing is written (WFL-09)
	}
}
