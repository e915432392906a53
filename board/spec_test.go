package board

import (
	"encoding/json"
	"slices"
	"testing"
)

// HLS-02, HLS-03, HLS-04, M-24: Hermes's worker gets its arguments in this order and its own names for what
// a session is told; what is not known is not set, and no path of a database ever is.
func TestHermesIsDataToo(t *testing.T) {
	w := newWorld(t, `version: 1
name: t
extends: default
profiles:
  lane: {harness: hermes, model: small, permissions: full, args: [--toolsets, web]}
`)
	w.edit("atlas", func(n *Node) { n.Harnesses = []string{"command", "hermes"} })
	full := w.add("x", func(c *Card) {
		c.Assignee, c.Skills, c.Model, c.Provider, c.Effort, c.Goal = "lane", []string{"a", "b"}, "large", "acme", "high", true
		c.Tenant, c.Branch = "t1", "topic"
		turns := int64(7)
		c.GoalMaxTurns = &turns
	})
	plain := w.add("y", func(c *Card) { c.Assignee = "lane" })
	for id, want := range map[string]struct {
		argv []string
		env  map[string]string
	}{
		full: {[]string{"hermes", "-p", "lane", "--cli", "--accept-hooks", "--skills", "a", "--skills", "b", "-m", "large", "--provider", "acme", "--reasoning", "high", "--toolsets", "web", "chat", "--yolo", "-q"},
			map[string]string{"HERMES_TENANT": "t1", "HERMES_KANBAN_BRANCH": "topic", "HERMES_KANBAN_GOAL_MODE": "1", "HERMES_KANBAN_GOAL_MAX_TURNS": "7"}},
		plain: {[]string{"hermes", "-p", "lane", "--cli", "--accept-hooks", "-m", "small", "--toolsets", "web", "chat", "--yolo", "-q"}, nil},
	} {
		s := w.spec(w.started(id))
		if !slices.Equal(s.Argv, append(slices.Clip(want.argv), s.Prompt)) {
			t.Errorf("argv %q\nwant %q and the prompt", s.Argv, want.argv)
		}
		got := map[string]string{}
		for k, v := range s.Env {
			if k[0] == 'H' {
				got[k] = v
			}
		}
		expect := map[string]string{"HERMES_PROFILE": "lane", "HERMES_KANBAN_TASK": id, "HERMES_KANBAN_BOARD": "web", "HERMES_SESSION_SOURCE": "kanban",
			"HERMES_KANBAN_WORKSPACE": "$MUSTER_WORKSPACE", "HERMES_KANBAN_RUN_ID": "$MUSTER_RUN", "HERMES_KANBAN_CLAIM_LOCK": "$MUSTER_LOCK"}
		for k, v := range want.env {
			expect[k] = v
		}
		for k, v := range expect {
			if got[k] != v {
				t.Errorf("card %s: %s is %q, want %q", id, k, got[k], v)
			}
		}
		if len(got) != len(expect) {
			t.Errorf("card %s: %v, want only %v", id, got, expect)
		}
	}
}

// LAU-13: the card's skills and those of what its status runs, in order, each once.
func TestSkillsAreTheUnion(t *testing.T) {
	if got := union([]string{"a", "", "b"}, []string{"b", "c", "a"}); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("%v", got)
	}
}

// A profile's limit of memory reaches the machine.
func TestMemoryLimitIsInTheOrder(t *testing.T) {
	w := newWorld(t, "version: 1\nname: t\nextends: default\nprofiles: {big: {harness: command, args: [x], memory: 1G}}\n")
	s := w.spec(w.started(w.add("x", func(c *Card) { c.Assignee = "big" })))
	var x SpecExtra
	if err := json.Unmarshal(s.Extra, &x); err != nil || x.Memory != 1<<30 {
		t.Errorf("%+v, %v", x, err)
	}
}
