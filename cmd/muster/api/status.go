package api

import (
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
		board.EachBoard(v, func(bd *board.Board) bool { s.Boards = append(s.Boards, BoardOf(v, bd, true)); return true })
		if f := board.GetFleet(v); f != nil && f.PausedBy != "" {
			s.Alarms = append(s.Alarms, fmt.Sprintf("the fleet is paused by %s: %s", f.PausedBy, f.PausedWhy))
		}
		return nil
	})
	slices.SortFunc(s.Nodes, func(a, b Node) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
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
