package rule

import (
	"math"
	"regexp"
	"strings"

	"github.com/expr-lang/expr/ast"
)

func (l *lowering) unary(n *ast.UnaryNode, pos int) *code {
	c := l.lower(n.Node)
	switch n.Operator {
	case "not", "!":
		if l.err == nil && c.kind != Truth && c.kind != Any && c.kind != Nil {
			return l.fail(pos, "%s is %s, and not takes true or false; not binds closer than ==: write not (a == b)", l.describe(n.Node), c.kind)
		}
		return l.fold(truthCode(pos, func(f *frame) bool { return !c.truth(f) }), c)
	case "-", "+":
		l.wantNumber(c, n.Node, n.Operator)
		negate := n.Operator == "-"
		return l.fold(numberCode(Number, pos, func(f *frame) (float64, bool) {
			x, ok := c.num(f)
			if negate {
				x = 0 - x // not -x: zero has no sign
			}
			return x, ok
		}), c)
	}
	return l.fail(pos, "the operator %s is not available", n.Operator)
}

func (l *lowering) binary(n *ast.BinaryNode, pos int) *code {
	a := l.lower(n.Left)
	if n.Operator == "matches" {
		return l.matches(n, a, pos)
	}
	b := l.lower(n.Right)
	if l.err != nil {
		return a
	}
	switch n.Operator {
	case "&&", "and", "||", "or":
		return l.logic(n, a, b, pos)
	case "==", "!=":
		return l.equality(n, a, b, pos)
	case "<", "<=", ">", ">=":
		l.noteThreshold(n, a, b)
		return l.ordered(n, a, b, pos)
	case "+", "-", "*", "/", "%":
		return l.arithmetic(n, a, b, pos)
	case "in":
		return l.in(n, a, b, pos)
	case "contains", "startsWith", "endsWith":
		return l.textTest(n, a, b, pos)
	case "??":
		return l.coalesce(a, b, pos)
	}
	return l.fail(pos, "the operator %s is not available; there are + - * / %% == != < <= > >= && || not in contains startsWith endsWith matches ?? ?:", n.Operator)
}

func (l *lowering) logic(n *ast.BinaryNode, a, b *code, pos int) *code {
	l.wantTruth(a, n.Left)
	l.wantTruth(b, n.Right)
	and := n.Operator == "&&" || n.Operator == "and"
	// One constant side may decide alone: "false && x" is false whatever x is.
	for _, side := range []*code{a, b} {
		if side.constant && (side.value == true) != and {
			return constantCode(pos, !and)
		}
	}
	if and {
		return l.fold(truthCode(pos, func(f *frame) bool { return a.truth(f) && b.truth(f) }), a, b)
	}
	return l.fold(truthCode(pos, func(f *frame) bool { return a.truth(f) || b.truth(f) }), a, b)
}

func (l *lowering) equality(n *ast.BinaryNode, a, b *code, pos int) *code {
	negate := n.Operator == "!="
	if distinct(a.kind, b.kind) {
		hint := ""
		if u, ok := n.Left.(*ast.UnaryNode); ok && (u.Operator == "not" || u.Operator == "!") {
			hint = "; not binds closer than " + n.Operator + ": write not (a " + n.Operator + " b)"
		}
		return l.fail(pos, "%s is %s and %s is %s: they are never equal%s", l.describe(n.Left), a.kind, l.describe(n.Right), b.kind, hint)
	}
	return l.fold(truthCode(pos, func(f *frame) bool {
		x, y := a.val(f), b.val(f)
		if s, ok := x.(string); ok {
			t, ok := y.(string)
			return (ok && s == t && f.spend(pos, len(s)/64)) != negate
		}
		return f.equal(pos, x, y, 0) != negate
	}), a, b)
}

// distinct: values of these kinds can never be equal.
func distinct(a, b Kind) bool {
	simple := func(k Kind) Kind {
		switch k {
		case Time:
			return Number
		case Record:
			return Map
		}
		return k
	}
	a, b = simple(a), simple(b)
	return a != b && a != Any && b != Any && a != Nil && b != Nil
}

