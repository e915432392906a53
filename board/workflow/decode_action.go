package workflow

import (
	"muster/board/rule"
)

// actionArgs says what each action takes: nothing, an argument, or either.
var actionArgs = map[string]struct{ bare, argument bool }{
	"claim": {false, true}, "end_run": {false, true}, "record_failure": {true, true},
	ResetFailures: {true, false}, "block": {false, true}, Unblock: {true, false}, "comment": {false, true},
	"set": {false, true}, "ask": {false, true}, "send_to_actor": {false, true}, "notify": {false, true},
	"create": {false, true}, "link": {false, true}, PromoteChildren: {true, false}, StopRun: {true, false},
	CloseSession: {true, true}, ForgetSession: {true, true}, CleanupWorkspace: {true, false},
	DeclareAgent: {true, false}, EndAgents: {true, false}, "hook": {false, true},
}

func (d *decoder) actions(n *node, path string) []Action {
	var all []Action
	for i, item := range d.list(n, path) {
		if a := d.action(item, index(path, i)); a != nil {
			all = append(all, a)
		}
	}
	return all
}

func (d *decoder) action(n *node, path string) Action {
	verb, arg := "", (*node)(nil)
	switch {
	case n.kind == scalarNode && n.scalar != nil:
		verb = n.raw
	case n.kind == mapNode && len(n.entries) == 1:
		verb, arg = n.entries[0].key, n.entries[0].value
		if arg.null() {
			arg = nil
		}
	default:
		d.fail(n.pos, path, "action", "an action is its name, or one {name: argument}", "two actions are two items of the list")
		return nil
	}
	takes, ok := actionArgs[verb]
	if !ok {
		d.fail(n.pos, path, "unknown-action", "unknown action "+shown(verb)+rule.Suggest(verb, sortedNames(actionArgs)), "")
		return nil
	}
	path = join(path, verb)
	if arg == nil && !takes.bare {
		d.fail(n.pos, path, "action", verb+" takes an argument", "write {"+verb+": ...}")
		return nil
	}
	if arg != nil && !takes.argument {
		d.fail(n.pos, path, "action", verb+" takes no argument", "write "+verb)
		return nil
	}
	return d.actionOf(action{verb: verb, pos: n.pos}, arg, path)
}

func (d *decoder) actionOf(a action, arg *node, path string) Action {
	switch a.verb {
	case "claim":
		return d.claim(a, arg, path)
	case "end_run":
		return d.endRun(a, arg, path)
	case "record_failure":
		return d.recordFailure(a, arg, path)
	case "block":
		return d.block(a, arg, path)
	case "comment":
		return &Comment{a, d.template(arg, path, anywhere)}
	case "set":
		return &Set{a, d.setFields(arg, path, settableFields, anywhere)}
	case "ask":
		return d.ask(a, arg, path)
	case "send_to_actor":
		return &Send{a, d.template(arg, path, inPrompt|inAsk)}
	case "notify":
		return d.notify(a, arg, path)
	case "create":
		return d.create(a, arg, path)
	case "link":
		return d.link(a, arg, path)
	case CloseSession, ForgetSession:
		slot := defaultSlot()
		if arg != nil {
			slot = d.template(arg, path, anywhere)
		}
		return &Session{a, slot}
	case "hook":
		return &RunHook{a, d.known(arg, path, "hook", d.hooks)}
	}
	return &Plain{a}
}

// missing tells of a key that must be there.
func (d *decoder) missing(n *node, path string, keys ...string) {
	if n.kind != mapNode {
		return
	}
	for _, k := range keys {
		if v := n.get(k); v == nil || v.null() {
			d.fail(n.pos, path, "missing", k+" is missing", "")
		}
	}
}

func (d *decoder) claim(a action, n *node, path string) Action {
	c := &Claim{action: a}
	d.fields(n, path, map[string]field{
		"role": func(n *node, path string) { c.Role = d.known(n, path, "role", d.roles) },
		"ttl":  func(n *node, path string) { c.TTL = d.expr(n, path, rule.Number, anywhere) },
	})
	d.missing(n, path, "role")
	return c
}

