package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/cmd/muster/api"
)

func (a *app) statusCmd() *cobra.Command {
	return verb("status", "the fleet at a glance", 0, 0, func(c *cobra.Command, _ []string) error {
		ans, err := a.get(c.Context(), "/v1/status", nil)
		return show(a, ans, err, func(s api.Status) (ids []string) {
			for _, n := range s.Nodes {
				ids = append(ids, n.ID)
			}
			return ids
		}, func(s api.Status) {
			var sessions []api.Session
			if s.Sessions > 0 {
				sessions, _ = api.Decode[[]api.Session](a.get(c.Context(), "/v1/sessions", nil)) // a detail: the rest stands without it
			}
			a.printStatus(&s, ans, sessions)
		})
	})
}

func (a *app) printStatus(s *api.Status, ans *api.Answer, sessions []api.Session) {
	quorum := a.color(green, "quorum")
	if !s.Quorum {
		quorum = a.color(red, "NO QUORUM")
	}
	leader := "leader " + oneLine(s.Leader)
	if !s.Quorum {
		leader = "last " + leader
	}
	if s.Leader == "" {
		leader = "no leader"
	}
	a.printf("fleet %s: %s, %s, term %d, %d voter(s); asked %s, state %d%s\n\n", oneLine(clip(s.Fleet, 8)), quorum, leader, s.Term, s.Voters, oneLine(s.Node), s.Seq, ageOf(ans))
	a.printNodes(s.Nodes)
	if len(s.Boards) > 0 {
		a.printf("\n")
		a.printBoards(s.Boards)
	}
	a.printf("\nsessions: %d\n", s.Sessions)
	a.printSessions(sessions)
	a.printAttention(s)
	for _, p := range s.Pauses {
		a.printf("%s %s\n", a.color(yellow, pauseWords(p)), a.pauseText(p))
	}
	for _, x := range s.Alarms {
		a.printf("%s %s\n", a.color(red, "alarm:"), visible(x))
	}
	for _, x := range s.Notes {
		a.printf("%s %s\n", a.color(dim, "note:"), visible(x))
	}
}

// pauseWords is what is paused, or drains.
func pauseWords(p api.Pause) string {
	switch p.Of {
	case "board":
		return "paused: board " + oneLine(p.Name) + ","
	case "estop":
		return "ESTOP: " + oneLine(p.Name) + ","
	case "node":
		return "draining: " + oneLine(p.Name) + ","
	}
	return "paused: the fleet,"
}

// pauseText is by whom, since when and why.
func (a *app) pauseText(p api.Pause) string {
	s := "by " + oneLine(orElse(p.By, "somebody"))
	if p.Since != nil {
		s += ", " + a.since(*p.Since) + " ago"
	}
	if p.Why != "" {
		s += ": " + oneLine(p.Why)
	}
	return s
}

// ageOf says how old a local reading is, when that matters.
func ageOf(ans *api.Answer) string {
	switch {
	case ans.AgeMS == nil:
		return " (age not known)"
	case *ans.AgeMS < 10_000:
		return ""
	}
	return fmt.Sprintf(" (%s old)", age(time.Duration(*ans.AgeMS)*time.Millisecond))
}

func (a *app) printNodes(nodes []api.Node) {
	t := a.table("NODE", "ROLE", "STATE", "HEARD", "SESSIONS", "MEMORY", "ADDRESS", "VERSION")
	for _, n := range nodes {
		name, heard := n.Name, "-"
		if n.Leader {
			name += " *"
		}
		if n.AgeS != nil {
			heard = age(time.Duration(*n.AgeS * float64(time.Second)))
		}
		state := cell{n.State, green}
		switch n.State {
		case "offline":
			state.color = red
		case "unknown", "left":
			state.color = dim
		}
		if n.Draining {
			state = cell{n.State + ", draining", yellow}
		}
		t.row(name, n.Role, state, heard, fmt.Sprintf("%d of %d", n.Running, n.Slots), orDash(n.MemoryPressure), orDash(n.Addr), n.Version)
	}
	t.print(a.io.Out)
}

// counts are the cards by status, most first.
func counts(cards map[string]int) string {
	names := make([]string, 0, len(cards))
	for s := range cards {
		names = append(names, s)
	}
	slices.SortFunc(names, func(x, y string) int {
		if d := cards[y] - cards[x]; d != 0 {
			return d
		}
		return strings.Compare(x, y)
	})
	for i, s := range names {
		names[i] = fmt.Sprintf("%s %d", s, cards[s])
	}
	if len(names) == 0 {
		return "no cards"
	}
	return strings.Join(names, ", ")
}

func (a *app) printBoards(list []api.Board) {
	t := a.table("BOARD", "PREFIX", "LABEL", "CARDS", "PAUSED")
	for _, b := range list {
		rest := cell{b.Paused, yellow}
		if b.Archived {
			rest = cell{"archived", dim}
		}
		t.row(b.Slug, b.Prefix, b.Label, counts(b.Cards), rest)
	}
	t.print(a.io.Out)
}

const fewSessions = 20

func (a *app) printSessions(list []api.Session) {
	if len(list) == 0 {
		return
	}
	t := a.table("RUN", "NODE", "PROFILE", "SINCE", "LEASE", "")
	for _, s := range list[:min(len(list), fewSessions)] {
		lease, what := "none", ""
		if s.LeaseS > 0 {
			lease = age(time.Duration(s.LeaseS) * time.Second)
		}
		switch {
		case s.Stopping:
			what = "stopping"
		case s.Ended:
			what = "its run is over"
		case s.Turn != "" && s.TurnSince != nil:
			what = turnWords(s.Turn) + " for " + a.since(*s.TurnSince)
		}
		t.row(s.Run, s.Node, orDash(s.Profile), a.since(s.Since), lease, cell{what, dim})
	}
	t.print(a.io.Out)
	if n := len(list) - fewSessions; n > 0 {
		a.printf("... and %d more\n", n)
	}
}
