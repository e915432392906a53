package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"muster/board"
)

// status gathers the fleet at a glance, with what a person should know.
func status(ctx context.Context, b Backend, consistent bool) (*Status, Fresh, error) {
	r := b.Readings(ctx)
	info := b.Info()
	s := &Status{Fleet: info.Fleet, Node: info.Name, Leader: r.Leader, Term: r.Term, Quorum: r.Live, Hash: b.Hash(), Nodes: []Node{}, Boards: []Board{}, Alarms: []string{}, Notes: []string{}}
	fresh, err := b.Read(ctx, consistent, func(v board.View) error {
		s.Seq, s.Time = v.Seq(), at(v.Time())
		board.EachNode(v, func(n *board.Node) bool {
			x := NodeOf(v, n, r.Nodes[n.ID], r.Leader, r.Live)
			if n.Role == board.RoleVoter {
				s.Voters++
			}
			if x.Leader {
				s.Leader = n.Name
			}
			if x.State == board.NodeOffline {
				s.Alarms = append(s.Alarms, fmt.Sprintf("%s is offline", n.Name))
			}
			if x.Estop {
				s.Alarms = append(s.Alarms, fmt.Sprintf("%s starts nothing: ESTOP", n.Name))
			}
			s.Sessions += x.Running
			s.Nodes = append(s.Nodes, x)
			return true
		})
		board.EachBoard(v, func(bd *board.Board) bool {
			x := BoardOf(v, bd, true)
			if x.Needs > 0 {
				s.Notes = append(s.Notes, fmt.Sprintf("board %s: %d card(s) need a person: muster card list --board %s --attention", x.Slug, x.Needs, x.Slug))
			}
			if x.Paused != "" {
				s.Alarms = append(s.Alarms, fmt.Sprintf("board %s is paused by %s", x.Slug, x.Paused))
			}
			s.Boards = append(s.Boards, x)
			return true
		})
		s.told(v)
		if f := board.GetFleet(v); f != nil && f.PausedBy != "" {
			s.Alarms = append(s.Alarms, fmt.Sprintf("the fleet is paused by %s: %s", f.PausedBy, f.PausedWhy))
		}
		return nil
	})
	slices.SortFunc(s.Nodes, func(a, b Node) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	s.Alarms = append(append([]string{}, r.Alarms...), s.Alarms...)
	if !r.Live {
		s.Alarms = slices.Insert(s.Alarms, 0, "no leader is reachable from here: nothing starts, moves or gets a verdict; running sessions go on under their lease")
	}
	if s.Voters == 1 && len(s.Nodes) > 0 {
		s.Notes = append(s.Notes, "one voter: if its disk dies, what was not copied to a replica is lost; with three machines that stay on the fleet survives any one of them")
	}
	if s.Voters == 2 {
		s.Notes = append(s.Notes, "two voters: while either is away nothing can be written")
	}
	return s, fresh, err
}
