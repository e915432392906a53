package rule

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

// full is a scope in which everything is there.
func full() Scope {
	return Scope{
		"card": map[string]any{
			"id": "web-1", "title": "Füße", "body": "text", "priority": int64(3), "labels": map[string]any{"os": "linux", "b": int64(2), "a": int64(1)},
			"skills": []any{"go", "sql"}, "max_runtime": nil, "created_at": int64(1000), "status": "ready", "parents_done": true, "failures": 2,
		},
		"params":  map[string]any{"limit": 2.5, "empty": "", "text": "7", "word": "x", "nan": math.NaN(), "surfaces": []any{"pane", nil}},
		"payload": map[string]any{"code": int64(75), "seconds": "601", "list": []any{int64(3), int64(1), int64(2)}},
		"machine": map[string]any{"tools": []any{"git", "make"}, "always_on": true, "age": 10.5},
		"board":   map[string]any{"zone": "Europe/Berlin"},
		"now":     int64(1_700_000_000),
	}
}

func eval(t *testing.T, source string, scope Scope) any {
	t.Helper()
	e, err := Compile(source, Any)
	if err != nil {
		t.Fatalf("%s does not compile: %v", source, err)
	}
	v, err := e.Eval(scope)
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	return v
}

// EXP-01, M-23: the value model. Every line fails if the rule it names is given up.
func TestValues(t *testing.T) {
	for _, c := range []struct {
		source string
		want   any
	}{
		// absent is nil, and nil never fails
		{`card.max_runtime`, nil}, {`run.id`, nil}, {`payload.a.b.c`, nil}, {`payload["a"]`, nil}, {`card.labels[payload.none]`, nil},
		{`payload.none < 1`, false}, {`payload.none >= 0`, false}, {`1 > payload.none`, false}, {`payload.none + 1`, nil}, {`1 - payload.none`, nil},
		{`payload.none * 2 > 1`, false}, {`-payload.none`, nil}, {`not payload.none`, true}, {`payload.none || true`, true}, {`payload.none && true`, false},
		{`payload.none ? 1 : 2`, 2.0}, {`len(payload.none)`, 0.0}, {`payload.none ?? 5`, 5.0}, {`payload.none == nil`, true}, {`nil == false`, false},
		{`payload.none contains "x"`, false}, {`payload.none matches "x"`, false}, {`"x" in payload.none`, false}, {`"x" in machine.labels`, false},
		{`any(payload.none, # > 1)`, false}, {`all(payload.none, # > 1)`, true}, {`none(payload.none, # > 1)`, true}, {`count(payload.none, # > 1)`, 0.0},
		{`filter(payload.none, # > 1)`, []any{}}, {`lower(payload.none)`, nil}, {`abs(payload.none)`, nil}, {`min(payload.none, 2)`, nil}, {`max([])`, nil},
		{`card?.labels?.os`, "linux"}, {`payload.none?.x`, nil},
		// one kind of number
		{`card.priority`, 3.0}, {`card.failures + 1`, 3.0}, {`7 / 2`, 3.5}, {`7 % 4`, 3.0}, {`card.priority == 3`, true}, {`3 == 3.0`, true}, {`-0`, 0.0},
		{`payload.code == 75`, true}, {`1 in [1.0, 2]`, true}, {`payload.list[-1]`, 2.0}, {`payload.list[5]`, nil}, {`payload.list[0]`, 3.0},
		{`abs(-3)`, 3.0}, {`min(3, 1, 2)`, 1.0}, {`max(payload.list)`, 3.0}, {`+5`, 5.0}, {`1 + 2 * 3`, 7.0},
		{`payload.seconds > 600`, true}, {`payload.seconds - 1`, 600.0}, // text that is a number is parsed
		// equality is by value and kind
		{`payload.list == [3, 1, 2]`, true}, {`payload.list != [3, 1]`, true}, {`payload.code == "75"`, false}, {`{a: 1} == {a: 1.0}`, true}, {`{a: 1} == {b: 1}`, false},
		// text
		{`card.title contains "ß"`, true}, {`card.title startsWith "F"`, true}, {`card.title endsWith "e"`, true}, {`card.title matches "^F.*e$"`, true},
		{`len(card.title)`, 4.0}, {`lower("AB") + upper("cd") + trim("  e ")`, "abCDe"}, {`"a" < "b"`, true}, {`card.title not in ["x"]`, true},
		// lists and maps
		{`"git" in machine.tools && card.labels.os == "linux"`, true}, {`"os" in card.labels`, true}, {`any(machine.tools, # == "make")`, true},
		{`all(payload.list, # > 0)`, true}, {`none(payload.list, # > 2)`, false}, {`count(payload.list, # >= 2)`, 2.0}, {`count([true, false, nil])`, 1.0},
		{`filter(payload.list, # > 1)`, []any{int64(3), int64(2)}}, {`filter(payload.list, #index == 1)`, []any{int64(1)}}, {`len(card.labels)`, 3.0},
		{`any([{k: 1}], .k == 1)`, true}, {`filter(card.labels, # != "linux")`, []any{int64(1), int64(2)}}, // a map's values in key order
		// choice
		{`card.parents_done ? "a" : "b"`, "a"}, {`(payload.none ?? 0) + 1`, 1.0}, {`false && payload.code`, false}, {`not (card.priority == 3)`, false},
	} {
		if got := eval(t, c.source, full()); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s gives %v (%T), want %v", c.source, got, got, c.want)
		}
	}
}

