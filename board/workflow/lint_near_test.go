package workflow

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// reviewed is small with a second run, of a reviewer: nothing is wrong in it.
var reviewed = strings.NewReplacer(
	"profiles: {make: {harness: command, args: [make]}}", "params: {reviewer: null}\nroles: {reviewer: params.reviewer}\nprofiles: {make: {harness: command, args: [make]}}",
	"  done: {stored_as: done}\n", `  wait:
    stored_as: review
    on:
      start: [{guard: params.reviewer != nil, target: look, do: [{claim: {role: reviewer}}]}]
  look:
    stored_as: running
    run: {role: reviewer, session: reviewer}
    on:
      approve: [{by: [reviewer], target: done, do: [{end_run: approved}]}]
      exited: [{target: wait, do: [{end_run: over}]}]
      session_lost: [{target: wait, do: [{end_run: lost}]}]
      orphaned: [{target: wait, do: [{end_run: lost}]}]
      spawn_failed: [{target: wait, do: [{end_run: lost}]}]
  done: {stored_as: done}
`, `payload.code == 0 ? "done" : "todo"`, `payload.code == 0 ? "wait" : "todo"`).Replace(small)

// near is one mistake of a workflow: a file that has it, and one that nearly has it and is right. Both are
// made of a file without findings by one replacement.
type near struct {
	name, check string
	severity    Severity
	base        string
	from        string
	wrong       string
	place       string // what in the wrong file the finding points at
	right       string
	part        string // of the advice or message
}

