package workflow

import (
	"fmt"
	"regexp"
	"strings"

	"muster/board/rule"
)

// decoder turns a merged tree into the model. It goes on after an error, so that all of them are told; what it
// returns then is not used.
type decoder struct {
	report    *Report
	seen      map[string]bool // findings told already: a profile's parent is decoded with each child
	params    map[string]bool // nil: not known, params itself is wrong
	reads     map[string]bool // parameters that an expression reads; "*": computed ones
	statuses  map[string]bool
	profiles  map[string]bool
	hooks     map[string]bool
	harnesses map[string]bool
	roles     map[string]bool // that a sender can have
	steps     int             // transitions so far
}

func (d *decoder) fail(pos Pos, path, check, message, advice string) {
	id := pos.String() + message
	if d.seen[id] {
		return
	}
	d.seen[id] = true
	d.report.add(Finding{Pos: pos, Severity: Error, Check: check, Path: path, Message: message, Advice: advice})
}

func (d *decoder) failf(n *node, path, check, format string, args ...any) {
	d.fail(n.pos, path, check, fmt.Sprintf(format, args...), "")
}

// field decodes the value of one key.
type field func(n *node, path string)

// fields decodes a map with known keys. A null value is an absent one.
func (d *decoder) fields(n *node, path string, known map[string]field) {
	if n.kind != mapNode {
		d.failf(n, path, "type", "a map is wanted here and this is %s", n.noun())
		return
	}
	for _, e := range n.entries {
		decode, ok := known[e.key]
		at := join(path, e.key)
		if !ok {
			d.fail(e.pos, at, "unknown-key", "unknown key "+shown(e.key)+rule.Suggest(e.key, sortedNames(known)), "")
			continue
		}
		if !e.value.null() {
			decode(e.value, at)
		}
	}
}

// each decodes a map with free keys that are names of a kind.
func (d *decoder) each(n *node, path, noun string, decode func(name string, n *node, path string)) {
	if n.kind != mapNode {
		d.failf(n, path, "type", "a map from %s to its meaning is wanted here and this is %s", noun, n.noun())
		return
	}
	for _, e := range n.entries {
		if !d.isName(e.key) {
			d.fail(e.pos, join(path, e.key), "name", shown(e.key)+" cannot be a "+noun+"'s name", "use lower-case letters, digits, _ and -, beginning with a letter")
			continue
		}
		if !e.value.null() {
			decode(e.key, e.value, join(path, e.key))
		}
	}
}

var namePattern = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)

func (d *decoder) isName(s string) bool { return namePattern.MatchString(s) }

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// list gives the items of a list.
func (d *decoder) list(n *node, path string) []*node {
	if n.kind != listNode {
		advice := ""
		if n.kind == scalarNode && len(n.raw) < 40 {
			advice = "write [" + n.raw + "]"
		}
		d.fail(n.pos, path, "type", "a list is wanted here and this is "+n.noun(), advice)
		return nil
	}
	return n.items
}

// word is a scalar as it is written.
func (d *decoder) word(n *node, path string) string {
	if n.kind != scalarNode || n.scalar == nil {
		d.failf(n, path, "type", "a single value is wanted here and this is %s", n.noun())
		return ""
	}
	if s, ok := n.scalar.(string); ok {
		return s
	}
	return n.raw
}

// name is a word that names something.
func (d *decoder) name(n *node, path string) string {
	w := d.word(n, path)
	if w != "" && !d.isName(w) {
		d.fail(n.pos, path, "name", shown(w)+" is no name", "use lower-case letters, digits, _ and -, beginning with a letter")
	}
	return w
}

// oneOf is a word of a fixed choice.
func (d *decoder) oneOf(n *node, path string, choice ...string) string {
	w := d.word(n, path)
	for _, c := range choice {
		if w == c {
			return w
		}
	}
	if w != "" || n.kind == scalarNode {
		d.failf(n, path, "value", "%s is not known here%s", shown(w), rule.Suggest(w, choice))
	}
	return ""
}

// known is a word that names one of the things the file defines.
func (d *decoder) known(n *node, path, noun string, names map[string]bool) string {
	w := d.word(n, path)
	if w != "" {
		d.mustExist(n.pos, path, noun, w, names)
	}
	return w
}

func (d *decoder) mustExist(pos Pos, path, noun, name string, names map[string]bool) {
	if !names[name] {
		d.fail(pos, path, "unknown-"+noun, "there is no "+noun+" "+shown(name)+rule.Suggest(name, sortedSet(names)), "")
	}
}

