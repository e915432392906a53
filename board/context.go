package board

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of what a session is told of a card (hermes.md, "context caps"). What is
// left out is named, with the command that shows it.
const (
	maxContext         = 64 << 10 // the whole
	maxArc             = 24 << 10 // of the card that it is a part of
	maxContextBody     = 8 << 10
	maxContextComment  = 2 << 10
	maxContextComments = 30
	maxContextLinks    = 30
	maxContextRuns     = 10
)

// Context is what a session is told of a card (BRD-20): its text, what it waits
// for, its attempts so far, and the newest of its thread.
func (s *Scope) Context() string { return s.contextText(s.card, maxContext) }

func (s *Scope) contextText(c *Card, limit int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Card %s: %s\n", c.ID, c.Title)
	body := GetBody(s.view, c.ID)
	if s.body != nil && c == s.card {
		body = *s.body
	}
	if body != "" {
		fmt.Fprintf(&b, "\n%s\n", clip(body, maxContextBody))
		if len(body) > maxContextBody {
			fmt.Fprintf(&b, "(the rest: muster card show %s)\n", c.ID)
		}
	}
	if ids := Parents(s.view, c.ID); len(ids) > 0 {
		b.WriteString("\nIt builds on:\n")
		for _, id := range ids[:min(len(ids), maxContextLinks)] {
			if p := GetCard(s.view, id); p != nil {
				fmt.Fprintf(&b, "- %s (%s): %s\n", id, p.Status, clip(p.Title, 200))
			}
		}
		if n := len(ids) - maxContextLinks; n > 0 {
			fmt.Fprintf(&b, "- (%d more are left out: muster card show %s)\n", n, c.ID)
		}
	}
	s.attempts(&b, c)
	s.thread(&b, c, 0, "Said on the card", limit)
	return strings.TrimRight(b.String(), "\n")
}

func (s *Scope) attempts(b *strings.Builder, c *Card) {
	first := true
	last := int64(lastN(s.view, c))
	for n := max(last-maxContextRuns, 0) + 1; n <= last; n++ {
		r := GetRun(s.view, RunID(c.ID, uint64(n)))
		if r == nil || r.State != RunEnded {
			continue
		}
		if first {
			b.WriteString("\nAttempts so far:\n")
			if n > 1 && n == last-maxContextRuns+1 {
				fmt.Fprintf(b, "- (older ones are left out: muster runs %s)\n", c.ID)
			}
			first = false
		}
		fmt.Fprintf(b, "- %s, %s: %s", r.ID, r.Role, r.Outcome)
		if r.Error != "" {
			fmt.Fprintf(b, " (%s)", clip(r.Error, 300))
		}
		b.WriteString("\n")
	}
}

// thread writes the newest comments since a time, as many as the limit of the
// whole text leaves room for; what is left out is named.
func (s *Scope) thread(b *strings.Builder, c *Card, since int64, head string, limit int) {
	var all []string
	EachComment(s.view, c, func(m *Comment) bool {
		if m.At >= since {
			all = append(all, commentLine(m))
		}
		return true
	})
	if len(all) == 0 {
		return
	}
	room := limit - b.Len() - 200 // for the heading and the line of what is left out
	first := len(all)
	for first > 0 && len(all)-first < maxContextComments && room >= len(all[first-1]) {
		first--
		room -= len(all[first])
	}
	fmt.Fprintf(b, "\n%s:\n", head)
	if first > 0 {
		fmt.Fprintf(b, "- (%d older ones are left out: muster card show %s)\n", first, c.ID)
	}
	for _, line := range all[first:] {
		b.WriteString(line)
	}
}

func commentLine(m *Comment) string {
	who := m.Author.Name
	if m.Author.Role != "" && m.Author.Kind == ActorRun {
		who = m.Author.Role + " " + m.Author.Name
	}
	return fmt.Sprintf("- %s, %s: %s\n", stamp(m.At), who, clip(m.Body, maxContextComment))
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
	return "It is a part of another card.\n" + s.contextText(arc, maxArc)
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
	s.thread(&b, s.card, since, "Said since then", maxContext)
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