func nears() []near {
	exited := `exited: [{target: '{{ payload.code == 0 ? "done" : "todo" }}', do: [{end_run: over}]}]`
	offline := `machine_offline: [{guard: payload.seconds > 600, target: todo, do: [{end_run: lost}, forget_session]}]`
	last := "  done: {stored_as: done}\n"
	return []near{
		{"unreachable status", "unreachable-status", Warning, small, last, last + "  attic: {stored_as: archived}\n", "{stored_as: archived}",
			last + "  attic: {stored_as: archived}\non: {archive: [{guard: card.run == nil, target: attic}]}\n", "lead a transition here"},
		{"run left", "run-left", Error, small, exited, "exited: [{target: done}]", "{target: done}",
			"exited: [{target: done, do: [{end_run: over}]}]", "add {end_run: OUTCOME}"},
		{"run left by the whole workflow", "run-left", Error, small, last, last + "on: {cancel: [{target: done}]}\n", "{target: done}",
			last + "on: {cancel: [{guard: card.run == nil, target: done}]}\n", "card.run == nil"},
		{"requeue without lease", "requeue-without-lease", Error, small, ", lease: 'machine.always_on ? 600 : nil'", "", "{guard: payload.seconds",
			", lease: 60", "give the status limits: {lease: SECONDS}"},
		{"requeue without forget", "requeue-without-forget", Error, small, offline, strings.Replace(offline, ", forget_session", "", 1), "{guard: payload.seconds",
			strings.Replace(offline, "target: todo, do: [{end_run: lost}, forget_session]", "do: [{comment: away}]", 1), "{forget_session: '{{ run.slot }}'}"},
		{"limit without timed_out", "limit-unhandled", Warning, small, "timed_out: [{target: todo, do: [{end_run: late}]}]", "late: []", "{role: implementer, limits",
			"timed_out: [{do: [{comment: late}]}]", "add timed_out"},
		{"never left", "never-left", Warning, small, last, last + "  stuck: {stored_as: blocked}\non: {hold: [{guard: card.run == nil, target: stuck}]}\n", "{stored_as: blocked}",
			last + "  stuck: {stored_as: blocked, on: {free: [{target: todo}]}}\non: {hold: [{guard: card.run == nil, target: stuck}]}\n", "add a transition with a target"},
		{"by nobody: a role without a run there", "by-nobody", Warning, reviewed, "approve: [{by: [reviewer],", "approve: [{by: [platform],", "{by: [platform]",
			"approve: [{by: [reviewer, manager],", "add manager, or reviewer"},
		{"by nobody: the run is elsewhere", "by-nobody", Warning, reviewed, "    on:\n      exited: [{target: '", "    on:\n      give: [{by: [stranger], do: [{comment: hm}]}]\n      exited: [{target: '", "{by: [stranger]",
			"    on:\n      give: [{by: [implementer], do: [{comment: hm}]}]\n      exited: [{target: '", "nobody who sends give here has the role stranger"},
		{"by nobody: an event of the fleet", "by-nobody", Warning, small, "exited: [{target", "exited: [{by: [manager], target", "{by: [manager]",
			"exited: [{by: [platform], target", "write by: [platform]"},
		{"guard constant false", "guard-false", Warning, small, "payload.seconds > 600", "payload.seconds > 600 && 1 > 2", "{guard: payload.seconds",
			"payload.seconds > 600 && 2 > 1", "correct or remove it"},
		{"guard false in its status", "guard-false", Warning, small, "start: [{target", `start: [{guard: card.stored == "running", do: [{comment: no}]}, {target`, "{guard: card.stored",
			`start: [{guard: card.stored == "ready" && payload.x, do: [{comment: no}]}, {target`, "with the card in this status"},
		{"shadowed by one without guard", "shadowed", Warning, small, "timed_out: [{", "timed_out: [{do: [{comment: late}]}, {", "{target: todo, do: [{end_run: late}]}",
			"timed_out: [{guard: payload.limit > 9, do: [{comment: late}]}, {", "put the narrower one first"},
		{"shadowed by one that always holds there", "shadowed", Warning, small, "timed_out: [{", `timed_out: [{guard: card.status == "work", do: [{comment: late}]}, {`, "{target: todo, do: [{end_run: late}]}",
			`timed_out: [{guard: card.title == "work", do: [{comment: late}]}, {`, "always takes the event"},
		{"shadowed by the same guard", "shadowed", Warning, small, "timed_out: [{", "timed_out: [{guard: payload.limit > 9, do: [{comment: a}]}, {guard: payload.limit > 9, do: [{comment: b}]}, {", "{guard: payload.limit > 9, do: [{comment: b}]}",
			"timed_out: [{guard: payload.limit > 9, do: [{comment: a}]}, {guard: payload.limit > 8, do: [{comment: b}]}, {", "never reached"},
		{"shadowed for its senders", "shadowed", Warning, small, "start: [{", "take: [{by: [member], do: [{comment: a}]}, {by: [manager], do: [{comment: b}]}]\n      start: [{", "{by: [manager]",
			"take: [{by: [manager], do: [{comment: a}]}, {by: [member], do: [{comment: b}]}]\n      start: [{", "never reached"},
		{"role not listed", "role-falls-back", Warning, reviewed, "roles: {reviewer: params.reviewer}\n", "", "{claim: {role: reviewer}}",
			"roles: {reviewer: '\"make\"'}\n", "role reviewer is not listed under roles: the card's assignee plays it, as it plays implementer"},
		{"role that gives nothing", "role-falls-back", Warning, reviewed, "{guard: params.reviewer != nil, target: look", "{target: look", "{claim: {role: reviewer}}",
			"{guard: params.reviewer != nil && card.priority > 0, target: look", "guard the transition with what gives the profile"},
		{"a parameter that nothing reads", "unread-param", Warning, reviewed, "params: {reviewer: null}", "params: {reviewer: null, reviwer: null}", "reviwer: null",
			"params: {reviewer: null, round: 30}", "did you mean reviewer?"},
		{"a player that is no profile", "unknown-profile", Error, reviewed, "params: {reviewer: null}", "params: {reviewer: mak}", "mak}",
			"params: {reviewer: make}", "did you mean make?"},
		{"text inside a shell's program", "shell-text", Warning, small, "args: [make]", "args: [bash, -lc, 'echo {{ card.title }}']", "{harness: command",
			`args: [bash, -lc, 'echo "$1"', sh, '{{ card.title }}']`, "$MUSTER_BODY"},
		{"a key by its form", "key-literal", Error, small, "args: [make]", "args: [make, '--with=ghp_0123456789abcdefghijklmnopqrstuvwxyz']", "'--with=ghp",
			"args: [make, '--with=ghp_0123']", "take it from the executing node"},
		{"a key by its name", "key-literal", Warning, small, "args: [make]", "args: [make], env: {API_KEY: '12345678'}", "'12345678'",
			"args: [make], env: {API_KEY: {from: API_KEY}}", "everybody who may read the board"},
	}
}

