package rule

import (
	"fmt"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// lowering turns expr's tree into code: it checks names and kinds, gives nil its meaning in every node,
// folds constants, and adds up the cost.
type lowering struct {
	source      string
	err         *Error
	reads       []Read
	thresholds  []threshold
	cost        int
	visits      int // of nodes, shared ones each time
	factor      int // how often the present node may be evaluated: MaxItems inside a predicate
	inPredicate bool
	element     Kind
	known       map[string]any
}

func (l *lowering) fail(pos int, format string, args ...any) *code {
	if l.err == nil {
		l.err = ErrorAt(l.source, pos, fmt.Sprintf(format, args...))
	}
	return constantCode(pos, nil)
}

// lower returns code in every case; l.err says whether it counts.
func (l *lowering) lower(n ast.Node) *code {
	if l.factor == 0 {
		l.factor = 1
	}
	l.cost += l.factor
	// a < b < c is (a < b) && (b < c) with one b: nested, such sharing doubles with every level.
	if l.visits++; l.visits > 4*maxNodes {
		return l.fail(n.Location().From, "the expression repeats its parts too often: split it")
	}
	if l.cost > maxSteps {
		return l.fail(n.Location().From, "the expression is too expensive: a predicate over %d items may take more than %d steps", MaxItems, maxSteps)
	}
	if l.err != nil {
		return constantCode(0, nil)
	}
	pos := n.Location().From
	switch n := n.(type) {
	case *ast.NilNode:
		return constantCode(pos, nil)
	case *ast.BoolNode:
		return constantCode(pos, n.Value)
	case *ast.IntegerNode:
		return constantCode(pos, float64(n.Value))
	case *ast.FloatNode:
		return constantCode(pos, n.Value)
	case *ast.StringNode:
		return constantCode(pos, n.Value)
	case *ast.IdentifierNode:
		return l.identifier(n, pos)
	case *ast.ChainNode:
		return l.lower(n.Node)
	case *ast.MemberNode:
		return l.member(n, pos)
	case *ast.UnaryNode:
		return l.unary(n, pos)
	case *ast.BinaryNode:
		return l.binary(n, pos)
	case *ast.ConditionalNode:
		return l.conditional(n, pos)
	case *ast.ArrayNode:
		return l.array(n, pos)
	case *ast.MapNode:
		return l.mapLiteral(n, pos)
	case *ast.PointerNode:
		return l.pointer(n, pos)
	case *ast.BuiltinNode:
		return l.call(n.Name, n.Arguments, pos)
	case *ast.CallNode:
		if id, ok := n.Callee.(*ast.IdentifierNode); ok {
			return l.call(id.Value, n.Arguments, pos)
		}
		return l.fail(pos, "values have no methods; the functions are %s", strings.Join(functionNames, ", "))
	case *ast.VariableDeclaratorNode, *ast.SequenceNode:
		return l.fail(pos, "an expression is one value: let and ; are not available")
	case *ast.SliceNode:
		return l.fail(pos, "slices [a:b] are not available")
	}
	return l.fail(pos, "this form is not available in an expression")
}

// fold evaluates a node at once when all it is made of is constant.
func (l *lowering) fold(c *code, parts ...*code) *code {
	if l.err != nil {
		return c
	}
	for _, p := range parts {
		if !p.constant {
			return c
		}
	}
	f := frame{steps: maxSteps}
	v := c.val(&f)
	if f.failed() {
		return l.fail(f.pos, "%s", f.message)
	}
	return constantCode(c.pos, v)
}

func (l *lowering) identifier(n *ast.IdentifierNode, pos int) *code {
	name := n.Value
	static := scopeKinds.members[name]
	if static == nil {
		return l.fail(pos, "unknown name %s%s", name, Suggest(name, keysOf(scopeKinds.members)))
	}
	l.reads = append(l.reads, Read{Name: name, Offset: pos})
	c := readCode(static.kind, pos, func(f *frame) any { return f.scope[name] })
	c.static = static
	return c
}

// readCode reads a raw value of the scope. Numbers that are wanted as numbers are not boxed anew.
func readCode(kind Kind, pos int, raw func(*frame) any) *code {
	c := newCode(kind, pos, func(f *frame) any { return f.read(pos, raw(f)) })
	c.num = func(f *frame) (float64, bool) {
		switch x := raw(f).(type) {
		case int64:
			return float64(x), true
		default:
			return f.asNumber(pos, f.read(pos, x))
		}
	}
	return c
}

func (l *lowering) member(n *ast.MemberNode, pos int) *code {
	if n.Method {
		return l.fail(pos, "values have no methods")
	}
	readsBefore := len(l.reads)
	base := l.lower(n.Node)
	key := l.lower(n.Property)
	if l.err != nil {
		return base
	}
	name, named := key.value.(string)
	named = named && key.constant
	// A name of the scope and its member are one read: payload.seconds, not payload.
	if id, ok := n.Node.(*ast.IdentifierNode); ok && named && len(l.reads) == readsBefore+1 {
		read := id.Value + "." + name
		l.reads[readsBefore].Name = read
		if v, ok := l.known[read]; ok {
			return constantCode(pos, v)
		}
	}
	switch base.kind {
	case Record:
		return l.recordMember(n, base, key, name, named, pos)
	case Any, Map, List, Nil:
	default:
		return l.fail(pos, "%s is %s and has no members", l.describe(n.Node), base.kind)
	}
	return l.fold(memberCode(Any, base, key, pos), base, key)
}

func (l *lowering) recordMember(n *ast.MemberNode, base, key *code, name string, named bool, pos int) *code {
	what := l.describe(n.Node)
	if !named {
		return l.fail(pos, "%s is read by the name of a member: %s.NAME", what, what)
	}
	static := base.static.members[name]
	if static == nil {
		if !base.static.open {
			return l.fail(pos, "%s has no member %s%s", what, name, Suggest(name, keysOf(base.static.members)))
		}
		static = of(Any)
	}
	c := memberCode(static.kind, base, key, pos)
	c.static = static
	return c
}

func memberCode(kind Kind, base, key *code, pos int) *code {
	if name, ok := key.value.(string); ok && key.constant {
		return readCode(kind, pos, func(f *frame) any {
			if m, ok := base.val(f).(map[string]any); ok {
				return m[name]
			}
			return nil
		})
	}
	return newCode(kind, pos, func(f *frame) any {
		switch m := base.val(f).(type) {
		case map[string]any:
			if k, ok := key.val(f).(string); ok {
				return f.read(pos, m[k])
			}
		case []any:
			i, ok := key.val(f).(float64)
			if ok && i < 0 {
				i += float64(len(m))
			}
			if ok && i >= 0 && i < float64(len(m)) {
				return f.read(pos, m[int(i)])
			}
		}
		return nil
	})
}

func (l *lowering) conditional(n *ast.ConditionalNode, pos int) *code {
	cond := l.lower(n.Cond)
	yes, no := l.lower(n.Exp1), l.lower(n.Exp2)
	l.wantTruth(cond, n.Cond)
	if l.err != nil {
		return cond
	}
	if cond.constant {
		if cond.value == true {
			return yes
		}
		return no
	}
	c := newCode(joined(yes.kind, no.kind), pos, func(f *frame) any {
		if cond.truth(f) {
			return yes.val(f)
		}
		return no.val(f)
	})
	c.num = func(f *frame) (float64, bool) {
		if cond.truth(f) {
			return yes.num(f)
		}
		return no.num(f)
	}
	c.truth = func(f *frame) bool {
		if cond.truth(f) {
			return yes.truth(f)
		}
		return no.truth(f)
	}
	c.branches = []*code{yes, no}
	return c
}

// joined is the kind of a value that is one of two.
func joined(a, b Kind) Kind {
	switch {
	case a == b:
		return a
	case a == Nil:
		return b
	case b == Nil:
		return a
	case a == Number && b == Time, a == Time && b == Number:
		return Number
	}
	return Any
}

func (l *lowering) array(n *ast.ArrayNode, pos int) *code {
	var items []*code
	for _, e := range n.Nodes {
		items = append(items, l.lower(e))
	}
	return l.fold(newCode(List, pos, func(f *frame) any {
		list := make([]any, len(items))
		for i, c := range items {
			list[i] = c.val(f)
		}
		return list
	}), items...)
}

func (l *lowering) mapLiteral(n *ast.MapNode, pos int) *code {
	var keys []string
	var values []*code
	for _, p := range n.Pairs {
		pair, ok := p.(*ast.PairNode)
		if !ok {
			return l.fail(pos, "a map is {name: value, ...}")
		}
		key, ok := pair.Key.(*ast.StringNode)
		if !ok {
			return l.fail(pos, "a key of a map is a constant name")
		}
		keys, values = append(keys, key.Value), append(values, l.lower(pair.Value))
	}
	return l.fold(newCode(Map, pos, func(f *frame) any {
		m := make(map[string]any, len(keys))
		for i, k := range keys {
			m[k] = values[i].val(f)
		}
		return m
	}), values...)
}

func (l *lowering) pointer(n *ast.PointerNode, pos int) *code {
	switch n.Name {
	case "":
		return newCode(l.element, pos, func(f *frame) any { return f.item })
	case "index":
		return numberCode(Number, pos, func(f *frame) (float64, bool) { return float64(f.index), true })
	}
	return l.fail(pos, "unknown name #%s: # is the item, #index its place", n.Name)
}

// describe names a node to people as it stands in the source.
func (l *lowering) describe(n ast.Node) string {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		return n.Value
	case *ast.StringNode:
		return named(n.Value)
	case *ast.MemberNode:
		if p, ok := n.Property.(*ast.StringNode); ok {
			return l.describe(n.Node) + "." + p.Value
		}
	case *ast.ChainNode:
		return l.describe(n.Node)
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.String()
	}
	return "this"
}

