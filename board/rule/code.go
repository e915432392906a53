package rule

import (
	"errors"
	"fmt"

	"github.com/expr-lang/expr/file"
)

// code is one lowered node: three ways to ask for its value, so that guards and arithmetic need not
// put every intermediate number into an interface.
type code struct {
	kind     Kind
	static   *kinded // members of a record, kind of a list's items; nil when not known
	pos      int     // characters from the start of the source
	val      func(*frame) any
	truth    func(*frame) bool
	num      func(*frame) (float64, bool) // false: nil
	constant bool
	value    any
	branches []*code // what a ?: or ?? may give
}

// frame is one evaluation. The first failure sticks; later nodes return quickly with empty values.
type frame struct {
	scope   Scope
	steps   int
	item    any
	index   int
	message string
	pos     int
}

func (f *frame) failed() bool { return f.message != "" }

func (f *frame) fail(pos int, format string, args ...any) {
	if f.message == "" {
		f.pos, f.message = pos, fmt.Sprintf(format, args...)
	}
}

func (f *frame) error(source string) error { return ErrorAt(source, f.pos, f.message) }

// spend takes steps from the budget; false: none left, or an earlier failure.
func (f *frame) spend(pos, steps int) bool {
	f.steps -= steps
	if f.steps < 0 {
		f.fail(pos, "the evaluation takes more than %d steps: its lists or texts are too long", maxSteps)
	}
	return f.message == ""
}

// read brings a value of the scope into the model.
func (f *frame) read(pos int, v any) any {
	p, err := plain(v)
	if err != nil {
		f.fail(pos, "%v", err)
		return nil
	}
	return p
}

func (f *frame) asTruth(pos int, v any) bool {
	switch x := v.(type) {
	case nil:
		return false
	case bool:
		return x
	}
	f.fail(pos, "true or false is wanted and this is %s", named(v))
	return false
}

// asNumber takes numbers, and text that is one (M-23: parsed or refused).
func (f *frame) asNumber(pos int, v any) (float64, bool) {
	switch x := v.(type) {
	case nil:
		return 0, false
	case float64:
		return x, true
	case string:
		if n, ok := parseNumber(x); ok {
			return n, true
		}
	}
	f.fail(pos, "a number is wanted and this is %s", named(v))
	return 0, false
}

func (f *frame) asText(pos int, v any) (string, bool) {
	switch x := v.(type) {
	case nil:
		return "", false
	case string:
		f.spend(pos, len(x)/64)
		return x, true
	}
	f.fail(pos, "text is wanted and this is %s", named(v))
	return "", false
}

// asItems gives what a list or map holds; a map's values in key order (M-23).
func (f *frame) asItems(pos int, v any) []any {
	var items []any
	switch x := v.(type) {
	case nil:
		return nil
	case []any:
		items = x
	case map[string]any:
		if len(x) <= MaxItems {
			f.spend(pos, 8*len(x))
			for _, k := range sortedKeys(x) {
				items = append(items, x[k])
			}
			return items
		}
		f.fail(pos, "the map has %d entries, more than %d", len(x), MaxItems)
		return nil
	default:
		f.fail(pos, "a list is wanted and this is %s", named(v))
		return nil
	}
	if len(items) > MaxItems {
		f.fail(pos, "the list has %d items, more than %d", len(items), MaxItems)
		return nil
	}
	return items
}

// equal compares by value; values of different kinds are not equal.
func (f *frame) equal(pos int, a, b any, depth int) bool {
	if !f.spend(pos, 1) {
		return false
	}
	if depth > maxNesting {
		f.fail(pos, "the values compared are nested deeper than %d", maxNesting)
		return false
	}
	a, b = f.read(pos, a), f.read(pos, b)
	switch x := a.(type) {
	case nil:
		return b == nil
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !f.equal(pos, x[i], y[i], depth+1) {
				return false
			}
		}
		return true
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for _, k := range sortedKeys(x) {
			other, ok := y[k]
			if !ok || !f.equal(pos, x[k], other, depth+1) {
				return false
			}
		}
		return true
	case string:
		y, ok := b.(string)
		return ok && f.spend(pos, len(y)/64) && x == y
	}
	switch b.(type) {
	case bool, float64:
		return a == b
	}
	return false
}

func newCode(kind Kind, pos int, val func(*frame) any) *code {
	c := &code{kind: kind, pos: pos, val: val}
	c.truth = func(f *frame) bool { return f.asTruth(pos, val(f)) }
	c.num = func(f *frame) (float64, bool) { return f.asNumber(pos, val(f)) }
	return c
}

func truthCode(pos int, truth func(*frame) bool) *code {
	c := newCode(Truth, pos, func(f *frame) any { return truth(f) })
	c.truth = truth
	return c
}

func numberCode(kind Kind, pos int, num func(*frame) (float64, bool)) *code {
	c := newCode(kind, pos, func(f *frame) any {
		if n, ok := num(f); ok {
			return n
		}
		return nil
	})
	c.num = num
	return c
}

func constantCode(pos int, v any) *code {
	kind := Any
	switch x := v.(type) {
	case nil:
		kind = Nil
	case bool:
		c := truthCode(pos, func(*frame) bool { return x })
		c.constant, c.value = true, v
		return c
	case float64:
		c := newCode(Number, pos, func(*frame) any { return v })
		c.num = func(*frame) (float64, bool) { return x, true }
		c.constant, c.value = true, v
		return c
	case string:
		kind = String
	case []any:
		kind = List
	case map[string]any:
		kind = Map
	}
	c := newCode(kind, pos, func(*frame) any { return v })
	c.constant, c.value = true, v
	return c
}

func (c *code) outcomes() (constants []any, open bool) {
	if c.constant {
		return []any{c.value}, false
	}
	if c.branches == nil {
		return nil, true
	}
	for _, b := range c.branches {
		more, o := b.outcomes()
		constants = append(constants, more...)
		open = open || o
	}
	return constants, open
}

// itemKind is the kind of what a list holds, as far as it is known.
func (c *code) itemKind() Kind {
	if c.static != nil && c.kind == List {
		return c.static.item
	}
	return Any
}

func asFileError(err error) (*file.Error, bool) {
	var at *file.Error
	ok := errors.As(err, &at)
	return at, ok
}
