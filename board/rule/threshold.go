package rule

import (
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// Threshold is a value at which an expression may change its answer, because what it compares grows with time.
type Threshold struct {
	Of     string  // what grows: "payload.seconds", or "now"
	Value  float64 // where it changes: seconds of the payload, or a moment in seconds since the epoch
	Strict bool    // the comparison holds only beyond the value (>), not at it (>=)
}

type threshold struct {
	of     string
	value  *code
	since  *code // for now - since > value
	strict bool
}

// noteThreshold remembers comparisons of payload.seconds or of now with something that stands still:
// payload.seconds > X, now > X, now - t > X, and the same written from the other side.
func (l *lowering) noteThreshold(n *ast.BinaryNode, a, b *code) {
	strict := n.Operator == ">" || n.Operator == "<="
	grows, still, stillNode := n.Left, b, n.Right
	if !readsTime(grows) {
		grows, still, stillNode = n.Right, a, n.Left
		strict = n.Operator == "<" || n.Operator == ">="
	}
	if !readsTime(grows) || readsTime(stillNode) || l.inPredicate {
		return
	}
	t := threshold{value: still, strict: strict}
	switch g := grows.(type) {
	case *ast.MemberNode:
		t.of = "payload.seconds"
	case *ast.IdentifierNode:
		t.of = "now"
	case *ast.BinaryNode:
		id, ok := g.Left.(*ast.IdentifierNode)
		if !ok || id.Value != "now" || g.Operator != "-" || readsTime(g.Right) {
			return
		}
		t.of = "now"
		reads, cost := len(l.reads), l.cost
		t.since = l.lower(g.Right)
		l.reads, l.cost = l.reads[:reads], cost // lowered a second time: it counts once
	default:
		return
	}
	l.thresholds = append(l.thresholds, t)
}

// readsTime: the node's value changes by itself while time passes.
func readsTime(n ast.Node) bool {
	found := false
	ast.Walk(&n, visitor(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.IdentifierNode:
			found = found || n.Value == "now"
		case *ast.CallNode:
			id, ok := n.Callee.(*ast.IdentifierNode)
			found = found || ok && id.Value == "next"
		case *ast.MemberNode:
			id, ok := n.Node.(*ast.IdentifierNode)
			p, ok2 := n.Property.(*ast.StringNode)
			found = found || ok && ok2 && id.Value == "payload" && p.Value == "seconds"
		}
	}))
	return found
}

type visitor func(ast.Node)

func (v visitor) Visit(n *ast.Node) { v(*n) }

// Thresholds gives the values at which the expression may change as time passes (architecture.md §8), in the
// scope of a card, sorted; comparisons with nil give none. Timed says whether there may be others.
func (e *Expr) Thresholds(scope Scope) []Threshold {
	if e == nil {
		return nil
	}
	var out []Threshold
	for _, t := range e.thresholds {
		f := frame{scope: scope, steps: maxSteps}
		value, ok := t.value.num(&f)
		if t.since != nil {
			since, ok2 := t.since.num(&f)
			value, ok = value+since, ok && ok2
		}
		if ok && !f.failed() {
			out = append(out, Threshold{Of: t.of, Value: value, Strict: t.strict})
		}
	}
	slices.SortStableFunc(out, func(a, b Threshold) int {
		if c := strings.Compare(a.Of, b.Of); c != 0 {
			return c
		}
		return compareNumbers(a.Value, b.Value)
	})
	return slices.Compact(out)
}

// Timed says that the expression reads something that changes by itself: now, payload.seconds, or an age.
// Where Thresholds does not name every such comparison, a wait is offered again at intervals.
func (e *Expr) Timed() bool {
	if e == nil {
		return false
	}
	for _, r := range e.reads {
		if r.Name == "now" || r.Name == "payload.seconds" || strings.HasSuffix(r.Name, ".age") {
			return true
		}
	}
	return false
}
