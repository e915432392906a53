package sim

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"muster/board"
)

// CheckState holds one state, at one Seq, against what is true of every state, and answers what is wrong with it; most is
// told how many sessions are at each place (nil: nobody).
func CheckState(v board.View, most func(place string, n int)) (wrong []string) {
	at, slots := map[string]int{}, map[string]string{}
	running := map[string]bool{}
	board.EachHeld(v, "", func(h *board.Held) bool {
		if !h.Manual {
			at["machine "+h.Node]++
		}
		if !h.Ended {
			at["fleet"]++
			at["board "+h.Board]++
			at["profile "+h.Profile]++
			running[h.Run] = true
		}
		slot := board.SlotKey(h.Card, h.Slot)
		if other := slots[slot]; other != "" {
			wrong = append(wrong, fmt.Sprintf("slot %s is held by %s and by %s", slot, other, h.Run))
		}
		slots[slot] = h.Run
		r := board.GetRun(v, h.Run)
		switch {
		case r == nil:
			wrong = append(wrong, fmt.Sprintf("session of %s is held, and there is no such run", h.Run))
		case r.Gone != "":
			wrong = append(wrong, fmt.Sprintf("session of %s is held, and gone (%s)", h.Run, r.Gone))
		case r.Node != h.Node:
			wrong = append(wrong, fmt.Sprintf("session of %s is held for %s, and its run is on %s", h.Run, h.Node, r.Node))
		}
		return true
	})
	caps := map[string]int{"board web": maxRunning, "fleet": maxFleet, "profile two": 2}
	board.EachNode(v, func(n *board.Node) bool { caps["machine "+n.ID] = int(n.Slots); return true })
	for place, n := range at {
		if most != nil {
			most(strings.Split(place, " ")[0], n)
		}
		if max, ok := caps[place]; ok && n > max {
			wrong = append(wrong, fmt.Sprintf("%d sessions at %s, which takes %d", n, place, max))
		}
	}
	board.EachCard(v, nil, func(c *board.Card) bool {
		if c.Run == "" {
			return true
		}
		r := board.GetRun(v, c.Run)
		if r == nil || r.State == board.RunEnded || r.Card != c.ID {
			wrong = append(wrong, fmt.Sprintf("card %s is worked by %s, which is over, of another card, or not there", c.ID, c.Run))
		}
		return true
	})
	sort.Strings(wrong)
	return wrong
}

// Stuck answers what of a state stands still although nothing is broken any more: every card is finished, waits for a
// reason that is told, or needs a person, and no order is left.
func Stuck(v board.View) (list []string) {
	aside := map[string]bool{}
	board.EachBoard(v, func(b *board.Board) bool { aside[b.Slug] = b.Archived; return true })
	board.EachCard(v, nil, func(c *board.Card) bool {
		switch {
		case aside[c.Board]:
		case c.Run != "":
			list = append(list, fmt.Sprintf("card %s: run %s goes on", c.ID, c.Run))
		case c.Stored == "done", c.Stored == "cancelled", c.Stored == "archived", c.Stored == "blocked", c.Stored == "triage":
		case waitsForCards(v, c), needsPerson(c):
		case c.Waits.Text == "":
			list = append(list, fmt.Sprintf("card %s is %s, and nothing says why", c.ID, c.Status))
		default:
			list = append(list, fmt.Sprintf("card %s is %s: %s (%s)", c.ID, c.Status, c.Waits.Text, c.Waits.Check))
		}
		return true
	})
	board.EachHeld(v, "", func(h *board.Held) bool {
		list = append(list, fmt.Sprintf("session of %s is held", h.Run))
		return true
	})
	board.EachNode(v, func(n *board.Node) bool {
		board.EachOrder(v, n.ID, func(o *board.Order) bool {
			list = append(list, fmt.Sprintf("order %s (%s of %s) is %s", o.ID, o.Kind, o.Run, o.State))
			return true
		})
		return true
	})
	return list
}

// waitsForCards is the one reason that lasts when nothing is broken and every machine is there.
func waitsForCards(v board.View, c *board.Card) bool {
	return slices.ContainsFunc(board.Parents(v, c.ID), func(id string) bool {
		p := board.GetCard(v, id)
		return p != nil && p.Stored != "done" && (p.Stored != "archived" || p.Previous != "done")
	})
}

// needsPerson tells of a card that only somebody's word moves: nobody is named to work it, or it is a part of a card whose
// session is to do it.
func needsPerson(c *board.Card) bool {
	switch c.Waits.Check {
	case "unassigned":
		return true
	case "validator":
		return c.SubtaskOf != ""
	}
	return false
}
