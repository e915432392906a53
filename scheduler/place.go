package scheduler

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"muster/board"
)

// reason is why no machine takes a start. Until is when time alone may change
// it (ms), 0 when it does not.
type reason struct {
	Check, Text string
	Until       int64
	everywhere  bool     // the profile is under a limit on every machine that it fits
	node        string   // who says it
	each        []reason // of the whole: what each machine says
}

// refused is a refusal of the domain as a reason: which card it is about is
// known where a reason stands.
func refused(err *board.Error, until int64) *reason {
	return &reason{Check: err.Check, Text: bare(err.Message), Until: until}
}

// bare is a message without the card it begins with.
func bare(message string) string {
	if rest, ok := strings.CutPrefix(message, "card "); ok {
		if _, text, ok := strings.Cut(rest, ": "); ok {
			return text
		}
	}
	return message
}

// fitting is a machine that could take a start, with its score.
type fitting struct {
	node   *board.Node
	prefer float64
	free   int64
	load   float64
}

// place chooses the machine of a start (M-05, DSP-05): bound ones first, then
// what the profile requires, its folder, memory, eligibility and every cap there, then the
// score: prefer, free slots, load; ties go to the lower node id. A machine that is
// silent, or set aside, takes nothing and holds up nobody.
func place(in Input, s *board.Scope, p *board.StartPlan, room *board.Room) (*board.Node, reason) {
	return choose(in, s, p, room, func(n *board.Node, r board.Reading) *reason {
		if err, until := board.Cooling(in.View, s.Candidate(p, n.ID), in.Now); err != nil {
			return refused(err, until)
		}
		if in.Aside != nil {
			if until, why := in.Aside(n.ID); until > in.Now {
				return &reason{Check: "set_aside", Text: n.Name + " " + why, Until: until}
			}
		}
		if err := room.FolderFree(s, p.Profile); err != nil {
			return refused(err, 0)
		}
		if err := s.FitsMemory(p.Profile, room); err != nil {
			return refused(err, 0)
		}
		if err := s.Eligible(); err != nil {
			return refused(err, s.EligibleAt(room))
		}
		if err, until := room.Admit(s, s.Candidate(p, n.ID)); err != nil {
			return refused(err, until)
		}
		return nil
	})
}

func choose(in Input, s *board.Scope, p *board.StartPlan, room *board.Room, admit func(*board.Node, board.Reading) *reason) (*board.Node, reason) {
	var best *fitting
	var why []reason
	var warm, cold bool // machines that it fits: under no limit, and under one
	fleet := in.fleet()
	for _, n := range fleet {
		r := in.Nodes(n.ID)
		s.At(n, r, room.Started(n.ID, s.Round(), in.Now)).Playing(p.Profile)
		refusal := fits(s, p, n, r)
		if refusal == nil {
			if refusal = admit(n, r); refusal == nil || refusal.Check != "cooldown" {
				warm = true
			} else {
				cold = true
			}
		}
		if refusal != nil {
			refusal.node = n.Name
			why = append(why, *refusal)
			continue
		}
		f := &fitting{node: n, free: n.Slots - room.Held(n.ID), load: r.Load}
		if v, ok, err := s.Number(p.Profile.Prefer); err == nil && ok {
			f.prefer = v
		}
		if best == nil || better(f, best) {
			best = f
		}
	}
	s.At(nil, board.Reading{}, 0)
	s.Playing(nil)
	if best != nil {
		return best.node, reason{}
	}
	one := combine(why, len(fleet))
	one.everywhere, one.each = cold && !warm, why
	return nil, one
}

// standIn finds a place for a profile that may stand in for the planned one, in the
// order the profile gives them; why gains what holds them back.
func standIn(in Input, s *board.Scope, p *board.StartPlan, room *board.Room, why *reason) (*board.StartPlan, *board.Node) {
	for _, profile := range s.Fallbacks(p) {
		q := *p
		q.Profile = profile
		n, no := place(in, s, &q, room)
		if n != nil {
			return &q, n
		}
		why.Text += fmt.Sprintf("; %s could stand in: %s", profile.Name, no.Text)
		why.Until = earliest(why.Until, no.Until)
	}
	return nil, nil
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
		return &reason{Check: "machine_" + r.State, Text: fmt.Sprintf("%s is %s", n.Name, r.State)}
	}
	if err := s.Fits(p.Profile); err != nil {
		return refused(err, 0)
	}
	return nil
}

// combine makes one reason of what each machine said: the one that says most
// about the card first; a machine that is merely not the bound one says nothing.
func combine(why []reason, nodes int) reason {
	if nodes == 0 {
		return reason{Check: "placement", Text: "the fleet has no machine"}
	}
	rank := map[string]int{"cap": 0, "workspace": 1, "memory": 1, "estop": 1, "drain": 1, "set_aside": 1, "cooldown": 1, "eligible": 2, "requires": 3, "harness": 3}
	var best *reason
	score := 99
	texts := map[string]bool{}
	var all []string
	var until int64
	for i := range why {
		w := &why[i]
		until = earliest(until, w.Until)
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
		return reason{Check: best.Check, Text: clip(strings.Join(all, "; "), 280), Until: until}
	}
	text := best.Text
	if len(all) > 1 {
		text += noOther
	}
	return reason{Check: best.Check, Text: text, Until: until}
}

// noOther ends a reason where other machines have reasons of their own.
const noOther = "; no other machine takes it"

// others are the reasons of the other machines, where they are few enough to be told.
func (r *reason) others() string {
	var list []string
	for _, x := range r.each {
		if x.Text+noOther != r.Text && !slices.Contains(list, x.Text) {
			list = append(list, x.Text)
		}
	}
	if len(list) > maxOthers {
		return ""
	}
	return strings.Join(list, "; ")
}

// maxOthers bounds the reasons of other machines that an answer tells.
const maxOthers = 3

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
	p, refusal := s.PlanStartAs(req.Actor, a.Profile)
	if refusal != nil {
		return nil
	}
	in := Input{View: v, Workflows: ws, Nodes: nodes, Now: now}
	room := board.NewRoom(v, ws)
	n, why := choose(in, s, p, room, func(n *board.Node, _ board.Reading) *reason {
		if err := room.FolderFree(s, p.Profile); err != nil {
			return refused(err, 0)
		}
		if a.Force {
			return nil // passes caps; never drain, ESTOP or a machine out of contact (M-14)
		}
		if err, until := room.Admit(s, s.Candidate(p, n.ID)); err != nil {
			return refused(err, until)
		}
		return nil
	})
	if n == nil {
		return board.Errorf(board.Refused, "card %s: %s", c.ID, why.Text).WithCheck(why.Check).WithHint("see: muster why %s", c.ID)
	}
	req.Place = n.ID
	return nil
}
