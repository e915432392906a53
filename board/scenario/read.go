package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"go.yaml.in/yaml/v3"

	"muster/board/rule"
	"muster/board/workflow"
)

// Bounds of a file of scenarios.
const (
	MaxSize      = 256 << 10 // bytes
	maxScenarios = 200
	maxSteps     = 200 // of one scenario
	maxCards     = 50
	maxDepth     = 12
	maxFindings  = 100
)

// reader walks a YAML file and reports all that it does not take.
type reader struct {
	report *workflow.Report
}

func (r *reader) fail(n *yaml.Node, path, check, message, advice string) {
	r.failAt(workflow.Pos{Line: n.Line, Column: n.Column}, path, check, message, advice)
}

func (r *reader) failAt(pos workflow.Pos, path, check, message, advice string) {
	if len(r.report.Findings) >= maxFindings {
		r.report.Dropped++
		return
	}
	r.report.Findings = append(r.report.Findings, workflow.Finding{Pos: pos, Severity: workflow.Error, Check: check, Path: path, Message: message, Advice: advice})
}

// document gives the file's only document, or nil.
func (r *reader) document(src []byte) (root *yaml.Node) {
	top := workflow.Pos{Line: 1, Column: 1}
	if len(src) > MaxSize {
		r.failAt(top, "", "size", fmt.Sprintf("the file has %d bytes, more than %d", len(src), MaxSize), "")
		return nil
	}
	defer func() { // foreign code that reads what people write
		if p := recover(); p != nil {
			r.failAt(top, "", "yaml", "the file is no YAML", "")
			root = nil
		}
	}()
	var doc, more yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(src))
	if err := dec.Decode(&doc); err != nil {
		message := "this is no YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")
		if errors.Is(err, io.EOF) {
			message = "the file is empty"
		}
		var line int
		if i := strings.Index(message, "line "); i >= 0 {
			_, _ = fmt.Sscanf(message[i:], "line %d", &line)
		}
		r.failAt(workflow.Pos{Line: max(line, 1), Column: 1}, "", "yaml", message, "")
		return nil
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		r.fail(&more, "", "yaml", "the file goes on after the end of its first document", "keep one document")
		return nil
	}
	if !r.plain(doc.Content[0], 0) {
		return nil
	}
	return doc.Content[0]
}

// plain refuses anchors, tags, duplicate keys and depth.
func (r *reader) plain(n *yaml.Node, depth int) bool {
	switch {
	case depth > maxDepth:
		r.fail(n, "", "depth", fmt.Sprintf("nested deeper than %d", maxDepth), "")
		return false
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		r.fail(n, "", "alias", "anchors and aliases (& and *) are not available", "write it twice")
		return false
	case n.Style&yaml.TaggedStyle != 0:
		r.fail(n, "", "tag", "tags ("+n.Tag+") are not available", "")
		return false
	}
	ok := true
	seen := map[string]bool{}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			if c.Kind != yaml.ScalarNode || seen[c.Value] {
				r.fail(c, "", "key", "a key is a plain word and stands once", "")
				ok = false
			}
			seen[c.Value] = true
		}
		ok = r.plain(c, depth+1) && ok
	}
	return ok
}

type field func(n *yaml.Node, path string)

// fields decodes a map with known keys.
func (r *reader) fields(n *yaml.Node, path string, known map[string]field) {
	if n.Kind != yaml.MappingNode {
		r.fail(n, path, "type", "a map is wanted here", "")
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		decode, ok := known[k.Value]
		if !ok {
			r.fail(k, path, "unknown-key", fmt.Sprintf("unknown key %q%s", clip(k.Value), rule.Suggest(k.Value, keys(known))), "keys are: "+strings.Join(keys(known), ", "))
			continue
		}
		decode(v, path+"."+k.Value)
	}
}

func (r *reader) list(n *yaml.Node, path string, most int) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		r.fail(n, path, "type", "a list is wanted here", "")
		return nil
	}
	if len(n.Content) > most {
		r.fail(n, path, "size", fmt.Sprintf("more than %d items", most), "")
		return nil
	}
	return n.Content
}

func (r *reader) text(into *string) field {
	return func(n *yaml.Node, path string) {
		if n.Kind != yaml.ScalarNode {
			r.fail(n, path, "type", "text is wanted here", "")
			return
		}
		if n.ShortTag() != "!!null" {
			*into = n.Value
		}
	}
}

func (r *reader) truth(into *bool) field {
	return func(n *yaml.Node, path string) {
		if v, ok := r.value(n).(bool); ok {
			*into = v
			return
		}
		r.fail(n, path, "type", "true or false is wanted here", "")
	}
}

func (r *reader) whole(into *int64) field {
	return func(n *yaml.Node, path string) {
		v, ok := r.value(n).(float64)
		if !ok || v != math.Trunc(v) || math.Abs(v) > 1e12 {
			r.fail(n, path, "type", "a whole number is wanted here", "")
			return
		}
		*into = int64(v)
	}
}

func (r *reader) option(into **int64) field {
	return func(n *yaml.Node, path string) {
		*into = new(int64)
		r.whole(*into)(n, path)
	}
}

func (r *reader) seconds(into *float64) field {
	return func(n *yaml.Node, path string) {
		v, ok := r.value(n).(float64)
		if !ok || v < 0 || v > 1e9 {
			r.fail(n, path, "type", "a number of seconds is wanted here, from 0 to 1e9", "")
			return
		}
		*into = v
	}
}

func (r *reader) words(into *[]string) field {
	return func(n *yaml.Node, path string) {
		*into = []string{}
		for _, item := range r.list(n, path, 100) {
			var s string
			r.text(&s)(item, path)
			*into = append(*into, s)
		}
	}
}

func (r *reader) labels(into *map[string]string) field {
	return func(n *yaml.Node, path string) {
		*into = map[string]string{}
		if n.Kind != yaml.MappingNode {
			r.fail(n, path, "type", "a map is wanted here", "")
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			var s string
			r.text(&s)(n.Content[i+1], path)
			(*into)[n.Content[i].Value] = s
		}
	}
}

func (r *reader) object(into *map[string]any) field {
	return func(n *yaml.Node, path string) {
		m, ok := r.value(n).(map[string]any)
		if !ok {
			r.fail(n, path, "type", "a map is wanted here", "")
		}
		*into = m
	}
}

// value is a YAML value as JSON has it: numbers are float64.
func (r *reader) value(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			m[n.Content[i].Value] = r.value(n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		list := []any{}
		for _, c := range n.Content {
			list = append(list, r.value(c))
		}
		return list
	}
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool", "!!int", "!!float":
		var v any
		if n.Decode(&v) != nil {
			break
		}
		switch x := v.(type) {
		case bool:
			return x
		case int:
			return float64(x)
		case int64:
			return float64(x)
		case uint64:
			return float64(x)
		case float64:
			if !math.IsNaN(x) && !math.IsInf(x, 0) {
				return x
			}
		}
		r.fail(n, "", "number", clip(n.Value)+" is no number", "quote it to make it text")
		return nil
	}
	return n.Value
}

func clip(s string) string {
	if len(s) > 60 {
		s = strings.ToValidUTF8(s[:60], "") + "..."
	}
	return s
}
