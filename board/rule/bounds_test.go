package rule

import (
	"strings"
	"testing"
)

// Invariant 27: whatever is written, compiling ends with an error or an expression; the sizes bound the work.
func TestNastySources(t *testing.T) {
	deep := func(open, middle, shut string, n int) string {
		return strings.Repeat(open, n) + middle + strings.Repeat(shut, n)
	}
	for name, source := range map[string]string{
		"parentheses": deep("(", "1", ")", 510), "lists": deep("[", "1", "]", 500), "maps": deep("{a:", "1", "}", 250), "nots": deep("not ", "true", "", 250),
		"minus": deep("-", "1", "", 1000), "members": "payload" + strings.Repeat(".a", 500), "choices": deep("true ? ", "1", " : 2", 60), "sums": "1" + strings.Repeat("+1", 500),
		"long": strings.Repeat("a", 1<<20), "calls": deep("abs(", "1", ")", 250), "quotes": strings.Repeat(`"`, 1001), "bytes": "\xff\xfe\x00", "zero": "\x00",
		"regexp": `card.title matches "` + strings.Repeat("(a{999})", 100) + `"`, "hash": strings.Repeat("#", 1000), "number": strings.Repeat("9", 1000), "float": "1e999",
		"hex": "0x" + strings.Repeat("f", 500), "comment": "/*" + strings.Repeat("*", 900), "pipe": "1" + strings.Repeat("|abs()", 100), "chain": "card" + strings.Repeat("?.a", 300),
		"shared": deep("(1<(1<", "card.priority", "<1?1:2)<1?1:2)", 30), "compare": "1" + strings.Repeat("<1", 400),
	} {
		if e, err := Compile(source, Any); err == nil && e.Cost() > maxSteps {
			t.Errorf("%s compiles with a cost of %d", name, e.Cost())
		}
		if _, err := CompileText("{{" + source + "}}"); err == nil && len(source) > MaxSource {
			t.Errorf("%s compiles as a template", name)
		}
	}
	if _, err := Compile("1"+strings.Repeat("+1", maxNodes), Any); err == nil || !strings.Contains(err.Error(), "parts") {
		t.Errorf("an expression of %d additions: %v", maxNodes, err)
	}
	if _, err := Compile(deep("(1<", "card.priority", "<1?1:2)", 16), Any); err == nil || !strings.Contains(err.Error(), "too often") {
		t.Errorf("shared parts: %v", err)
	}
	expensive := "any(payload.x, " + strings.TrimSuffix(strings.Repeat("# > 1 or ", 40), " or ") + ")"
	if _, err := Compile(expensive, Any); err == nil || !strings.Contains(err.Error(), "too expensive") {
		t.Errorf("a predicate of 120 nodes over %d items: %v", MaxItems, err)
	}
}

// Inputs are bounded: what is too large is an error of the evaluation, at once.
func TestNastyScopes(t *testing.T) {
	long := strings.Repeat("x", MaxString+1)
	half := strings.Repeat("x", MaxString/2+1)
	list := make([]any, MaxItems+1)
	nested := any("x")
	for range 1000 {
		nested = []any{nested}
	}
	scope := Scope{"payload": map[string]any{"long": long, "half": half, "list": list, "nested": nested, "texts": manyOf(half, 5000)}}
	for source, part := range map[string]string{
		`payload.long contains "y"`: "longer than", `payload.half + payload.half`: "longer than", `any(payload.list, # == 1)`: "more than 10000",
		`1 in payload.list`: "more than 10000", `payload.nested == payload.nested`: "nested deeper", `any(payload.texts, # contains "y")`: "steps",
		`count(payload.texts, # == payload.half)`: "steps", `any(payload.texts, # matches "(x+)+y")`: "steps", `max(payload.list)`: "more than",
	} {
		e, err := Compile(source, Any)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Eval(scope); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v, want %q", source, err, part)
		}
	}
	text, err := CompileText(strings.Repeat("{{ payload.half }}", 3))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := text.Render(scope); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("a rendered text of %d bytes: %v", 3*len(half), err)
	}
	if got := Format(nested); len(got) > 100 {
		t.Errorf("a deep list prints %d bytes", len(got))
	}
}

func manyOf(s string, n int) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = s
	}
	return list
}

func FuzzExpr(f *testing.F) {
	for _, s := range []string{`card.priority + 1 > 2 && "a" in card.skills`, `any(payload.list, # > 1)`, `next("02:00", board.zone)`, `{a: [1]}.a[0] ?? nil`, `-card.failures`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		e, err := Compile(source, Any)
		if err != nil {
			return
		}
		for _, scope := range []Scope{nil, full()} {
			a, errA := e.Eval(scope)
			b, errB := e.Eval(scope)
			if (errA == nil) != (errB == nil) || errA == nil && Format(a) != Format(b) {
				t.Errorf("%q is %v (%v), then %v (%v)", source, a, errA, b, errB)
			}
			if v, constant := e.Constant(); constant && errA == nil && Format(v) != Format(a) {
				t.Errorf("%q is constant %v and evaluates to %v", source, v, a)
			}
			_, _, _ = e.Number(scope)
			e.Thresholds(scope)
		}
	})
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"a {{ card.id }} b", "{{ '}}' }}", "{{ {a: 1}.a }}", "}}{{"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		text, err := CompileText(source)
		if err != nil {
			return
		}
		out, err := text.Render(full())
		if s, constant := text.Constant(); constant && err == nil && s != out {
			t.Errorf("%q is constant %q and renders %q", source, s, out)
		}
	})
}

func BenchmarkHolds(b *testing.B) {
	e, err := Compile(`machine.always_on && payload.seconds > params.limit && card.status in ["ready", "todo"]`, Truth)
	if err != nil {
		b.Fatal(err)
	}
	scope := full()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Holds(scope); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEval(b *testing.B) {
	e, err := Compile(`card.priority * 2 + card.created_at`, Number)
	if err != nil {
		b.Fatal(err)
	}
	scope := full()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Eval(scope); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compile(`machine.always_on && payload.seconds > params.limit && card.status in ["ready", "todo"]`, Truth); err != nil {
			b.Fatal(err)
		}
	}
}
