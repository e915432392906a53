package board

import (
	"cmp"
	"maps"
	"slices"
)

// CapUse is how much of one cap is taken, of one group that it counts together.
type CapUse struct {
	Board  string // in whose workflow the cap stands
	Cap    string // its description
	Counts string // runs, cards, sessions, turns or starts
	Scope  string
	Group  string // what is counted together: a machine's name, a profile, a board...; "" of the fleet
	Used   int64
	Max    float64
	Bound  bool // Max is a number; without one the cap holds nobody back
}

// CapUses lists what is taken of every cap, for people and their graphs. Groups
// that hold nothing are not listed. A maximum that needs a card to be known is
// taken as of none. now is board time in ms.
func CapUses(v View, ws *Workflows, nodes func(id string) Reading, now int64) (list []CapUse) {
	r := NewRoom(v, ws)
	for _, c := range r.caps {
		if c.shared && r.sharedBefore(c) {
			continue
		}
		b := GetBoard(v, c.board)
		for _, key := range slices.Sorted(maps.Keys(c.groups)) {
			n := c.size(c.groups[key], now)
			if b == nil || n == 0 {
				continue
			}
			u := CapUse{Board: c.board, Cap: c.cap.Description, Counts: c.cap.Counts, Scope: c.cap.Scope, Group: key, Used: n}
			if c.cap.Scope == "machine" {
				u.Group = cmp.Or(r.names[key], key)
			}
			if s, err := NewScope(v, ws, b, &Card{Board: b.Slug}, now, nodes); err == nil {
				u.Max, u.Bound = c.most(s, key, nodes)
			}
			list = append(list, u)
		}
	}
	return list
}

// sharedBefore tells of a cap that stands in an earlier board's file in the same words.
func (r *Room) sharedBefore(c *capCount) bool {
	i := slices.IndexFunc(r.caps, func(x *capCount) bool { return x.cap == c.cap })
	return i >= 0 && r.caps[i] != c
}

// most is a cap's maximum for one of its groups.
func (c *capCount) most(s *Scope, group string, nodes func(string) Reading) (float64, bool) {
	switch c.cap.Scope {
	case "machine":
		if n := GetNode(s.view, group); n != nil {
			s = s.At(n, nodes(group), 0)
		}
	case "assignee":
		if p := s.wf.Profiles[group]; p != nil {
			s = s.Playing(p)
		}
	}
	x, ok, err := c.number(s, c.cap.Max)
	return x, ok && err == nil
}
