package document

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// card reads the front matter.
func (r *reading) card(c *Card, root *yaml.Node) {
	for i := 0; i+1 < len(root.Content); i += 2 {
		k, n := root.Content[i], root.Content[i+1]
		f, ok := fieldNamed[k.Value]
		if !ok {
			r.fail(k, "a card has no field %s", Show(k.Value)).Hint = "it has: " + strings.Join(fieldNames(), ", ")
			continue
		}
		c.Values.set(f.name, r.value(f, n))
	}
	if _, ok := c.Values["title"]; !ok && len(r.problems) == 0 {
		r.fail(nil, "the card has no title")
	}
}

func fieldNames() (list []string) {
	for _, f := range fields {
		list = append(list, f.name)
	}
	return list
}

// text reads what follows the front matter: body, thread, and what is to be said.
func (r *reading) text(c *Card, text string) {
	lines := strings.Split(text, "\n")
	const inBody, inThread, inSaid, inSay = 0, 1, 2, 3
	where, part := inBody, []string{}
	flush := func() {
		s := bare(strings.Join(part, "\n"))
		switch where {
		case inBody:
			c.Values.set(fieldBody, s)
		case inThread:
			if strings.TrimSpace(s) != "" {
				r.fail(nil, "text stands between the thread's beginning and its first comment").Hint = "to comment write below the line: " + markSay
			}
		case inSaid:
			c.Said[len(c.Said)-1].Text = strings.TrimSuffix(strings.TrimPrefix(s, "\n"), "\n")
		case inSay:
			if s = strings.Trim(s, "\r\n \t"); s != "" {
				c.Fresh = append(c.Fresh, s)
			}
		}
		part = part[:0]
	}
	marked := false
	for i, l := range lines {
		end := strings.TrimRight(l, " \t")
		said := saidRE.FindStringSubmatch(end)
		older := olderRE.FindStringSubmatch(end)
		switch {
		case where == inBody && (end == markThread || older != nil):
			if marked = true; older != nil {
				c.Older, _ = strconv.Atoi(older[1]) // digits
			}
			part = bodyLines(part)
			flush()
			where = inThread
		case marked && said != nil:
			flush()
			where = inSaid
			c.Said = append(c.Said, Said{By: said[1], ID: said[3], At: r.when(said[2])})
		case end == markSay && (marked || where == inBody):
			if where == inBody {
				part = bodyLines(part)
				marked = true
			}
			flush()
			where = inSay
		case strings.HasPrefix(l, mark) || markRE.MatchString(l) && strings.HasPrefix(l, "#"):
			r.problems = append(r.problems, Problem{File: r.file, Line: r.line + i + 1, Text: "a line of muster's own that cannot stand here: " + Show(l),
				Hint: `to say that in a text write a \ in front of the line`})
		default:
			part = append(part, l)
		}
	}
	if !marked {
		part = strings.Split(strings.Trim(strings.Join(part, "\n"), "\r\n"), "\n")
	}
	flush()
}

// bodyLines are the lines of a body without the empty ones that an export sets around it.
func bodyLines(part []string) []string {
	if len(part) > 0 && part[0] == "" {
		part = part[1:]
	}
	if len(part) > 0 && part[len(part)-1] == "" {
		part = part[:len(part)-1]
	}
	return part
}

func (r *reading) when(s string) int64 {
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: s}
	ms, _ := r.single(field{name: "said", kind: timeKind}, n).(int64) // a problem tells
	return ms
}
