package document

import (
	"fmt"
	"regexp"
	"strings"

	"muster/board"
)

// Card is a card as a document.
type Card struct {
	Values Values   // what its front matter says, its body and what it waits for
	Said   []Said   // its thread, oldest first
	Older  int      // comments that are on the board only
	Fresh  []string // comments that were written into the file
	New    string   // of a card that is to be filed: its file's name without .md
	File   string
}

// Said is a comment of the board's.
type Said struct {
	ID, By, Text string
	At           int64 // ms
}

// ID is the card's; "" of one that is to be filed.
func (c *Card) ID() string { return c.Values.text(fieldID) }

// maxThread bounds the bytes of a thread in a file: its newest comments.
const maxThread = 1 << 20

// A line of a card's file that begins with mark is muster's; of text that does, the line gets a backslash in front.
const (
	mark       = "<!-- muster:"
	markThread = "<!-- muster:thread -->"
	markOlder  = "<!-- muster:thread, %d older on the board -->"
	markSaid   = "### %s, %s <!-- muster:said %s -->"
	markSay    = "<!-- muster:say, below this line -->"

	cardSchema = "# yaml-language-server: $schema=../.muster/schema/card.json"
)

var (
	markRE  = regexp.MustCompile(`^\\*(<!-- muster:|### .*<!-- muster:)`)
	olderRE = regexp.MustCompile(`^<!-- muster:thread, ([0-9]{1,9}) older on the board -->$`)
	saidRE  = regexp.MustCompile(`^### (.*), (\S+) <!-- muster:said ([0-9]+\.[0-9]+) -->$`)
)

// cardOf is an exported card as a document; what follows it (events, links) is added to it.
func cardOf(x *board.ExportCard) *Card {
	v := Values{}
	status := x.Status
	if x.Now != "" {
		status = x.Now
	}
	runtime := x.MaxRuntime
	if runtime != nil && *runtime == 0 { // no limit, as without one
		runtime = nil
	}
	for name, val := range map[string]any{fieldID: x.ID, "title": x.Title, fieldStatus: status, "assignee": x.Assignee, "machine": x.Machine,
		"priority": x.Priority, "kind": x.Kind, "labels": x.Labels, "skills": x.Skills, "model": x.Model, "workspace": x.Workspace, "branch": x.Branch,
		"max_runtime": runtime, "max_retries": x.MaxRetries, "goal": x.Goal, "goal_max_turns": x.GoalMaxTurns, "start_after": x.StartAfter,
		"subtask_of": x.SubtaskOf, "tenant": x.Tenant, "created_at": x.Created, "created_by": nameOf(x.Creator), "run": x.Run, "failures": x.Failures,
		"last_error": x.LastError, "block_kind": x.BlockKind, "block_reason": x.BlockReason, "attention": x.NeedsText, fieldBody: x.Body} {
		v.set(name, val)
	}
	return &Card{Values: v, File: cardFile(x.ID)}
}

func cardFile(name string) string { return "cards/" + name + ".md" }

func nameOf(a board.Actor) string {
	if a.Name != "" {
		return a.Name
	}
	return a.Kind
}

func (c *Card) say(e *board.ExportEvent) {
	text := e.Text
	if text == "" {
		text = payloadText(e.Payload)
	}
	c.Said = append(c.Said, Said{ID: e.ID, By: nameOf(e.Actor), Text: text, At: e.At})
}

// bound leaves older comments on the board, where a thread is too long for a file.
func (c *Card) bound() {
	size := 0
	for i := len(c.Said) - 1; i >= 0; i-- {
		if size += len(c.Said[i].Text) + 100; size > maxThread {
			c.Older, c.Said = i+1, c.Said[i+1:]
			return
		}
	}
}

// thread is what the board has said, as it stands in the file: nobody changes it there.
func (c *Card) thread() string {
	var b strings.Builder
	for _, s := range c.Said {
		fmt.Fprintf(&b, "\n"+markSaid+"\n\n%s\n", heading(s.By), stamp(s.At), s.ID, guard(s.Text))
	}
	return b.String()
}

// heading is a name on one line of Markdown.
func heading(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r == '<' || r == '>' || r == 0x7f {
			return '_'
		}
		return r
	}, s)
}

// guard keeps a text's lines from being taken for muster's own.
func guard(s string) string { return eachLine(s, func(l string) string { return `\` + l }) }

// bare takes back what guard did.
func bare(s string) string {
	return eachLine(s, func(l string) string { return strings.TrimPrefix(l, `\`) })
}

func eachLine(s string, change func(string) string) string {
	if !strings.Contains(s, mark) {
		return s
	}
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if markRE.MatchString(l) {
			lines[i] = change(l)
		}
	}
	return strings.Join(lines, "\n")
}

// render is the card's file.
func (c *Card) render() []byte {
	var b strings.Builder
	b.WriteString("---\n" + cardSchema + "\n")
	for _, f := range fields {
		writeField(&b, f, c.Values[f.name])
	}
	b.WriteString("---\n\n" + guard(c.Values.text(fieldBody)) + "\n\n")
	if c.Older > 0 {
		fmt.Fprintf(&b, markOlder+"\n", c.Older)
	} else {
		b.WriteString(markThread + "\n")
	}
	b.WriteString(c.thread() + "\n" + markSay + "\n")
	for i, text := range c.Fresh {
		if i > 0 {
			b.WriteString("\n" + markSay + "\n")
		}
		b.WriteString("\n" + guard(text) + "\n")
	}
	return []byte(b.String())
}

// unix gives a text with the line ends of an editor of another system as it was; what a board has of its own stays.
func unix(raw []byte) string {
	s := strings.TrimPrefix(string(raw), "\ufeff")
	if first, _, ok := strings.Cut(s, "\n"); ok && strings.HasSuffix(first, "\r") {
		s = strings.ReplaceAll(s, "\r\n", "\n")
	}
	return s
}

// parseCard reads a card's file; problems say what cannot be meant.
func parseCard(file string, raw []byte) (*Card, []Problem) {
	r := &reading{file: file, line: 1}
	c := &Card{Values: Values{}, File: file}
	text := unix(raw)
	first, rest, _ := strings.Cut(text, "\n")
	head, tail, ok := cutLine(rest, "---")
	if strings.TrimRight(first, " \t") != "---" || !ok {
		r.fail(nil, "it does not begin with front matter, a line --- before and after").Hint = "begin it with: ---, title: ..., ---"
		return c, r.problems
	}
	if root := r.tree(head); root != nil {
		r.card(c, root)
	}
	r.line = 2 + strings.Count(head, "\n")
	r.text(c, tail)
	return c, r.problems
}

// cutLine cuts a text at the first line that is exactly mark; before keeps its last line end.
func cutLine(s, mark string) (before, after string, ok bool) {
	for at := 0; at < len(s); {
		end := strings.IndexByte(s[at:], '\n')
		line, next := s[at:], len(s)
		if end >= 0 {
			line, next = s[at:at+end], at+end+1
		}
		if strings.TrimRight(line, " \t") == mark {
			return s[:at], s[next:], true
		}
		at = next
	}
	return s, "", false
}
