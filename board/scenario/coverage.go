package scenario

import (
	_ "embed"
	"fmt"

	"muster/board/workflow"
)

//go:embed default-scenarios.yaml
var defaultSource []byte

// DefaultSource are the scenarios of the default workflow: each of its transitions is taken by one of them.
func DefaultSource() []byte { return defaultSource }

// Line is one transition of a workflow and how often scenarios took it.
type Line struct {
	workflow.Pos
	Path  string
	Says  string // what tells it from its neighbours: event, senders, guard, target
	Taken int
}

// Coverage lists all transitions, in the order of the workflow, with what was played so far.
func (p *Player) Coverage() (lines []Line) {
	for _, t := range p.Workflow.All() {
		lines = append(lines, Line{Pos: t.Pos, Path: t.Path, Says: says(t), Taken: p.taken[t.Path]})
	}
	return lines
}

func says(t *workflow.Transition) string {
	s := t.Event
	if len(t.By) > 0 {
		s += fmt.Sprintf(" by %v", t.By)
	}
	if t.Guard != nil {
		s += " if " + t.Guard.Source()
	}
	if t.Target != nil {
		s += " -> " + t.Target.Source()
	}
	return s
}
