package workflow

import (
	"fmt"
	"strconv"
	"strings"

	"muster/board/rule"
)

// maxParents bounds a profile's chain of parents.
const maxParents = 16

// resolveProfiles merges every profile with its parents (what a profile says, null included, wins).
func (d *decoder) resolveProfiles(n *node, path string) map[string]*node {
	resolved := map[string]*node{}
	d.each(n, path, "profile", func(name string, own *node, path string) {
		chain, at := []string{name}, own
		merged := own
		for at.kind == mapNode {
			parent := at.get("parent")
			if parent == nil || parent.null() || parent.kind != scalarNode {
				break
			}
			above := n.get(parent.raw)
			if above == nil || above.null() {
				d.mustExist(parent.pos, join(path, "parent"), "profile", parent.raw, d.profiles)
				break
			}
			chain = append(chain, parent.raw)
			if parent.raw == name || len(chain) > maxParents {
				d.fail(parent.pos, join(path, "parent"), "parent-cycle", "the parents go round: "+strings.Join(chain, " -> "), "break the circle")
				break
			}
			merged, at = merge(above, merged), above
		}
		resolved[name] = merged
	})
	return resolved
}

func (d *decoder) profile(name string, n *node, path string, harnesses map[string]*Harness) *Profile {
	p := &Profile{Pos: n.pos, Name: name, Surface: "headless", Placement: "any", Permissions: "edit", Workspace: Workspace{Kind: "scratch"}}
	text := func(into *string) field { return func(n *node, path string) { *into = d.word(n, path) } }
	choice := func(into *string, of ...string) field {
		return func(n *node, path string) { *into = d.oneOf(n, path, of...) }
	}
	d.fields(n, path, map[string]field{
		"harness":   func(n *node, path string) { p.Harness = d.known(n, path, "harness", d.harnesses) },
		"surface":   choice(&p.Surface, "headless", "pane"),
		"model":     text(&p.Model),
		"capacity":  func(n *node, path string) { v := d.whole(n, path); p.Capacity = &v },
		"placement": choice(&p.Placement, "any", "named"),
		"requires":  func(n *node, path string) { p.Requires = d.expr(n, path, rule.Truth, anywhere) },
		"prefer":    func(n *node, path string) { p.Prefer = d.expr(n, path, rule.Number, anywhere) },
		"fallback": func(n *node, path string) {
			p.Fallback = d.words(n, path, func(n *node, path string) string { return d.known(n, path, "profile", d.profiles) })
		},
		"workspace":   func(n *node, path string) { p.Workspace = d.workspace(n, path) },
		"account":     text(&p.Account),
		"permissions": choice(&p.Permissions, "ask", "edit", "full"),
		"memory":      func(n *node, path string) { p.Memory = d.bytes(n, path) },
		"who": func(n *node, path string) {
			p.Who = d.words(n, path, func(n *node, path string) string { return d.known(n, path, "role", d.roles) })
		},
		"args": func(n *node, path string) {
			for i, item := range d.list(n, path) {
				p.Args = append(p.Args, d.template(item, index(path, i), inPrompt|inHarness))
			}
		},
		"env":     func(n *node, path string) { p.Env = d.env(n, path, anywhere) },
		"parent":  text(&p.Parent),
		"verdict": choice(&p.Verdict, "exit", "explicit"),
	})
	d.missing(n, path, "harness")
	if h := harnesses[p.Harness]; h != nil {
		d.completeProfile(p, h, n, path)
	}
	return p
}

// completeProfile fills in what depends on the harness and holds the profile against it.
func (d *decoder) completeProfile(p *Profile, h *Harness, n *node, path string) {
	if p.Verdict == "" {
		p.Verdict = h.Verdict
	}
	command := p.Harness == CommandHarness
	if p.Who == nil {
		p.Who = []string{"manager", "member"}
		if command { // a card's text may reach a program: not for everybody, unless the profile says so
			p.Who = []string{"manager"}
		}
	}
	if command && len(p.Args) == 0 {
		d.fail(n.pos, path, "missing", "a profile of harness command has no args", "args is its argv: [sh, -c, 'make test']")
	}
	if h.on(p.Surface) == nil && p.Surface != "" {
		d.fail(n.pos, path, "surface", fmt.Sprintf("harness %s has no surface %s", h.Name, p.Surface), "choose the other surface, or define it under harnesses:")
	}
}

