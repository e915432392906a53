package scheduler

import (
	"fmt"
	"time"

	"muster/board"
)

// A node that refuses so many starts in a row is passed by, for a minute at
// first and twice as long each time, at most a quarter of an hour (ms).
const (
	refusalsInARow = 3
	asideFirst     = 60_000
	asideMost      = 900_000
)

// asides are the nodes that refuse starts (ESTOP seen late, no room, no harness):
// a refusal is no failure of the card, so without them the plan would offer the
// same start to the same node without end. It is remembered for the term; a
// launch on the node, or another reading of it, ends it.
type asides struct{ nodes map[string]*aside }

type aside struct {
	refused int
	first   int64 // when the first of them was claimed
	wait    int64
	until   int64
	why     string
	reading board.Reading // when it was set aside
}

func newAsides() *asides { return &asides{nodes: map[string]*aside{}} }

// ended takes in a session that is gone.
func (a *asides) ended(v board.View, room *board.Room, r *board.Run, now board.Reading) {
	if r == nil {
		return
	}
	x := a.nodes[r.Node]
	switch {
	case r.Gone == board.GoneRefused:
		if x == nil {
			x = &aside{first: r.Claimed, wait: asideFirst / 2}
			a.nodes[r.Node] = x
		}
		if a.launched(v, room, r.Node, x.first) {
			*x = aside{first: r.Claimed, wait: asideFirst / 2}
		}
		x.why = r.Error
		if x.refused++; x.refused >= refusalsInARow && r.Claimed >= x.until {
			x.wait = min(2*x.wait, asideMost)
			x.until, x.reading = r.GoneAt+x.wait, now
		}
	case r.Launched > 0 && x != nil && r.Launched >= x.first:
		delete(a.nodes, r.Node)
	}
}

// launched says whether a session came up on the node since a moment.
func (a *asides) launched(v board.View, room *board.Room, node string, since int64) (yes bool) {
	room.EachOn(node, func(h *board.Held) {
		if h.Since >= since {
			r := board.GetRun(v, h.Run)
			yes = yes || r != nil && r.Launched >= since && r.Launched > 0
		}
	})
	return yes
}

// of tells, for one plan, which nodes are passed by, why, and until when.
func (a *asides) of(v board.View, room *board.Room, now int64, nodes func(string) board.Reading) func(node string) (until int64, why string) {
	return func(node string) (int64, string) {
		x := a.nodes[node]
		if x == nil || x.until <= now {
			return 0, ""
		}
		if r := nodes(node); r.State != x.reading.State || r.Estop != x.reading.Estop || r.Pressure != x.reading.Pressure || r.Slots != x.reading.Slots ||
			a.launched(v, room, node, x.first) {
			delete(a.nodes, node)
			return 0, ""
		}
		return x.until, fmt.Sprintf("has refused %d starts in a row (%s) and is passed by until a start there works, its reading changes, or %s are over", x.refused,
			clip(orElse(x.why, "no reason given"), 80), (time.Duration(x.wait) * time.Millisecond))
	}
}