// EXP-10: guards and validators tolerate that whole parts of the scope are missing.
func TestEmptyScope(t *testing.T) {
	for _, source := range []string{
		`host.memory_pressure != "critical" && tick.local_started < 1`, `card.run == nil`, `any(machine.tools, # == "git")`, `card.blocks[payload.kind] ?? 0`,
		`now - run.started_at > 5`, `profile.capacity ?? params.x`, `"x" in params.surfaces`,
	} {
		for _, scope := range []Scope{nil, {}, {"card": nil, "host": nil, "payload": nil, "machine": nil, "params": nil, "run": nil}} {
			eval(t, source, scope)
		}
	}
}

// EXP-01: a missing guard holds; nil is no truth; what is neither true, false nor nil is refused.
func TestHolds(t *testing.T) {
	var missing *Expr
	if ok, err := missing.Holds(nil); !ok || err != nil {
		t.Errorf("a missing guard: %v, %v; want it to hold", ok, err)
	}
	for source, want := range map[string]bool{`payload.none`: false, `card.parents_done`: true, `not card.parents_done`: false, `payload.code == 75`: true, `params.surfaces == nil`: false} {
		e, err := Compile(source, Truth)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := e.Holds(full()); ok != want || err != nil {
			t.Errorf("%s holds: %v, %v; want %v", source, ok, err, want)
		}
	}
	e, err := Compile(`payload.code`, Truth)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Holds(full()); err == nil || !strings.Contains(err.Error(), "true or false is wanted and this is 75") {
		t.Errorf("a guard that gives 75: %v", err)
	}
}

// EXP-11: nil and empty text mean none; text is parsed; zero is a number; everything else is refused.
func TestNumber(t *testing.T) {
	for source, want := range map[string]struct {
		n    float64
		some bool
		bad  bool
	}{
		`params.none`: {}, `params.empty`: {}, `params.text`: {7, true, false}, `params.limit`: {2.5, true, false}, `0`: {0, true, false},
		`nil`: {}, `params.word`: {bad: true}, `params.nan`: {bad: true}, `params.surfaces`: {bad: true}, `params.limit / 0`: {bad: true},
	} {
		e, err := Compile(source, Number)
		if err != nil {
			t.Fatal(err)
		}
		n, some, err := e.Number(full())
		if n != want.n || some != want.some || (err != nil) != want.bad {
			t.Errorf("%s: %v %v %v, want %+v", source, n, some, err, want)
		}
	}
	for _, text := range []string{"NaN", "Inf", "-inf", "1e999"} {
		e, _ := Compile(`params.x`, Number)
		if _, some, err := e.Number(Scope{"params": map[string]any{"x": text}}); some || err == nil {
			t.Errorf("the text %s became a number", text)
		}
	}
}

