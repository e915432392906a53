package scenario

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"muster/board/workflow"
)

// begin is when a story begins that does not say: a Monday noon.
var begin = time.Date(2026, time.January, 5, 12, 0, 0, 0, time.UTC)

// Load reads a file of scenarios. They are nil when the report has failed.
func Load(src []byte) ([]*Scenario, *workflow.Report) {
	r := &reader{report: &workflow.Report{}}
	root := r.document(src)
	if root == nil {
		return nil, r.report
	}
	var list []*Scenario
	seen := map[string]int{}
	for i, n := range r.list(root, "", maxScenarios) {
		s := r.scenario(n, fmt.Sprintf("[%d]", i))
		if first := seen[s.Name]; first != 0 {
			r.fail(n, fmt.Sprintf("[%d]", i), "name", fmt.Sprintf("there is a scenario %q in line %d", clip(s.Name), first), "give it another name")
		}
		seen[s.Name] = n.Line
		list = append(list, s)
	}
	if r.report.Failed() {
		return nil, r.report
	}
	return list, r.report
}

func at(n *yaml.Node) workflow.Pos { return workflow.Pos{Line: n.Line, Column: n.Column} }

func (r *reader) scenario(n *yaml.Node, path string) *Scenario {
	s := &Scenario{Pos: at(n), At: begin.UnixMilli()}
	r.fields(n, path, map[string]field{
		"name":   r.text(&s.Name),
		"params": r.object(&s.Params), "profiles": r.object(&s.Profiles),
		"zone": func(n *yaml.Node, path string) {
			r.text(&s.Zone)(n, path)
			if _, err := time.LoadLocation(s.Zone); err != nil {
				r.fail(n, path, "value", fmt.Sprintf("%q is no time zone", clip(s.Zone)), "use a name like Europe/Berlin")
			}
		},
		"at": func(n *yaml.Node, path string) {
			when, err := time.Parse(time.RFC3339, n.Value)
			if err != nil {
				r.fail(n, path, "value", "a time is wanted here", "write it like 2026-03-02T10:00:00Z")
				return
			}
			s.At = when.UnixMilli()
		},
		"machines": func(n *yaml.Node, path string) {
			for i, item := range r.list(n, path, 20) {
				s.Machines = append(s.Machines, r.machine(item, fmt.Sprintf("%s[%d]", path, i)))
			}
		},
		"cards": func(n *yaml.Node, path string) {
			for i, item := range r.list(n, path, maxCards) {
				s.Cards = append(s.Cards, r.card(item, fmt.Sprintf("%s[%d]", path, i)))
			}
		},
		"steps": func(n *yaml.Node, path string) {
			for i, item := range r.list(n, path, maxSteps) {
				s.Steps = append(s.Steps, r.step(item, fmt.Sprintf("%s[%d]", path, i)))
			}
		},
	})
	if s.Name == "" && n.Kind == yaml.MappingNode {
		r.fail(n, path, "missing", "a scenario has a name: what it shows", "")
	}
	if len(s.Steps) == 0 && n.Kind == yaml.MappingNode {
		r.fail(n, path, "missing", "a scenario has steps", "")
	}
	return s
}

func (r *reader) machine(n *yaml.Node, path string) Machine {
	m := Machine{Pos: at(n), AlwaysOn: true, Slots: 4, Pressure: "normal", Labels: map[string]string{"os": "linux"}, Tools: []string{"git", "sh"}}
	online := true
	r.fields(n, path, map[string]field{
		"name": r.text(&m.Name), "always_on": r.truth(&m.AlwaysOn), "online": r.truth(&online), "slots": r.whole(&m.Slots),
		"pressure": r.text(&m.Pressure), "labels": r.labels(&m.Labels), "tools": r.words(&m.Tools),
		"harnesses": func(n *yaml.Node, path string) { m.HarnessesGiven = true; r.words(&m.Harnesses)(n, path) },
	})
	m.Offline = !online
	if m.Name == "" && n.Kind == yaml.MappingNode {
		r.fail(n, path, "missing", "a machine has a name", "")
	}
	return m
}