func (d *decoder) endRun(a action, n *node, path string) Action {
	e := &EndRun{action: a}
	if n.kind == scalarNode {
		e.Outcome = d.name(n, path)
		return e
	}
	d.fields(n, path, map[string]field{
		"outcome": func(n *node, path string) { e.Outcome = d.name(n, path) },
		"keep":    func(n *node, path string) { e.Keep = d.truth(n, path) },
	})
	d.missing(n, path, "outcome")
	return e
}

func (d *decoder) recordFailure(a action, n *node, path string) Action {
	r := &RecordFailure{action: a}
	if n != nil {
		d.fields(n, path, map[string]field{
			"trip": func(n *node, path string) { r.Trip = d.truth(n, path) },
		})
	}
	return r
}

func (d *decoder) block(a action, n *node, path string) Action {
	b := &Block{action: a}
	d.fields(n, path, map[string]field{
		"kind":   func(n *node, path string) { b.Kind = d.template(n, path, anywhere) },
		"reason": func(n *node, path string) { b.Reason = d.template(n, path, anywhere) },
	})
	d.missing(n, path, "kind", "reason")
	return b
}

func (d *decoder) ask(a action, n *node, path string) Action {
	k := &Ask{action: a, As: "asked"}
	d.fields(n, path, map[string]field{
		"text":  func(n *node, path string) { k.Text = d.template(n, path, inAsk) },
		"as":    func(n *node, path string) { k.As = d.name(n, path) },
		"reset": func(n *node, path string) { k.Reset = d.expr(n, path, rule.Truth, anywhere) },
	})
	d.missing(n, path, "text")
	return k
}

func (d *decoder) notify(a action, n *node, path string) Action {
	one := func(n *node, path string) string {
		return d.oneOf(n, path, "subscribers", "creator", "dependants", "managers")
	}
	if n.kind == scalarNode {
		return &Notify{a, []string{one(n, path)}}
	}
	return &Notify{a, d.words(n, path, one)}
}

func (d *decoder) setFields(n *node, path string, allowed map[string]rule.Kind, p place) []Field {
	if n.kind != mapNode {
		d.failf(n, path, "type", "a map from a card's field to an expression is wanted here and this is %s", n.noun())
		return nil
	}
	var fields []Field
	for _, e := range n.entries {
		at := join(path, e.key)
		want, ok := allowed[e.key]
		if !ok {
			d.fail(e.pos, at, "unknown-field", "a card has no field "+shown(e.key)+" to set"+rule.Suggest(e.key, sortedNames(allowed)), "")
			continue
		}
		value := e.value
		if value.null() {
			fields = append(fields, Field{Name: e.key, Expr: d.compile(value, at, "nil", want, p)})
			continue
		}
		fields = append(fields, Field{Name: e.key, Expr: d.expr(value, at, want, p)})
	}
	return fields
}

func (d *decoder) create(a action, n *node, path string) Action {
	c := &Create{action: a}
	if n.kind != mapNode {
		d.failf(n, path, "type", "a map of the new card's fields is wanted here and this is %s", n.noun())
		return c
	}
	rest := *n
	rest.entries = nil
	p := anywhere
	for _, e := range n.entries {
		switch {
		case e.key == "each" && !e.value.null():
			c.Each = d.expr(e.value, join(path, "each"), rule.List, anywhere)
			p = inItem
		case e.key == "link" && !e.value.null():
			c.Link = d.oneOf(e.value, join(path, "link"), "before", "after")
		case e.key != "each" && e.key != "link":
			rest.entries = append(rest.entries, e)
		}
	}
	allowed := map[string]rule.Kind{}
	for _, m := range []map[string]rule.Kind{settableFields, createFields} {
		for k, v := range m {
			allowed[k] = v
		}
	}
	c.Fields = d.setFields(&rest, path, allowed, p)
	d.missing(n, path, "title")
	return c
}

func (d *decoder) link(a action, n *node, path string) Action {
	l := &Link{action: a}
	d.fields(n, path, map[string]field{
		"after":  func(n *node, path string) { l.After = d.expr(n, path, rule.Any, anywhere) },
		"before": func(n *node, path string) { l.Before = d.expr(n, path, rule.Any, anywhere) },
	})
	if n.kind == mapNode && (l.After == nil) == (l.Before == nil) {
		d.fail(n.pos, path, "action", "link takes after or before, one of them", "")
	}
	return l
}
