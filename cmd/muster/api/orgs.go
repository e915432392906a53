package api

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"muster/board"
)

// Organisation is one whose directory is told of the fleet's agents.
type Organisation struct {
	Name     string     `json:"name"`
	Node     string     `json:"node,omitempty"` // that delivers now
	Since    *time.Time `json:"since,omitempty"`
	Holders  []string   `json:"holders"`  // machines that hold its credentials
	Declared int64      `json:"declared"` // agents that its directory took, ever
	Ended    int64      `json:"ended"`
	Waiting  int        `json:"waiting"` // declarations and ends that wait
	Failing  *time.Time `json:"failing_since,omitempty"`
	Error    string     `json:"error,omitempty"`
	First    []Waiting  `json:"first"` // the first of them
}

// Waiting is a word about an agent that a directory was not told yet.
type Waiting struct {
	Agent    string     `json:"agent"`
	Kind     string     `json:"kind"` // declare or end
	Since    time.Time  `json:"since"`
	Failures int64      `json:"failures,omitempty"`
	Error    string     `json:"error,omitempty"`
	Next     *time.Time `json:"next,omitempty"` // it is tried again not before
}

const firstWaiting = 20

func orgOf(v board.View, o *board.Org) Organisation {
	x := Organisation{Name: o.Name, Since: optAt(o.Lent), Holders: []string{}, Declared: o.Declared, Ended: o.Ended, Failing: optAt(o.Failing), Error: o.Error, First: []Waiting{}}
	if o.Node != "" {
		x.Node = nodeName(v, o.Node)
	}
	board.EachNode(v, func(n *board.Node) bool {
		if slices.Contains(n.Orgs, o.Name) {
			x.Holders = append(x.Holders, n.Name)
		}
		return true
	})
	slices.Sort(x.Holders)
	board.EachHand(v, o.Name, func(h *board.Hand) bool {
		if x.Waiting++; len(x.First) < firstWaiting {
			x.First = append(x.First, Waiting{Agent: h.Agent, Kind: h.Kind, Since: at(h.At), Failures: h.Failures, Error: h.Error, Next: optAt(h.Next)})
		}
		return true
	})
	return x
}

func (h *handler) organisations(r *http.Request, _ caller) (any, Fresh, error) {
	list := []Organisation{}
	i, err := h.read(r, func(v board.View) error {
		board.EachOrg(v, func(o *board.Org) bool { list = append(list, orgOf(v, o)); return true })
		return nil
	})
	return list, i, err
}

// Said is what waits for the directory, and why, in words; "" when nothing does.
func (o *Organisation) Said() string {
	if o.Waiting == 0 {
		return ""
	}
	s := fmt.Sprintf("%d of its agents' declarations and ends wait for the directory of %s", o.Waiting, o.Name)
	switch {
	case len(o.Holders) == 0:
		return s + ": no machine holds its credentials (organisations in a machine's node.yaml)"
	case o.Error != "":
		return s + ": " + o.Error
	case o.Node == "":
		return s + ": no machine that holds its credentials is online"
	}
	return s
}

// orgNotes says what an organisation's directory should have been told and was not: what merely is on its way is no note.
func orgNotes(v board.View) (notes []string) {
	board.EachOrg(v, func(o *board.Org) bool {
		if x := orgOf(v, o); x.Failing != nil || x.Node == "" || len(x.Holders) == 0 {
			if s := x.Said(); s != "" {
				notes = append(notes, s+"; see: muster agent org")
			}
		}
		return true
	})
	return notes
}
