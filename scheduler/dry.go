package scheduler

import (
	"cmp"

	"muster/board"
)

// DryAnswer is what a round would do now, planned as a round is, with nothing written (MEM-05).
type DryAnswer struct {
	Live    bool      `json:"live"`    // with the leader's readings
	Seq     uint64    `json:"seq"`     // of the state it was planned on
	Would   []DryRow  `json:"would"`   // in the order of the starts
	Waiting []DryWait `json:"waiting"` // at most dryWaits
	More    int       `json:"more,omitempty"`
}

// DryRow is a card that would start (MEM-06): Node is where, by name; Target the status it enters.
type DryRow struct {
	Card     string `json:"card"`
	Board    string `json:"board"`
	Node     string `json:"node"`
	Status   string `json:"status"`
	Target   string `json:"target"`
	Role     string `json:"role"`
	Assignee string `json:"assignee"`
	Surface  string `json:"surface"`
	Instead  string `json:"instead_of,omitempty"` // profile that Assignee stands in for
}

// DryWait is a card that would not, and why.
type DryWait struct {
	Card  string `json:"card"`
	Board string `json:"board"`
	Check string `json:"check"`
	Text  string `json:"text"`
	WaitS int64  `json:"wait_s,omitempty"` // when time alone may change it
}

// dryWaits bounds the rows of cards that wait.
const dryWaits = 1000

// DryRun plans a round over all boards, which share the machines, and tells of
// one ("" is all). Without live readings each node is taken for what the state
// says of it, and the answer says so (M-31).
func DryRun(in Input, slug string, live bool) *DryAnswer {
	if !live {
		in.Nodes = func(id string) board.Reading {
			n := board.GetNode(in.View, id)
			if n == nil {
				return board.Reading{State: board.NodeUnknown}
			}
			return board.Reading{State: cmp.Or(n.State, board.NodeOnline), AgeMS: -1, Slots: n.Slots, Pressure: "unknown"}
		}
	}
	in.Nodes = frozen(in.Nodes)
	a := &DryAnswer{Live: live, Seq: in.View.Seq(), Would: []DryRow{}, Waiting: []DryWait{}}
	starts, waits := plan(in, true)
	of := func(card string) (string, bool) {
		c := board.GetCard(in.View, card)
		return c.Board, slug == "" || c.Board == slug
	}
	for _, s := range starts {
		if b, wanted := of(s.Card); wanted {
			node := s.Node
			if n := board.GetNode(in.View, s.Node); n != nil {
				node = n.Name
			}
			a.Would = append(a.Would, DryRow{Card: s.Card, Board: b, Node: node, Status: s.Status, Target: s.Target, Role: s.Role, Assignee: s.Profile, Surface: s.Surface, Instead: s.Instead})
		}
	}
	for _, w := range waits {
		b, wanted := of(w.Card)
		switch {
		case !wanted:
		case len(a.Waiting) == dryWaits:
			a.More++
		default:
			row := DryWait{Card: w.Card, Board: b, Check: w.Check, Text: clip(w.Text, maxReason)}
			if w.Until > in.Now {
				row.WaitS = (w.Until - in.Now + 999) / 1000
			}
			a.Waiting = append(a.Waiting, row)
		}
	}
	return a
}