// EXP-12: an absent key sorts first, numbers by value whatever their Go type, and the order is total.
func TestCompare(t *testing.T) {
	sorted := []any{nil, false, true, int64(-1), 0.5, int64(2), 2.5, "", "a", "b", []any{}}
	for i, a := range sorted {
		for j, b := range sorted {
			if got, want := sign(Compare(a, b)), sign(i-j); got != want {
				t.Errorf("Compare(%v, %v) = %d, want %d", a, b, got, want)
			}
		}
	}
	if Compare(int64(2), 2.0) != 0 || Compare(math.NaN(), nil) != 0 {
		t.Error("2 and 2.0 are one number, and NaN sorts as absent")
	}
}

func sign(n int) int { return compareNumbers(float64(n), 0) }

// EXP-02..08, WFL-14: names and members of the scope are checked when compiling, with a place and a suggestion.
func TestCompileErrors(t *testing.T) {
	for _, c := range []struct {
		source string
		want   Kind
		line   int
		column int
		part   string
	}{
		{`card.titel == "x"`, Truth, 1, 6, "card has no member titel; did you mean title?"},
		{`crad.title`, Any, 1, 1, "unknown name crad; did you mean card?"},
		{"card.title == \"x\" ||\n  host.memory == 1", Truth, 2, 8, "host has no member memory"},
		{`tick.started`, Any, 1, 6, "tick has no member started"}, {`actor.id`, Any, 1, 7, "actor has no member id"},
		{`run.foo`, Any, 1, 5, "run has no member foo"}, {`machine.cpu`, Any, 1, 9, "machine has no member cpu"}, {`board.x`, Any, 1, 7, "board has no member x"},
		{`card[payload.k]`, Any, 1, 5, "card is read by the name of a member"}, {`card`, Any, 1, 1, "a record stands here"},
		{`card.title > 3`, Truth, 1, 6, "> takes numbers and card.title is text"}, {`card.title == 3`, Truth, 1, 12, "never equal"},
		{`not card.status == "x"`, Truth, 1, 1, "card.status is text, and not takes true or false; not binds closer than =="},
		{`not card.due == "x"`, Truth, 1, 14, "not binds closer than =="},
		{`card.title && true`, Truth, 1, 6, "true or false is wanted"}, {`card.priority`, Truth, 1, 6, "a truth is wanted here and this gives a number"},
		{`card.title`, Number, 1, 6, "a number is wanted here and this gives text"}, {`"x" in card.title`, Truth, 1, 5, "card.title contains"},
		{`1 in card.skills`, Any, 0, 0, ""}, {`1 in ["a"]`, Any, 1, 3, "can never be"}, {`card.title.x`, Any, 1, 12, "has no members"},
		{`len(`, Any, 1, 4, "ends too early"}, {`a = 1`, Any, 1, 3, "compare with =="}, {``, Any, 1, 1, "empty"}, {`1 +`, Any, 1, 3, "ends too early"},
		{`len(1)`, Any, 1, 5, "len takes a list"}, {`abs()`, Any, 1, 1, "one argument"}, {`foo(1)`, Any, 1, 1, "unknown function foo"}, {`lenn(card.title)`, Any, 1, 1, "did you mean len?"},
		{`map(payload.list, #)`, Any, 1, 1, "unknown function map"}, {`now()`, Any, 1, 1, "unknown function now"}, {`card.title.len()`, Any, 1, 12, "no methods"},
		{`any(payload.list, any(#, # > 1))`, Any, 1, 19, "inside another predicate"}, {`any(payload.list, # && let x = 1; x)`, Any, 1, 24, ""},
		{`let x = 1; x`, Any, 1, 5, "let and ; are not available"}, {`1; 2`, Any, 1, 1, "let and ;"}, {`payload.list[0:1]`, Any, 1, 13, "slices"}, {`1..5`, Any, 1, 2, "not available"},
		{`2 ** 3`, Any, 1, 3, "not available"}, {`card.title matches payload.p`, Any, 1, 12, "constant pattern"}, {`card.title matches "("`, Any, 1, 20, "pattern"},
		{`1 / 0`, Any, 1, 3, "is no number"}, {`next("25:00")`, Any, 1, 6, "no time of day"}, {`next("02:00", "Nowhere/Land")`, Any, 1, 15, "no time zone"}, {`#`, Any, 1, 1, ""},
		{`if true { 1 } else { 2 }`, Any, 1, 4, ""}, {`{(card.title): 1}`, Any, 1, 1, "constant name"}, {`b"x"`, Any, 1, 1, ""},
	} {
		if c.part == "" && c.line == 0 {
			continue
		}
		_, err := Compile(c.source, c.want)
		var at *Error
		if !errors.As(err, &at) {
			t.Errorf("%s: no error", c.source)
			continue
		}
		if at.Line != c.line || at.Column != c.column || !strings.Contains(at.Message, c.part) {
			t.Errorf("%s: %d:%d %q, want %d:%d %q", c.source, at.Line, at.Column, at.Message, c.line, c.column, c.part)
		}
	}
}

