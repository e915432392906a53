package workflow

import (
	"fmt"
	"slices"
	"strings"
)

// senders are the roles that somebody can have who sends an event on a card of the status (WFL-11): of the fleet's
// events the platform alone; of the others people, the role of the run that is there, and implementer, which every
// run is on the parts of its card. The fleet itself says only its own events and the start.
func (l *linter) senders(status, event string) []string {
	if slices.Contains(PlatformEvents, event) {
		return []string{"platform"}
	}
	roles := []string{"manager", "member"}
	if event == l.w.Dispatch.Start {
		roles = append(roles, "platform")
	}
	if len(l.runRoles()) > 0 {
		roles = append(roles, "implementer")
	}
	if s := l.w.Statuses[status]; s.Run != nil {
		roles = append(roles, s.Run.Role)
		roles = append(roles, l.claimed()...)
	}
	return roles
}

// runRoles are the roles of all runs, in the order of the file.
func (l *linter) runRoles() (roles []string) {
	for _, name := range l.w.Order {
		if s := l.w.Statuses[name]; s.Run != nil && !slices.Contains(roles, s.Run.Role) {
			roles = append(roles, s.Run.Role)
		}
	}
	for _, r := range l.claimed() {
		if !slices.Contains(roles, r) {
			roles = append(roles, r)
		}
	}
	return roles
}

// claimed are the roles that claims give.
func (l *linter) claimed() (roles []string) {
	if l.claims == nil {
		l.claims = []string{}
		l.w.everyAction(func(a Action) {
			if c, ok := a.(*Claim); ok && c.Role != "" && !slices.Contains(l.claims, c.Role) {
				l.claims = append(l.claims, c.Role)
			}
		})
	}
	return l.claims
}

// admission tells of a `by` that admits nobody who could send the event there.
func (l *linter) admission(t *Transition, statuses []string) {
	if slices.ContainsFunc(statuses, func(s string) bool { return t.Admits(l.senders(s, t.Event)...) }) {
		return
	}
	if slices.Contains(PlatformEvents, t.Event) {
		l.add(t.Pos, Warning, "by-nobody", t.Path, "only the fleet sends "+t.Event+", and by does not admit platform", "write by: [platform], or leave by out")
		return
	}
	advice := "add manager"
	if len(statuses) == 1 && l.w.Statuses[statuses[0]].Run != nil {
		advice += ", or " + l.w.Statuses[statuses[0]].Run.Role + ", whose run is there"
	}
	l.add(t.Pos, Warning, "by-nobody", t.Path, fmt.Sprintf("nobody who sends %s here has the role %s", t.Event, strings.Join(t.By, " or ")), advice)
}

// shadowed tells of a transition that is never reached: wherever it could be taken, one before it takes all its senders.
func (l *linter) shadowed(t *Transition, statuses []string) {
	var by *Transition
	for _, s := range statuses {
		if !l.may(s, t) || !t.Admits(l.senders(s, t.Event)...) {
			continue
		}
		first := l.shadow(s, t)
		if first == nil {
			return
		}
		by = first
	}
	if by != nil {
		l.add(t.Pos, Warning, "shadowed", t.Path, "it is never reached: the transition in line "+fmt.Sprint(by.Line)+" comes before it and always takes the event", "put the narrower one first, or give the other a guard")
	}
}

// shadow is the transition before t that takes the event from everybody who could send it to t in this status.
func (l *linter) shadow(status string, t *Transition) *Transition {
	for _, x := range l.w.Transitions(status, t.Event) {
		if x == t {
			return nil
		}
		if !l.always(status, x) && (x.Guard == nil || t.Guard == nil || x.Guard.Source() != t.Guard.Source()) {
			continue
		}
		all := true
		for _, role := range l.senders(status, t.Event) {
			if t.Admits(role) && !x.Admits(role) && !(role == "manager" && x.Admits("member")) {
				all = false
			}
		}
		if all {
			return x
		}
	}
	return nil
}

// always says that a transition's guard holds for every card of the status.
func (l *linter) always(status string, t *Transition) bool {
	v, constant := t.Guard.With(l.known(status)).Constant()
	return t.Guard == nil || constant && v == true
}

// roles tells of a role that falls back to the card's assignee, who plays another one already: a reviewer
// of that kind reviews its own work (WFL-13).
func (l *linter) roles() {
	falls := map[string]string{} // role to why it is the assignee
	for _, role := range l.runRoles() {
		switch e := l.w.Roles[role]; {
		case e == nil:
			falls[role] = "is not listed under roles"
		case slices.Contains(e.Names(), "card.assignee"):
			falls[role] = ""
		default:
			if v, constant := e.With(l.defaults(e.Names())).Constant(); constant && (v == nil || v == "") {
				falls[role] = "is " + e.Source() + ", which gives nothing"
			}
		}
	}
	first := ""
	for _, role := range l.runRoles() {
		if _, ok := falls[role]; ok && (first == "" || role == "implementer") {
			first = role
		}
	}
	l.w.everyTransition(func(t *Transition, statuses []string) {
		for _, a := range t.Do {
			c, ok := a.(*Claim)
			if !ok || c.Role == first || falls[c.Role] == "" || l.needsPlayer(t, c.Role) {
				continue
			}
			l.add(c.At(), Warning, "role-falls-back", t.Path, fmt.Sprintf("role %s %s: the card's assignee plays it, as it plays %s", c.Role, falls[c.Role], first),
				"write roles: {"+c.Role+": PROFILE}, or guard the transition with what gives the profile != nil")
		}
	})
}

// needsPlayer says that the transition's guard does not hold while the role's expression gives nothing.
func (l *linter) needsPlayer(t *Transition, role string) bool {
	e := l.w.Roles[role]
	if e == nil || t.Guard == nil {
		return false
	}
	v, constant := t.Guard.With(l.defaults(e.Names())).Constant()
	return constant && v != true
}

// defaults are the workflow's own values of the parameters among the names.
func (l *linter) defaults(names []string) map[string]any {
	known := map[string]any{}
	for _, n := range names {
		if p, ok := paramOf(n); ok {
			if v, ok := l.w.Defaults[p]; ok && simple(v) {
				known[n] = v
			}
		}
	}
	return known
}

// paramOf is the parameter that an expression reads under this name.
func paramOf(name string) (string, bool) { return strings.CutPrefix(name, "params.") }

func simple(v any) bool {
	switch v.(type) {
	case nil, bool, string, float64, int64:
		return true
	}
	return false
}

// TakenIn lists the statuses in which a transition can be taken, as far as its place, its senders and its guard tell
// by themselves, in the order of the file.
func (w *Workflow) TakenIn(t *Transition) (statuses []string) {
	l := &linter{w: w, guards: map[guardKey]bool{}}
	l.w.everyTransition(func(x *Transition, in []string) {
		if x != t {
			return
		}
		for _, s := range in {
			if l.may(s, t) && t.Admits(l.senders(s, t.Event)...) && l.shadow(s, t) == nil {
				statuses = append(statuses, s)
			}
		}
	})
	return statuses
}
