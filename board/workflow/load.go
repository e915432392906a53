package workflow

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:embed default-workflow.yaml
var defaultSource []byte

//go:embed presets.yaml
var presetSource []byte

// Resolver gives the workflow file of another board of the fleet, for `extends: board:SLUG`.
type Resolver func(slug string) ([]byte, error)

// maxExtends bounds a chain of files that extend each other.
const maxExtends = 8

// Load reads a workflow file and everything it extends. The workflow is nil when the report has failed.
func Load(src []byte, base Resolver) (*Workflow, *Report) {
	report := &Report{}
	root := parse("", src, report)
	if root == nil {
		return nil, report
	}
	if root.kind != mapNode {
		report.add(Finding{Pos: root.pos, Severity: Error, Check: "type", Message: "a workflow is a map and this is " + root.noun(), Advice: "begin with version: 1 and name: NAME"})
		return nil, report
	}
	merged := extend(root, base, report, map[string]bool{})
	if merged == nil {
		return nil, report
	}
	w := decodeWorkflow(root, merged, report)
	sortFindings(report.Findings)
	if report.Failed() {
		return nil, report
	}
	w.keys = keyLiterals(merged, "", nil)
	w.canonical = canonicalForm(merged)
	w.version = hashOf(w.canonical)
	return w, report
}

// extend merges a file with what it extends, or gives nil with the reason in the report.
func extend(root *node, base Resolver, report *Report, seen map[string]bool) *node {
	e := root.get("extends")
	if e == nil || e.null() {
		return root
	}
	fail := func(message, advice string) *node {
		report.add(Finding{Pos: e.pos, Severity: Error, Check: "extends", Path: "extends", Message: message, Advice: advice})
		return nil
	}
	name, ok := e.scalar.(string)
	slug, isBoard := strings.CutPrefix(name, "board:")
	switch {
	case !ok || name != "default" && (!isBoard || !namePattern.MatchString(slug)):
		return fail("a workflow extends default or board:SLUG", "")
	case seen[name] || len(seen) >= maxExtends:
		return fail("the files extend each other: "+strings.Join(sortedSet(seen), ", "), "break the circle")
	case isBoard && base == nil:
		return fail("the workflow of another board can only be read in a fleet", "give it to muster board apply, or extend default")
	}
	seen[name] = true
	src := defaultSource
	if isBoard {
		var err error
		if src, err = base(slug); err != nil {
			return fail(fmt.Sprintf("the workflow of board %s cannot be read: %v", slug, err), "")
		}
	}
	below := parse(name, src, report)
	if below == nil || below.kind != mapNode {
		return fail("the workflow it extends cannot be used", "")
	}
	if below = extend(below, base, report, seen); below == nil {
		return nil
	}
	return merge(below, root)
}

var parseDefault = sync.OnceValue(func() *Workflow {
	w, report := Load(defaultSource, nil)
	if w == nil {
		panic("the embedded default workflow is broken: " + report.String()) // a test loads it
	}
	return w
})

// Default is the embedded default workflow.
func Default() *Workflow { return parseDefault() }

// DefaultSource is its file, with its comments.
func DefaultSource() []byte { return slices.Clone(defaultSource) }
