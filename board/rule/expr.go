package rule

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/parser"
)

// Error says what is wrong with an expression or template and where in its text.
type Error struct {
	Source       string
	Offset       int // characters from the start of Source
	Line, Column int // both from 1
	Message      string
}

func (e *Error) Error() string {
	if e.Line > 1 {
		return fmt.Sprintf("%s (line %d, character %d of the expression)", e.Message, e.Line, e.Column)
	}
	return fmt.Sprintf("%s (character %d)", e.Message, e.Column)
}

// ErrorAt makes an error at a place of a source, given in characters from its start.
func ErrorAt(source string, offset int, message string) *Error {
	line, column, i := 1, 1, 0
	for _, r := range source {
		if i == offset {
			break
		}
		i++
		column++
		if r == '\n' {
			line, column = line+1, 1
		}
	}
	return &Error{Source: source, Offset: offset, Line: line, Column: column, Message: message}
}

// Read is a name that an expression reads ("now", "payload.seconds") and where, in characters from the start.
type Read struct {
	Name   string
	Offset int
}

// Expr is a compiled expression. A nil *Expr is an absent one: it evaluates to nil, and holds.
type Expr struct {
	source     string
	code       *code
	reads      []Read
	thresholds []threshold
	cost       int
}

// Compile checks and compiles an expression for a place that wants the kind. The error is a *Error.
func Compile(source string, want Kind) (*Expr, error) {
	e, err := compile(source, want, nil)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// compile takes names whose value is known (With); they become constants.
func compile(source string, want Kind, known map[string]any) (e *Expr, fail *Error) {
	if len(source) > MaxSource {
		return nil, ErrorAt(source, 0, fmt.Sprintf("the expression has %d bytes, more than %d: move it into params or several steps", len(source), MaxSource))
	}
	if strings.TrimSpace(source) == "" {
		return nil, ErrorAt(source, 0, "the expression is empty: leave the key out, or write nil")
	}
	// expr's parser is foreign code that reads what users write: a panic in it is an error, not a crash.
	defer func() {
		if r := recover(); r != nil {
			e, fail = nil, ErrorAt(source, 0, fmt.Sprintf("the expression cannot be read: %v", r))
		}
	}()
	tree, err := parser.ParseWithConfig(source, &conf.Config{MaxNodes: maxNodes, DisableIfOperator: true})
	if err != nil {
		return nil, parseError(source, err)
	}
	l := &lowering{source: source, known: known}
	c := l.lower(tree.Node)
	if l.err == nil {
		l.wanted(c, want)
	}
	if l.err != nil {
		return nil, l.err
	}
	return &Expr{source: source, code: c, reads: l.reads, thresholds: l.thresholds, cost: l.cost}, nil
}

// Source is the expression's text.
func (e *Expr) Source() string {
	if e == nil {
		return ""
	}
	return e.source
}

// Names lists what the expression reads, sorted: variables ("now") and their members ("payload.seconds").
func (e *Expr) Names() []string {
	if e == nil {
		return nil
	}
	return namesOf(e.reads)
}

func namesOf(reads []Read) []string {
	var names []string
	for _, r := range reads {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Reads lists every name the expression reads, with its place, in the order of the text.
func (e *Expr) Reads() []Read {
	if e == nil {
		return nil
	}
	return e.reads
}

// Kind is what the expression gives, as far as it is known.
func (e *Expr) Kind() Kind {
	if e == nil {
		return Nil
	}
	return e.code.kind
}

// Cost is an upper bound of the steps one evaluation takes, with lists of the greatest size.
func (e *Expr) Cost() int {
	if e == nil {
		return 0
	}
	return e.cost
}

// Constant is the value of an expression that reads nothing and never changes.
func (e *Expr) Constant() (any, bool) {
	if e == nil || !e.code.constant {
		return nil, false
	}
	return e.code.value, true
}

// With gives the expression for a situation in which some names ("card.status") have known values; what follows
// from them is folded. A linter asks so whether a guard can hold in a status.
func (e *Expr) With(known map[string]any) *Expr {
	if e == nil {
		return nil
	}
	special, err := compile(e.source, Any, known)
	if err != nil { // a constant made a part wrong that is never reached
		return e
	}
	return special
}

// Outcomes lists the constants among the values the expression may give, through ?: and ??;
// open says that it may also give others.
func (e *Expr) Outcomes() (constants []any, open bool) {
	if e == nil {
		return nil, false
	}
	return e.code.outcomes()
}

// Eval gives the value: nil, bool, float64, string, []any or map[string]any (lists and maps as they
// stand in the scope). The error is a *Error; it refuses, it is nobody's fault but the expression's.
func (e *Expr) Eval(scope Scope) (any, error) {
	if e == nil {
		return nil, nil
	}
	f := frame{scope: scope, steps: maxSteps}
	v := e.code.val(&f)
	if f.failed() {
		return nil, f.error(e.source)
	}
	return v, nil
}

// Holds is the truth of a guard: nil is false, an absent guard holds (EXP-01).
func (e *Expr) Holds(scope Scope) (bool, error) {
	if e == nil {
		return true, nil
	}
	f := frame{scope: scope, steps: maxSteps}
	ok := e.code.truth(&f)
	if f.failed() {
		return false, f.error(e.source)
	}
	return ok, nil
}

// Number is the value of a limit or a maximum (EXP-11): nil and empty text mean none (false), other text
// is parsed, and what is no finite number is refused.
func (e *Expr) Number(scope Scope) (float64, bool, error) {
	v, err := e.Eval(scope)
	if err != nil {
		return 0, false, err
	}
	switch x := v.(type) {
	case nil:
		return 0, false, nil
	case float64:
		return x, !math.IsNaN(x), nil
	case string:
		if x == "" {
			return 0, false, nil
		}
		if n, ok := parseNumber(x); ok {
			return n, true, nil
		}
	}
	return 0, false, ErrorAt(e.source, 0, fmt.Sprintf("a number is wanted and %s is %s", e.source, named(v)))
}

// maxMessage bounds what the parser says, in bytes.
const maxMessage = 300

func parseError(source string, err error) *Error {
	offset, message := 0, err.Error()
	if at, ok := asFileError(err); ok {
		offset, message = at.From, at.Message
	}
	message = strings.TrimPrefix(message, "compilation failed: ")
	switch {
	case strings.Contains(message, "maximum allowed nodes"):
		message = fmt.Sprintf("the expression has more than %d parts: split it", maxNodes)
	case strings.Contains(message, "unexpected token EOF"):
		message = "the expression ends too early"
	case strings.Contains(message, "unexpected token Operator(\"=\")"):
		message = "= is no operator: compare with =="
	}
	if len(message) > maxMessage { // it may repeat a word of any length
		message = strings.ToValidUTF8(message[:maxMessage], "") + "..."
	}
	return ErrorAt(source, offset, message)
}
