package board

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"muster/board/rule"
	"muster/board/workflow"
)

// do carries out one action of a transition. What touches the world is an order
// in the state, never done here (M-17).
func (st *step) do(a workflow.Action) *Error {
	switch a := a.(type) {
	case *workflow.Claim:
		return st.claimRun(a)
	case *workflow.EndRun:
		return st.endRun(a.Outcome, a.Keep)
	case *workflow.RecordFailure:
		return st.recordFailure(a.Trip)
	case *workflow.Plain:
		return st.plain(a)
	case *workflow.Block:
		return st.block(a)
	case *workflow.Comment:
		return st.comment(a)
	case *workflow.Set:
		return st.set(a)
	case *workflow.Create:
		return st.create(a)
	case *workflow.Link:
		return st.link(a)
	case *workflow.Session:
		return st.session(a)
	case *workflow.Ask:
		return st.ask(a)
	case *workflow.Send:
		text, err := st.s.Render(a.Text)
		if err != nil {
			return st.failed(a, err)
		}
		st.toActor(DeliverMessage, text)
	case *workflow.Notify:
		st.whom = union(st.whom, a.Whom)
	case *workflow.RunHook:
		return st.hook(a)
	default:
		return Errorf(Internal, "card %s: action %q (workflow %s) has no meaning here", st.c.ID, a.Verb(), a.At())
	}
	return nil
}

func (st *step) plain(a *workflow.Plain) *Error {
	switch a.Verb() {
	case workflow.ResetFailures:
		st.c.Failures, st.c.LastError = 0, ""
		st.touched = true
	case workflow.Unblock:
		st.unblock()
	case workflow.PromoteChildren:
		st.children = true // once the card is stored: its children look at it
	case workflow.StopRun:
		st.stopRun()
	case workflow.CleanupWorkspace:
		st.cleanup()
	case workflow.DeclareAgent:
		return st.declareAgent()
	case workflow.EndAgents:
		why := st.f.Event
		if Finished(st.c.Stored) {
			why = st.c.Stored
		}
		st.t.endAgents(st.c, why)
		st.touched = true
	default:
		return Errorf(Internal, "card %s: action %q (workflow %s) has no meaning here", st.c.ID, a.Verb(), a.At())
	}
	return nil
}

// failed is the refusal of an event one of whose actions cannot be evaluated.
func (st *step) failed(a workflow.Action, err error) *Error {
	return ruleError(fmt.Sprintf("card %s: event %q: %s (workflow %s)", st.c.ID, st.f.Event, a.Verb(), a.At()), err)
}