func (l *lowering) ordered(n *ast.BinaryNode, a, b *code, pos int) *code {
	texts := a.kind == String && b.kind == String
	if !texts {
		l.wantNumber(a, n.Left, n.Operator)
		l.wantNumber(b, n.Right, n.Operator)
	}
	holds := map[string]func(int) bool{
		"<": func(c int) bool { return c < 0 }, "<=": func(c int) bool { return c <= 0 },
		">": func(c int) bool { return c > 0 }, ">=": func(c int) bool { return c >= 0 },
	}[n.Operator]
	if isNumber(a.kind) && isNumber(b.kind) {
		return l.fold(truthCode(pos, func(f *frame) bool {
			x, ok := a.num(f)
			y, ok2 := b.num(f)
			return ok && ok2 && holds(compareNumbers(x, y))
		}), a, b)
	}
	return l.fold(truthCode(pos, func(f *frame) bool {
		x, y := a.val(f), b.val(f)
		if x == nil || y == nil {
			return false
		}
		s, ok := x.(string)
		t, ok2 := y.(string)
		if ok && ok2 {
			return f.spend(pos, min(len(s), len(t))/64) && holds(strings.Compare(s, t))
		}
		p, ok := f.asNumber(a.pos, x)
		q, ok2 := f.asNumber(b.pos, y)
		return ok && ok2 && holds(compareNumbers(p, q))
	}), a, b)
}

func isNumber(k Kind) bool { return k == Number || k == Time }