// Issue 3, item 5: each mistake is told with its line, its column and advice; what is nearly one is not.
func TestLintNear(t *testing.T) {
	if fs := Lint(load(t, reviewed)); len(fs) != 0 {
		t.Fatalf("nothing is wrong with a reviewer and it says: %v", fs)
	}
	for _, n := range nears() {
		t.Run(strings.ReplaceAll(n.name, " ", "-"), func(t *testing.T) {
			wrong, right := strings.Replace(n.base, n.from, n.wrong, 1), strings.Replace(n.base, n.from, n.right, 1)
			if wrong == n.base || right == n.base {
				t.Fatalf("the file has no %q", n.from)
			}
			if strings.Contains(n.name, "elsewhere") { // a role that the file knows and nobody has
				wrong = strings.Replace(wrong, "roles: {", "roles: {stranger: nil, ", 1)
			}
			found := Lint(load(t, wrong))
			i := slices.IndexFunc(found, func(f Finding) bool { return f.Check == n.check })
			if i < 0 {
				t.Fatalf("it does not say %s: %v", n.check, found)
			}
			f := found[i]
			if f.Severity != n.severity || !strings.Contains(f.String(), n.part) {
				t.Errorf("it says %v, want %s with %q", f, n.severity, n.part)
			}
			if f.Advice == "" || f.Path == "" {
				t.Errorf("without advice or path: %+v", f)
			}
			lines := strings.Split(wrong, "\n")
			if f.Line < 1 || f.Line > len(lines) || !strings.HasPrefix(lines[f.Line-1][f.Column-1:], n.place) {
				t.Errorf("it points at %d:%d, want %q there", f.Line, f.Column, n.place)
			}
			for _, f := range Lint(load(t, right)) {
				if f.Check == n.check || f.Severity == Error {
					t.Errorf("nothing is wrong with the near one and it says %v", f)
				}
			}
		})
	}
}

// Every check of the linter that item 5 names is among the nears.
func TestLintNearNamesEveryCheck(t *testing.T) {
	have := map[string]bool{}
	for _, n := range nears() {
		have[n.check] = true
	}
	for _, check := range []string{"unreachable-status", "run-left", "requeue-without-lease", "requeue-without-forget", "limit-unhandled", "never-left",
		"by-nobody", "guard-false", "shadowed", "role-falls-back", "shell-text", "key-literal"} {
		if !have[check] {
			t.Errorf("no near pair for %s", check)
		}
	}
}

// The forms of keys that are known, and what only looks a little like one.
func TestKeyShapes(t *testing.T) {
	for text, want := range map[string]bool{
		"sk-proj-abcdefghij0123456789": true, "AKIA0123456789ABCDEF": true, "glpat-0123456789abcdefghij": true, "xoxb-123456789012-abc": true,
		"-----BEGIN OPENSSH PRIVATE KEY-----": true, "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-_": true, "hf_abcdefghijklmnopqrstuvwxyzABCD": true,
		"ask-about-the-key-of-the-house-please": false, "sk-short": false, "task-0123456789abcdefghij": false, "-----BEGIN CERTIFICATE-----": false,
		"ghp_{{ payload.x }}": false, "git@github.com:a/b.git": false,
	} {
		if keyShapes.MatchString(text) != want {
			t.Errorf("%q: a key: %v, want %v", text, !want, want)
		}
	}
}

// The default workflow has no finding.
func TestLintDefault(t *testing.T) {
	src, err := os.ReadFile("default-workflow.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range Lint(load(t, string(src))) {
		t.Error(f)
	}
}