func (d *decoder) truth(n *node, path string) bool {
	b, ok := n.scalar.(bool)
	if !ok || n.kind != scalarNode {
		d.failf(n, path, "type", "true or false is wanted here and this is %s", n.noun())
	}
	return b
}

// whole is a whole number that is not negative.
func (d *decoder) whole(n *node, path string) int64 {
	i, ok := n.scalar.(int64)
	if !ok || n.kind != scalarNode || i < 0 {
		d.failf(n, path, "type", "a whole number is wanted here")
		return 0
	}
	return i
}

func (d *decoder) words(n *node, path string, one func(n *node, path string) string) []string {
	words := []string{}
	for i, item := range d.list(n, path) {
		words = append(words, one(item, index(path, i)))
	}
	return words
}

// place says which names of the scope an expression or template may read beyond those that are always there.
type place uint8

const (
	anywhere  place = 0
	inPrompt  place = 1 << iota // context, arc_context, doors, where, news
	inAsk                       // doors, where
	inItem                      // item
	inHarness                   // session, prompt, brief
)

func (p place) allows(variable string) bool {
	switch variable {
	case "context", "arc_context", "news":
		return p&inPrompt != 0
	case "doors", "where":
		return p&(inPrompt|inAsk) != 0
	case "item":
		return p&inItem != 0
	case "session", "prompt", "brief":
		return p&inHarness != 0
	}
	return true
}

// expr compiles an expression. A number or truth written without quotes is one, too.
func (d *decoder) expr(n *node, path string, want rule.Kind, p place) *rule.Expr {
	if n.kind != scalarNode {
		d.failf(n, path, "type", "an expression is wanted here and this is %s", n.noun())
		return nil
	}
	return d.compile(n, path, n.raw, want, p)
}

func (d *decoder) compile(n *node, path, source string, want rule.Kind, p place) *rule.Expr {
	e, err := rule.Compile(source, want)
	if err != nil {
		d.ruleError(n, path, err)
		return nil
	}
	d.checkReads(n, path, source, e.Reads(), p)
	return e
}

// template compiles a text with {{ }}.
func (d *decoder) template(n *node, path string, p place) *rule.Text {
	if n.kind != scalarNode {
		d.failf(n, path, "type", "text is wanted here and this is %s", n.noun())
		return nil
	}
	t, err := rule.CompileText(n.raw)
	if err != nil {
		d.ruleError(n, path, err)
		return nil
	}
	d.checkReads(n, path, n.raw, t.Reads(), p)
	return t
}

func (d *decoder) ruleError(n *node, path string, err error) {
	e, ok := err.(*rule.Error)
	if !ok {
		d.failf(n, path, "expression", "%v", err)
		return
	}
	advice := ""
	if strings.HasPrefix(e.Message, "unexpected token") && !n.quoted && !n.block {
		advice = "quote the expression in YAML if it holds ? : , # or {{"
	}
	d.fail(n.at(e), path, "expression", e.Message, advice)
}

func (d *decoder) checkReads(n *node, path, source string, reads []rule.Read, p place) {
	for _, r := range reads {
		variable, member, _ := strings.Cut(r.Name, ".")
		if variable == "params" {
			d.reads[orStar(member)] = true
		}
		at := func() Pos { return n.at(rule.ErrorAt(source, r.Offset, "")) }
		if variable == "params" && member != "" && d.params != nil && !d.params[member] {
			d.fail(at(), path, "unknown-param", "params does not define "+member+rule.Suggest(member, sortedSet(d.params)), "add it under params: with its default, null if there is none")
		}
		if !p.allows(variable) {
			d.fail(at(), path, "scope", variable+" is not known here", placeAdvice(variable))
		}
	}
}

func orStar(member string) string {
	if member == "" {
		return "*"
	}
	return member
}

func placeAdvice(variable string) string {
	switch variable {
	case "item":
		return "it exists where each gives a list"
	case "session", "prompt", "brief":
		return "it exists in the argv of a harness"
	case "doors", "where":
		return "it exists in prompt, resume and ask"
	}
	return "it exists in prompt and resume"
}

// target is a template that gives a status: every constant it may give must be one.
func (d *decoder) target(n *node, path string) *rule.Text {
	t := d.template(n, path, anywhere)
	names, _ := t.Outcomes()
	for _, s := range names {
		d.mustExist(n.pos, path, "status", s, d.statuses)
	}
	if s, constant := t.Constant(); t != nil && constant && s == "" {
		d.failf(n, path, "status", "the target is empty: leave the key out to stay in the status")
	}
	return t
}
