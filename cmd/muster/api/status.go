package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster/board"
)

// firstNeeds bounds how much of what needs a person a status tells in words.
const firstNeeds = 5

// StatusOf is the fleet at a glance, as a node has it with these readings.
func StatusOf(ctx context.Context, b Backend, r Readings) (*Status, Fresh, error) {
	return statusWith(ctx, b, r, false)
}

// status gathers the fleet at a glance, with what a person should know.
func status(ctx context.Context, b Backend, consistent bool) (*Status, Fresh, error) {
	return statusWith(ctx, b, b.Readings(ctx), consistent)
}

func statusWith(ctx context.Context, b Backend, r Readings, consistent bool) (*Status, Fresh, error) {
	info := b.Info()
	s := &Status{Fleet: info.Fleet, Node: info.Name, Leader: r.Leader, Term: r.Term, Quorum: r.Live, Hash: b.Hash(), Nodes: []Node{}, Boards: []Board{}, Pauses: []Pause{}, Alarms: []string{}, Notes: []string{}}
	fresh, err := b.Read(ctx, consistent, func(v board.View) error {
		if f := board.GetFleet(v); f != nil && f.PausedBy != "" {
			s.Pauses = append(s.Pauses, Pause{Of: "fleet", By: f.PausedBy, Why: f.PausedWhy, Since: optAt(f.PausedAt)})
		}
		s.Seq, s.Time = v.Seq(), at(v.Time())
		if f := board.GetFleet(v); f != nil {
			s.Format = f.Format
		}
		board.EachNode(v, func(n *board.Node) bool {
			x := NodeOf(v, n, r.Nodes[n.ID], r.Leader)
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
				s.Pauses = append(s.Pauses, *x.EstopBy)
			}
			if x.Drain != nil {
				s.Pauses = append(s.Pauses, *x.Drain)
			}
			s.Sessions += x.Running
			s.Nodes = append(s.Nodes, x)
			return true
		})
		board.EachBoard(v, func(bd *board.Board) bool {
			if bd.Archived {
				return true
			}
			x := BoardOf(v, bd, true)
			if x.Paused != "" {
				s.Pauses = append(s.Pauses, Pause{Of: "board", Name: x.Slug, By: bd.PausedBy, Why: bd.PausedWhy, Since: x.PausedAt})
			}
			s.Boards = append(s.Boards, x)
			return true
		})
		board.EachNeed(v, nil, func(n *board.Need) bool {
			if s.Needs++; len(s.First) < firstNeeds {
				s.First = append(s.First, needOf(v, n))
			}
			return true
		})
		s.told(v)
		s.Notes = append(s.Notes, orgNotes(v)...)
		return nil
	})
	slices.SortFunc(s.Nodes, func(a, b Node) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	alarms, notes := machines(s.Nodes)
	s.Alarms, s.Notes = some(slices.Concat(r.Alarms, alarms, s.Alarms)), some(slices.Concat(notes, s.Notes))
	s.Removed = r.Removed
	if r.Removed != "" { // the fleet lives, and nothing here is to be recovered
		s.Alarms = slices.Insert(s.Alarms, 0, r.Removed)
	} else if !r.Live {
		s.Alarms = slices.Insert(s.Alarms, 0, "no leader is reachable from here: nothing starts, moves or gets a verdict; running sessions go on under their lease")
		if s.Voters > 1 {
			s.Notes = append(s.Notes, "a majority of the voters must come back; if most of them, or what they remember, are lost for good: muster recover --help")
		}
	}
	if n := absentVoters(s); n != "" {
		s.Notes = append(s.Notes, n)
	}
	if s.Voters == 1 && len(s.Nodes) > 0 {
		s.Notes = append(s.Notes, "one voter: if its disk dies, what was not copied to a replica is lost; with three machines that stay on the fleet survives any one of them")
	}
	if s.Voters == 2 {
		s.Notes = append(s.Notes, "two voters: while either is away nothing can be written")
	}
	return s, fresh, err
}

// How far a machine's clock may be off board time before it is shown, and before it is an alarm (architecture.md §2, "Time").
const (
	clockShown = 5.0 // seconds
	clockAlarm = 60.0
)

// machines says what is wrong with single machines, by what each says of itself.
func machines(nodes []Node) (alarms, notes []string) {
	behind, told := 0, 0
	least := 0.0
	for _, x := range nodes {
		switch {
		case x.NoSpace && x.Leader:
			alarms = append(alarms, fmt.Sprintf("NOSPACE: %d MB are left on %s, which leads: nothing new is taken, running work goes on", x.DiskFreeMB, x.Name))
		case x.NoSpace:
			alarms = append(alarms, fmt.Sprintf("NOSPACE: %d MB are left on %s: it starts nothing new", x.DiskFreeMB, x.Name))
		}
		if x.State != board.NodeOnline {
			continue
		}
		told++
		if x.ClockOffS < -clockShown {
			behind++
			if least == 0 || x.ClockOffS > least {
				least = x.ClockOffS
			}
		}
	}
	if told > 0 && behind == told { // not the machines: an earlier leader's clock was ahead
		return alarms, append(notes, fmt.Sprintf("board time is at least %s ahead of every machine's clock, since an earlier leader's was", seconds(-least)))
	}
	for _, x := range nodes {
		off, way := x.ClockOffS, "ahead of"
		if off < 0 {
			off, way = -off, "behind"
		}
		switch {
		case off > clockAlarm:
			alarms = append(alarms, fmt.Sprintf("CLOCK: the clock of %s is %s %s board time: set it right; until then it does not lead", x.Name, seconds(off), way))
		case off > clockShown:
			notes = append(notes, fmt.Sprintf("the clock of %s is %s %s board time", x.Name, seconds(off), way))
		}
	}
	return alarms, notes
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Second)
}

// absentVoters says what hangs on voters that are offline: how many more may fail, and what brings their votes back.
func absentVoters(s *Status) string {
	var away []string
	ready := 0
	for _, n := range s.Nodes {
		switch {
		case n.Role == board.RoleVoter && n.State == board.NodeOffline:
			away = append(away, n.Name)
		case n.Role == board.RoleReplica && n.State == board.NodeOnline && n.AlwaysOn:
			ready++
		}
	}
	if len(away) == 0 || s.Voters < 3 || !s.Quorum {
		return ""
	}
	here := s.Voters - len(away)
	text := fmt.Sprintf("%d of %d voters are away (%s): ", len(away), s.Voters, strings.Join(away, ", "))
	if spare := here - (s.Voters/2 + 1); spare > 0 {
		text += fmt.Sprintf("%d more may fail before nothing can be written", spare)
	} else {
		text += "if one more fails, nothing can be written"
	}
	if ready > 0 {
		return text + "; a replica takes the vote of one that stays away"
	}
	return text + "; no replica could take a vote. Bring them back, or let another machine join; one that is lost for good: muster node remove N --dead --why T"
}
