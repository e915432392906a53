package workflow

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"muster/board/rule"
)

// A profile inherits what it does not say; null says "none"; lists replace, maps merge.
func TestProfileParents(t *testing.T) {
	w := overlay(t, `
profiles:
  base: {harness: claude-code, model: big, capacity: 4, memory: 1.5G, who: [manager], workspace: {kind: worktree, repo: app, push: origin}, env: {A: '1', B: {from: HOME}}}
  mid: {parent: base, capacity: null, workspace: {push: null}, env: {A: '2'}, fallback: [codex]}
  leaf: {parent: mid, model: small, surface: pane, requires: '"git" in machine.tools', prefer: 'machine.labels.tier == "x" ? 1 : 0'}
`)
	base, mid, leaf := w.Profile("base"), w.Profile("mid"), w.Profile("leaf")
	if *base.Capacity != 4 || base.Memory != 3<<29 || base.Workspace.Push != "origin" || base.Placement != "any" || base.Permissions != "edit" || base.Verdict != "explicit" {
		t.Errorf("base: %+v", base)
	}
	if mid.Model != "big" || mid.Capacity != nil || mid.Workspace.Push != "" || mid.Workspace.Repo != "app" || mid.Env["A"].Text.Source() != "2" || mid.Env["B"].From != "HOME" || mid.Memory != base.Memory {
		t.Errorf("mid: %+v", mid)
	}
	if leaf.Model != "small" || leaf.Surface != "pane" || leaf.Capacity != nil || !reflect.DeepEqual(leaf.Who, []string{"manager"}) || !reflect.DeepEqual(leaf.Fallback, []string{"codex"}) {
		t.Errorf("leaf: %+v", leaf)
	}
	scope := leaf.Scope()
	if scope["name"] != "leaf" || scope["capacity"] != nil || scope["surface"] != "pane" || base.Scope()["capacity"] != int64(4) {
		t.Errorf("scope: %v", scope)
	}
}

// The harness gives what the profile leaves open: a command's exit code is its word, and only managers may give it cards.
func TestProfileDefaults(t *testing.T) {
	w := overlay(t, "profiles: {tests: {harness: command, args: [make, test]}, open: {parent: tests, who: [member], verdict: explicit}}")
	tests, open, claude := w.Profile("tests"), w.Profile("open"), w.Profile("claude")
	if tests.Verdict != "exit" || !reflect.DeepEqual(tests.Who, []string{"manager"}) || open.Verdict != "explicit" || !reflect.DeepEqual(open.Who, []string{"member"}) {
		t.Errorf("%+v %+v", tests, open)
	}
	if claude.Verdict != "explicit" || !reflect.DeepEqual(claude.Who, []string{"manager", "member"}) {
		t.Errorf("%+v", claude)
	}
}

// A profile's argv comes from its harness: templates, groups with a condition, the profile's own args; no shell.
func TestArgv(t *testing.T) {
	w := overlay(t, `
profiles:
  tests: {harness: command, args: [sh, -c, 'sh "$MUSTER_BODY"', '{{ card.id }}']}
  quiet: {parent: claude, permissions: full, model: big, args: [--max-turns, '5']}
  mine: {harness: own, args: [x y, '']}
harnesses:
  own: {headless: {fresh: [prog, '{{ brief }}', {when: card.priority > 5, args: [--urgent]}, {each: profile.args, args: [-a, '{{ item }}']}]}}
`)
	scope := rule.Scope{"card": map[string]any{"id": "web-1", "priority": int64(9)}, "session": map[string]any{"id": "uuid"}, "prompt": "$(do it)", "brief": "/b"}
	for _, c := range []struct {
		profile string
		resume  bool
		want    string
	}{
		{"tests", false, `sh|-c|sh "$MUSTER_BODY"|web-1`},
		{"mine", false, "prog|/b|--urgent|-a|x y|-a|"},
		{"quiet", false, "claude|-p|--verbose|--output-format=stream-json|--session-id|uuid|--model|big|--permission-mode|bypassPermissions|--allowedTools=Bash(muster:*)|--disallowedTools=AskUserQuestion|--max-turns|5"},
		{"claude", true, "claude|-p|--verbose|--output-format=stream-json|--resume|uuid|--permission-mode|acceptEdits|--allowedTools=Bash(muster:*)|--disallowedTools=AskUserQuestion"},
		{"claude-pane", false, "claude|--session-id|uuid|--permission-mode|acceptEdits|--allowedTools=Bash(muster:*)"},
		{"codex", true, `codex|exec|--json|--skip-git-repo-check|-c|allow_login_shell=false|-c|sandbox_mode="workspace-write"|-c|sandbox_workspace_write.network_access=true|resume|uuid|-`},
	} {
		argv, err := w.Argv(w.Profile(c.profile), c.resume, scope)
		if i := slices.Index(argv, "--settings"); i >= 0 { // its hooks
			var hooks struct{ Hooks map[string]any }
			if err := json.Unmarshal([]byte(argv[i+1]), &hooks); err != nil || len(hooks.Hooks) < 6 {
				t.Errorf("%s: its hooks are %v: %s", c.profile, err, argv[i+1])
			}
			argv = slices.Delete(argv, i, i+2)
		}
		if got := strings.Join(argv, "|"); got != c.want || err != nil {
			t.Errorf("%s (resume %v):\n%s\n%v, want\n%s", c.profile, c.resume, got, err, c.want)
		}
	}
	for profile, part := range map[string]string{"tests": "cannot take up a session again", "mine": "cannot take up a session again"} {
		if _, err := w.Argv(w.Profile(profile), true, scope); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s resumed: %v", profile, err)
		}
	}
	scope["card"].(map[string]any)["id"] = "a\x00b"
	if _, err := w.Argv(w.Profile("tests"), false, scope); err == nil || !strings.Contains(err.Error(), "zero byte") {
		t.Errorf("an argument with a zero byte: %v", err)
	}
	if _, ok := scope["profile"]; ok {
		t.Error("the caller's scope was changed")
	}
}

// Presets are data, each complete; a board may change single keys of one.
func TestPresets(t *testing.T) {
	w := overlay(t, "harnesses: {codex: {env: {CODEX_HOME: /x}, prompt: argument}}")
	for _, name := range []string{"command", "claude-code", "codex", "opencode", "gemini", "hermes"} {
		h := w.Harnesses[name]
		if h == nil || !h.Preset || h.Headless == nil || h.Unverified != (name == "hermes") {
			t.Fatalf("%s: %+v", name, h)
		}
		if (h.Session.From == "reported") != (h.Session.JSON != "") {
			t.Errorf("%s: session %+v", name, h.Session)
		}
	}
	codex := w.Harnesses["codex"]
	if codex.Prompt != "argument" || codex.Env["CODEX_HOME"].Text.Source() != "/x" || codex.Session.JSON != "thread_id" || len(codex.Env) != 2 {
		t.Errorf("codex: %+v", codex)
	}
	if w.Harnesses["command"].Exit[75] != "rate_limit" || w.Harnesses["claude-code"].Exit[143] != "stopped" || w.Harnesses["claude-code"].Session.From != "minted" {
		t.Error("exit codes or session ids are lost")
	}
}