// comment adds a comment by the sender; an empty one is none.
func (st *step) comment(a *workflow.Comment) *Error {
	text, err := st.s.Render(a.Text)
	if err != nil {
		return st.failed(a, err)
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if len(text) > maxComment {
		return Errorf(Exhausted, "card %s: the comment has %d bytes, more than %d", st.c.ID, len(text), maxComment)
	}
	st.say(text)
	return nil
}

// say makes the firing's event a comment; a second one gets an event of its
// own. A text that the event's payload has is not stored twice.
func (st *step) say(text string) {
	e := st.ev
	if e.Said {
		e = st.t.event(st.c, Event{Kind: "commented", Actor: st.f.Actor, Run: st.ev.Run})
	}
	e.Said, e.SaidBefore = true, st.c.LastSaid
	if t, ok := st.f.Payload["text"].(string); e != st.ev || !ok || t != text || !utf8.ValidString(text) {
		e.Text = text
	}
	st.c.LastSaid = e.ID
	if e != st.ev || st.t.late != e { // else it is written when it is final
		st.t.put(TEvent, e.ID, e)
	}
	st.touched = true
}

func (st *step) ask(a *workflow.Ask) *Error {
	if st.run == nil || st.c.Run == "" {
		return nil
	}
	reset, err := st.s.Eval(a.Reset)
	if err != nil {
		return st.failed(a, err)
	}
	text, err := st.s.Render(a.Text)
	if err != nil {
		return st.failed(a, err)
	}
	if reset == true {
		st.run.Asks = 0
	}
	st.run.Asks++
	st.t.putRun(st.run)
	st.t.event(st.c, Event{Kind: a.As, Actor: Platform(), Run: st.run.ID, Payload: object("turn", st.run.Asks, "text", clip(text, 2<<10))})
	st.toActor(DeliverAsk, text)
	st.touched = true
	return nil
}

// set changes fields of the card, in the order of the file; a later one sees the earlier ones.
func (st *step) set(a *workflow.Set) *Error {
	for _, f := range a.Fields {
		v, err := st.s.Eval(f.Expr)
		if err != nil {
			return st.failed(a, err)
		}
		if err := st.maySet(f.Name, v); err != nil {
			return err
		}
		if err := setField(st.t, st.c, f.Name, v); err != nil {
			return err
		}
		st.s.forget()
	}
	if st.c.StartAfter > st.t.env.Now {
		st.t.putDue(st.c.StartAfter, DueCard, st.c.ID)
	}
	return nil
}

// create files a card, or one for each item of a list. The platform files it: the workflow does, not the sender.
func (st *step) create(a *workflow.Create) *Error {
	items := []any{nil}
	if a.Each != nil {
		v, err := st.s.Eval(a.Each)
		if err != nil {
			return st.failed(a, err)
		}
		list, ok := v.([]any)
		if v != nil && !ok {
			return st.failed(a, fmt.Errorf("each is no list"))
		}
		items = list
	}
	limit := maxCreated
	if st.f.Actor.Kind == ActorRun {
		limit = runFiles
	}
	if len(items) > limit {
		return Errorf(Exhausted, "card %s: event %q would file %d cards at once, more than %d", st.c.ID, st.f.Event, len(items), limit)
	}
	for _, item := range items {
		st.s.item = item
		st.s.forget()
		id, err := st.createOne(a)
		if err != nil {
			return err
		}
		st.promote = append(st.promote, id)
	}
	st.s.item = nil
	st.touched = true
	return nil
}

func (st *step) createOne(a *workflow.Create) (string, *Error) {
	t := st.t
	c := t.mintCard(st.b)
	c.Creator = Platform()
	triage := false
	for _, f := range a.Fields {
		v, err := st.s.Eval(f.Expr)
		if err != nil {
			return "", st.failed(a, err)
		}
		switch f.Name {
		case "triage":
			triage = v == true
		case "subtask_of":
			c.SubtaskOf, _ = v.(string)
		default:
			if err := st.maySet(f.Name, v); err != nil {
				return "", err
			}
			if err := setField(t, c, f.Name, v); err != nil {
				return "", err
			}
		}
	}
	if c.Title == "" {
		return "", Errorf(Invalid, "card %s: event %q would file a card without a title", st.c.ID, st.f.Event).WithCheck("field")
	}
	t.putCard(c) // the link looks for it
	var err *Error
	switch a.Link {
	case "before":
		err = t.addLink(st.c.ID, c.ID)
	case "after":
		err = t.addLink(c.ID, st.c.ID)
	}
	if err != nil {
		return "", err
	}
	if err := t.initial(st.b, c, map[string]any{"triage": triage}); err != nil {
		return "", err
	}
	t.event(c, Event{Kind: "created", Actor: c.Creator, To: c.Status, Payload: object("title", c.Title, "by", st.c.ID)})
	t.putCard(c)
	return c.ID, nil
}

// link makes the card wait for others, or others for it.
func (st *step) link(a *workflow.Link) *Error {
	for _, way := range []struct {
		e      *rule.Expr
		before bool
	}{{a.After, false}, {a.Before, true}} {
		if way.e == nil {
			continue
		}
		v, err := st.s.Eval(way.e)
		if err != nil {
			return st.failed(a, err)
		}
		ids, ok := v.([]any)
		if !ok && v != nil {
			ids = []any{v}
		}
		if len(ids) > maxCreated {
			return Errorf(Exhausted, "card %s: event %q would add %d links at once, more than %d", st.c.ID, st.f.Event, len(ids), maxCreated)
		}
		for _, id := range ids {
			child, parent := st.c.ID, rule.Format(id)
			if way.before {
				child, parent = parent, child
			}
			if err := st.t.addLink(child, parent); err != nil {
				return err
			}
		}
	}
	st.touched = true
	return nil
}

// object is a small JSON object from keys and values.
func object(pairs ...any) []byte {
	m := make(map[string]any, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return nil
	}
	return raw
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return strconv.FormatInt(n, 10) + " times"
}
