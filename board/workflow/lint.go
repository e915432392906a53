package workflow

import (
	"fmt"
	"slices"
	"strings"

	"muster/board/rule"
)

// PlatformEvents are sent by the fleet alone (workflow.md "Events of the fleet").
var PlatformEvents = []string{
	"promote", "exited", "session_lost", "timed_out", "stale", "machine_offline", "orphaned", "spawn_failed", "session_idle",
	"hook_done", "hook_failed",
}

// Lint holds a loaded workflow against what cannot work although every word of it is known. An Error should keep it
// from being saved, a Warning is told. The findings are in the order of the file.
func Lint(w *Workflow) []Finding {
	l := &linter{w: w, guards: map[guardKey]bool{}}
	l.reachable()
	for _, name := range w.Order {
		l.status(w.Statuses[name])
	}
	l.transitions()
	l.roles()
	l.players()
	l.shell()
	l.findings = append(append(l.findings, w.keys...), w.unread...)
	sortFindings(l.findings)
	return slices.CompactFunc(l.findings, func(a, b Finding) bool { return a == b })
}

type linter struct {
	w        *Workflow
	findings []Finding
	guards   map[guardKey]bool
	claims   []string // roles that claims give; nil: not looked for
}

type guardKey struct {
	status string
	t      *Transition
}

func (l *linter) add(pos Pos, s Severity, check, path, message, advice string) {
	l.findings = append(l.findings, Finding{Pos: pos, Severity: s, Check: check, Path: path, Message: message, Advice: advice})
}

// may says whether a transition's guard can hold for a card of the status.
func (l *linter) may(status string, t *Transition) bool {
	key := guardKey{status, t}
	may, ok := l.guards[key]
	if !ok {
		v, constant := t.Guard.With(l.known(status)).Constant()
		may = t.Guard == nil || !constant || v == true
		l.guards[key] = may
	}
	return may
}

// known is what is always true of a card in the status.
func (l *linter) known(status string) map[string]any {
	s := l.w.Statuses[status]
	known := map[string]any{
		"card.status": s.Name, "card.stored": s.StoredAs, "card.run": nil,
		"card.finished": s.StoredAs == "done" || s.StoredAs == "cancelled" || s.StoredAs == "archived",
	}
	if s.Run != nil {
		known["card.run"] = "run"
	}
	return known
}

// from lists the transitions a card of the status can take, those of the whole workflow included.
func (l *linter) from(status string) []*Transition {
	events := map[string]bool{}
	for e := range l.w.Statuses[status].On {
		events[e] = true
	}
	for e := range l.w.On {
		events[e] = true
	}
	var all []*Transition
	for _, e := range sortedSet(events) {
		for _, t := range l.w.Transitions(status, e) {
			if l.may(status, t) {
				all = append(all, t)
			}
		}
	}
	return all
}

// targets are the statuses a transition may lead to; open: others too.
func (l *linter) targets(t *Transition) (names []string, open bool) {
	if t.Target == nil {
		return nil, false
	}
	return t.Target.Outcomes()
}

// goesBack: the target is computed from where the card has been, so it leads nowhere new.
func goesBack(t *rule.Text) bool {
	return !slices.ContainsFunc(t.Names(), func(n string) bool {
		return n != "run.source" && n != "card.previous" && n != "card.status" && !strings.HasPrefix(n, "params.") && !strings.HasPrefix(n, "payload.")
	}) && slices.ContainsFunc(t.Names(), func(n string) bool { return n == "run.source" || n == "card.previous" })
}

func (l *linter) reachable() {
	seen := map[string]bool{}
	var queue []string
	visit := func(names []string) {
		for _, n := range names {
			if !seen[n] && l.w.Statuses[n] != nil {
				seen[n] = true
				queue = append(queue, n)
			}
		}
	}
	names, open := l.w.Initial.Outcomes()
	if open {
		return // any status may be the first
	}
	visit(names)
	for _, to := range sortedNames(l.w.Migrate) {
		visit([]string{l.w.Migrate[to]})
	}
	for len(queue) > 0 {
		status := queue[0]
		queue = queue[1:]
		for _, t := range l.from(status) {
			names, open := l.targets(t)
			if open && !goesBack(t.Target) {
				return
			}
			visit(names)
			if l.w.Breaker != nil && hasAction[*RecordFailure](t.Do) {
				visit([]string{l.w.Breaker.Target})
			}
		}
	}
	for _, name := range l.w.Order {
		if s := l.w.Statuses[name]; !seen[name] {
			l.add(s.Pos, Warning, "unreachable-status", "statuses."+name, "no card ever comes here", "lead a transition here, or remove it (NAME: null where it is inherited)")
		}
	}
}

