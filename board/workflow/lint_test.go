package workflow

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// small is a workflow of three statuses in which nothing is wrong; each test of the linter breaks one thing.
const small = `
version: 1
name: small
initial: todo
profiles: {make: {harness: command, args: [make]}}
statuses:
  todo:
    stored_as: ready
    on:
      start: [{target: work, do: [{claim: {role: implementer}}]}]
  work:
    stored_as: running
    run: {role: implementer, limits: {runtime: 60, lease: 'machine.always_on ? 600 : nil'}}
    on:
      exited: [{target: '{{ payload.code == 0 ? "done" : "todo" }}', do: [{end_run: over}]}]
      session_lost: [{target: todo, do: [{end_run: lost}]}]
      orphaned: [{target: todo, do: [{end_run: lost}]}]
      spawn_failed: [{target: todo, do: [{end_run: lost}]}]
      timed_out: [{target: todo, do: [{end_run: late}]}]
      machine_offline: [{guard: payload.seconds > 600, target: todo, do: [{end_run: lost}, forget_session]}]
  done: {stored_as: done}
`

func TestLint(t *testing.T) {
	base := small
	if fs := Lint(load(t, base)); len(fs) != 0 {
		t.Fatalf("nothing is wrong and it says: %v", fs)
	}
	for _, c := range []struct {
		check    string
		severity Severity
		from, to string
		part     string
	}{
		{"unreachable-status", Warning, "  done: {stored_as: done}", "  done: {stored_as: done}\n  attic: {stored_as: archived}", "statuses.attic: no card ever comes here"},
		{"run-left", Error, "exited: [{target: '{{ payload.code == 0 ? \"done\" : \"todo\" }}', do: [{end_run: over}]}]", "exited: [{target: done}]", "exited takes a card out of work, which has a run, without ending it"},
		{"run-left", Error, "on:\n      exited", "on:\n      back: [{target: '{{ run.source }}'}]\n      exited", "back takes a card out of work"},
		{"run-left", Error, "  done: {stored_as: done}", "  done: {stored_as: done}\non: {cancel: [{target: done}]}", "on.cancel[0]: the event cancel takes a card out of work"},
		{"claim-without-run", Error, "target: work, do: [{claim: {role: implementer}}]", "target: done, do: [{claim: {role: implementer}}]", "leads to done, which has no run"},
		{"run-without-claim", Error, "target: work, do: [{claim: {role: implementer}}]", "target: work", "leads to work, which has a run, without a claim"},
		{"initial-run", Error, "initial: todo", "initial: work", "a new card would stand in a status with a run"},
		{"requeue-without-lease", Error, "lease: 'machine.always_on ? 600 : nil'", "lease: nil", "given up while its machine is away"},
		{"requeue-without-lease", Error, ", lease: 'machine.always_on ? 600 : nil'", "", "nothing ends its session there"},
		{"requeue-without-forget", Error, "{end_run: lost}, forget_session", "{end_run: lost}", "its session, which only that machine has, is kept"},
		{"limit-unhandled", Warning, "timed_out: [{target: todo, do: [{end_run: late}]}]", "x: []", "nothing takes the event timed_out"},
		{"limit-unhandled", Warning, "runtime: 60", "stale: 60", "nothing takes the event stale"},
		{"observation-unhandled", Warning, "      orphaned: [{target: todo, do: [{end_run: lost}]}]\n", "", "nothing takes the event orphaned"},
		{"guard-false", Warning, "guard: payload.seconds > 600", "guard: payload.seconds > 600 && false", "the guard never holds"},
		{"guard-false", Warning, "start: [{target", "start: [{guard: card.status == \"done\", target: work, do: [{claim: {role: implementer}}]}, {target", "the guard never holds"},
		{"guard-false", Warning, "start: [{target", "start: [{guard: card.run != nil, target: work, do: [{claim: {role: implementer}}]}, {target", "the guard never holds"},
		{"never-left", Warning, "initial: todo", "initial: '{{ payload.x ? \"todo\" : \"stuck\" }}'", "no event takes a card out"},
		{"by-nobody", Warning, "exited: [{target", "exited: [{by: [manager], target", "only the fleet sends exited"},
		{"validator-constant", Warning, "start: [{target", "start: [{validators: [{when: 1 > 2, refuse: no}], target", "when is always false"},
		{"unknown-slot", Warning, "{end_run: lost}, forget_session", "{end_run: lost}, {forget_session: workr}", "did you mean worker?"},
		{"never-started", Warning, "initial: todo", "initial: todo\ndispatch: {start: go}", "no status takes the event go"},
		{"shell-text", Warning, "args: [make]", "args: [bash, -lc, 'echo {{ card.title }}']", "card.title stands inside a shell's program"},
	} {
		src := strings.Replace(base, c.from, c.to, 1)
		if src == base {
			t.Fatalf("%s: the small workflow has no %q", c.check, c.from)
		}
		if c.check == "never-left" {
			src += "  stuck: {stored_as: todo}\n"
		}
		fs := Lint(load(t, src))
		i := slices.IndexFunc(fs, func(f Finding) bool { return f.Check == c.check && strings.Contains(f.String(), c.part) })
		if i < 0 || fs[i].Severity != c.severity || fs[i].Line == 0 {
			t.Errorf("%s: want %s with %q, got %v", c.check, c.severity, c.part, fs)
		}
		// What is not meant is not told: the change may cause what follows from it, nothing else.
		for _, f := range fs {
			if f.Check != c.check && !follows(c.check, f.Check) {
				t.Errorf("%s: it also says %v", c.check, f)
			}
		}
	}
}

// follows: a status nobody comes to any more, or that nobody starts, is a consequence of some mistakes.
func follows(check, also string) bool {
	switch also {
	case "unreachable-status":
		return check == "run-left" || check == "claim-without-run" || check == "never-started"
	case "run-without-claim", "never-left":
		return check == "never-started"
	}
	return false
}

// A run may be left without end_run where the guard requires that there is none (workflow.md, Selection).
func TestLintLeavesGuarded(t *testing.T) {
	w := load(t, small+"on: {archive: [{guard: card.run == nil && card.status != \"done\", target: done}]}\n")
	for _, f := range Lint(w) {
		t.Error(f)
	}
}

// The linter's work is bounded by the loader's limits.
func TestLintLarge(t *testing.T) {
	var b strings.Builder
	b.WriteString("version: 1\nname: big\ninitial: s0\nstatuses:\n")
	for i := range maxStatuses {
		fmt.Fprintf(&b, "  s%d: {stored_as: todo}\n", i)
	}
	b.WriteString("on:\n")
	for i := range maxTransitions / 10 {
		fmt.Fprintf(&b, "  e%d: [{guard: card.status == \"s%d\", target: s%d}]\n", i, i%maxStatuses, (i+1)%maxStatuses)
	}
	if fs := Lint(load(t, b.String())); len(fs) != 1 || fs[0].Check != "never-started" {
		t.Errorf("findings: %v", fs)
	}
	fmt.Fprintf(&b, "  more: [%s]\n", strings.TrimSuffix(strings.Repeat("{target: s1},", maxTransitions), ","))
	if w, report := Load([]byte(b.String()), nil); w != nil || !strings.Contains(report.String(), "more than 1000 transitions") {
		t.Errorf("too many transitions: %v", report)
	}
}
