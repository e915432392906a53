package workflow

import (
	"muster/board/rule"
)

func (d *decoder) status(name string, n *node, path string) *Status {
	s := &Status{Pos: n.pos, Name: name, On: map[string][]*Transition{}}
	d.fields(n, path, map[string]field{
		"stored_as": func(n *node, path string) { s.StoredAs = d.oneOf(n, path, storedNames...) },
		"enter":     func(n *node, path string) { s.Enter = d.actions(n, path) },
		"run":       func(n *node, path string) { s.Run = d.run(n, path) },
		"on":        func(n *node, path string) { s.On = d.events(n, path) },
	})
	if v := n.get("stored_as"); n.kind == mapNode && (v == nil || v.null()) {
		d.fail(n.pos, path, "missing", "stored_as is missing", "say what the status counts as: one of triage, todo, ready, running, blocked, review, done, cancelled, archived")
	}
	return s
}

func (d *decoder) events(n *node, path string) map[string][]*Transition {
	on := map[string][]*Transition{}
	d.each(n, path, "event", func(event string, n *node, path string) {
		ts := []*Transition{}
		for i, item := range d.list(n, path) {
			ts = append(ts, d.transition(event, item, index(path, i)))
		}
		on[event] = ts
	})
	return on
}

func (d *decoder) transition(event string, n *node, path string) *Transition {
	t := &Transition{Pos: n.pos, Path: path, Event: event}
	if d.steps++; d.steps == maxTransitions+1 {
		d.failf(n, path, "size", "there are more than %d transitions", maxTransitions)
	}
	d.fields(n, path, map[string]field{
		"by": func(n *node, path string) {
			t.By = d.words(n, path, func(n *node, path string) string { return d.known(n, path, "role", d.roles) })
			if len(t.By) == 0 && n.kind == listNode {
				d.fail(n.pos, path, "by", "an empty list admits anyone", "leave the key out if that is meant")
			}
		},
		"guard":      func(n *node, path string) { t.Guard = d.expr(n, path, rule.Truth, anywhere) },
		"target":     func(n *node, path string) { t.Target = d.target(n, path) },
		"do":         func(n *node, path string) { t.Do = d.actions(n, path) },
		"validators": func(n *node, path string) { t.Validators = d.validators(n, path) },
	})
	return t
}

// Named checks that a validator can be.
var checkNames = []string{"respawn_guard"}

func (d *decoder) validators(n *node, path string) []Validator {
	var all []Validator
	for i, item := range d.list(n, path) {
		at := index(path, i)
		v := Validator{Pos: item.pos}
		if item.kind == scalarNode {
			v.Check = d.oneOf(item, at, checkNames...)
			all = append(all, v)
			continue
		}
		d.fields(item, at, map[string]field{
			"when":   func(n *node, path string) { v.When = d.expr(n, path, rule.Truth, anywhere) },
			"refuse": func(n *node, path string) { v.Refuse = d.template(n, path, anywhere) },
		})
		if item.kind == mapNode && (item.get("when") == nil || item.get("refuse") == nil) {
			d.fail(item.pos, at, "missing", "a validator is a named check, or both when and refuse", "refuse is the reason people see")
		}
		all = append(all, v)
	}
	return all
}

func (d *decoder) run(n *node, path string) *RunSpec {
	r := &RunSpec{Pos: n.pos, Session: defaultSlot()}
	d.fields(n, path, map[string]field{
		"role":    func(n *node, path string) { r.Role = d.name(n, path) },
		"session": func(n *node, path string) { r.Session = d.template(n, path, anywhere) },
		"skills": func(n *node, path string) {
			r.Skills = d.words(n, path, func(n *node, path string) string { return d.word(n, path) })
		},
		"prompt": func(n *node, path string) { r.Prompt = d.template(n, path, inPrompt) },
		"resume": func(n *node, path string) { r.Resume = d.template(n, path, inPrompt) },
		"limits": func(n *node, path string) { r.Limits = d.limits(n, path) },
	})
	if v := n.get("role"); n.kind == mapNode && (v == nil || v.null()) {
		d.fail(n.pos, path, "missing", "a run has no role", "write role: implementer, or another name; roles: says which profile plays it")
	}
	return r
}

func defaultSlot() *rule.Text {
	t, err := rule.CompileText(DefaultSlot)
	if err != nil {
		panic(err) // a constant without {{: cannot be
	}
	return t
}

func (d *decoder) limits(n *node, path string) Limits {
	var l Limits
	into := func(e **rule.Expr) field {
		return func(n *node, path string) {
			*e = d.expr(n, path, rule.Number, anywhere)
			if v, ok := (*e).Constant(); ok && rule.Compare(v, 0.0) < 0 && v != nil {
				d.failf(n, path, "value", "a limit is not negative")
			}
		}
	}
	d.fields(n, path, map[string]field{
		"runtime": into(&l.Runtime), "working": into(&l.Working), "age": into(&l.Age), "stale": into(&l.Stale),
		"grace": into(&l.Grace), "lease": into(&l.Lease), "kill": into(&l.Kill), "leave": into(&l.Leave),
	})
	return l
}

func (d *decoder) breaker(n *node, path string) *Breaker {
	b := &Breaker{Pos: n.pos}
	d.fields(n, path, map[string]field{
		"limit":  func(n *node, path string) { b.Limit = d.expr(n, path, rule.Number, anywhere) },
		"target": func(n *node, path string) { b.Target = d.known(n, path, "status", d.statuses) },
		"kind":   func(n *node, path string) { b.Kind = d.name(n, path) },
	})
	if n.kind == mapNode && (b.Limit == nil || b.Target == "") {
		d.fail(n.pos, path, "missing", "a breaker has a limit and a target", "")
	}
	return b
}
