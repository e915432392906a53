package board

import (
	"slices"
	"strings"
	"time"
)

// spoken are the events that have a verb of their own, as a person types it.
// Where a workflow has others, they are said with `muster event`.
var spoken = map[string]string{
	"comment":         "muster comment CARD TEXT",
	"request_review":  "muster request-review CARD --summary TEXT",
	"request_changes": "muster request-changes CARD TEXT",
	"complete":        "muster complete CARD --summary TEXT",
	"specify":         "muster specify CARD --title TEXT --body TEXT",
	"decompose":       "muster decompose CARD --child TITLE",
	"block":           "muster block CARD TEXT --kind KIND",
	"unblock":         "muster unblock CARD",
	"start":           "muster start CARD",
	"reassign":        "muster reassign CARD PROFILE",
	"reclaim":         "muster reclaim CARD",
	"stop_run":        "muster stop-run CARD",
	"cancel":          "muster cancel CARD",
	"reopen":          "muster reopen CARD",
	"archive":         "muster archive CARD",
	"unarchive":       "muster unarchive CARD",
	"forget":          "muster forget CARD",
	"adopt":           "muster adopt CARD --session ID",
}

// Command is what a person types to say an event of the workflow on a card.
func Command(event, card string) string {
	c := spoken[event]
	if c == "" {
		c = "muster event CARD " + event
	}
	return strings.Replace(c, "CARD", card, 1)
}

// Possible are the commands of the events that a manager may say on the card now.
func Possible(v View, ws *Workflows, c *Card, now int64, nodes func(id string) Reading) []string {
	s, err := NewScope(v, ws, GetBoard(v, c.Board), c, now, nodes)
	if err != nil {
		return nil
	}
	return s.possible(c.Status, []string{"manager"})
}

// possible are the commands for the events that a sender of these roles may say on the card
// in the status, as far as it can be told without a payload.
func (s *Scope) possible(status string, roles []string) (can []string) {
	for _, name := range s.events() {
		if FleetEvent(name) || name == "heartbeat" {
			continue
		}
		for _, tr := range s.wf.Transitions(status, name) {
			if tr.Admits(roles...) && s.mayHold(tr.Guard) {
				can = append(can, Command(name, s.card.ID))
				break
			}
		}
	}
	return can
}

// noTransition is the refusal of an event that nothing took; people are told what they can type instead.
func (st *step) noTransition(roles []string) *Error {
	e := Errorf(Refused, "card %s is %s: %q from a %s does not apply to it now", st.c.ID, st.from, st.f.Event, st.f.Actor.Role).WithCheck(NoTransition)
	switch {
	case st.f.Actor.Kind == ActorPlatform:
		return e
	case st.f.Event == st.wf.Dispatch.Start:
		return st.s.notStartable(roles)
	}
	if can := st.s.possible(st.from, roles); len(can) > 0 {
		return e.WithHint("now you can: %s", strings.Join(can, "; "))
	}
	return e.WithHint("see: muster card show %s", st.c.ID)
}

// whatStarts tells what would let the fleet start the card: the guards that do not
// hold, or who else may (DSP-04).
func (s *Scope) whatStarts() string {
	var guards, others []string
	for _, tr := range s.wf.Transitions(s.card.Status, s.wf.Dispatch.Start) {
		switch {
		case !tr.Admits("platform"):
			others = append(others, tr.By...)
		case tr.Guard.Source() != "":
			guards = append(guards, clip(tr.Guard.Source(), 120))
		}
	}
	switch {
	case len(guards) > 0:
		return " (does not hold: " + strings.Join(guards, "; ") + ")"
	case len(others) > 0:
		return " (only " + strings.Join(others, ", ") + " may)"
	}
	return ""
}

// notStartable is the refusal of a start that no transition of the card's status takes; people are told what keeps
// it there, and what to type.
func (s *Scope) notStartable(roles []string) *Error {
	c := s.card
	e := Errorf(Refused, "card %s is %s: nothing starts it there now", c.ID, c.Status).WithCheck(NoTransition)
	if slices.Contains(roles, "platform") { // asked of every card: no hint is looked for
		e.Message += s.whatStarts()
		return e
	}
	open := Waiting(s.view, s.ws, c.ID)
	switch {
	case s.Finished():
		return e.WithHint("to do it again: %s", Command("reopen", c.ID))
	case c.Stored == "blocked":
		return e.WithHint("a person answers first: %s", Command("unblock", c.ID))
	case len(open) > 0:
		return e.WithHint("it waits for %s; to wait no longer: muster card unlink %s --after %s", strings.Join(open, ", "), c.ID, open[0])
	case c.StartAfter > s.now:
		return e.WithHint("it is not to start before %s; to let it start now: muster card edit %s --start-after +0s",
			time.UnixMilli(c.StartAfter).UTC().Format(time.RFC3339), c.ID)
	}
	return e.WithHint("see: muster why %s", c.ID)
}
