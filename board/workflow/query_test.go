package workflow

import (
	"reflect"
	"strings"
	"testing"

	"muster/board/rule"
)

// WFL-03, WFL-06: a status's own transitions come first, then the workflow's, each in the order of the file.
func TestTransitions(t *testing.T) {
	w := Default()
	ts := w.Transitions("running", "exited")
	if len(ts) != 6 || ts[0].Guard.Source() != `payload.code == 0 && profile.verdict == "exit"` || ts[1].Guard.Source() != `payload.code == 75 || payload.means == "rate_limit"` || ts[5].Guard != nil {
		t.Errorf("exited in running: %d transitions, first %q", len(ts), ts[0].Guard.Source())
	}
	if n := len(w.Transitions("done", "nonsense")); n != 0 {
		t.Errorf("an unknown event has %d transitions", n)
	}
	if n := len(w.Transitions("nowhere", "comment")); n != 1 {
		t.Errorf("in a status that is gone, an event of the whole workflow has %d transitions", n)
	}
	if t1 := w.On["heartbeat"][0]; t1.Admits("manager") || !t1.Admits("reviewer") || !w.On["exited"][0].Admits("anybody") {
		t.Error("WFL-05: by admits whom it should not, or not whom it should")
	}
}

// WFL-18, WFL-16: startable is what takes the start event; only statuses with a run spec have runs.
func TestStartableAndRun(t *testing.T) {
	w := Default()
	var startable, running []string
	for _, s := range w.Order {
		if w.Startable(s) {
			startable = append(startable, s)
		}
		if w.HasRun(s) {
			running = append(running, s)
		}
	}
	if !reflect.DeepEqual(startable, []string{"triage", "ready", "review"}) || !reflect.DeepEqual(running, []string{"specifying", "running", "reviewing"}) {
		t.Errorf("startable %v, with a run %v", startable, running)
	}
	other := overlay(t, "dispatch: {start: begin}\nstatuses: {todo: {on: {begin: [{target: ready}]}}}")
	if other.Startable("ready") || !other.Startable("todo") {
		t.Error("WFL-17: the start event's name is not taken from dispatch.start")
	}
}

