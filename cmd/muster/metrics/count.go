package metrics

import (
	"cmp"
	"slices"

	"muster/board"
)

// State is what of the replicated state is counted. Keys are label values, in
// the order of the table of names.
type State struct {
	Cards    map[[2]string]int // board, status
	Waits    map[[2]string]int // board, check of the reason
	Needs    map[[2]string]int // board, kind
	Sessions map[[3]string]int // board, node, profile
	Paused   map[[2]string]int // of, name
	Hooks    map[[2]string]int // board, id of a webhook: failures in a row
	Caps     []board.CapUse
	Machines []Machine
	Voters   int
}

// Machine is a machine of the fleet, with what it last said of itself.
type Machine struct {
	ID, Name string
	Slots    int64
	Reading  board.Reading
}

// Heard is the same count with newer readings of the machines.
func (s *State) Heard(nodes map[string]board.Reading) *State {
	fresh := *s
	fresh.Machines = slices.Clone(s.Machines)
	for i := range fresh.Machines {
		fresh.Machines[i].Reading = nodes[fresh.Machines[i].ID]
	}
	return &fresh
}

// Count counts what a reading of the state holds. nodes gives what is known of
// a machine now; now is board time in ms. Boards that were put aside are not
// counted, nor is what an import has not finished yet.
func Count(v board.View, ws *board.Workflows, nodes func(id string) board.Reading, now int64) *State {
	s := &State{Cards: map[[2]string]int{}, Waits: map[[2]string]int{}, Needs: map[[2]string]int{}, Sessions: map[[3]string]int{}, Paused: map[[2]string]int{}, Hooks: map[[2]string]int{}}
	aside := map[string]bool{}
	if f := board.GetFleet(v); f != nil && f.PausedBy != "" {
		s.Paused[[2]string{"fleet", ""}] = 1
	}
	board.EachBoard(v, func(b *board.Board) bool {
		if aside[b.Slug] = b.Archived; !b.Archived && b.PausedBy != "" {
			s.Paused[[2]string{"board", b.Slug}] = 1
		}
		return true
	})
	names := map[string]string{}
	board.EachNode(v, func(n *board.Node) bool {
		names[n.ID] = n.Name
		if n.State == board.NodeLeft {
			return true
		}
		if n.Role == board.RoleVoter {
			s.Voters++
		}
		if n.Draining {
			s.Paused[[2]string{"node", n.Name}] = 1
		}
		s.Machines = append(s.Machines, Machine{ID: n.ID, Name: n.Name, Slots: n.Slots, Reading: nodes(n.ID)})
		return true
	})
	board.EachGlance(v, nil, func(g *board.Glance) bool {
		if aside[g.Board] {
			return true
		}
		s.Cards[[2]string{g.Board, g.Status}]++
		if g.Waits != "" && !g.Current {
			s.Waits[[2]string{g.Board, g.Waits}]++
		}
		return true
	})
	board.EachNeed(v, nil, func(n *board.Need) bool { s.Needs[[2]string{n.Board, n.Kind}]++; return true })
	board.EachHeld(v, "", func(h *board.Held) bool {
		s.Sessions[[3]string{h.Board, cmp.Or(names[h.Node], h.Node), h.Profile}]++
		return true
	})
	board.EachWebhook(v, func(h *board.Webhook) bool {
		s.Hooks[[2]string{h.Board, h.ID}] = int(h.Failures)
		return true
	})
	for _, u := range board.CapUses(v, ws, nodes, now) {
		if u.Scope != "card" { // one series a card would be one for every card there ever was
			s.Caps = append(s.Caps, u)
		}
	}
	return s
}
