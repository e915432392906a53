package rule

import (
	"math"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// functionNames is the allow-list of workflow.md; nothing else of expr's library can be called.
var functionNames = []string{"len", "any", "all", "none", "count", "filter", "min", "max", "abs", "lower", "upper", "trim", "next"}

func (l *lowering) call(name string, args []ast.Node, pos int) *code {
	switch name {
	case "any", "all", "none", "count", "filter":
		return l.predicate(name, args, pos)
	case "len", "abs", "lower", "upper", "trim":
		if len(args) != 1 {
			return l.fail(pos, "%s takes one argument", name)
		}
	case "min", "max":
		if len(args) == 0 {
			return l.fail(pos, "%s takes numbers", name)
		}
	case "next":
		return l.next(args, pos)
	default:
		return l.fail(pos, "unknown function %s%s", name, Suggest(name, functionNames))
	}
	var parts []*code
	for _, a := range args {
		parts = append(parts, l.lower(a))
	}
	if l.err != nil {
		return constantCode(pos, nil)
	}
	switch name {
	case "len":
		return l.length(args[0], parts[0], pos)
	case "abs":
		l.wantNumber(parts[0], args[0], "abs")
		return l.fold(numberCode(Number, pos, func(f *frame) (float64, bool) {
			x, ok := parts[0].num(f)
			return math.Abs(x), ok
		}), parts...)
	case "min", "max":
		return l.extreme(name, args, parts, pos)
	}
	change := map[string]func(string) string{"lower": strings.ToLower, "upper": strings.ToUpper, "trim": strings.TrimSpace}[name]
	l.wantText(parts[0], args[0], name)
	return l.fold(newCode(String, pos, func(f *frame) any {
		if s, ok := f.asText(pos, parts[0].val(f)); ok && !f.failed() {
			return change(s)
		}
		return nil
	}), parts...)
}

func (l *lowering) length(n ast.Node, c *code, pos int) *code {
	switch c.kind {
	case List, Map, String, Any, Nil:
	default:
		return l.fail(c.pos, "len takes a list, a map or text and %s is %s", l.describe(n), c.kind)
	}
	return l.fold(numberCode(Number, pos, func(f *frame) (float64, bool) {
		switch x := c.val(f).(type) {
		case nil:
			return 0, true
		case string:
			f.spend(pos, len(x)/64)
			return float64(len([]rune(x))), true
		case []any:
			return float64(len(x)), true
		case map[string]any:
			return float64(len(x)), true
		default:
			f.fail(pos, "len takes a list, a map or text and this is %s", named(x))
			return 0, false
		}
	}), c)
}

// extreme is min and max of numbers or of one list of numbers. As with arithmetic, a nil among them makes nil.
func (l *lowering) extreme(name string, args []ast.Node, parts []*code, pos int) *code {
	better := func(x, y float64) bool { return x < y }
	if name == "max" {
		better = func(x, y float64) bool { return x > y }
	}
	if len(parts) == 1 && !isNumber(parts[0].kind) {
		l.wantList(parts[0], args[0], name+" of one argument")
		c := parts[0]
		return l.fold(numberCode(Number, pos, func(f *frame) (best float64, found bool) {
			for _, item := range f.asItems(pos, c.val(f)) {
				x, ok := f.asNumber(pos, f.read(pos, item))
				if !ok || !f.spend(pos, 1) {
					return 0, false
				}
				if !found || better(x, best) {
					best, found = x, true
				}
			}
			return best, found
		}), parts...)
	}
	for i, c := range parts {
		l.wantNumber(c, args[i], name)
	}
	return l.fold(numberCode(Number, pos, func(f *frame) (float64, bool) {
		best, ok := parts[0].num(f)
		for _, c := range parts[1:] {
			x, ok2 := c.num(f)
			ok = ok && ok2
			if better(x, best) {
				best = x
			}
		}
		return best, ok
	}), parts...)
}

// predicate is any, all, none, count and filter over a list, or over a map's values in key order.
func (l *lowering) predicate(name string, args []ast.Node, pos int) *code {
	if l.inPredicate {
		return l.fail(pos, "%s stands inside another predicate: only one level is available", name)
	}
	if len(args) == 0 || len(args) > 2 || len(args) == 1 && name != "count" {
		return l.fail(pos, "%s takes a list and a condition on # (the item)", name)
	}
	list := l.lower(args[0])
	l.wantList(list, args[0], name)
	costBefore := l.cost
	test := newCode(Any, pos, func(f *frame) any { return f.item })
	if len(args) == 2 {
		body, ok := args[1].(*ast.PredicateNode)
		if !ok {
			return l.fail(pos, "%s takes a list and a condition on # (the item)", name)
		}
		l.inPredicate, l.element, l.factor = true, list.itemKind(), MaxItems
		test = l.lower(body.Node)
		l.wantTruth(test, body.Node)
		l.inPredicate, l.factor = false, 1
	}
	if l.err != nil {
		return constantCode(pos, nil)
	}
	w := walk{pos: pos, list: list, test: test, perItem: 1 + (l.cost-costBefore)/MaxItems}
	switch name {
	case "count":
		return numberCode(Number, pos, w.count)
	case "filter":
		c := newCode(List, pos, w.filter)
		c.static = &kinded{kind: List, item: list.itemKind()}
		return c
	}
	// any stops at the first true, all at the first false, none at the first true.
	stopAt, result := name != "all", name != "any"
	return truthCode(pos, func(f *frame) bool {
		r := result
		w.each(f, func(_ any, holds bool) bool {
			if holds == stopAt {
				r = !result
			}
			return holds != stopAt
		})
		return r
	})
}

// walk visits the items of a list with the truth of a condition on each.
type walk struct {
	pos        int
	list, test *code
	perItem    int // steps
}

// each calls visit until it says false.
func (w walk) each(f *frame, visit func(item any, holds bool) bool) {
	for i, item := range f.asItems(w.pos, w.list.val(f)) {
		if !f.spend(w.pos, w.perItem) {
			return
		}
		f.item, f.index = f.read(w.pos, item), i
		if !visit(item, w.test.truth(f)) {
			return
		}
	}
}

func (w walk) count(f *frame) (float64, bool) {
	n := 0
	w.each(f, func(_ any, holds bool) bool {
		if holds {
			n++
		}
		return true
	})
	return float64(n), true
}

func (w walk) filter(f *frame) any {
	kept := []any{}
	w.each(f, func(item any, holds bool) bool {
		if holds {
			kept = append(kept, item)
		}
		return true
	})
	return kept
}