// wanted holds what the expression gives against what its place takes.
func (l *lowering) wanted(c *code, want Kind) {
	ok := true
	switch want {
	case Truth:
		ok = c.kind == Truth || c.kind == Any || c.kind == Nil
	case Number, Time:
		ok = c.kind == Number || c.kind == Time || c.kind == Any || c.kind == Nil
	case String, List, Map:
		ok = c.kind == want || c.kind == Any || c.kind == Nil
	case Any:
		if c.kind == Record {
			l.fail(c.pos, "a record stands here: name one of its members")
		}
	}
	if !ok {
		l.fail(c.pos, "%s is wanted here and this gives %s", want, c.kind)
	}
}

func (l *lowering) wantTruth(c *code, n ast.Node) {
	if c.kind != Truth && c.kind != Any && c.kind != Nil {
		l.fail(c.pos, "%s is %s, and true or false is wanted; compare it with something", l.describe(n), c.kind)
	}
}

func (l *lowering) wantNumber(c *code, n ast.Node, operator string) {
	switch c.kind {
	case Number, Time, Any, Nil:
	default:
		l.fail(c.pos, "%s takes numbers and %s is %s", operator, l.describe(n), c.kind)
	}
}

func (l *lowering) wantText(c *code, n ast.Node, operator string) {
	switch c.kind {
	case String, Any, Nil:
	default:
		l.fail(c.pos, "%s takes text and %s is %s", operator, l.describe(n), c.kind)
	}
}

func (l *lowering) wantList(c *code, n ast.Node, operator string) {
	switch c.kind {
	case List, Map, Any, Nil:
	default:
		l.fail(c.pos, "%s takes a list and %s is %s", operator, l.describe(n), c.kind)
	}
}
