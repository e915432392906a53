package rule

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// EXP-01: templates; absent is nothing; numbers, lists and maps are written one way; a time is written in the board's zone.
func TestRender(t *testing.T) {
	for source, want := range map[string]string{
		"plain": "plain", "": "", "{{ card.id }}: {{ card.title }}": "web-1: Füße", "[{{ payload.none }}]": "[]", "{{ card.priority + 1 }}": "4",
		"{{ params.limit }}": "2.5", "{{ card.skills }}": "go, sql", "{{ card.labels }}": "a=1, b=2, os=linux", "{{ card.parents_done }}": "true",
		"not before {{ card.created_at }}": "not before 1970-01-01 01:16 CET", `{{ "}}" }}{{ '{{' }}`: "}}{{", "{{ {a: {b: 1}}.a.b }}": "1",
		"a }} b": "a }} b", "{{card.id}}": "web-1", "{{ now }}": "2023-11-14 23:13 CET", "{{ payload.list }}": "3, 1, 2",
	} {
		text, err := CompileText(source)
		if err != nil {
			t.Errorf("%q: %v", source, err)
			continue
		}
		if got, err := text.Render(full()); got != want || err != nil {
			t.Errorf("%q renders %q (%v), want %q", source, got, err, want)
		}
	}
}

func TestTextErrors(t *testing.T) {
	for _, c := range []struct {
		source       string
		line, column int
		part         string
	}{
		{"a {{ card.id", 1, 3, "no }}"}, {"line\nand {{ crad.id }}", 2, 8, "unknown name crad"}, {"{{ }}", 1, 3, "empty"}, {"{{ card }}", 1, 4, "a record stands here"},
		{`{{ "x }}`, 1, 1, "no }}"}, {"ü {{ card.id }} {{ card.idd }}", 1, 25, "no member idd"}, {"{{ a } }}", 1, 1, "no }}"},
	} {
		_, err := CompileText(c.source)
		var at *Error
		if !errors.As(err, &at) || at.Line != c.line || at.Column != c.column || !strings.Contains(at.Message, c.part) {
			t.Errorf("%q: %v, want %d:%d %s", c.source, err, c.line, c.column, c.part)
		}
	}
	text, err := CompileText("x {{ params.word > 1 }}")
	if err != nil {
		t.Fatal(err)
	}
	var at *Error
	if _, err := text.Render(full()); !errors.As(err, &at) || at.Column != 13 {
		t.Errorf("an error while rendering: %v, want it at character 13", err)
	}
}

func TestTextOutcomes(t *testing.T) {
	for source, want := range map[string][]string{
		"todo": {"todo"}, `{{ card.due ? "a" : "b" }}`: {"a", "b"}, "{{ run.source }}": nil, `{{ card.previous ?? "todo" }}`: {"todo"}, "x{{ card.id }}": nil,
		`{{ payload.k == "d" ? "a" : payload.x ? "b" : nil }}`: {"a", "b"},
	} {
		text, err := CompileText(source)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := text.Outcomes(); !reflect.DeepEqual(got, want) {
			t.Errorf("%q may give %v, want %v", source, got, want)
		}
	}
}
