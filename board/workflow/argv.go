package workflow

import (
	"fmt"
	"maps"
	"strings"

	"muster/board/rule"
)

// Argv is the argument vector that starts a session of a profile, or takes one up again (resume). The scope holds
// the run's variables and prompt, brief (path of the prompt's file) and session (id); profile is set here, with
// args rendered. No shell reads the result unless the harness names one.
func (w *Workflow) Argv(p *Profile, resume bool, scope rule.Scope) ([]string, error) {
	h := w.Harnesses[p.Harness]
	if h == nil {
		return nil, fmt.Errorf("profile %q: there is no harness %q", p.Name, p.Harness)
	}
	launch := h.on(p.Surface)
	if launch == nil {
		return nil, fmt.Errorf("profile %q: harness %s has no surface %s", p.Name, h.Name, p.Surface)
	}
	args := launch.Fresh
	if resume {
		if launch.Resume == nil {
			return nil, fmt.Errorf("profile %q: harness %s cannot take up a session again", p.Name, h.Name)
		}
		args = launch.Resume
	}
	inner := maps.Clone(scope)
	if inner == nil {
		inner = rule.Scope{}
	}
	profile := p.Scope()
	if given, ok := scope["profile"].(map[string]any); ok {
		maps.Copy(profile, given)
	}
	inner["profile"] = profile
	own := []any{}
	for _, t := range p.Args {
		s, err := renderArg(t, inner)
		if err != nil {
			return nil, fmt.Errorf("profile %q: args: %w", p.Name, err)
		}
		own = append(own, s)
	}
	profile["args"] = own
	var argv []string
	for _, a := range args {
		more, err := a.render(inner)
		if err != nil {
			return nil, fmt.Errorf("harness %q: %w", h.Name, err)
		}
		argv = append(argv, more...)
	}
	if len(argv) == 0 || argv[0] == "" {
		return nil, fmt.Errorf("profile %q: harness %s gives no program to start", p.Name, h.Name)
	}
	return argv, nil
}

func (a Arg) render(scope rule.Scope) ([]string, error) {
	if a.Text != nil {
		s, err := renderArg(a.Text, scope)
		return []string{s}, err
	}
	if ok, err := a.When.Holds(scope); err != nil || !ok {
		return nil, err
	}
	if a.Each == nil {
		return renderAll(a.Args, scope)
	}
	v, err := a.Each.Eval(scope)
	if err != nil {
		return nil, err
	}
	items, _ := v.([]any)
	if len(items) > maxArgs {
		return nil, fmt.Errorf("%d arguments are more than %d", len(items), maxArgs)
	}
	var argv []string
	for _, item := range items {
		inner := maps.Clone(scope)
		inner["item"] = item
		more, err := renderAll(a.Args, inner)
		if err != nil {
			return nil, err
		}
		argv = append(argv, more...)
	}
	return argv, nil
}

// maxArgs bounds what one Each may add to an argv.
const maxArgs = 1000

func renderAll(texts []*rule.Text, scope rule.Scope) ([]string, error) {
	var out []string
	for _, t := range texts {
		s, err := renderArg(t, scope)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// renderArg refuses what exec would cut short or refuse without saying why.
func renderArg(t *rule.Text, scope rule.Scope) (string, error) {
	s, err := t.Render(scope)
	if err != nil {
		return "", err
	}
	if strings.IndexByte(s, 0) >= 0 {
		return "", fmt.Errorf("an argument holds a zero byte")
	}
	return s, nil
}
