package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Names of the folder's files.
const (
	BoardFile    = "board.yaml"
	WorkflowFile = "workflow.yaml"
	ProfilesFile = "profiles.yaml"
	BaseFile     = ".muster/base.json"
	CardsFolder  = "cards"
	SchemaFolder = ".muster/schema"
)

const (
	schemaLine    = "# yaml-language-server: $schema="
	profilesPlace = "# profiles: they are in profiles.yaml\n" // where the block stood

	fieldWorkflow = "workflow"
	paramPrefix   = "params."
)

func schemaOf(name string) string { return schemaLine + ".muster/schema/" + name + ".json" }

// boardFields are the settings of a board, in the order of the file.
var boardFields = []field{
	{name: "board", own: true, what: "the board's name"},
	{name: "prefix", own: true, what: "what its cards' ids begin with"},
	{name: "label", what: "what people see"},
	{name: "home", what: "machine on which its sessions are preferred"},
	{name: "zone", what: "time zone, like Europe/Berlin"},
	{name: "keep", kind: intKind, what: "days that events of finished cards stay"},
}

var boardField = func() map[string]field {
	m := map[string]field{}
	for _, f := range boardFields {
		m[f.name] = f
	}
	return m
}()

// renderSettings is the file of a board's settings and parameters.
func (b *Board) renderSettings() []byte {
	var s strings.Builder
	s.WriteString(schemaOf("board") + "\n")
	for _, f := range boardFields {
		writeField(&s, f, b.Values[f.name])
	}
	first := true
	for _, name := range sorted(b.Values) {
		param, ok := strings.CutPrefix(name, paramPrefix)
		raw, is := b.Values[name].(json.RawMessage)
		if !ok || !is {
			continue
		}
		if first {
			s.WriteString("params:\n")
			first = false
		}
		s.WriteString("  " + scalar(param) + ": ")
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		var x any
		_ = d.Decode(&x) // it is canonical JSON
		flow(&s, x, true)
		s.WriteByte('\n')
	}
	return []byte(s.String())
}

// flow writes a value of a parameter in one line.
func flow(b *strings.Builder, v any, top bool) {
	switch x := v.(type) {
	case nil:
		b.WriteString("null")
	case string:
		if s := scalar(x); top || strings.HasPrefix(s, `"`) {
			b.WriteString(s)
		} else {
			b.WriteString(`"` + s + `"`) // a plain one may end early where commas and brackets count
		}
	case []any:
		b.WriteByte('[')
		for i, e := range x {
			if i > 0 {
				b.WriteString(", ")
			}
			flow(b, e, false)
		}
		b.WriteByte(']')
	case map[string]any:
		b.WriteByte('{')
		for i, k := range sorted(x) {
			if i > 0 {
				b.WriteString(", ")
			}
			flow(b, k, false)
			b.WriteString(": ")
			flow(b, x[k], false)
		}
		b.WriteByte('}')
	default:
		fmt.Fprint(b, x)
	}
}

// canonical is JSON with sorted keys and without what says nothing.
func canonical(raw []byte) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var x any
	if err := d.Decode(&x); err != nil {
		return nil, err
	}
	return json.Marshal(x)
}

// parseSettings reads the file of a board's settings.
func (b *Board) parseSettings(raw []byte) []Problem {
	r := &reading{file: BoardFile}
	root := r.tree(unix(raw))
	if root == nil {
		return r.problems
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		k, n := root.Content[i], root.Content[i+1]
		if f, ok := boardField[k.Value]; ok {
			b.Values.set(f.name, r.value(f, n))
			continue
		}
		if k.Value != "params" {
			r.fail(k, "a board has no setting %s", Show(k.Value)).Hint = "it has: label, home, zone, keep and params"
			continue
		}
		if null(n) {
			continue
		}
		if n.Kind != yaml.MappingNode {
			r.fail(n, "params: names with values are wanted here")
			continue
		}
		for j := 0; j+1 < len(n.Content); j += 2 {
			raw, err := json.Marshal(r.anything(n.Content[j+1]))
			if err != nil {
				r.fail(n.Content[j], "params.%s: %v", n.Content[j].Value, err)
				continue
			}
			b.Values[paramPrefix+n.Content[j].Value] = json.RawMessage(raw)
		}
	}
	return r.problems
}

var profilesRE = regexp.MustCompile(`^profiles:[ \t]*(#.*)?$`)

// split takes the profiles out of a workflow, so that each file is about one thing.
// What it cannot take out to the byte stays in.
func split(source string) (workflow, profiles string) {
	lines := strings.SplitAfter(source, "\n")
	from, to := -1, -1
	for i, l := range lines {
		bare := strings.TrimRight(l, "\r\n")
		switch {
		case l == profilesPlace || from >= 0 && profilesRE.MatchString(bare):
			return source, "" // twice, or what stands for it is there already
		case from < 0 && profilesRE.MatchString(bare):
			from = i
		case from >= 0 && to < 0 && bare != "" && !strings.ContainsAny(bare[:1], " \t#"):
			to = i
		}
	}
	if from < 0 {
		return source, ""
	}
	if to < 0 {
		to = len(lines)
	} else {
		for to > from+1 && (strings.TrimSpace(lines[to-1]) == "" || strings.HasPrefix(lines[to-1], "#")) {
			to-- // a comment belongs to what follows it
		}
	}
	profiles = strings.Join(lines[from:to], "")
	workflow = strings.Join(lines[:from], "") + profilesPlace + strings.Join(lines[to:], "")
	return workflow, profiles
}

// joined puts the profiles back where they were.
func joined(workflow, profiles string) string {
	if profiles == "" {
		return workflow
	}
	if strings.Contains(workflow, profilesPlace) {
		if !strings.HasSuffix(profiles, "\n") && !strings.HasSuffix(workflow, profilesPlace) {
			profiles += "\n"
		}
		return strings.Replace(workflow, profilesPlace, profiles, 1)
	}
	if workflow != "" && !strings.HasSuffix(workflow, "\n") {
		workflow += "\n"
	}
	return workflow + profiles
}

// withSchema puts the line in front that makes an editor complete the file.
func withSchema(name, text string) []byte { return []byte(schemaOf(name) + "\n" + text) }

func withoutSchema(text string) string {
	if first, rest, ok := strings.Cut(text, "\n"); ok && strings.HasPrefix(first, schemaLine) {
		return rest
	}
	return text
}

// parseWorkflow reads the workflow and its profiles as one text, which the fleet judges.
func (b *Board) parseWorkflow(workflow, profiles []byte) (list []Problem) {
	w, p := withoutSchema(unix(workflow)), withoutSchema(unix(profiles))
	r := &reading{file: ProfilesFile}
	if strings.TrimSpace(p) != "" {
		root := r.tree(p)
		if root == nil {
			return r.problems
		}
		for i := 0; i < len(root.Content); i += 2 {
			if k := root.Content[i]; k.Value != "profiles" {
				r.fail(k, "%s does not belong here: this file has profiles alone", Show(k.Value)).Hint = "put it into " + WorkflowFile
			}
		}
		for i, l := range strings.Split(w, "\n") {
			if profilesRE.MatchString(strings.TrimRight(l, "\r")) {
				r.problems = append(r.problems, Problem{File: WorkflowFile, Line: i + 2, Text: "profiles stand here and in " + ProfilesFile, Hint: "keep one of the two"})
			}
		}
	}
	b.Values.set(fieldWorkflow, joined(w, p))
	return r.problems
}
