package board

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// BRD-16, M-22: an edit says which fields count at once and which with the next run; without a run all do at once. What it
// says is so: the run keeps what it was claimed with.
func TestEditSaysWhatCountsWhen(t *testing.T) {
	f := newFleet(t)
	card := f.card("x")
	edit := func(x CardFields) map[string]any {
		t.Helper()
		return f.must(f.person(VCardEdit), CardEdit{Card: card, CardFields: x})
	}
	model, ten, hour := "large", int64(10), int64(3600)
	if out := edit(CardFields{Model: &model, Priority: &ten}); !reflect.DeepEqual(out, map[string]any{"id": card, "now": []any{"model", "priority"}}) {
		t.Errorf("without a run: %v", out)
	}
	run := f.launched(card)
	before := GetRun(f.v, run)
	other := "small"
	out := edit(CardFields{Model: &other, MaxRuntime: &hour, Priority: &ten, Labels: map[string]string{"a": "b"}})
	if !reflect.DeepEqual(out, map[string]any{"id": card, "run": run, "now": []any{"priority", "labels"}, "next_run": []any{"model", "max_runtime"}}) {
		t.Errorf("with a run: %v", out)
	}
	if r := GetRun(f.v, run); r.Model != before.Model || r.Runtime != before.Runtime {
		t.Errorf("the run under way changed: %+v", r)
	}
	if c := GetCard(f.v, card); c.Model != other || c.Labels["a"] != "b" {
		t.Errorf("%+v", c)
	}
}

// BRD-16: every field that an edit takes is told of.
func TestEditTellsOfEveryField(t *testing.T) {
	var all CardFields
	v := reflect.ValueOf(&all).Elem()
	var want []string
	for i := range v.NumField() {
		if v.Field(i).Kind() == reflect.Map {
			v.Field(i).Set(reflect.MakeMap(v.Field(i).Type()))
		} else {
			v.Field(i).Set(reflect.New(v.Field(i).Type().Elem()))
		}
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		want = append(want, name)
	}
	now, next := all.takesEffect()
	got := slices.Concat(now, next)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("told of %v, there are %v", got, want)
	}
}
