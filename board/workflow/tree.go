package workflow

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"muster/board/rule"
)

// Bounds of a workflow file.
const (
	MaxSize  = 256 << 10 // bytes
	maxNodes = 20_000    // values in the file
	maxDepth = 24        // nesting
)

type nodeKind uint8

const (
	scalarNode nodeKind = iota
	mapNode
	listNode
)

// node is a YAML value with its place. Unlike yaml.Node it has no aliases, no tags and no duplicate keys, and it
// keeps the source, so that an error inside an expression points into the line.
type node struct {
	pos     Pos
	kind    nodeKind
	raw     string // of a scalar, as written
	scalar  any    // nil, bool, int64, float64, string
	quoted  bool
	block   bool
	entries []entry
	items   []*node
	lines   []string
}

type entry struct {
	key   string
	pos   Pos
	value *node
}

func (n *node) null() bool { return n.kind == scalarNode && n.scalar == nil }

func (n *node) get(key string) *node {
	for _, e := range n.entries {
		if e.key == key {
			return e.value
		}
	}
	return nil
}

// noun says what a value is to people.
func (n *node) noun() string {
	switch n.kind {
	case mapNode:
		return "a map"
	case listNode:
		return "a list"
	}
	switch n.scalar.(type) {
	case nil:
		return "null"
	case bool:
		return "true or false"
	case string:
		return "text"
	}
	return "a number"
}

// parser reads one YAML file into a tree and reports everything it does not take.
type parser struct {
	file   string
	lines  []string
	report *Report
	nodes  int
}

var yamlLine = regexp.MustCompile(`line (\d+): ?`)

// parse gives the tree of a file, or nil when it cannot be read at all.
func parse(file string, src []byte, report *Report) (root *node) {
	p := &parser{file: file, report: report}
	if len(src) > MaxSize {
		p.fail(Pos{File: file, Line: 1, Column: 1}, "size", fmt.Sprintf("the file has %d bytes, more than %d", len(src), MaxSize), "")
		return nil
	}
	p.lines = strings.Split(string(src), "\n")
	// The YAML library has panicked on hostile input before; such a file is an error, not a crash.
	defer func() {
		if r := recover(); r != nil {
			p.fail(Pos{File: file, Line: 1, Column: 1}, "yaml", "the file is no YAML", "")
			root = nil
		}
	}()
	var doc yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(src))
	if err := dec.Decode(&doc); err != nil {
		p.yamlError(err)
		return nil
	}
	var more yaml.Node
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		pos := Pos{File: file, Line: max(more.Line, 1), Column: max(more.Column, 1)}
		p.fail(pos, "yaml", "the file goes on after the end of its first document", "keep one document, without --- in the middle")
		return nil
	}
	before := len(report.Findings)
	root = p.convert(doc.Content[0], 0)
	if len(report.Findings) > before {
		return nil
	}
	return root
}

func (p *parser) fail(pos Pos, check, message, advice string) {
	p.report.add(Finding{Pos: pos, Severity: Error, Check: check, Message: message, Advice: advice})
}

func (p *parser) yamlError(err error) {
	pos := Pos{File: p.file, Line: 1, Column: 1}
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	if errors.Is(err, io.EOF) {
		p.fail(pos, "yaml", "the file is empty", "begin with version: 1 and name: NAME")
		return
	}
	if m := yamlLine.FindStringSubmatch(message); m != nil {
		pos.Line, _ = strconv.Atoi(m[1])
		message = strings.Replace(message, m[0], "", 1)
		if strings.HasPrefix(message, "did not find expected") { // its parser counts from 0, its scanner from 1
			pos.Line = min(pos.Line+1, len(p.lines))
		}
	}
	advice := ""
	switch {
	case strings.Contains(message, "cannot start any token"), strings.Contains(message, "found a tab character"):
		advice = "indent with spaces, and quote a value that begins with @, ` or %"
	case strings.Contains(message, "mapping values are not allowed"):
		advice = "quote a value that holds a colon, ? : or {{"
	case strings.Contains(message, "did not find expected"):
		advice = "look for a missing quote, bracket or space before this line"
	}
	p.fail(pos, "yaml", "this is no YAML: "+message, advice)
}