func (r *reader) card(n *yaml.Node, path string) Card {
	c := Card{Pos: at(n)}
	r.fields(n, path, map[string]field{
		"id": r.text(&c.ID), "status": r.text(&c.Status), "previous": r.text(&c.Previous), "title": r.text(&c.Title), "body": r.text(&c.Body),
		"assignee": r.text(&c.Assignee), "machine": r.text(&c.Machine), "kind": r.text(&c.Kind), "creator": r.text(&c.Creator),
		"last_error": r.text(&c.LastError), "subtask_of": r.text(&c.SubtaskOf), "priority": r.whole(&c.Priority), "failures": r.whole(&c.Failures),
		"max_retries": r.option(&c.MaxRetries), "max_runtime": r.option(&c.MaxRuntime), "goal_mode": r.truth(&c.Goal), "goal_max_turns": r.option(&c.GoalTurns),
		"labels": r.labels(&c.Labels), "after": r.words(&c.After), "start_after": r.option(&c.StartAfter),
		"blocks": func(n *yaml.Node, path string) {
			c.Blocks = map[string]int64{}
			m, _ := r.value(n).(map[string]any)
			for _, k := range keys(m) {
				v, ok := m[k].(float64)
				if !ok {
					r.fail(n, path, "type", "how often each kind was said", "write {needs_input: 1}")
				}
				c.Blocks[k] = int64(v)
			}
		},
		"run": func(n *yaml.Node, path string) {
			c.Run = &Run{}
			r.fields(n, path, map[string]field{"role": r.text(&c.Run.Role), "source": r.text(&c.Run.Source), "profile": r.text(&c.Run.Profile), "machine": r.text(&c.Run.Machine)})
		},
	})
	if n.Kind != yaml.MappingNode {
		return c
	}
	if c.ID == "" || c.Status == "" {
		r.fail(n, path, "missing", "a card has an id and a status", "")
	}
	if !slices.Contains([]string{"", "person", "run", "platform"}, c.Creator) {
		r.fail(n, path, "value", "a creator is person, run or platform", "")
	}
	return c
}

func (r *reader) step(n *yaml.Node, path string) Step {
	s := Step{Pos: at(n)}
	r.fields(n, path, map[string]field{
		"after": r.seconds(&s.After), "event": r.text(&s.Event), "card": r.text(&s.Card), "by": r.text(&s.By), "payload": r.object(&s.Payload),
		"machine": r.text(&s.Machine), "profile": r.text(&s.Profile), "force": r.truth(&s.Force), "why": r.text(&s.Why),
		"add":  func(n *yaml.Node, path string) { s.Add = true; r.object(&s.Payload)(n, path) },
		"then": func(n *yaml.Node, path string) { s.Then = r.checks(n, path) },
	})
	switch {
	case n.Kind != yaml.MappingNode:
	case s.Add && (s.Event != "" || s.Card != ""):
		r.fail(n, path, "step", "add files a new card: it has neither event nor card", "name the card with then: {new: [NAME]}")
	case s.Event == "" && !s.Add && s.After == 0:
		r.fail(n, path, "step", "a step is an event, an add, or time that passes (after)", "")
	case s.Event != "" && s.Card == "":
		r.fail(n, path, "step", "which card? give card: ID", "")
	}
	return s
}

func (r *reader) checks(n *yaml.Node, path string) (list []Check) {
	if n.Kind != yaml.MappingNode {
		r.fail(n, path, "type", "a map of what must be so is wanted here", "keys are: "+fmt.Sprint(keys(probes)))
		return nil
	}
	known := map[string]field{}
	for _, k := range keys(probes) {
		known[k] = func(n *yaml.Node, path string) { list = append(list, Check{Pos: at(n), Key: k, Want: r.value(n)}) }
	}
	r.fields(n, path, known)
	return list
}

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
