package workflow

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"muster/board/rule"
)

// CommandHarness is the harness of any program: a profile's args are its argv.
const CommandHarness = "command"

func (d *decoder) harness(name string, n *node, path string) *Harness {
	h := &Harness{Pos: n.pos, Name: name, Prompt: "file", Session: SessionID{From: "none"}, Verdict: "explicit", Exit: map[int]string{}}
	d.fields(n, path, map[string]field{
		"headless":   func(n *node, path string) { h.Headless = d.launch(n, path) },
		"pane":       func(n *node, path string) { h.Pane = d.launch(n, path) },
		"prompt":     func(n *node, path string) { h.Prompt = d.oneOf(n, path, "argument", "stdin", "typed", "file") },
		"session":    func(n *node, path string) { h.Session = d.sessionID(n, path) },
		"exit":       func(n *node, path string) { h.Exit = d.exitCodes(n, path) },
		"signs":      func(n *node, path string) { h.Signs = d.signs(n, path) },
		"final":      func(n *node, path string) { h.Final = d.lines(n, path) },
		"env":        func(n *node, path string) { h.Env = d.env(n, path, anywhere) },
		"scrub":      func(n *node, path string) { h.Scrub = d.words(n, path, d.word) },
		"seed":       func(n *node, path string) { h.Seed = d.seeds(n, path) },
		"ready":      func(n *node, path string) { h.Ready = d.template(n, path, anywhere) },
		"verdict":    func(n *node, path string) { h.Verdict = d.oneOf(n, path, "exit", "explicit") },
		"unverified": func(n *node, path string) { h.Unverified = d.truth(n, path) },
	})
	if n.kind == mapNode && h.Headless == nil && h.Pane == nil {
		d.fail(n.pos, path, "missing", "a harness has no way to start", "write headless: or pane: with fresh: [PROGRAM, ...]")
	}
	return h
}

func (h *Harness) on(surface string) *Launch {
	if surface == "pane" {
		return h.Pane
	}
	return h.Headless
}

func (d *decoder) launch(n *node, path string) *Launch {
	l := &Launch{}
	d.fields(n, path, map[string]field{
		"fresh":  func(n *node, path string) { l.Fresh = d.args(n, path) },
		"resume": func(n *node, path string) { l.Resume = d.args(n, path) },
	})
	d.missing(n, path, "fresh")
	return l
}

func (d *decoder) args(n *node, path string) []Arg {
	args := []Arg{}
	for i, item := range d.list(n, path) {
		at := index(path, i)
		if item.kind != mapNode {
			args = append(args, Arg{Text: d.template(item, at, inPrompt|inHarness)})
			continue
		}
		a := Arg{}
		p := inPrompt | inHarness
		if each := item.get("each"); each != nil && !each.null() {
			p |= inItem
		}
		d.fields(item, at, map[string]field{
			"when": func(n *node, path string) { a.When = d.expr(n, path, rule.Truth, inPrompt|inHarness) },
			"each": func(n *node, path string) { a.Each = d.expr(n, path, rule.List, inPrompt|inHarness) },
			"args": func(n *node, path string) { a.Args = d.argv(n, path, p) },
		})
		d.missing(item, at, "args")
		args = append(args, a)
	}
	if n.kind == listNode && len(args) == 0 {
		d.failf(n, path, "value", "the list is empty: a program is wanted")
	}
	return args
}

func (d *decoder) sessionID(n *node, path string) SessionID {
	s := SessionID{}
	if n.kind == scalarNode {
		s.From = d.oneOf(n, path, "minted", "reported", "none")
	} else {
		d.fields(n, path, map[string]field{
			"from": func(n *node, path string) { s.From = d.oneOf(n, path, "minted", "reported", "none") },
			"json": func(n *node, path string) { s.JSON = d.word(n, path) },
			"files": func(n *node, path string) {
				f := &SessionFiles{}
				d.fields(n, path, map[string]field{
					"paths": func(n *node, path string) { f.Paths = d.words(n, path, d.word) },
					"id":    func(n *node, path string) { f.ID = d.word(n, path) },
					"dir":   func(n *node, path string) { f.Dir = d.word(n, path) },
				})
				d.missing(n, path, "paths", "id", "dir")
				s.Files = f
			},
		})
		d.missing(n, path, "from")
	}
	if (s.From == "reported") != (s.JSON != "") {
		d.fail(n.pos, path, "value", "where the session's id is reported and json: go together", "write {from: reported, json: MEMBER}")
	}
	return s
}