func hasAction[A Action](actions []Action) bool {
	return slices.ContainsFunc(actions, func(a Action) bool { _, ok := a.(A); return ok })
}

// status checks one status and every transition that can leave it.
func (l *linter) status(s *Status) {
	path := "statuses." + s.Name
	leaves := false
	for _, t := range l.from(s.Name) {
		names, open := l.targets(t)
		leaves = leaves || open || slices.ContainsFunc(names, func(n string) bool { return n != s.Name })
		l.step(s, t, names, open)
	}
	if !leaves && s.StoredAs != "done" && s.StoredAs != "cancelled" && s.StoredAs != "archived" {
		l.add(s.Pos, Warning, "never-left", path, "no event takes a card out of this status", "add a transition with a target")
	}
	names, _ := l.w.Initial.Outcomes()
	if s.Run != nil && slices.Contains(names, s.Name) {
		l.add(s.Pos, Error, "initial-run", path, "a new card would stand in a status with a run and have none", "let it begin elsewhere and claim in the transition")
	}
	if s.Run != nil {
		l.run(s, path)
	}
}

// step checks one transition out of one status.
func (l *linter) step(s *Status, t *Transition, names []string, open bool) {
	path := t.Path
	ends, claims := hasAction[*EndRun](t.Do), hasAction[*Claim](t.Do)
	other := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == s.Name })
	if s.Run != nil && !ends && (open || len(other) > 0) {
		l.add(t.Pos, Error, "run-left", path, fmt.Sprintf("the event %s takes a card out of %s, which has a run, without ending it", t.Event, s.Name), "add {end_run: OUTCOME}, or guard it with card.run == nil")
	}
	for _, n := range other {
		switch to := l.w.Statuses[n]; {
		case to == nil:
		case claims && to.Run == nil:
			l.add(t.Pos, Error, "claim-without-run", path, fmt.Sprintf("it claims and leads to %s, which has no run", n), "give the status a run, or leave claim out")
		case !claims && to.Run != nil && !(s.Run != nil && !ends):
			l.add(t.Pos, Error, "run-without-claim", path, fmt.Sprintf("it leads to %s, which has a run, without a claim", n), "add {claim: {role: "+to.Run.Role+"}}")
		}
	}
	if t.Event == "machine_offline" && s.Run != nil && ends {
		l.requeue(s, t, path)
	}
}

// requeue is M-11: a run may be given up while its machine is away only if its lease ends its session there, and
// the session, which is bound to that machine, is forgotten.
func (l *linter) requeue(s *Status, t *Transition, path string) {
	if v, constant := s.Run.Limits.Lease.Constant(); s.Run.Limits.Lease == nil || constant && v == nil {
		l.add(t.Pos, Error, "requeue-without-lease", path, fmt.Sprintf("a run of %s is given up while its machine is away, and nothing ends its session there", s.Name), "give the status limits: {lease: SECONDS}, or let the card wait")
	}
	forgets := slices.ContainsFunc(t.Do, func(a Action) bool { return a.Verb() == ForgetSession })
	if !forgets {
		l.add(t.Pos, Error, "requeue-without-forget", path, "a run is given up while its machine is away, and its session, which only that machine has, is kept", "add {forget_session: '{{ run.slot }}'}")
	}
}

// run checks what a status with a run needs.
func (l *linter) run(s *Status, path string) {
	handled := func(event string) bool { return len(l.w.Transitions(s.Name, event)) > 0 }
	limit := func(e *rule.Expr) bool {
		v, constant := e.Constant()
		return e != nil && !(constant && v == nil)
	}
	x := s.Run.Limits
	if (limit(x.Runtime) || limit(x.Working) || limit(x.Age)) && !handled("timed_out") {
		l.add(s.Run.Pos, Warning, "limit-unhandled", path+".run.limits", "the run has a limit and nothing takes the event timed_out", "add timed_out under on:")
	}
	if limit(x.Stale) && !handled("stale") {
		l.add(s.Run.Pos, Warning, "limit-unhandled", path+".run.limits", "the run has a stale limit and nothing takes the event stale", "add stale under on:")
	}
	for _, event := range []string{"exited", "session_lost", "orphaned", "spawn_failed"} {
		if !handled(event) {
			l.add(s.Run.Pos, Warning, "observation-unhandled", path, "nothing takes the event "+event+": a card whose run ends so stays here", "add "+event+" under on:")
		}
	}
}
