package workflow

import (
	"reflect"
	"strings"
	"testing"

	"muster/board/rule"
)

// everything collects the compiled expressions and templates of a workflow, wherever they stand.
func everything(w *Workflow) (exprs []*rule.Expr, texts []*rule.Text) {
	seen := map[uintptr]bool{}
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			if v.IsNil() || seen[v.Pointer()] {
				return
			}
			seen[v.Pointer()] = true
			if v.CanInterface() {
				switch x := v.Interface().(type) {
				case *rule.Expr:
					exprs = append(exprs, x)
					return
				case *rule.Text:
					texts = append(texts, x)
					return
				}
			}
			walk(v.Elem())
		case reflect.Interface:
			if !v.IsNil() {
				walk(v.Elem())
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					walk(v.Field(i))
				}
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.Map:
			for _, k := range v.MapKeys() {
				walk(v.MapIndex(k))
			}
		}
	}
	walk(reflect.ValueOf(w))
	return exprs, texts
}

// fullScope has a value of the right kind for everything the scope documents.
func fullScope(w *Workflow, status string) rule.Scope {
	card := map[string]any{}
	for _, m := range rule.Members("card") {
		card[m] = "x"
	}
	for _, m := range strings.Fields("priority max_runtime max_retries goal_max_turns start_after created_at updated_at entered_at started_at subtasks_open runs failures") {
		card[m] = int64(7)
	}
	for _, m := range strings.Fields("goal_mode finished parents_done due session_live") {
		card[m] = true
	}
	card["status"], card["stored"], card["labels"] = status, w.StoredAs(status), map[string]any{"a": "b"}
	card["blocks"], card["skills"] = map[string]any{"needs_input": int64(1)}, []any{"go"}
	machine := map[string]any{"id": "n", "name": "atlas", "labels": map[string]any{"os": "linux"}, "tools": []any{"git"}, "always_on": true, "online": true, "age": 1.5}
	return rule.Scope{
		"card": card, "params": w.Params(map[string]any{"reviewer": "claude", "max_running": int64(3)}), "machine": machine, "now": int64(1_800_000_000),
		"payload": map[string]any{
			"triage": true, "code": int64(0), "seconds": 700.0, "turns": int64(3), "worked": true, "waiting": false, "closed": false, "means": "crash", "kind": "needs_input",
			"reason": "r", "summary": "s", "text": "t", "why": "w", "title": "t", "body": "b", "assignee": "codex", "error": "e", "never_came_up": false, "losses": int64(1),
			"resume_failed": true, "refused": false, "session_id": "s", "slot": "worker", "children": []any{map[string]any{"title": "a", "body": "b", "profile": "codex"}},
		},
		"actor": map[string]any{"kind": "person", "role": "manager", "name": "ada@atlas"}, "profile": w.Profile("claude").Scope(),
		"run":  map[string]any{"id": "web-1.2", "role": "implementer", "slot": "worker", "surface": "pane", "machine": "atlas", "source": "ready", "outcome": "crashed", "started_at": int64(5)},
		"host": map[string]any{"memory_pressure": "elevated", "slots": int64(4), "load": 0.5, "free_mb": int64(900)}, "tick": map[string]any{"local_started": int64(1)},
		"board": map[string]any{"id": "web", "zone": "Europe/Berlin"}, "item": map[string]any{"title": "a", "body": "b", "profile": "codex"},
		"context": "c", "arc_context": "a", "doors": "d", "where": "w", "news": "n", "session": map[string]any{"id": "u"}, "prompt": "p", "brief": "/b",
	}
}

