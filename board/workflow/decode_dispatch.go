package workflow

import (
	"strings"

	"muster/board/rule"
)

// defaultDescription stands in a reason when a cap has none of its own.
const defaultDescription = "a cap without a description"

func (d *decoder) dispatch(n *node, path string) Dispatch {
	x := Dispatch{}
	d.fields(n, path, map[string]field{
		"start":    func(n *node, path string) { x.Start = d.name(n, path) },
		"eligible": func(n *node, path string) { x.Eligible = d.expr(n, path, rule.Truth, anywhere) },
		"order": func(n *node, path string) {
			for i, item := range d.list(n, path) {
				x.Order = append(x.Order, d.orderKey(item, index(path, i)))
			}
		},
		"capacity": func(n *node, path string) {
			for i, item := range d.list(n, path) {
				x.Capacity = append(x.Capacity, d.cap(item, index(path, i)))
			}
		},
	})
	return x
}

// orderKey: a leading - means descending, of any kind of value; the rest is the expression.
func (d *decoder) orderKey(n *node, path string) OrderKey {
	if n.kind != scalarNode {
		return OrderKey{Expr: d.expr(n, path, rule.Any, anywhere)}
	}
	source, desc := strings.CutPrefix(strings.TrimSpace(n.raw), "-")
	return OrderKey{Expr: d.compile(n, path, source, rule.Any, anywhere), Desc: desc}
}

func (d *decoder) cap(n *node, path string) Cap {
	c := Cap{Pos: n.pos, Description: defaultDescription}
	d.fields(n, path, map[string]field{
		"description": func(n *node, path string) { c.Description = d.word(n, path) },
		"counts": func(n *node, path string) {
			c.Counts = d.oneOf(n, path, "runs", "cards", "sessions", "turns", "starts")
		},
		"scope": func(n *node, path string) {
			c.Scope = d.oneOf(n, path, "fleet", "board", "machine", "assignee", "harness", "model", "card")
		},
		"where":   func(n *node, path string) { c.Where = d.filter(n, path) },
		"unless":  func(n *node, path string) { c.Unless = d.filter(n, path) },
		"max":     func(n *node, path string) { c.Max = d.expr(n, path, rule.Number, anywhere) },
		"reserve": func(n *node, path string) { c.Reserve = d.reserve(n, path) },
	})
	d.missing(n, path, "counts", "scope")
	return c
}

func (d *decoder) reserve(n *node, path string) *Reserve {
	r := &Reserve{}
	d.fields(n, path, map[string]field{
		"for":   func(n *node, path string) { r.For = d.filter(n, path) },
		"slots": func(n *node, path string) { r.Slots = d.expr(n, path, rule.Number, anywhere) },
	})
	d.missing(n, path, "for", "slots")
	return r
}

func (d *decoder) filter(n *node, path string) Filter {
	filter := Filter{}
	one := func(key string) field {
		return func(n *node, path string) {
			m := Match{Key: key, List: n.kind == listNode}
			items := []*node{n}
			if m.List {
				items = n.items
				if len(items) == 0 {
					d.failf(n, path, "value", "an empty list matches nothing")
				}
			}
			for _, item := range items {
				m.Any = append(m.Any, d.filterValue(key, item, path))
			}
			filter = append(filter, m)
		}
	}
	known := map[string]field{}
	for _, key := range []string{"card", "board", "machine", "assignee", "status", "stored", "model", "harness", "slot", "dispatch"} {
		known[key] = one(key)
	}
	d.fields(n, path, known)
	return filter
}

func (d *decoder) filterValue(key string, n *node, path string) any {
	switch key {
	case "dispatch":
		return d.truth(n, path)
	case "status":
		return d.known(n, path, "status", d.statuses)
	case "stored":
		return d.oneOf(n, path, storedNames...)
	case "harness":
		return d.known(n, path, "harness", d.harnesses)
	case "assignee":
		return d.known(n, path, "profile", d.profiles)
	}
	return d.word(n, path)
}

func (d *decoder) hook(name string, n *node, path string) *Hook {
	h := &Hook{Pos: n.pos, Name: name}
	d.fields(n, path, map[string]field{
		"run":     func(n *node, path string) { h.Run = d.argv(n, path, anywhere) },
		"env":     func(n *node, path string) { h.Env = d.env(n, path, anywhere) },
		"timeout": func(n *node, path string) { h.Timeout = d.expr(n, path, rule.Number, anywhere) },
	})
	d.missing(n, path, "run")
	return h
}

// argv is a list of templates, not empty.
func (d *decoder) argv(n *node, path string, p place) []*rule.Text {
	var argv []*rule.Text
	for i, item := range d.list(n, path) {
		argv = append(argv, d.template(item, index(path, i), p))
	}
	if n.kind == listNode && len(argv) == 0 {
		d.failf(n, path, "value", "the list is empty: a program is wanted")
	}
	return argv
}

func (d *decoder) env(n *node, path string, p place) map[string]Env {
	env := map[string]Env{}
	if n.kind != mapNode {
		d.failf(n, path, "type", "a map from variable to value is wanted here and this is %s", n.noun())
		return env
	}
	for _, e := range n.entries {
		at := join(path, e.key)
		if e.key == "" || strings.ContainsAny(e.key, "= ") {
			d.fail(e.pos, at, "name", shown(e.key)+" is no name of a variable", "")
			continue
		}
		if strings.HasPrefix(e.key, "MUSTER_") {
			d.fail(e.pos, at, "name", e.key+" is set by muster", "use a name of your own")
			continue
		}
		switch {
		case e.value.null():
		case e.value.kind == mapNode:
			v := Env{}
			d.fields(e.value, at, map[string]field{
				"from": func(n *node, path string) { v.From = d.word(n, path) },
			})
			d.missing(e.value, at, "from")
			env[e.key] = v
		default:
			env[e.key] = Env{Text: d.template(e.value, at, p)}
		}
	}
	return env
}