// WFL-12, WFL-13: the role's expression says who plays it; not listed or nothing: the card's assignee.
func TestRoleProfile(t *testing.T) {
	w := overlay(t, "roles: {tester: 'card.title == \"a\" ? \"codex\" : \"\"', wrong: 'card.labels.x'}")
	scope := func(title, assignee string, params map[string]any) rule.Scope {
		return rule.Scope{"card": map[string]any{"title": title, "assignee": orNil(assignee), "labels": map[string]any{"x": true}}, "params": w.Params(params)}
	}
	for _, c := range []struct {
		role, title, assignee string
		params                map[string]any
		want                  string
	}{
		{"implementer", "", "codex", nil, "codex"}, {"implementer", "", "", map[string]any{"default_assignee": "claude"}, "claude"}, {"implementer", "", "", nil, ""},
		{"reviewer", "", "codex", map[string]any{"reviewer": "claude"}, "claude"}, {"reviewer", "", "codex", nil, "codex"},
		{"tester", "a", "claude", nil, "codex"}, {"tester", "b", "claude", nil, "claude"}, {"unlisted", "", "claude", nil, "claude"},
	} {
		got, err := w.RoleProfile(c.role, scope(c.title, c.assignee, c.params))
		if got != c.want || err != nil {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
	if _, err := w.RoleProfile("wrong", scope("", "", nil)); err == nil {
		t.Error("a role that gives true is taken")
	}
}

// WFL-14: a board overrides single values; names the workflow does not define are refused with a suggestion.
func TestParams(t *testing.T) {
	w := Default()
	p := w.Params(map[string]any{"review": false, "nonsense": 1})
	if p["review"] != false || p["failure_limit"] != int64(2) || p["nonsense"] != nil || w.Defaults["review"] != true {
		t.Errorf("params: %v", p)
	}
	if err := w.CheckParams(map[string]any{"reviw": true}); err == nil || !strings.Contains(err.Error(), "did you mean review?") {
		t.Errorf("an unknown parameter: %v", err)
	}
	if err := w.CheckParams(map[string]any{"review": nil}); err != nil {
		t.Error(err)
	}
}

// WFL-15, EXP-11: limits are expressions in seconds; none and zero mean no runtime, but a zero grace is one.
func TestLimits(t *testing.T) {
	w := Default()
	scope := fullScope(w, "running")
	times, err := w.Statuses["running"].Run.Limits.Values(scope)
	if err != nil {
		t.Fatal(err)
	}
	if *times.Runtime != 7 || *times.Stale != 14400 || times.Grace != 60 || *times.Lease != 600 || times.Kill != 5 || times.Leave != 120 || times.Age != nil || times.Working != nil {
		t.Errorf("limits: %+v", times)
	}
	scope["machine"].(map[string]any)["always_on"] = false
	scope["card"].(map[string]any)["max_runtime"] = int64(0)
	scope["params"] = w.Params(map[string]any{"grace": int64(0), "stale": ""})
	times, err = w.Statuses["running"].Run.Limits.Values(scope)
	if err != nil || times.Lease != nil || times.Runtime != nil || times.Stale != nil || times.Grace != 0 {
		t.Errorf("limits: %+v, %v", times, err)
	}
	for _, bad := range []any{"soon", int64(-1), true} {
		scope["params"] = w.Params(map[string]any{"grace": bad})
		if _, err := w.Statuses["running"].Run.Limits.Values(scope); err == nil {
			t.Errorf("a grace of %v is taken", bad)
		}
	}
	if s := w.Statuses["running"].Run; s.Role != "implementer" || s.Session.Source() != "worker" || len(s.Skills) != 0 || s.Prompt == nil || s.Resume == nil {
		t.Errorf("run: %+v", s)
	}
	bare := overlay(t, "statuses: {running: {run: {session: null}}}").Statuses["running"].Run
	if slot, _ := bare.Session.Constant(); slot != DefaultSlot {
		t.Errorf("a run that names no slot has %q", slot)
	}
}

// CAP-03, CAP-04, CAP-16: every key narrows, a list gives alternatives, and dispatch: true is not dispatch: [true].
func TestFilter(t *testing.T) {
	w := overlay(t, `
dispatch:
  capacity:
    - {counts: sessions, scope: fleet, where: {status: [running, reviewing], dispatch: true}, max: 1}
    - {counts: runs, scope: fleet, where: {dispatch: [true]}, max: 1}
    - {counts: runs, scope: fleet, max: 0}
`)
	caps := w.Dispatch.Capacity
	thing := func(status string, dispatch bool) func(string) any {
		return func(key string) any { return map[string]any{"status": status, "dispatch": dispatch}[key] }
	}
	if f := caps[0].Where; !f.Matches(thing("reviewing", true)) || f.Matches(thing("reviewing", false)) || f.Matches(thing("ready", true)) || !f.Dispatched() {
		t.Errorf("filter %+v", f)
	}
	if f := caps[1].Where; !f.Matches(thing("ready", true)) || f.Dispatched() {
		t.Errorf("filter %+v", f)
	}
	if f := caps[2].Where; !f.Matches(thing("x", false)) {
		t.Error("an empty filter matches everything")
	}
	if n, some, err := caps[2].Max.Number(nil); n != 0 || !some || err != nil {
		t.Error("EXP-11: a cap of 0 is a cap")
	}
}

// WFL-17, EXP-12: ordering keys, the leading minus.
func TestOrderKeys(t *testing.T) {
	keys := Default().Dispatch.Order
	if len(keys) != 3 || keys[0].Desc || !keys[1].Desc || keys[1].Expr.Source() != "card.priority" || keys[2].Expr.Source() != "card.created_at" {
		t.Errorf("order: %+v", keys)
	}
}
