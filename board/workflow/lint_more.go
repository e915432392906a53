package workflow

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"muster/board/rule"
)

// All lists every transition: those of the statuses in the order of the file, events by name, then the workflow's.
func (w *Workflow) All() (all []*Transition) {
	w.everyTransition(func(t *Transition, _ []string) { all = append(all, t) })
	return all
}

// everyTransition visits all transitions; statuses are those a transition can be taken in.
func (w *Workflow) everyTransition(visit func(t *Transition, statuses []string)) {
	for _, name := range w.Order {
		on := w.Statuses[name].On
		for _, e := range sortedNames(on) {
			for _, t := range on[e] {
				visit(t, []string{name})
			}
		}
	}
	for _, e := range sortedNames(w.On) {
		for _, t := range w.On[e] {
			visit(t, w.Order)
		}
	}
}

// everyAction visits all actions of transitions and of enter.
func (w *Workflow) everyAction(visit func(a Action)) {
	for _, name := range w.Order {
		for _, a := range w.Statuses[name].Enter {
			visit(a)
		}
	}
	w.everyTransition(func(t *Transition, _ []string) {
		for _, a := range t.Do {
			visit(a)
		}
	})
}

// transitions checks what does not depend on where a transition leads.
func (l *linter) transitions() {
	slots, open := l.slots()
	l.w.everyTransition(func(t *Transition, statuses []string) {
		if !slices.ContainsFunc(statuses, func(s string) bool { return l.may(s, t) }) {
			l.add(t.Pos, Warning, "guard-false", t.Path, "the guard never holds", "correct or remove it; guards are tried with the card in this status")
		}
		l.admission(t, statuses)
		l.shadowed(t, statuses)
		for i, v := range t.Validators {
			if value, constant := v.When.Constant(); v.When != nil && constant {
				l.add(v.Pos, Warning, "validator-constant", fmt.Sprintf("%s.validators[%d]", t.Path, i), fmt.Sprintf("when is always %s", rule.Format(value == true)), "")
			}
		}
	})
	l.w.everyAction(func(a Action) {
		s, ok := a.(*Session)
		if !ok || open {
			return
		}
		if name, constant := s.Slot.Constant(); constant && !slots[name] {
			l.add(a.At(), Warning, "unknown-slot", a.Verb(), "no run has a session in slot "+shown(name)+rule.Suggest(name, sortedSet(slots)), "")
		}
	})
	if !slices.ContainsFunc(l.w.Order, l.w.Startable) {
		l.add(Pos{Line: 1, Column: 1}, Warning, "never-started", "dispatch.start", "no status takes the event "+l.w.Dispatch.Start+": the fleet starts nothing by itself", "add it under on: of the status that waits")
	}
}

// slots are the constant slots of all runs; open: there are computed ones.
func (l *linter) slots() (names map[string]bool, open bool) {
	names = map[string]bool{}
	for _, s := range l.w.Statuses {
		if s.Run == nil {
			continue
		}
		constants, more := s.Run.Session.Outcomes()
		open = open || more
		for _, c := range constants {
			names[c] = true
		}
	}
	return names, open
}

// shell warns of text that people or agents wrote inside a shell's program: it would be run.
func (l *linter) shell() {
	for _, name := range sortedNames(l.w.Profiles) {
		l.shellArgv(l.w.Profiles[name].Pos, "profiles."+name+".args", l.w.Profiles[name].Args)
	}
	for _, name := range sortedNames(l.w.Hooks) {
		l.shellArgv(l.w.Hooks[name].Pos, "hooks."+name+".run", l.w.Hooks[name].Run)
	}
}

func (l *linter) shellArgv(pos Pos, where string, argv []*rule.Text) {
	for i := 2; i < len(argv); i++ {
		program, _ := argv[0].Constant()
		flag, _ := argv[i-1].Constant()
		if !slices.Contains([]string{"sh", "bash", "zsh", "dash", "ksh", "fish"}, path.Base(program)) || !strings.HasPrefix(flag, "-") || !strings.HasSuffix(flag, "c") {
			continue
		}
		for _, n := range argv[i].Names() {
			if written(n) {
				l.add(pos, Warning, "shell-text", fmt.Sprintf("%s[%d]", where, i), n+" stands inside a shell's program: what people write there would be run", "read the files $MUSTER_BODY and $MUSTER_BRIEF instead, or pass it as an argument of its own")
			}
		}
	}
}

// written says that a name's value is text that people or agents wrote.
func written(name string) bool {
	switch name {
	case "card.title", "card.body", "card.branch", "card.labels", "context", "arc_context", "news", "prompt", "card.block_reason", "card.last_error":
		return true
	}
	return name == "payload" || strings.HasPrefix(name, "payload.")
}