// What only shows when it is evaluated is an error with a place, never a panic (invariant 27).
func TestEvalErrors(t *testing.T) {
	for source, part := range map[string]string{
		`params.word > 3`: `a number is wanted and this is "x" (character 8)`, `params.word + params.limit`: "two numbers or two texts", `params.nan`: "NaN is no number",
		`len(payload.code)`: "this is 75", `any(payload.code, # == 1)`: "a list is wanted", `lower(payload.code)`: "text is wanted", `payload.x`: "no value of an expression",
		`params.limit / 0`: "is no number", `"x" in payload.code`: "a list or a map", `payload.code && true`: "true or false is wanted",
	} {
		e, err := Compile(source, Any)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		scope := full()
		scope["payload"].(map[string]any)["x"] = struct{}{}
		if _, err := e.Eval(scope); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v, want %q", source, err, part)
		}
	}
}

func TestNamesOutcomesConstants(t *testing.T) {
	e, err := Compile(`params.merge ? "merging" : card.previous ?? "done"`, String)
	if err != nil {
		t.Fatal(err)
	}
	if got := e.Names(); !reflect.DeepEqual(got, []string{"card.previous", "params.merge"}) {
		t.Errorf("names: %v", got)
	}
	if got, open := e.Outcomes(); !reflect.DeepEqual(got, []any{"merging", "done"}) || !open {
		t.Errorf("outcomes: %v %v", got, open)
	}
	for source, want := range map[string]any{`1 + 1 == 2`: true, `false && card.due`: false, `card.due || true`: true, `true ? 3 : card.priority`: 3.0, `nil ?? "x"`: "x"} {
		e, err := Compile(source, Any)
		if err != nil {
			t.Fatal(err)
		}
		if v, ok := e.Constant(); !ok || v != want {
			t.Errorf("%s is constant %v (%v), want %v", source, v, ok, want)
		}
	}
	guard, err := Compile(`card.run == nil && card.status in ["triage", "ready"]`, Truth)
	if err != nil {
		t.Fatal(err)
	}
	for status, constant := range map[string]bool{"done": true, "ready": false} {
		v, ok := guard.With(map[string]any{"card.status": status}).Constant()
		if ok != constant || ok && v != false {
			t.Errorf("in %s the guard is %v (constant %v)", status, v, ok)
		}
	}
}