func compareNumbers(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (l *lowering) arithmetic(n *ast.BinaryNode, a, b *code, pos int) *code {
	if n.Operator == "+" && (a.kind == String || b.kind == String || a.kind == Any && b.kind == Any || a.kind == Any && b.kind == Nil || a.kind == Nil && b.kind == Any) {
		return l.plus(n, a, b, pos)
	}
	l.wantNumber(a, n.Left, n.Operator)
	l.wantNumber(b, n.Right, n.Operator)
	kind := Number
	if n.Operator == "+" && (a.kind == Time) != (b.kind == Time) || n.Operator == "-" && a.kind == Time && b.kind != Time {
		kind = Time
	}
	compute := map[string]func(x, y float64) float64{
		"+": func(x, y float64) float64 { return x + y }, "-": func(x, y float64) float64 { return x - y },
		"*": func(x, y float64) float64 { return x * y }, "/": func(x, y float64) float64 { return x / y },
		"%": math.Mod,
	}[n.Operator]
	operator := n.Operator
	return l.fold(numberCode(kind, pos, func(f *frame) (float64, bool) {
		x, ok := a.num(f)
		y, ok2 := b.num(f)
		if !ok || !ok2 {
			return 0, false
		}
		r := compute(x, y)
		if math.IsNaN(r) || math.IsInf(r, 0) {
			f.fail(pos, "%s %s %s is no number", formatNumber(x), operator, formatNumber(y))
			return 0, false
		}
		return r, true
	}), a, b)
}

// plus is + where the sides are not known to be numbers: two numbers or two texts.
func (l *lowering) plus(n *ast.BinaryNode, a, b *code, pos int) *code {
	kind := Any
	if a.kind == String || b.kind == String {
		kind = String
		l.wantText(a, n.Left, "+ with text")
		l.wantText(b, n.Right, "+ with text")
	}
	return l.fold(newCode(kind, pos, func(f *frame) any {
		x, y := a.val(f), b.val(f)
		if x == nil || y == nil {
			return nil
		}
		s, ok := x.(string)
		t, ok2 := y.(string)
		if ok != ok2 {
			f.fail(pos, "+ takes two numbers or two texts, not %s and %s", named(x), named(y))
			return nil
		}
		if ok {
			if len(s)+len(t) > MaxString {
				f.fail(pos, "the text would be longer than %d bytes", MaxString)
				return nil
			}
			f.spend(pos, (len(s)+len(t))/64)
			return s + t
		}
		p, ok := f.asNumber(a.pos, x)
		q, ok2 := f.asNumber(b.pos, y)
		if !ok || !ok2 {
			return nil
		}
		if r := p + q; !math.IsInf(r, 0) {
			return r
		}
		f.fail(pos, "%s + %s is no number", formatNumber(p), formatNumber(q))
		return nil
	}), a, b)
}

func (l *lowering) in(n *ast.BinaryNode, a, b *code, pos int) *code {
	switch b.kind {
	case List, Map, Any, Nil:
	case String:
		return l.fail(pos, "in looks into lists and maps; for text write %s contains ...", l.describe(n.Right))
	default:
		return l.fail(pos, "in looks into a list or a map and %s is %s", l.describe(n.Right), b.kind)
	}
	if items, ok := b.value.([]any); ok && b.constant {
		for _, item := range items {
			if distinct(a.kind, constantCode(pos, item).kind) {
				return l.fail(pos, "%s is %s and can never be %s", l.describe(n.Left), a.kind, named(item))
			}
		}
	}
	return l.fold(truthCode(pos, func(f *frame) bool {
		x := a.val(f)
		switch y := b.val(f).(type) {
		case nil:
			return false
		case map[string]any:
			k, ok := x.(string)
			if !ok {
				return false
			}
			_, ok = y[k]
			return ok
		case []any:
			for _, e := range f.asItems(pos, y) {
				if f.equal(pos, x, e, 0) {
					return true
				}
			}
			return false
		default:
			f.fail(pos, "in looks into a list or a map and this is %s", named(y))
			return false
		}
	}), a, b)
}

func (l *lowering) textTest(n *ast.BinaryNode, a, b *code, pos int) *code {
	l.wantText(a, n.Left, n.Operator)
	l.wantText(b, n.Right, n.Operator)
	test := map[string]func(s, part string) bool{
		"contains": strings.Contains, "startsWith": strings.HasPrefix, "endsWith": strings.HasSuffix,
	}[n.Operator]
	return l.fold(truthCode(pos, func(f *frame) bool {
		s, ok := f.asText(a.pos, a.val(f))
		part, ok2 := f.asText(b.pos, b.val(f))
		return ok && ok2 && !f.failed() && test(s, part)
	}), a, b)
}

func (l *lowering) matches(n *ast.BinaryNode, a *code, pos int) *code {
	pattern, ok := n.Right.(*ast.StringNode)
	if !ok {
		return l.fail(pos, "matches takes a constant pattern")
	}
	re, err := regexp.Compile(pattern.Value)
	if err != nil {
		return l.fail(pattern.Location().From, "the pattern cannot be used: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	l.wantText(a, n.Left, "matches")
	// RE2 is linear in the text; a byte of it costs some 30 times what a byte of a plain search does, and more
	// with a longer pattern.
	factor := 1 + len(pattern.Value)/32
	return l.fold(truthCode(pos, func(f *frame) bool {
		s, ok := f.asText(a.pos, a.val(f))
		return ok && f.spend(pos, factor*(1+len(s)/2)) && re.MatchString(s)
	}), a)
}

func (l *lowering) coalesce(a, b *code, pos int) *code {
	if a.constant {
		if a.value == nil {
			return b
		}
		return a
	}
	c := newCode(joined(a.kind, b.kind), pos, func(f *frame) any {
		if v := a.val(f); v != nil || f.failed() {
			return v
		}
		return b.val(f)
	})
	if isNumber(a.kind) && isNumber(b.kind) {
		c.num = func(f *frame) (float64, bool) {
			if x, ok := a.num(f); ok || f.failed() {
				return x, ok
			}
			return b.num(f)
		}
	}
	// A constant nil on the left cannot be the outcome, and nothing else is known of the left side.
	c.branches = []*code{a, b}
	return c
}