func (p *parser) convert(y *yaml.Node, depth int) *node {
	n := &node{pos: Pos{File: p.file, Line: y.Line, Column: y.Column}, lines: p.lines}
	p.nodes++
	switch {
	case p.nodes > maxNodes:
		if p.nodes == maxNodes+1 {
			p.fail(n.pos, "size", fmt.Sprintf("the file has more than %d values", maxNodes), "")
		}
		return n
	case depth > maxDepth:
		p.fail(n.pos, "depth", fmt.Sprintf("nested deeper than %d", maxDepth), "")
		return n
	case y.Kind == yaml.AliasNode || y.Anchor != "":
		p.fail(n.pos, "alias", "anchors and aliases (& and *) are not available", "share by extends, by a profile's parent, or write it twice")
		return n
	case y.Style&yaml.TaggedStyle != 0:
		p.fail(n.pos, "tag", "tags ("+y.Tag+") are not available", "quote the value to make it text")
		return n
	}
	switch y.Kind {
	case yaml.ScalarNode:
		p.scalar(n, y)
	case yaml.SequenceNode:
		n.kind = listNode
		for _, c := range y.Content {
			n.items = append(n.items, p.convert(c, depth+1))
		}
	case yaml.MappingNode:
		n.kind = mapNode
		p.mapping(n, y, depth)
	default:
		p.fail(n.pos, "yaml", "this is no value", "")
	}
	return n
}

func (p *parser) mapping(n *node, y *yaml.Node, depth int) {
	seen := map[string]int{}
	for i := 0; i+1 < len(y.Content); i += 2 {
		k := y.Content[i]
		pos := Pos{File: p.file, Line: k.Line, Column: k.Column}
		if k.Kind != yaml.ScalarNode || k.Anchor != "" || k.Style&yaml.TaggedStyle != 0 {
			p.fail(pos, "key", "a key is a plain word", "")
			continue
		}
		if first, ok := seen[k.Value]; ok {
			p.fail(pos, "duplicate-key", fmt.Sprintf("%s stands here a second time (first in line %d)", shown(k.Value), first), "keep one")
			continue
		}
		if len(k.Value) > 200 || hasControl(k.Value) {
			p.fail(pos, "key", "a key is a short word without control characters", "")
			continue
		}
		seen[k.Value] = k.Line
		n.entries = append(n.entries, entry{key: k.Value, pos: pos, value: p.convert(y.Content[i+1], depth+1)})
	}
}

func (p *parser) scalar(n *node, y *yaml.Node) {
	n.raw = y.Value
	n.quoted = y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0
	n.block = y.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0
	switch y.ShortTag() {
	case "!!null":
		return
	case "!!bool", "!!int", "!!float":
		var v any
		if err := y.Decode(&v); err != nil {
			p.fail(n.pos, "value", shown(y.Value)+" cannot be read", "quote it to make it text")
			return
		}
		switch x := v.(type) {
		case bool:
			n.scalar = x
			return
		case int:
			n.scalar = int64(x)
			return
		case float64:
			if math.IsNaN(x) || math.IsInf(x, 0) {
				p.fail(n.pos, "number", shown(y.Value)+" is no number", "")
				return
			}
			n.scalar = x
			if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
				n.scalar = int64(x)
			}
			return
		}
		p.fail(n.pos, "number", shown(y.Value)+" is too large for a number", "quote it to make it text")
	default:
		n.scalar = y.Value
	}
}

// merge puts an extending tree over its base: maps merge key by key, anything else replaces. A null stays and means
// "absent" where it is decoded.
func merge(base, over *node) *node {
	if base == nil || base.kind != mapNode || over.kind != mapNode {
		return over
	}
	merged := *over
	merged.entries = nil
	for _, e := range base.entries {
		if v := over.get(e.key); v != nil {
			e.value = merge(e.value, v)
		}
		merged.entries = append(merged.entries, e)
	}
	for _, e := range over.entries {
		if base.get(e.key) == nil {
			merged.entries = append(merged.entries, e)
		}
	}
	return &merged
}

// at is the place of an error inside a scalar's text: its line and column there are from the expression.
// Where YAML has folded or escaped the text, it is the place of the value.
func (n *node) at(e *rule.Error) Pos {
	pos := n.pos
	line, column := pos.Line, pos.Column+e.Column-1
	switch {
	case n.block:
		line = pos.Line + e.Line
		if line > len(n.lines) {
			return pos
		}
		text := n.lines[line-1]
		column = e.Column + len(text) - len(strings.TrimLeft(text, " "))
	case e.Line > 1:
		return pos
	case n.quoted:
		column++
	}
	// Trust the guess only if the source really has the text there.
	textLines := strings.Split(n.raw, "\n")
	if line < 1 || line > len(n.lines) || e.Line > len(textLines) {
		return pos
	}
	rest := skipRunes(textLines[e.Line-1], e.Column-1)
	if !strings.HasPrefix(skipRunes(n.lines[line-1], column-1), firstRunes(rest, 8)) {
		return pos
	}
	pos.Line, pos.Column = line, column
	return pos
}

func skipRunes(s string, n int) string {
	for i := range s {
		if n <= 0 {
			return s[i:]
		}
		n--
	}
	return ""
}

func firstRunes(s string, n int) string { return s[:len(s)-len(skipRunes(s, n))] }

// shown quotes a word of the file for a message, shortened and without control characters.
func shown(s string) string {
	if len(s) > 60 {
		s = strings.ToValidUTF8(s[:60], "") + "..."
	}
	return strconv.Quote(s)
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0 })
}
