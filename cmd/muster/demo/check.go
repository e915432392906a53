package demo

import (
	"fmt"
	"slices"
	"strings"
)

// Evidence is what a show left behind, gathered from four places that do not
// know of each other: what the callers were told, the state, the folders of the
// machines, and the sessions' own words.
type Evidence struct {
	Acked   []Ack     // cards that a node said were filed
	Cards   []Ack     // cards of the state
	Claims  []Claim   // runs of the state, as they were committed
	Started []Started // sessions that were executed, as their machines' folders tell
	Words   []Word    // lines that the sessions wrote, in order
	States  []StateAt // one per node
}

// Ack is a card with its title.
type Ack struct{ ID, Title string }

// Claim is a run as the log has it: Seq is that of its transaction.
type Claim struct {
	Run, Node string
	Seq       uint64
}

// Started is a session's folder on a machine: what it was told to start, and for
// which claim.
type Started struct {
	Run, Node, Key string
	Seq            uint64
}

// Word is a line of a session: "start" or "end".
type Word struct{ What, Card, Run string }

// StateAt is the hash of a node's state at a Seq.
type StateAt struct {
	Node, Hash string
	Seq        uint64
}

// Violation is an invariant that does not hold, and where.
type Violation struct {
	Invariant int
	Text      string
}

// Invariants are those that [Check] looks at, with what they say.
var Invariants = []struct {
	N    int
	Text string
}{
	{1, "every session belongs to a run that was committed before, with its node and launch key"},
	{2, "no run was started twice, and no two sessions of a card overlapped"},
	{4, "every card that was acknowledged is there, once, and no other"},
	{7, "all nodes have the same state: one hash at one Seq"},
}

// Check holds the evidence against the invariants. It is pure.
func Check(e Evidence) []Violation {
	return slices.Concat(intentFirst(e), onceEach(e), nothingLost(e), sameBytes(e))
}

// intentFirst is invariant 1. A folder's Seq came to the machine with the order,
// so it can only be that of the commit if the commit was first.
func intentFirst(e Evidence) (bad []Violation) {
	claims := map[string]Claim{}
	for _, c := range e.Claims {
		claims[c.Run] = c
	}
	if len(e.Started) == 0 {
		bad = append(bad, Violation{1, "no machine has the folder of any session"})
	}
	for _, s := range e.Started {
		c, ok := claims[s.Run]
		switch {
		case !ok:
			bad = append(bad, Violation{1, fmt.Sprintf("a session of run %s was started on %s, and no such run was committed", s.Run, s.Node)})
		case c.Node != s.Node:
			bad = append(bad, Violation{1, fmt.Sprintf("run %s was committed for %s and started on %s", s.Run, c.Node, s.Node)})
		case c.Seq != s.Seq:
			bad = append(bad, Violation{1, fmt.Sprintf("run %s was claimed at Seq %d and started for Seq %d", s.Run, c.Seq, s.Seq)})
		case s.Key != s.Run+"/start":
			bad = append(bad, Violation{1, fmt.Sprintf("run %s was started under the launch key %q", s.Run, s.Key)})
		}
	}
	return bad
}

// onceEach is invariant 2, by the sessions' own words.
func onceEach(e Evidence) (bad []Violation) {
	starts, ends := map[string]int{}, map[string]int{}
	open := map[string]string{} // card -> run that began and has not ended
	for _, w := range e.Words {
		switch w.What {
		case "start":
			if starts[w.Run]++; starts[w.Run] == 2 {
				bad = append(bad, Violation{2, fmt.Sprintf("run %s was started twice", w.Run)})
			}
			if other := open[w.Card]; other != "" && other != w.Run {
				bad = append(bad, Violation{2, fmt.Sprintf("run %s began while run %s of the same card had not ended", w.Run, other)})
			}
			open[w.Card] = w.Run
		case "end":
			ends[w.Run]++
			if open[w.Card] != w.Run {
				bad = append(bad, Violation{2, fmt.Sprintf("run %s ended and is not the one that began last", w.Run)})
			}
			delete(open, w.Card)
		}
	}
	for _, c := range e.Acked {
		done := 0
		for run, n := range ends {
			if strings.HasPrefix(run, c.ID+".") {
				done += n
			}
		}
		if done != 1 {
			bad = append(bad, Violation{2, fmt.Sprintf("card %s was worked to its end %d times", c.ID, done)})
		}
	}
	return bad
}

// nothingLost is invariant 4.
func nothingLost(e Evidence) (bad []Violation) {
	there, titles, acked := map[string]string{}, map[string]int{}, map[string]bool{}
	for _, c := range e.Cards {
		there[c.ID] = c.Title
		if titles[c.Title]++; titles[c.Title] == 2 {
			bad = append(bad, Violation{4, fmt.Sprintf("%q is there twice", c.Title)})
		}
	}
	for _, c := range e.Acked {
		acked[c.ID] = true
		if there[c.ID] != c.Title {
			bad = append(bad, Violation{4, fmt.Sprintf("card %s, %q, was acknowledged and is not there", c.ID, c.Title)})
		}
	}
	for _, c := range e.Cards {
		if !acked[c.ID] {
			bad = append(bad, Violation{4, fmt.Sprintf("card %s, %q, is there and nobody was told", c.ID, c.Title)})
		}
	}
	return bad
}

// sameBytes is invariant 7.
func sameBytes(e Evidence) (bad []Violation) {
	if len(e.States) == 0 {
		return []Violation{{7, "no node told its state"}}
	}
	first := e.States[0]
	for _, s := range e.States[1:] {
		if s.Seq != first.Seq {
			bad = append(bad, Violation{7, fmt.Sprintf("%s is at Seq %d, %s at %d", first.Node, first.Seq, s.Node, s.Seq)})
		} else if s.Hash != first.Hash {
			bad = append(bad, Violation{7, fmt.Sprintf("at Seq %d %s has %s, %s has %s", s.Seq, first.Node, first.Hash, s.Node, s.Hash)})
		}
	}
	return bad
}
