package workflow

import (
	"strings"

	"muster/board/rule"
)

// senderRoles are roles that a sender has without a run (workflow.md "Roles of senders").
var senderRoles = []string{"platform", "manager", "member"}

// Bounds that keep Lint quick: it looks at every transition in every status.
const (
	maxStatuses    = 100
	maxTransitions = 1000
)

// decodeWorkflow turns a merged tree into the model. root is the loaded file alone: version and name are its own.
func decodeWorkflow(root, n *node, report *Report) *Workflow {
	d := &decoder{report: report, seen: map[string]bool{}, reads: map[string]bool{}}
	w := &Workflow{
		Defaults: map[string]any{}, Roles: map[string]*rule.Expr{}, Migrate: map[string]string{}, Statuses: map[string]*Status{},
		On: map[string][]*Transition{}, Hooks: map[string]*Hook{}, Profiles: map[string]*Profile{}, Harnesses: map[string]*Harness{},
		Dispatch: Dispatch{Start: "start"}, paramAt: map[string]Pos{},
	}
	presets := parsePresets(report)
	harnesses := merge(presets, orEmpty(n.get("harnesses")))
	d.params, d.statuses, d.hooks = names(n.get("params"), true), names(n.get("statuses"), false), names(n.get("hooks"), false)
	d.profiles, d.harnesses = names(n.get("profiles"), false), names(harnesses, false)
	d.roles = rolesOf(n)
	if params := n.get("params"); params != nil && !params.null() && params.kind != mapNode {
		d.params = nil
	}
	d.each(harnesses, "harnesses", "harness", func(name string, h *node, path string) {
		x := d.harness(name, h, path)
		x.Preset = presets.get(name) != nil
		w.Harnesses[name] = x
	})
	skip := func(*node, string) {}
	d.fields(n, "", map[string]field{
		"version": skip, "name": skip, "extends": skip, "harnesses": skip,
		"params": func(n *node, path string) { d.decodeParams(w, n, path) },
		"roles": func(n *node, path string) {
			d.each(n, path, "role", func(role string, n *node, path string) { w.Roles[role] = d.roleExpr(n, path) })
		},
		"initial": func(n *node, path string) { w.Initial = d.target(n, path) },
		"breaker": func(n *node, path string) { w.Breaker = d.breaker(n, path) },
		"migrate": func(n *node, path string) {
			d.migrate(w, n, path)
		},
		"statuses": func(n *node, path string) {
			d.each(n, path, "status", func(name string, n *node, path string) {
				w.Statuses[name] = d.status(name, n, path)
				w.Order = append(w.Order, name)
			})
		},
		"on":       func(n *node, path string) { w.On = d.events(n, path) },
		"dispatch": func(n *node, path string) { w.Dispatch = d.dispatch(n, path) },
		"hooks": func(n *node, path string) {
			d.each(n, path, "hook", func(name string, n *node, path string) { w.Hooks[name] = d.hook(name, n, path) })
		},
		"profiles": func(n *node, path string) {
			resolved := d.resolveProfiles(n, path)
			for _, name := range sortedNames(resolved) {
				w.Profiles[name] = d.profile(name, resolved[name], join(path, name), w.Harnesses)
			}
		},
	})
	d.head(w, root, n)
	w.unread = d.unread(n.get("params"))
	return w
}

// head checks what the file says of itself, and that what cannot be left out is there.
func (d *decoder) head(w *Workflow, root, n *node) {
	d.missing(root, "", "version", "name")
	if v := root.get("version"); v != nil && !v.null() && v.scalar != int64(1) {
		d.failf(v, "version", "version", "this muster reads version 1 of the format")
	}
	if v := root.get("name"); v != nil && !v.null() {
		w.Name = d.name(v, "name")
	}
	if e := n.get("extends"); e != nil && !e.null() || len(d.statuses) > 0 {
		d.missing(n, "", "initial")
	}
	if len(d.statuses) == 0 {
		d.fail(n.pos, "", "missing", "there are no statuses", "write extends: default to begin with the default workflow")
	}
	if len(d.statuses) > maxStatuses {
		d.failf(n, "statuses", "size", "there are more than %d statuses", maxStatuses)
	}
	if w.Dispatch.Start == "" {
		w.Dispatch.Start = "start"
	}
}

// migrate is a map from statuses to statuses; under roles and slots it maps those.
func (d *decoder) migrate(w *Workflow, n *node, path string) {
	d.each(n, path, "status", func(old string, n *node, path string) {
		if n.kind != mapNode {
			w.Migrate[old] = d.known(n, path, "status", d.statuses)
			return
		}
		into := map[string]*map[string]string{"roles": &w.MigrateRoles, "slots": &w.MigrateSlots}[old]
		if into == nil {
			d.failf(n, path, "type", "a status is wanted here; only roles and slots have a map")
			return
		}
		*into = map[string]string{}
		d.each(n, path, strings.TrimSuffix(old, "s"), func(name string, n *node, path string) {
			if old == "roles" {
				(*into)[name] = d.known(n, path, "role", d.roles)
				return
			}
			(*into)[name] = d.name(n, path)
		})
	})
}

func (d *decoder) roleExpr(n *node, path string) *rule.Expr {
	e := d.expr(n, path, rule.String, anywhere)
	constants, _ := e.Outcomes()
	for _, c := range constants {
		if name, ok := c.(string); ok && name != "" {
			d.mustExist(n.pos, path, "profile", name, d.profiles)
		}
	}
	return e
}

func (d *decoder) decodeParams(w *Workflow, n *node, path string) {
	if n.kind != mapNode {
		d.failf(n, path, "type", "a map from a parameter to its default is wanted here and this is %s", n.noun())
		return
	}
	for _, e := range n.entries {
		if !d.isName(e.key) || strings.Contains(e.key, "-") { // params.a-b would be a subtraction
			d.fail(e.pos, join(path, e.key), "name", shown(e.key)+" cannot be a parameter's name", "use lower-case letters, digits and _, beginning with a letter")
			continue
		}
		w.Defaults[e.key], w.paramAt[e.key] = e.value.value(), e.value.pos
	}
}

func parsePresets(report *Report) *node {
	root := parse("preset", presetSource, report)
	if root == nil {
		return orEmpty(nil) // a test loads them
	}
	return orEmpty(root.get("harnesses"))
}

func orEmpty(n *node) *node {
	if n == nil || n.null() {
		return &node{kind: mapNode}
	}
	return n
}

// names are the keys of a map that stand for something; a null removes one, unless nulls are values.
func names(n *node, nulls bool) map[string]bool {
	set := map[string]bool{}
	if n == nil {
		return set
	}
	for _, e := range n.entries {
		if nulls || !e.value.null() {
			set[e.key] = true
		}
	}
	return set
}

// rolesOf lists the roles a sender can have: the fixed ones, those of roles: and those of every run.
func rolesOf(n *node) map[string]bool {
	set := names(n.get("roles"), false)
	for _, r := range senderRoles {
		set[r] = true
	}
	if statuses := n.get("statuses"); statuses != nil {
		for _, s := range statuses.entries {
			if run := s.value.get("run"); run != nil {
				if role := run.get("role"); role != nil && role.kind == scalarNode {
					set[role.raw] = true
				}
			}
		}
	}
	return set
}