// EXP-01, EXP-10, M-23: every expression and template of the default workflow and of the presets has a value on an
// empty scope, on one whose every variable is nil, and on a full one in every status.
func TestEveryExpressionEvaluates(t *testing.T) {
	w := Default()
	exprs, texts := everything(w)
	if len(exprs) < 80 || len(texts) < 120 {
		t.Fatalf("only %d expressions and %d templates found", len(exprs), len(texts))
	}
	null := rule.Scope{}
	for _, name := range rule.ScopeNames() {
		if !strings.Contains(name, ".") {
			null[name] = nil
		}
	}
	scopes := []rule.Scope{nil, {}, null, {"card": map[string]any{}, "params": map[string]any{}, "payload": map[string]any{}, "run": map[string]any{}, "machine": map[string]any{}}}
	for _, status := range w.Order {
		scopes = append(scopes, fullScope(w, status))
	}
	for i, scope := range scopes {
		for _, e := range exprs {
			v, err := e.Eval(scope)
			if err != nil {
				t.Errorf("scope %d: %s: %v", i, e.Source(), err)
			}
			if again, _ := e.Eval(scope); !reflect.DeepEqual(v, again) {
				t.Errorf("scope %d: %s is %v, then %v", i, e.Source(), v, again)
			}
			e.Thresholds(scope)
		}
		for _, x := range texts {
			if _, err := x.Render(scope); err != nil {
				t.Errorf("scope %d: %q: %v", i, x.Source(), err)
			}
		}
	}
	t.Logf("%d expressions, %d templates, %d scopes", len(exprs), len(texts), len(scopes))
}

// What the default workflow means where the scope is empty: nothing starts by accident, nothing counts as done.
func TestDefaultOnEmptyScope(t *testing.T) {
	w := Default()
	for where, want := range map[string]bool{
		"triage start": false, "todo promote": false, "review start": false, "done session_lost": false, "ready machine_offline": false, "ready adopt": false,
	} {
		status, event, _ := strings.Cut(where, " ")
		ok, err := w.Transitions(status, event)[0].Guard.Holds(nil)
		if ok != want || err != nil {
			t.Errorf("%s on an empty scope: %v, %v", where, ok, err)
		}
	}
	if s, err := w.Initial.Render(nil); s != "todo" || err != nil {
		t.Errorf("a card nothing is known of begins in %q (%v)", s, err)
	}
	if p, err := w.RoleProfile("implementer", nil); p != "" || err != nil {
		t.Errorf("nobody is assigned and the role gives %q (%v)", p, err)
	}
}

// WFL-01, WFL-03, WFL-04: the embedded default workflow loads with nothing to say.
func TestDefaultIsClean(t *testing.T) {
	w, report := Load(DefaultSource(), nil)
	if w == nil || len(report.Findings) != 0 {
		t.Fatal(report)
	}
	for _, f := range Lint(w) {
		t.Error(f)
	}
	if got := strings.Join(w.Order, " "); got != "triage specifying todo ready running review reviewing merging blocked done cancelled archived" {
		t.Errorf("statuses: %s", got)
	}
	for status, stored := range map[string]string{"specifying": "running", "merging": "review", "done": "done"} {
		if w.StoredAs(status) != stored {
			t.Errorf("%s is stored as %s", status, w.StoredAs(status))
		}
	}
	for _, e := range PlatformEvents {
		taken := false
		for _, s := range w.Order {
			taken = taken || len(w.Transitions(s, e)) > 0
		}
		if !taken {
			t.Errorf("no transition takes %s", e)
		}
	}
}

// The numbers of hermes.md stand in the default workflow.
func TestDefaultNumbers(t *testing.T) {
	p := Default().Params(nil)
	for name, want := range map[string]int64{
		"failure_limit": 2, "block_limit": 2, "rate_limit_cooldown": 300, "guard_success": 3600, "guard_pr": 86400, "stale": 14400, "goal_max_turns": 20, "auto_decompose_starts": 3,
	} {
		if p[name] != want {
			t.Errorf("%s is %v, want %d", name, p[name], want)
		}
	}
	c := Default().Transitions("ready", "start")[0].Do[0].(*Claim)
	if n, _, err := c.TTL.Number(nil); n != 900 || err != nil {
		t.Errorf("a claim lasts %v s (%v)", n, err)
	}
}
