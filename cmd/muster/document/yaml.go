package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"muster/board/workflow"
)

// A Problem is a place in a folder that cannot be meant.
type Problem struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	Text string `json:"text"`
	Hint string `json:"hint,omitempty"`
}

func (p Problem) String() string {
	s := p.File
	if p.Line > 0 {
		s += ":" + strconv.Itoa(p.Line)
	}
	return s + ": " + p.Text
}

var plainRE = regexp.MustCompile(`^[A-Za-z0-9_/][A-Za-z0-9 _./@+()&$;!?=-]*$`)

// reserved are words that YAML readers take for something else than text.
var reserved = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan"}

// scalar writes text so that every YAML reader reads exactly that text.
func scalar(s string) string {
	if plainRE.MatchString(s) && !strings.HasSuffix(s, " ") && !slices.Contains(reserved, strings.ToLower(s)) && !strings.HasPrefix(s, "---") {
		if c := s[0]; c < '0' || c > '9' {
			return s
		}
	}
	return workflow.Quote(s)
}

// writeField writes one key with its value.
func writeField(b *strings.Builder, f field, v any) {
	if v == nil {
		return
	}
	b.WriteString(f.name)
	b.WriteByte(':')
	switch x := v.(type) {
	case string:
		b.WriteString(" " + scalar(x))
	case bool:
		fmt.Fprintf(b, " %t", x)
	case int64:
		if f.kind == timeKind {
			b.WriteString(" " + stamp(x))
		} else {
			fmt.Fprintf(b, " %d", x)
		}
	case []string:
		for _, s := range x {
			b.WriteString("\n  - " + scalar(s))
		}
	case map[string]string:
		for _, k := range sorted(x) {
			b.WriteString("\n  " + scalar(k) + ": " + scalar(x[k]))
		}
	}
	b.WriteByte('\n')
}

// reading is one YAML text being read, at a line of a file.
type reading struct {
	file     string
	line     int // of the file, before the text's first
	problems []Problem
}

func (r *reading) fail(n *yaml.Node, format string, a ...any) *Problem {
	line := 0
	if n != nil {
		line = n.Line + r.line
	}
	r.problems = append(r.problems, Problem{File: r.file, Line: line, Text: fmt.Sprintf(format, a...)})
	return &r.problems[len(r.problems)-1]
}

var yamlLine = regexp.MustCompile(`line (\d+): ?`)

// tree reads a text whose root is a map; nil when it is none, and a problem says why.
func (r *reading) tree(text string) (root *yaml.Node) {
	defer func() {
		if p := recover(); p != nil { // the library has panicked on hostile input before
			r.fail(nil, "this is no YAML")
			root = nil
		}
	}()
	if strings.TrimSpace(text) == "" {
		return &yaml.Node{Kind: yaml.MappingNode, Line: 1}
	}
	var doc, more yaml.Node
	dec := yaml.NewDecoder(strings.NewReader(text))
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) { // comments only
			return &yaml.Node{Kind: yaml.MappingNode, Line: 1}
		}
		msg, line := strings.TrimPrefix(err.Error(), "yaml: "), 1
		if m := yamlLine.FindStringSubmatch(msg); m != nil {
			line, _ = strconv.Atoi(m[1]) // digits
			msg = strings.Replace(msg, m[0], "", 1)
		}
		r.fail(&yaml.Node{Line: line}, "this is no YAML: %s", msg)
		return nil
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		r.fail(&more, "it goes on after the end of its first document")
		return nil
	}
	root = doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return &yaml.Node{Kind: yaml.MappingNode, Line: 1}
	}
	if root.Kind != yaml.MappingNode {
		r.fail(root, "names with values are wanted here")
		return nil
	}
	if !r.simple(root, 0) {
		return nil
	}
	return root
}

// simple refuses what a reader might understand in another way: aliases, tags, names that stand twice.
func (r *reading) simple(n *yaml.Node, depth int) bool {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		r.fail(n, "anchors and aliases (& and *) are not available").Hint = "write it twice, or quote it to make it text"
		return false
	case n.Style&yaml.TaggedStyle != 0:
		r.fail(n, "tags (%s) are not available", n.Tag).Hint = "quote the value to make it text"
		return false
	case depth > 24:
		r.fail(n, "nested deeper than 24")
		return false
	}
	seen := map[string]bool{}
	for i, c := range n.Content {
		if !r.simple(c, depth+1) {
			return false
		}
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			if c.Kind != yaml.ScalarNode || seen[c.Value] {
				r.fail(c, "%s stands here a second time, or is no name", Show(c.Value))
				return false
			}
			seen[c.Value] = true
		}
	}
	return true
}

func null(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// value reads a field's value; nil when it says nothing.
func (r *reading) value(f field, n *yaml.Node) any {
	if null(n) {
		return nil
	}
	out := Values{}
	switch f.kind {
	case listKind:
		var list []string
		if n.Kind == yaml.ScalarNode {
			list = []string{n.Value}
		}
		for _, c := range n.Content {
			if n.Kind != yaml.SequenceNode || c.Kind != yaml.ScalarNode {
				r.fail(n, "%s: a list of texts is wanted here", f.name)
				return nil
			}
			list = append(list, c.Value)
		}
		out.set(f.name, list)
	case dictKind:
		m := map[string]string{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Kind != yaml.MappingNode || n.Content[i+1].Kind != yaml.ScalarNode {
				break
			}
			m[n.Content[i].Value] = n.Content[i+1].Value
		}
		if n.Kind != yaml.MappingNode || len(m) != len(n.Content)/2 {
			r.fail(n, "%s: names with a text each are wanted here", f.name)
			return nil
		}
		out.set(f.name, m)
	default:
		if n.Kind != yaml.ScalarNode {
			r.fail(n, "%s: a single value is wanted here", f.name)
			return nil
		}
		out.set(f.name, r.single(f, n))
	}
	return out[f.name]
}

func (r *reading) single(f field, n *yaml.Node) any {
	switch f.kind {
	case intKind:
		i, err := strconv.ParseInt(n.Value, 10, 64)
		if err != nil {
			r.fail(n, "%s: %s is no whole number", f.name, Show(n.Value))
			return nil
		}
		return i
	case flagKind:
		if n.Value != "true" && n.Value != "false" {
			r.fail(n, "%s: true or false is wanted here, not %s", f.name, Show(n.Value))
		}
		return n.Value == "true"
	case timeKind:
		t, err := time.Parse(time.RFC3339, n.Value)
		if err != nil {
			r.fail(n, "%s: %s is no time", f.name, Show(n.Value)).Hint = "write it as 2030-01-31T09:00:00Z"
			return nil
		}
		return t.UnixMilli()
	}
	return n.Value
}

// anything reads a value of a parameter as JSON.
func (r *reading) anything(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			m[n.Content[i].Value] = r.anything(n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		list := []any{}
		for _, c := range n.Content {
			list = append(list, r.anything(c))
		}
		return list
	}
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true")
	case "!!int", "!!float":
		if x := json.Number(n.Value); json.Valid([]byte(n.Value)) {
			return x
		}
		r.fail(n, "%s is no number that JSON has", Show(n.Value)).Hint = "quote it to make it text"
	}
	return n.Value
}
