package scheduler

import (
	"encoding/json"
	"fmt"
	"strings"

	"muster/board"
)

// reason is why no machine takes a start.
type reason struct{ Check, Text string }

// fitting is a machine that could take a start, with its score.
type fitting struct {
	node   *board.Node
	prefer float64
	free   int64
	load   float64
}

// place chooses the machine of a start (M-05, DSP-05): bound ones first, then
// what the profile requires, eligibility and every cap there, then the score:
// prefer, free slots, load; ties go to the lower node id. A machine that is
// silent takes nothing and holds up nobody (invariant 12 of the reference).
func place(in Input, s *board.Scope, p *board.StartPlan, room *board.Room) (*board.Node, reason) {
	return choose(in, s, p, func(n *board.Node) *board.Error {
		if err := eligible(s); err != nil {
			return err
		}
		if room == nil {
			return nil
		}
		return room.Admit(s, s.Candidate(p, n.ID))
	}, room)
}

func choose(in Input, s *board.Scope, p *board.StartPlan, admit func(*board.Node) *board.Error, room *board.Room) (*board.Node, reason) {
	var best *fitting
	var why []reason
	nodes := 0
	board.EachNode(in.View, func(n *board.Node) bool {
		nodes++
		r := in.Nodes(n.ID)
		var started int64
		if room != nil {
			started = room.Started(n.ID, s.Round())
		}
		s.At(n, r, started).Playing(p.Profile)
		if err := fits(s, p, n, r); err != nil {
			why = append(why, *err)
			return true
		}
		if err := admit(n); err != nil {
			why = append(why, reason{err.Check, err.Message})
			return true
		}
		f := &fitting{node: n, free: n.Slots - heldOn(in.View, n.ID, room), load: r.Load}
		if v, ok, err := s.Number(p.Profile.Prefer); err == nil && ok {
			f.prefer = v
		}
		if best == nil || better(f, best) {
			best = f
		}
		return true
	})
	s.At(nil, board.Reading{}, 0)
	s.Playing(nil)
	if best != nil {
		return best.node, reason{}
	}
	return nil, combine(why, nodes)
}

func better(a, b *fitting) bool {
	switch {
	case a.prefer != b.prefer:
		return a.prefer > b.prefer
	case a.free != b.free:
		return a.free > b.free
	}
	return a.load < b.load // EachNode goes by id: the first of equals stays
}

// fits holds a machine against the start: in contact (no reading, no verdict:
// INV-01), bound, drained, ESTOP, harness, requires.
func fits(s *board.Scope, p *board.StartPlan, n *board.Node, r board.Reading) *reason {
	if r.State != board.NodeOnline {
		return &reason{"machine_" + r.State, fmt.Sprintf("%s is %s", n.Name, r.State)}
	}
	if err := s.Fits(p.Profile); err != nil {
		return &reason{err.Check, err.Message}
	}
	return nil
}

func eligible(s *board.Scope) *board.Error {
	e := s.Workflow().Dispatch.Eligible
	ok, err := s.Holds(e)
	if err != nil {
		return board.Errorf(board.Refused, "eligible: %v", err).WithCheck("eligible")
	}
	if !ok {
		return board.Errorf(board.Refused, "not eligible now (%s)", clip(e.Source(), 120)).WithCheck("eligible")
	}
	return nil
}

// heldOn counts what is not gone on a node, the round's own starts included.
func heldOn(v board.View, node string, room *board.Room) (n int64) {
	if room != nil {
		return room.Held(node)
	}
	board.EachHeld(v, "", func(h *board.Held) bool {
		if h.Node == node {
			n++
		}
		return true
	})
	return n
}

// combine makes one reason of what each machine said: the one that says most
// about the card first; a machine that is merely not the bound one says nothing.
func combine(why []reason, nodes int) reason {
	if nodes == 0 {
		return reason{"placement", "the fleet has no machine"}
	}
	rank := map[string]int{"cap": 0, "estop": 1, "drain": 1, "eligible": 2, "requires": 3, "harness": 3}
	var best *reason
	score := 99
	texts := map[string]bool{}
	var all []string
	for i := range why {
		w := &why[i]
		k, ok := rank[w.Check]
		if !ok {
			k = 5
		}
		if strings.HasPrefix(w.Check, "machine_") {
			k = 4
		}
		if k < score {
			best, score = w, k
		}
		if !texts[w.Text] {
			texts[w.Text] = true
			all = append(all, w.Text)
		}
	}
	if score == 4 || score == 5 {
		return reason{best.Check, clip(strings.Join(all, "; "), 280)}
	}
	return *best
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "..."
}

// Prepare chooses the machine of a start that a person asked for, before the
// executor sees the request; it refuses when none takes it, and says why. What
// the workflow says to it is the executor's.
func Prepare(v board.View, ws *board.Workflows, nodes func(string) board.Reading, now int64, req *board.Request) *board.Error {
	var a board.Start
	if json.Unmarshal(req.Args, &a) != nil {
		return nil
	}
	c := board.GetCard(v, a.Card)
	if c == nil {
		return nil
	}
	b := board.GetBoard(v, c.Board)
	if b == nil {
		return nil
	}
	s, err := board.NewScope(v, ws, b, c, now, nodes)
	if err != nil {
		return nil
	}
	p, refusal := s.PlanStartAs(req.Actor)
	if refusal != nil {
		return nil
	}
	in := Input{View: v, Workflows: ws, Nodes: nodes, Now: now}
	room := board.NewRoom(v, ws, now)
	n, why := choose(in, s, p, func(n *board.Node) *board.Error {
		if a.Force {
			return nil // passes caps; never drain, ESTOP or a machine out of contact (M-14)
		}
		return room.Admit(s, s.Candidate(p, n.ID))
	}, room)
	if n == nil {
		return board.Errorf(board.Refused, "card %s: %s", c.ID, why.Text).WithCheck(why.Check).WithHint("see: muster why %s", c.ID)
	}
	req.Place = n.ID
	return nil
}
