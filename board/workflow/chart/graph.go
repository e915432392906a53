package chart

import (
	"fmt"
	"slices"
	"strings"

	"muster/board/workflow"
)

// drawnFrom is the number of statuses up to which a transition of the whole workflow is drawn from each of them;
// above it, it is listed as one that holds anywhere.
const drawnFrom = 2

// Graph is what is drawn of a workflow.
type Graph struct {
	Name     string
	Statuses []Status
	Edges    []Edge // between two statuses one at most, in the order of the file
	Anywhere []Row
}

// Status is a box.
type Status struct {
	Name   string
	Stored string
	Role   string // who works here; "": nobody
	First  bool   // a new card may begin here
	Last   bool   // stored as done, cancelled or archived
}

// Edge is a line with the events that lead along it.
type Edge struct {
	From, To int // in Statuses
	Events   []string
	Start    bool // one of them is the dispatch's start
	Fleet    bool // all of them are the fleet's own
}

// Row is an event that holds in many statuses, and where it leads.
type Row struct {
	Event, By, To string
}

// Of reads a workflow as a graph.
func Of(w *workflow.Workflow) *Graph {
	g := &Graph{Name: w.Name}
	index := map[string]int{}
	first, _ := w.Initial.Outcomes()
	for i, name := range w.Order {
		s := w.Statuses[name]
		index[name] = i
		role := ""
		if s.Run != nil {
			role = s.Run.Role
		}
		g.Statuses = append(g.Statuses, Status{Name: name, Stored: s.StoredAs, Role: role, First: slices.Contains(first, name),
			Last: slices.Contains([]string{"done", "cancelled", "archived"}, s.StoredAs)})
	}
	for _, name := range w.Order {
		for _, event := range events(w.Statuses[name].On) {
			for _, t := range w.Statuses[name].On[event] {
				g.draw(w, index, []string{name}, t)
			}
		}
	}
	for _, event := range events(w.On) {
		for _, t := range w.On[event] {
			from := w.TakenIn(t)
			if targets, open := t.Target.Outcomes(); len(from) <= drawnFrom && len(targets) > 0 && !open {
				g.draw(w, index, from, t)
				continue
			}
			g.list(t, len(from))
		}
	}
	return g
}

// draw adds a transition's events to the lines from each status.
func (g *Graph) draw(w *workflow.Workflow, index map[string]int, from []string, t *workflow.Transition) {
	targets, _ := t.Target.Outcomes()
	for _, f := range from {
		for _, to := range targets {
			if f == to {
				continue
			}
			g.add(Edge{From: index[f], To: index[to], Events: []string{t.Event}, Start: t.Event == w.Dispatch.Start,
				Fleet: slices.Contains(workflow.PlatformEvents, t.Event)})
		}
	}
}

func (g *Graph) add(e Edge) {
	for i := range g.Edges {
		x := &g.Edges[i]
		if x.From != e.From || x.To != e.To {
			continue
		}
		if !slices.Contains(x.Events, e.Events[0]) {
			x.Events = append(x.Events, e.Events[0])
		}
		x.Start, x.Fleet = x.Start || e.Start, x.Fleet && e.Fleet
		return
	}
	g.Edges = append(g.Edges, e)
}

// list adds a transition to the rows, joined with the ones of its event.
func (g *Graph) list(t *workflow.Transition, from int) {
	if from == 0 {
		return
	}
	to, _ := t.Target.Outcomes()
	names := t.Target.Names()
	if slices.Contains(names, "run.source") {
		to = append(to, "where its run began")
	}
	if slices.Contains(names, "card.previous") {
		to = append(to, "the status before")
	}
	by := strings.Join(t.By, ", ")
	if slices.Contains(workflow.PlatformEvents, t.Event) {
		by = "platform"
	} else if by == "" {
		by = "anyone"
	}
	i := slices.IndexFunc(g.Anywhere, func(r Row) bool { return r.Event == t.Event })
	if i < 0 {
		g.Anywhere = append(g.Anywhere, Row{Event: t.Event, By: by})
		i = len(g.Anywhere) - 1
	}
	r := &g.Anywhere[i]
	r.To = union(r.To, to)
	r.By = union(r.By, strings.Split(by, ", "))
}

func union(have string, more []string) string {
	var all []string
	if have != "" {
		all = strings.Split(have, ", ")
	}
	for _, m := range more {
		if !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	return strings.Join(all, ", ")
}

// events are the names of a map of transitions, in the order of the file.
func events(on map[string][]*workflow.Transition) []string {
	var names []string
	for n, ts := range on {
		if len(ts) > 0 {
			names = append(names, n)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		x, y := on[a][0].Pos, on[b][0].Pos
		switch {
		case x.File != y.File:
			return strings.Compare(x.File, y.File)
		case x.Line != y.Line:
			return x.Line - y.Line
		case x.Column != y.Column:
			return x.Column - y.Column
		}
		return strings.Compare(a, b)
	})
	return names
}

// Mermaid is the graph as a state diagram in Mermaid's language.
func (g *Graph) Mermaid() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n    direction TB\n")
	for _, s := range g.Statuses {
		fmt.Fprintf(&b, "    state \"%s\" as %s\n", s.Name, mermaidID(s.Name))
	}
	for _, s := range g.Statuses {
		if s.First {
			fmt.Fprintf(&b, "    [*] --> %s\n", mermaidID(s.Name))
		}
	}
	for _, e := range g.Edges {
		fmt.Fprintf(&b, "    %s --> %s: %s\n", mermaidID(g.Statuses[e.From].Name), mermaidID(g.Statuses[e.To].Name), strings.Join(e.Events, ", "))
	}
	for _, s := range g.Statuses {
		if s.Last && !slices.ContainsFunc(g.Edges, func(e Edge) bool { return g.Statuses[e.From].Name == s.Name }) {
			fmt.Fprintf(&b, "    %s --> [*]\n", mermaidID(s.Name))
		}
	}
	if len(g.Anywhere) > 0 && len(g.Statuses) > 0 {
		fmt.Fprintf(&b, "    note right of %s\n        In many statuses\n", mermaidID(g.Statuses[0].Name))
		for _, r := range g.Anywhere {
			to := ""
			if r.To != "" {
				to = " leads to " + r.To
			}
			fmt.Fprintf(&b, "        %s (%s)%s\n", r.Event, r.By, to)
		}
		b.WriteString("    end note\n")
	}
	return b.String()
}

// mermaidID is a status's name as an identifier: the words of the language are none.
func mermaidID(name string) string { return "s_" + strings.ReplaceAll(name, "-", "__") }
