package document

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// JSON is the board as one JSON object. Its cards have the names that an import of
// cards reads: id, title, after, comments with author, body and created_at.
func (b *Board) JSON() ([]byte, error) {
	out := map[string]any{"cards": []any{}}
	params := map[string]any{}
	for name, v := range b.Values {
		if param, ok := strings.CutPrefix(name, paramPrefix); ok {
			params[param] = v
			continue
		}
		out[name] = v
	}
	if len(params) > 0 {
		out["params"] = params
	}
	list := make([]any, 0, len(b.Cards))
	for _, c := range b.Cards {
		x := map[string]any{}
		for name, v := range c.Values {
			if ms, ok := v.(int64); ok && fieldNamed[name].kind == timeKind {
				v = stamp(ms)
			}
			x[name] = v
		}
		said := []any{}
		for _, s := range c.Said {
			said = append(said, map[string]any{"author": s.By, "body": s.Text, "created_at": stamp(s.At)})
		}
		if len(said) > 0 {
			x["comments"] = said
		}
		list = append(list, x)
	}
	out["cards"] = list
	raw, err := json.MarshalIndent(out, "", "  ")
	return append(raw, '\n'), err
}

// Markdown is the board as one text to be read: its cards by status, in that order.
func (b *Board) Markdown(order []string) []byte {
	by := map[string][]*Card{}
	for _, c := range b.Cards {
		s := c.Values.text(fieldStatus)
		if !slices.Contains(order, s) {
			order = append(slices.Clip(order), s)
		}
		by[s] = append(by[s], c)
	}
	var s strings.Builder
	title := b.Values.text("label")
	if title == "" {
		title = b.Slug()
	}
	fmt.Fprintf(&s, "# %s\n", inline(title))
	for _, status := range order {
		if len(by[status]) == 0 {
			continue
		}
		fmt.Fprintf(&s, "\n## %s (%d)\n", inline(status), len(by[status]))
		for _, c := range by[status] {
			c.markdown(&s)
		}
	}
	return []byte(s.String())
}

func (c *Card) markdown(s *strings.Builder) {
	fmt.Fprintf(s, "\n### %s: %s\n\n", c.ID(), inline(c.Values.text("title")))
	for _, f := range fields {
		v := c.Values[f.name]
		if v == nil || f.name == fieldID || f.name == "title" || f.name == fieldStatus {
			continue
		}
		text := plain(v)
		switch x := v.(type) {
		case string:
			text = x
		case []string:
			text = strings.Join(x, ", ")
		case int64:
			if f.kind == timeKind {
				text = stamp(x)
			}
		}
		fmt.Fprintf(s, "- %s: %s\n", f.name, inline(text))
	}
	quote(s, c.Values.text(fieldBody))
	if c.Older > 0 {
		fmt.Fprintf(s, "\n%d older comments are on the board.\n", c.Older)
	}
	for _, x := range c.Said {
		fmt.Fprintf(s, "\n**%s**, %s\n", inline(x.By), stamp(x.At))
		quote(s, x.Text)
	}
}

// quote sets a text apart, so that its headings and rules are not the page's.
func quote(s *strings.Builder, text string) {
	if text = strings.Trim(strings.Map(printable, strings.ReplaceAll(text, "\r", "")), "\n"); text == "" {
		return
	}
	s.WriteByte('\n')
	for _, l := range strings.Split(text, "\n") {
		s.WriteString(strings.TrimRight("> "+l, " ") + "\n")
	}
}

// printable leaves out what steers a terminal.
func printable(r rune) rune {
	if r != '\n' && r != '\t' && unicode.IsControl(r) {
		return 0xfffd
	}
	return r
}

// inline is foreign text on one line of Markdown: nothing in it is markup, a link or HTML.
func inline(s string) string {
	var b strings.Builder
	for _, r := range strings.Join(strings.Fields(s), " ") {
		if strings.ContainsRune("\\`*_[]<>#|!&", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(printable(r))
	}
	return b.String()
}
