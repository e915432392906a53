package rule

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Text is a compiled template: text with {{ expression }} in it. A nil *Text renders as nothing.
type Text struct {
	source string
	parts  []part
	reads  []Read
}

type part struct {
	literal string
	expr    *Expr // nil: literal
	offset  int   // characters from the template's start to the expression's
}

// CompileText checks and compiles a template. The error is a *Error with its place in the template.
func CompileText(source string) (*Text, error) {
	if len(source) > MaxTemplate {
		return nil, ErrorAt(source, 0, fmt.Sprintf("the text has %d bytes, more than %d", len(source), MaxTemplate))
	}
	t := &Text{source: source}
	rest, offset := source, 0
	take := func(bytes int) string {
		taken := rest[:bytes]
		rest, offset = rest[bytes:], offset+utf8.RuneCountInString(taken)
		return taken
	}
	for rest != "" {
		open := strings.Index(rest, "{{")
		if open < 0 {
			t.parts = append(t.parts, part{literal: take(len(rest))})
			break
		}
		if open > 0 {
			t.parts = append(t.parts, part{literal: take(open)})
		}
		start := offset
		take(2)
		end := closing(rest)
		if end < 0 {
			return nil, ErrorAt(source, start, "{{ has no }} after it")
		}
		at := offset
		e, err := compile(take(end), Any, nil)
		take(2)
		if err != nil {
			return nil, ErrorAt(source, at+err.Offset, err.Message)
		}
		p := part{expr: e, offset: at}
		t.parts, t.reads = append(t.parts, p), append(t.reads, p.reads()...)
		if len(t.parts) > 2*maxNodes {
			return nil, ErrorAt(source, start, fmt.Sprintf("the text has more than %d expressions", maxNodes))
		}
	}
	return t, nil
}

// closing finds the }} that ends an expression: not within quotes, nor one that closes its own braces.
func closing(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '"', '\'', '`':
			for i++; i < len(s) && s[i] != c; i++ {
				if s[i] == '\\' && c != '`' {
					i++
				}
			}
		case '{':
			depth++
		case '}':
			if depth == 0 {
				if strings.HasPrefix(s[i:], "}}") {
					return i
				}
				return -1
			}
			depth--
		}
	}
	return -1
}

// Source is the template's text.
func (t *Text) Source() string {
	if t == nil {
		return ""
	}
	return t.source
}

// Constant is the rendered text of a template that reads nothing.
func (t *Text) Constant() (string, bool) {
	if t == nil {
		return "", true
	}
	var b strings.Builder
	for _, p := range t.parts {
		if p.expr == nil {
			b.WriteString(p.literal)
			continue
		}
		v, ok := p.expr.Constant()
		if !ok {
			return "", false
		}
		b.WriteString(Format(v))
	}
	return b.String(), true
}

// Outcomes lists the texts a template may give when it is a constant or one expression of constants
// ("{{ a ? "x" : "y" }}"); open says that it may also give others. Empty outcomes are left out.
func (t *Text) Outcomes() (texts []string, open bool) {
	if s, ok := t.Constant(); ok {
		if s == "" {
			return nil, false
		}
		return []string{s}, false
	}
	if len(t.parts) != 1 {
		return nil, true
	}
	values, open := t.parts[0].expr.Outcomes()
	for _, v := range values {
		if s := Format(v); s != "" {
			texts = append(texts, s)
		}
	}
	return texts, open
}

// Names lists what the template's expressions read, sorted.
func (t *Text) Names() []string { return namesOf(t.Reads()) }

// Reads lists every name the template reads, with its place in the template; board.zone among them where a time is
// written.
func (t *Text) Reads() []Read {
	if t == nil {
		return nil
	}
	return t.reads
}

func (p part) reads() []Read {
	var reads []Read
	for _, r := range p.expr.Reads() {
		reads = append(reads, Read{Name: r.Name, Offset: p.offset + r.Offset})
	}
	if p.expr.Kind() == Time { // it is written in the board's zone
		reads = append(reads, Read{Name: "board.zone", Offset: p.offset})
	}
	return reads
}

// Exprs lists the template's expressions in order.
func (t *Text) Exprs() []*Expr {
	if t == nil {
		return nil
	}
	var out []*Expr
	for _, p := range t.parts {
		if p.expr != nil {
			out = append(out, p.expr)
		}
	}
	return out
}

// Render evaluates the template: nil is empty, times are shown in the board's zone, lists comma separated.
func (t *Text) Render(scope Scope) (string, error) {
	if t == nil {
		return "", nil
	}
	if len(t.parts) == 1 && t.parts[0].expr == nil {
		return t.parts[0].literal, nil
	}
	var b strings.Builder
	for _, p := range t.parts {
		if p.expr == nil {
			b.WriteString(p.literal)
		} else if err := p.render(&b, scope, t.source); err != nil {
			return "", err
		}
		if b.Len() > MaxString {
			return "", ErrorAt(t.source, p.offset, fmt.Sprintf("the text would be longer than %d bytes", MaxString))
		}
	}
	return b.String(), nil
}

func (p part) render(b *strings.Builder, scope Scope, source string) error {
	f := frame{scope: scope, steps: maxSteps}
	v := p.expr.code.val(&f)
	if f.failed() {
		return ErrorAt(source, p.offset+f.pos, f.message)
	}
	if n, ok := v.(float64); ok && p.expr.code.kind == Time {
		zone, err := location(fmt.Sprint(boardZone(&f)))
		if err != nil {
			zone = time.UTC
		}
		b.WriteString(formatTime(n, zone))
		return nil
	}
	format(b, v, 0)
	return nil
}