func (d *decoder) exitCodes(n *node, path string) map[int]string {
	codes := map[int]string{}
	if n.kind != mapNode {
		d.failf(n, path, "type", "a map from exit code to meaning is wanted here and this is %s", n.noun())
		return codes
	}
	for _, e := range n.entries {
		code, err := strconv.Atoi(e.key)
		if err != nil || code < 0 || code > 255 {
			d.fail(e.pos, path, "value", shown(e.key)+" is no exit code", "write 0 to 255")
			continue
		}
		if !e.value.null() {
			codes[code] = d.oneOf(e.value, join(path, e.key), meanings...)
		}
	}
	return codes
}

func (d *decoder) signs(n *node, path string) []Sign {
	var signs []Sign
	for i, item := range d.list(n, path) {
		at := index(path, i)
		s := Sign{}
		d.fields(item, at, map[string]field{
			"line":    func(n *node, path string) { s.Line = d.line(n, path) },
			"where":   func(n *node, path string) { s.Where = d.line(n, path) },
			"in":      func(n *node, path string) { s.In = d.word(n, path) },
			"matches": func(n *node, path string) { s.Matches = d.pattern(n, path) },
			"failed":  func(n *node, path string) { s.Failed = d.truth(n, path) },
			"means":   func(n *node, path string) { s.Means = d.oneOf(n, path, meanings...) },
		})
		d.missing(item, at, "means")
		switch {
		case s.Line == nil && (s.In != "" || s.Where != nil):
			d.fail(item.pos, at, "value", "in: and where: name members of a JSON line, and no line is named", "write line: {type: result} or such")
		case s.Line == nil && s.Matches == "":
			d.missing(item, at, "matches")
		}
		signs = append(signs, s)
	}
	return signs
}

func (d *decoder) seeds(n *node, path string) []Seed {
	var seeds []Seed
	for i, item := range d.list(n, path) {
		at := index(path, i)
		s := Seed{}
		d.fields(item, at, map[string]field{
			"permissions": func(n *node, path string) { s.Permissions = d.oneOf(n, path, "ask", "edit", "full") },
			"files":       func(n *node, path string) { s.Files = d.words(n, path, d.seedFile) },
			"json": func(n *node, path string) {
				var object map[string]any
				if s.JSON = d.word(n, path); json.Unmarshal([]byte(s.JSON), &object) != nil || object == nil {
					d.failf(n, path, "value", "%s is no JSON object", shown(s.JSON))
				}
			},
		})
		d.missing(item, at, "files", "json")
		seeds = append(seeds, s)
	}
	return seeds
}

// seedFile is a file of settings: where it is, only the machine knows, by a variable.
func (d *decoder) seedFile(n *node, path string) string {
	text := d.word(n, path)
	name, rest, ok := strings.Cut(text, "/")
	if !ok || len(name) < 2 || name[0] != '$' || rest == "" || strings.Contains(rest, "..") {
		d.failf(n, path, "value", "%s is no file below a variable", shown(text))
	}
	return text
}

// pattern is a constant pattern of a sign. Its groups are our names or none.
func (d *decoder) pattern(n *node, path string) string {
	text := d.word(n, path)
	re, err := regexp.Compile(text)
	if err != nil || len(text) > rule.MaxSource {
		d.failf(n, path, "value", "the pattern %s cannot be used", shown(text))
		return text
	}
	for _, name := range re.SubexpNames() {
		if name != "" && !slices.Contains(resetGroups, name) {
			d.failf(n, path, "value", "the pattern has a group %s; known are %s", shown(name), strings.Join(resetGroups, ", "))
		}
	}
	return text
}

func (d *decoder) lines(n *node, path string) []Line {
	var lines []Line
	for i, item := range d.list(n, path) {
		lines = append(lines, d.line(item, index(path, i)))
	}
	return lines
}

// line is a map of members and their text, which may stand as a number or a truth.
func (d *decoder) line(n *node, path string) Line {
	line := Line{}
	if n.kind != mapNode {
		d.failf(n, path, "type", "a map from a member of a JSON line to its text is wanted here and this is %s", n.noun())
		return line
	}
	for _, e := range n.entries {
		if e.value.kind != scalarNode {
			d.failf(e.value, join(path, e.key), "type", "a text, number or truth is wanted here and this is %s", e.value.noun())
			continue
		}
		line[e.key] = fmt.Sprint(e.value.scalar)
	}
	return line
}
