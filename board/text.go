package board

import (
	"fmt"
	"slices"
	"strings"

	"muster/board/rule"
	"muster/board/workflow"
)

// whereText says how a session reaches the board: every node is a door, and the session's environment names it (M-20).
const whereText = "muster (it finds the board by itself; a verb without a card means this one)"

// door is one command a session may use: an event and how it is said.
type door struct {
	event, form, what string
}

// doors in the order they are shown. Events that are not here are shown as `muster event`.
var doors = []door{
	{"comment", "muster comment TEXT", "say something on the card"},
	{"request_review", "muster request-review --summary TEXT", "hand the work over: what changed, and how you know that it works"},
	{"complete", "muster complete --summary TEXT", "the card is done"},
	{"request_changes", "muster request-changes TEXT", "send it back: what, where, and how to see it"},
	{"specify", "muster specify --title TEXT --body TEXT", "turn the idea into a clear card"},
	{"decompose", `muster decompose --child TITLE...`, "split it into parts, each done before the card"},
	{"block", "muster block TEXT --kind KIND", "you cannot go on: what you need, and from whom; needs_input, capability, transient or dependency"},
}

// doorsText lists the commands the sender's role may use on the card now (WFL-27).
func (s *Scope) doorsText() string {
	role := s.actor.Role
	if s.actor.Kind != ActorRun {
		role = ""
		if r := s.theRun(); r != nil {
			role = r.Role
		}
	}
	return s.Doors(role)
}

// Doors lists the commands that a role may use on the card in its status:
// those whose guard holds as far as it can be told without a payload. What a
// validator refuses as things are is listed apart, with its reason.
func (s *Scope) Doors(role string) string {
	s = s.copy()
	s.actor, s.busy = Actor{Kind: ActorRun, Role: role}, true
	var lines, closed []string
	known := map[string]bool{}
	say := func(event, form, what string) {
		switch ok, why := s.open(event, role); {
		case ok && what == "":
			lines = append(lines, "  "+form)
		case ok:
			lines = append(lines, fmt.Sprintf("  %-42s # %s", form, what))
		case why != "":
			closed = append(closed, fmt.Sprintf("  %-42s # %s", form, why))
		}
	}
	for _, d := range doors {
		known[d.event] = true
		say(d.event, d.form, d.what)
	}
	for _, e := range s.events() {
		if !known[e] && e != "heartbeat" && e != s.wf.Dispatch.Start && !FleetEvent(e) {
			say(e, "muster event "+s.card.ID+" "+e, "")
		}
	}
	lines = append(lines,
		fmt.Sprintf("  %-42s # %s", "muster card show", "read the card and its comments"),
		fmt.Sprintf("  %-42s # %s", "muster card add TITLE --subtask-of "+s.card.ID, "file a part of this card"),
		fmt.Sprintf("  %-42s # %s", "muster card add TITLE", "file what you notice beyond it"))
	if len(closed) > 0 {
		lines = append(append(lines, "Refused as things are now:"), closed...)
	}
	if end := s.ending(); end != "" {
		lines = append(lines, end)
	}
	return "What you can say to the board, as commands:\n" + strings.Join(lines, "\n")
}

// ending tells a session that works in its card's status what follows its last word.
func (s *Scope) ending() string {
	r := s.theRun()
	switch {
	case r == nil || !s.wf.HasRun(s.card.Status) || r.Verd == "exit":
		return ""
	case r.Session.Manual && r.Surface != "pane":
		return "Say how it ended before you leave: if you go without a word, your person is called."
	case r.Surface == "pane":
		return "Your terminal stays open after that. If you fall silent before, you are asked; unanswered, a person is called."
	}
	return "Say how it ended before you leave: a session that ends without a word counts as failed."
}

// open says that some transition may take the event from the role, as far as it
// can be told now; why is what a validator refuses it for.
func (s *Scope) open(event, role string) (ok bool, why string) {
	for _, tr := range s.wf.Transitions(s.card.Status, event) {
		if !tr.Admits(role) || !s.mayHold(tr.Guard) {
			continue
		}
		for _, v := range tr.Validators {
			if v.When != nil && !readsPayload(v.When) && s.certain(v.When) {
				why, err := s.Render(v.Refuse)
				if err != nil {
					why = "refused"
				}
				return false, why
			}
		}
		return true, ""
	}
	return false, ""
}

// mayHold says that a guard holds, or may hold with some payload.
func (s *Scope) mayHold(guard *rule.Expr) bool {
	if readsPayload(guard) {
		return !s.flow.never(s.card.Status, guard)
	}
	return s.certain(guard)
}

func (s *Scope) certain(e *rule.Expr) bool {
	ok, err := s.Holds(e)
	return ok && err == nil
}

func readsPayload(e *rule.Expr) bool {
	return slices.ContainsFunc(e.Reads(), func(r rule.Read) bool { return strings.HasPrefix(r.Name, "payload") })
}

// events are the names of all events the card's status or the workflow handles, sorted.
func (s *Scope) events() []string {
	var names []string
	if st := s.wf.Statuses[s.card.Status]; st != nil {
		names = sortedKeys(st.On)
	}
	names = append(names, sortedKeys(s.wf.On)...)
	slices.Sort(names)
	return slices.Compact(names)
}

// FleetEvent says that only the fleet itself sends the event (workflow.md, "Events of the fleet").
func FleetEvent(event string) bool { return contains(workflow.PlatformEvents, event) }

// slotOf renders the slot of a run: an empty one is the default (SES-04).
func (s *Scope) slotOf(spec *workflow.RunSpec) (string, error) {
	slot, err := s.Render(spec.Session)
	if err != nil {
		return "", err
	}
	return slotName(slot)
}

func slotName(slot string) (string, error) {
	if slot = strings.TrimSpace(slot); slot == "" {
		return workflow.DefaultSlot, nil
	}
	if len(slot) > 64 || strings.ContainsAny(slot, "/\x00\n") {
		return "", fmt.Errorf("slot %q is no name", clip(slot, 64))
	}
	return slot, nil
}
