package api

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"muster/board"
	"muster/board/workflow"
)

// Move is what an event would do to a card if its reader sent it now: nothing is written for it.
type Move struct {
	Event  string   `json:"event"`
	OK     bool     `json:"ok"`
	Target string   `json:"target,omitempty"` // the status it would be in; "" when it is not known before
	Check  string   `json:"check,omitempty"`  // of a refusal
	Text   string   `json:"text,omitempty"`
	Hint   string   `json:"hint,omitempty"`
	May    []string `json:"may,omitempty"` // statuses that its transitions name; from there the workflow may have sent it on at once
}

// trial is a payload that says everything an event of the workflow may ask for.
func trial(c *board.Card) map[string]any {
	return map[string]any{"text": "-", "why": "-", "summary": "-", "reason": "-", "kind": "needs_input", "title": c.Title,
		"children": []any{map[string]any{"title": "-"}}, "assignee": c.Assignee}
}

// moves tells which events the caller may send to a card, what each would do, and
// why not. The executor itself is asked, on this node's state.
func (h *handler) moves(r *http.Request, who caller) (any, Fresh, error) {
	known := h.b.Readings(r.Context()).Nodes
	list := []Move{}
	f, err := h.read(r, func(v board.View) error {
		c, err := findCard(v, r.PathValue("id"), who)
		if err != nil {
			return err
		}
		b, err := findBoard(v, c.Board)
		if err != nil {
			return err
		}
		w, err := h.flows.Of(v, b)
		if err != nil {
			return err
		}
		for _, event := range saidIn(w, c.Status) {
			list = append(list, h.try(v, w, c, event, who, known))
		}
		return nil
	})
	return list, f, err
}

// saidIn are the events that anybody but the fleet may send in a status.
func saidIn(w *workflow.Workflow, status string) []string {
	set := map[string]bool{}
	add := func(on map[string][]*workflow.Transition) {
		for event, list := range on {
			for _, t := range list {
				if !board.FleetEvent(event) && (len(t.By) == 0 || slices.ContainsFunc(t.By, func(by string) bool { return by != board.ActorPlatform })) {
					set[event] = true
				}
			}
		}
	}
	if s := w.Statuses[status]; s != nil {
		add(s.On)
	}
	add(w.On)
	return slices.Sorted(maps.Keys(set))
}

// try executes an event on the state, and drops what it would write.
func (h *handler) try(v board.View, w *workflow.Workflow, c *board.Card, event string, who caller, known map[string]board.Reading) Move {
	m := Move{Event: event, May: targets(w, c.Status, event)}
	if event == w.Dispatch.Start { // where it would run is found by the leader, when it is asked
		role := who.role
		if n := board.GetNode(v, who.actor.Node); h.door == DoorUser && n != nil {
			role = n.SocketRole()
		}
		m.OK = role == "manager" && c.Run == ""
		if len(m.May) == 1 {
			m.Target = m.May[0]
		}
		if !m.OK {
			m.Check, m.Text = board.CheckRole, "only a manager starts a card by hand"
			if c.Run != "" {
				m.Check, m.Text = "run", "run "+c.Run+" works on it"
			}
		}
		return m
	}
	args, err := json.Marshal(board.FireEvent{Card: c.ID, Event: event, Payload: trial(c)})
	if err != nil {
		m.Text = err.Error()
		return m
	}
	env := &board.Env{Now: v.Time(), Seq: v.Seq() + 1, Workflows: h.flows, Nodes: func(id string) board.Reading { return known[id] }}
	txn, res := board.Exec(v, &board.Request{Actor: who.actor, Secret: who.secret, Verb: board.VEvent, Args: args}, env)
	if res.Err != nil {
		m.Check, m.Text, m.Hint = res.Err.Check, res.Err.Message, res.Err.Hint
		return m
	}
	o := board.NewOverlay(v)
	o.Apply(&txn)
	m.OK = true
	if now := board.GetCard(o, c.ID); now != nil {
		m.Target = now.Status
	}
	return m
}

// targets are the statuses that the transitions of an event name.
func targets(w *workflow.Workflow, status, event string) (list []string) {
	var all []*workflow.Transition
	if s := w.Statuses[status]; s != nil {
		all = append(all, s.On[event]...)
	}
	for _, t := range append(all, w.On[event]...) {
		if t.Target == nil {
			continue
		}
		texts, _ := t.Target.Outcomes()
		for _, x := range texts {
			if w.Statuses[x] != nil && !slices.Contains(list, x) {
				list = append(list, x)
			}
		}
	}
	return list
}