func (d *decoder) workspace(n *node, path string) Workspace {
	w := Workspace{}
	text := func(into *string) field { return func(n *node, path string) { *into = d.word(n, path) } }
	d.fields(n, path, map[string]field{
		"kind": func(n *node, path string) { w.Kind = d.oneOf(n, path, "scratch", "dir", "worktree") },
		"repo": text(&w.Repo), "path": text(&w.Path), "base": text(&w.Base), "push": text(&w.Push),
		"branch": func(n *node, path string) { w.Branch = d.template(n, path, anywhere) },
		"bring":  func(n *node, path string) { w.Bring = d.words(n, path, d.word) },
		"setup":  text(&w.Setup), "teardown": text(&w.Teardown),
		"timeout": func(n *node, path string) { w.Timeout = d.whole(n, path) },
	})
	d.missing(n, path, "kind")
	switch {
	case w.Kind == "worktree" && w.Repo == "":
		d.fail(n.pos, path, "missing", "a worktree has no repo", "write repo: a git URL, a path, or a name each machine maps")
	case w.Kind == "dir" && w.Path == "" && w.Repo == "":
		d.fail(n.pos, path, "missing", "a workspace of kind dir has no path", "write path: /a/folder")
	case w.Kind == "dir" && w.Path != "" && !strings.HasPrefix(w.Path, "/") && !strings.HasPrefix(w.Path, "~/"):
		d.fail(n.pos, path, "value", "the path "+shown(w.Path)+" is not absolute", "begin it with / or ~/")
	case w.Kind != "worktree" && w.Kind != "" && (w.Base != "" || w.Branch != nil || w.Push != "" || len(w.Bring) > 0):
		d.fail(n.pos, path, "value", "base, branch, push and bring are of a worktree, and this is "+w.Kind, "make it kind: worktree")
	case w.Kind == "dir" && (w.Setup != "" || w.Teardown != ""):
		d.fail(n.pos, path, "value", "a folder that is there already is neither set up nor torn down", "leave setup and teardown out")
	}
	return w
}

// bytes reads 512M, 1G, or a number of bytes.
func (d *decoder) bytes(n *node, path string) int64 {
	w := d.word(n, path)
	digits := strings.TrimRight(w, "KMGTiB")
	factor, ok := map[string]int64{"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}[strings.TrimSuffix(strings.TrimSuffix(w[len(digits):], "B"), "i")]
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil || !ok || v < 0 || v*float64(factor) > 1<<60 {
		d.fail(n.pos, path, "value", shown(w)+" is no amount of memory", "write 512M or 2G")
		return 0
	}
	return int64(v * float64(factor))
}

// Scope is the variable `profile` of expressions.
func (p *Profile) Scope() map[string]any {
	if p == nil {
		return nil
	}
	s := map[string]any{
		"name": p.Name, "harness": p.Harness, "surface": p.Surface, "placement": p.Placement, "permissions": p.Permissions,
		"verdict": p.Verdict, "model": orNil(p.Model), "account": orNil(p.Account), "parent": orNil(p.Parent),
		"fallback": anyList(p.Fallback), "who": anyList(p.Who), "capacity": nil, "memory": nil,
		"workspace": map[string]any{
			"kind": p.Workspace.Kind, "repo": orNil(p.Workspace.Repo), "path": orNil(p.Workspace.Path), "push": orNil(p.Workspace.Push),
		},
	}
	if p.Capacity != nil {
		s["capacity"] = *p.Capacity
	}
	if p.Memory != 0 {
		s["memory"] = p.Memory
	}
	return s
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func anyList(words []string) []any {
	list := make([]any, len(words))
	for i, w := range words {
		list[i] = w
	}
	return list
}
