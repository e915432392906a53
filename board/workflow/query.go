package workflow

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster/board/rule"
)

// Transitions lists what may take an event in a status, in the order it is tried: the status's own, then the
// workflow's (WFL-06).
func (w *Workflow) Transitions(status, event string) []*Transition {
	var own []*Transition
	if s := w.Statuses[status]; s != nil {
		own = s.On[event]
	}
	if len(w.On[event]) == 0 {
		return own
	}
	return slices.Concat(own, w.On[event])
}

// Startable says that a card in the status can be started (WFL-18).
func (w *Workflow) Startable(status string) bool {
	return len(w.Transitions(status, w.Dispatch.Start)) > 0
}

// HasRun says that a card in the status has a run.
func (w *Workflow) HasRun(status string) bool {
	s := w.Statuses[status]
	return s != nil && s.Run != nil
}

// StoredAs is what the status is stored as; empty for a status the workflow does not have.
func (w *Workflow) StoredAs(status string) string {
	if s := w.Statuses[status]; s != nil {
		return s.StoredAs
	}
	return ""
}

// Profile gives a profile by name, or nil.
func (w *Workflow) Profile(name string) *Profile { return w.Profiles[name] }

// RoleProfile is the profile that plays a role for a card: the role's expression, and the card's assignee when
// it yields nothing or the role is not listed (WFL-12, WFL-13). Empty: nobody.
func (w *Workflow) RoleProfile(role string, scope rule.Scope) (string, error) {
	v, err := w.Roles[role].Eval(scope)
	if err != nil {
		return "", fmt.Errorf("role %s: %w", role, err)
	}
	if name, ok := v.(string); ok && name != "" {
		return name, nil
	}
	if v != nil && v != "" {
		return "", fmt.Errorf("role %s: a profile's name is wanted and the expression gives %s", role, rule.Format(v))
	}
	card, _ := scope["card"].(map[string]any)
	name, _ := card["assignee"].(string)
	return name, nil
}

// Params are the workflow's parameters with a board's own values over them (WFL-14). Names that the workflow does
// not define are left out; CheckParams says so to people.
func (w *Workflow) Params(overrides map[string]any) map[string]any {
	all := maps.Clone(w.Defaults)
	if all == nil {
		all = map[string]any{}
	}
	for name, v := range overrides {
		if _, ok := w.Defaults[name]; ok {
			all[name] = v
		}
	}
	return all
}

// CheckParams refuses a parameter that the workflow does not define.
func (w *Workflow) CheckParams(overrides map[string]any) error {
	for _, name := range sortedNames(overrides) {
		if _, ok := w.Defaults[name]; !ok {
			return fmt.Errorf("workflow %q has no parameter %s%s", w.Name, name, rule.Suggest(name, sortedNames(w.Defaults)))
		}
	}
	return nil
}

// Version is the hash of the canonical form: two files with the same version behave the same.
func (w *Workflow) Version() string { return w.version }

// Canonical is the whole workflow, extends resolved, in a form that Load takes again. It is JSON with sorted keys.
func (w *Workflow) Canonical() []byte { return slices.Clone(w.canonical) }

// Times are the limits of a run in seconds. For the pointers nil is no limit (EXP-11); a zero runtime, working, age
// or stale limit means none, a zero grace is one.
type Times struct {
	Runtime, Working, Age, Stale, Lease *float64
	Grace, Kill, Leave                  float64
}

// Values evaluates the limits.
func (l Limits) Values(scope rule.Scope) (Times, error) {
	t := Times{Grace: DefaultGrace, Kill: DefaultKill, Leave: DefaultLeave}
	for _, x := range []struct {
		name string
		expr *rule.Expr
		into **float64
	}{{"runtime", l.Runtime, &t.Runtime}, {"working", l.Working, &t.Working}, {"age", l.Age, &t.Age}, {"stale", l.Stale, &t.Stale}, {"lease", l.Lease, &t.Lease}} {
		n, ok, err := seconds(x.name, x.expr, scope)
		if err != nil {
			return Times{}, err
		}
		if ok && n > 0 {
			*x.into = &n
		}
	}
	for _, x := range []struct {
		name string
		expr *rule.Expr
		into *float64
	}{{"grace", l.Grace, &t.Grace}, {"kill", l.Kill, &t.Kill}, {"leave", l.Leave, &t.Leave}} {
		n, ok, err := seconds(x.name, x.expr, scope)
		if err != nil {
			return Times{}, err
		}
		if ok {
			*x.into = n
		}
	}
	return t, nil
}

func seconds(name string, e *rule.Expr, scope rule.Scope) (float64, bool, error) {
	n, ok, err := e.Number(scope)
	if err != nil {
		return 0, false, fmt.Errorf("limit %s: %w", name, err)
	}
	if ok && n < 0 {
		return 0, false, fmt.Errorf("limit %s: %s seconds is negative", name, rule.Format(n))
	}
	return n, ok, nil
}

// Filter narrows counted things (CAP-03): every key must match; a key's value may be one or several alternatives.
type Filter []Match

// Match is one key of a filter.
type Match struct {
	Key  string
	Any  []any // string or bool
	List bool  // written as a list: CAP-16 tells {dispatch: true} from {dispatch: [true]}
}

// Matches holds a thing against the filter; get gives its value of a key (nil: none). An empty filter matches.
func (f Filter) Matches(get func(key string) any) bool {
	for _, m := range f {
		if !slices.Contains(m.Any, get(m.Key)) {
			return false
		}
	}
	return true
}

// Has says that the filter asks for a key.
func (f Filter) Has(key string) bool {
	return slices.ContainsFunc(f, func(m Match) bool { return m.Key == key })
}

// String says in words what the filter asks for: "status reviewing".
func (f Filter) String() string {
	var parts []string
	for _, m := range f {
		var any []string
		for _, v := range m.Any {
			any = append(any, fmt.Sprint(v))
		}
		parts = append(parts, m.Key+" "+strings.Join(any, " or "))
	}
	return strings.Join(parts, " and ")
}

// Dispatched says that the filter asks for dispatch: true itself (CAP-14, CAP-16).
func (f Filter) Dispatched() bool {
	return slices.ContainsFunc(f, func(m Match) bool { return m.Key == "dispatch" && !m.List && m.Any[0] == true })
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// RunRoles are the roles that a run can have, in the order of the file.
func (w *Workflow) RunRoles() []string { return (&linter{w: w}).runRoles() }

// Slots are the slots that sessions of runs can be in, sorted; open: some are computed, and may have any name.
func (w *Workflow) Slots() (names []string, open bool) {
	set, open := (&linter{w: w}).slots()
	return sortedSet(set), open
}
