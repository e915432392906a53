package board

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"muster/board/rule"
	"muster/board/workflow"
)

// Bounds of what a session is told of a card (hermes.md, "context caps").
const (
	maxContextBody     = 8 << 10
	maxContextComment  = 2 << 10
	maxContextComments = 30
	maxContextRuns     = 10
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
// those whose guard holds as far as it can be told without a payload, and that no validator refuses already.
func (s *Scope) Doors(role string) string {
	s = s.copy()
	s.actor, s.busy = Actor{Kind: ActorRun, Role: role}, true
	var lines []string
	known := map[string]bool{}
	for _, d := range doors {
		known[d.event] = true
		if s.open(d.event, role) {
			lines = append(lines, fmt.Sprintf("  %-42s # %s", d.form, d.what))
		}
	}
	for _, e := range s.events() {
		if !known[e] && e != "heartbeat" && e != s.wf.Dispatch.Start && !FleetEvent(e) && s.open(e, role) {
			lines = append(lines, fmt.Sprintf("  muster event %s %s", s.card.ID, e))
		}
	}
	lines = append(lines,
		fmt.Sprintf("  %-42s # %s", "muster card show", "read the card and its comments"),
		fmt.Sprintf("  %-42s # %s", "muster card add TITLE --subtask-of "+s.card.ID, "file a part of this card"),
		fmt.Sprintf("  %-42s # %s", "muster card add TITLE", "file what you notice beyond it"))
	return "What you can say to the board, as commands:\n" + strings.Join(lines, "\n")
}

// open says that some transition may take the event from the role, as far as it can be told now.
func (s *Scope) open(event, role string) bool {
	for _, tr := range s.wf.Transitions(s.card.Status, event) {
		if !tr.Admits(role) || !s.mayHold(tr.Guard) {
			continue
		}
		for _, v := range tr.Validators {
			if v.When != nil && !readsPayload(v.When) && s.certain(v.When) {
				return false
			}
		}
		return true
	}
	return false
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

// Context is what a session is told of a card (BRD-20): its text, what it waits
// for, its attempts so far, and the newest of its thread.
func (s *Scope) Context() string { return s.contextText(s.card) }

func (s *Scope) contextText(c *Card) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Card %s: %s\n", c.ID, c.Title)
	body := GetBody(s.view, c.ID)
	if s.body != nil && c == s.card {
		body = *s.body
	}
	if body != "" {
		fmt.Fprintf(&b, "\n%s\n", clip(body, maxContextBody))
	}
	if ids := Parents(s.view, c.ID); len(ids) > 0 {
		b.WriteString("\nIt builds on:\n")
		for _, id := range ids[:min(len(ids), maxContextComments)] {
			if p := GetCard(s.view, id); p != nil {
				fmt.Fprintf(&b, "- %s (%s): %s\n", id, p.Status, p.Title)
			}
		}
	}
	s.attempts(&b, c)
	s.thread(&b, c, 0, "Said on the card")
	return strings.TrimRight(b.String(), "\n")
}

func (s *Scope) attempts(b *strings.Builder, c *Card) {
	first := true
	for n := max(int64(c.Runs)-maxContextRuns, 0) + 1; n <= int64(c.Runs); n++ {
		r := GetRun(s.view, RunID(c.ID, uint64(n)))
		if r == nil || r.State != RunEnded {
			continue
		}
		if first {
			b.WriteString("\nAttempts so far:\n")
			first = false
		}
		fmt.Fprintf(b, "- %s, %s: %s", r.ID, r.Role, r.Outcome)
		if r.Error != "" {
			fmt.Fprintf(b, " (%s)", clip(r.Error, 300))
		}
		b.WriteString("\n")
	}
}

// thread writes the newest comments since a time.
func (s *Scope) thread(b *strings.Builder, c *Card, since int64, head string) {
	var all []*Comment
	EachComment(s.view, c, func(m *Comment) bool {
		if m.At >= since {
			all = append(all, m)
		}
		return true
	})
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n", head)
	if n := len(all) - maxContextComments; n > 0 {
		fmt.Fprintf(b, "- (%d older ones are left out: muster card show %s)\n", n, c.ID)
		all = all[n:]
	}
	for _, m := range all {
		who := m.Author.Name
		if m.Author.Role != "" && m.Author.Kind == ActorRun {
			who = m.Author.Role + " " + m.Author.Name
		}
		fmt.Fprintf(b, "- %s, %s: %s\n", stamp(m.At), who, clip(m.Body, maxContextComment))
	}
}

// arcText is the context of the card that this one is a part of (SUB-02).
func (s *Scope) arcText() string {
	if s.card.SubtaskOf == "" {
		return ""
	}
	arc := GetCard(s.view, s.card.SubtaskOf)
	if arc == nil {
		return ""
	}
	return "It is a part of another card.\n" + s.contextText(arc)
}

// newsText is what was said on the card since the slot's run before this one was claimed.
func (s *Scope) newsText() string {
	var since int64
	if r := s.theRun(); r != nil {
		for n := r.N - 1; n > 0 && n < r.N; n-- {
			if p := GetRun(s.view, RunID(s.card.ID, n)); p != nil && p.Slot == r.Slot {
				since = p.Claimed
				break
			}
		}
	}
	var b strings.Builder
	s.thread(&b, s.card, since, "Said since then")
	return strings.TrimSpace(b.String())
}

func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04") }

// clip shortens a text to a number of bytes, at a character, and says so.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := limit
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + fmt.Sprintf(" ... (%d bytes more)", len(s)-cut)
}

// slotOf renders the slot of a run: an empty one is the default (SES-04).
func (s *Scope) slotOf(spec *workflow.RunSpec) (string, error) {
	slot, err := s.Render(spec.Session)
	if err != nil {
		return "", err
	}
	if slot = strings.TrimSpace(slot); slot == "" {
		return workflow.DefaultSlot, nil
	}
	if len(slot) > 64 || strings.ContainsAny(slot, "/\x00\n") {
		return "", fmt.Errorf("slot %q is no name", clip(slot, 64))
	}
	return slot, nil
}
