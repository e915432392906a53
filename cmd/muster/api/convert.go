package api

import (
	"encoding/json"
	"time"

	"muster/board"
)

// at is a stored time (ms) for people and programs: RFC 3339 in UTC.
func at(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

func optAt(ms int64) *time.Time {
	if ms == 0 {
		return nil
	}
	t := at(ms)
	return &t
}

// CardOf is a card as the API shows it.
func CardOf(v board.View, c *board.Card) Card {
	x := Card{ID: c.ID, Board: c.Board, Title: c.Title, Status: c.Status, Stored: c.Stored, Assignee: c.Assignee, Machine: c.Machine,
		Priority: c.Priority, Failures: c.Failures, SubtaskOf: c.SubtaskOf, Labels: c.Labels, CreatedAt: at(c.Created), UpdatedAt: at(c.Updated),
		WaitsFor: board.Parents(v, c.ID), WaitedBy: board.Children(v, c.ID), StartAfter: optAt(c.StartAfter)}
	if c.Run != "" {
		x.Run = &c.Run
	} else if c.Waits.Check != "" {
		x.Reason = &Reason{c.Waits.Check, c.Waits.Text, optAt(c.Waits.Since)}
	}
	x.Attention = attentionOf(v, c)
	if x.Labels == nil {
		x.Labels = map[string]string{}
	}
	x.WaitsFor, x.WaitedBy = some(x.WaitsFor), some(x.WaitedBy)
	return x
}

func some[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// DetailOf is one card with its text, thread and runs.
func DetailOf(v board.View, c *board.Card) CardDetail {
	d := CardDetail{Card: CardOf(v, c), Body: board.GetBody(v, c.ID), Workspace: c.Workspace, Branch: c.Branch, Skills: c.Skills,
		Creator: ActorText(c.Creator), LastError: c.LastError, Comments: []Comment{}, Runs: []Run{},
		Subscribers: subscribersOf(v, c), Deliveries: deliveriesOf(v, c.ID), Agents: agentsOf(v, c.ID)}
	board.EachComment(v, c, func(m *board.Comment) bool {
		d.Comments = append(d.Comments, Comment{ActorText(m.Author), m.Body, at(m.At)})
		return true
	})
	board.EachRun(v, c.ID, func(r *board.Run) bool { d.Runs = append(d.Runs, RunOf(v, r)); return true })
	return d
}

// ActorText is who said something, in one word.
func ActorText(a board.Actor) string {
	if a.Name != "" {
		return a.Name
	}
	return a.Kind
}

// RunOf is a run as the API shows it.
func RunOf(v board.View, r *board.Run) Run {
	x := Run{ID: r.ID, Card: r.Card, Node: r.Node, Role: r.Role, Slot: r.Slot, Profile: r.Profile, Instead: r.Instead, Agent: r.Agent.ID, Surface: r.Surface, Harness: r.Harness,
		Mode: r.Mode, State: r.State, Outcome: r.Outcome, Gone: r.Gone, ExitCode: r.ExitCode, Signal: r.Signal, Means: r.Means, PeakMB: r.PeakMB, ResetAt: optAt(board.ResetAt(r)), SessionID: r.SessionID, PID: r.PID,
		LeaseS: r.Lease / 1000, StartedAt: at(r.Claimed), Launched: optAt(r.Launched), EndedAt: optAt(r.Ended), GoneAt: optAt(r.GoneAt), Error: r.Error}
	if n := board.GetNode(v, r.Node); n != nil {
		x.Node = n.Name
	}
	return x
}

// EventOf is an event as the API shows it.
func EventOf(e *board.Event) Event {
	return Event{ID: board.EventID(e.ID), At: at(e.At), Board: e.Board, Card: e.Card, Kind: e.Kind, Actor: ActorText(e.Actor),
		Payload: json.RawMessage(e.Payload), Run: e.Run, Agent: e.Actor.Agent, Node: e.Actor.Node, From: e.From, To: e.To}
}

// NodeOf is a node as the API shows it, with its reading: the leader's, or a node's own of itself.
func NodeOf(v board.View, n *board.Node, r board.Reading, leader string) Node {
	x := Node{ID: n.ID, Name: n.Name, Role: n.Role, Leader: n.ID == leader, State: board.NodeUnknown, Draining: n.Draining, Slots: n.Slots,
		Labels: n.Labels, Tools: some(n.Tools), MemoryPressure: "unknown", AlwaysOn: board.AlwaysOn(n), OS: n.OS, Arch: n.Arch, Version: n.Version,
		Generation: n.Generation, Estop: r.Estop}
	if len(n.Addrs) > 0 {
		x.Addr = n.Addrs[0]
	}
	if x.Labels == nil {
		x.Labels = map[string]string{}
	}
	if r.State != "" {
		x.State, x.MemoryPressure, x.FreeMB, x.Load = r.State, r.Pressure, r.FreeMB, r.Load
		x.DiskFreeMB, x.NoSpace, x.ClockOffS = r.DiskMB, r.NoSpace, float64(r.ClockMS)/1000
		x.Workspaces, x.WorkspacesMB = r.Workspaces, r.WorkMB
		if r.AgeMS >= 0 {
			s := float64(r.AgeMS) / 1000
			x.AgeS = &s
		}
	}
	if n.State == board.NodeLeft {
		x.State = n.State
	}
	switch {
	case n.Vote:
		x.Vote = "promoted"
	case n.NoVote:
		x.Vote = "demoted"
	}
	if n.Draining {
		x.Drain = &Pause{Of: "node", Name: n.Name, By: n.DrainBy, Why: n.DrainWhy, Since: optAt(n.DrainAt)}
	}
	if r.Estop {
		x.EstopBy = &Pause{Of: "estop", Name: n.Name, By: r.EstopBy, Why: r.EstopWhy, Since: optAt(max(v.Time()-r.AgeMS-r.EstopMS, 1))}
	}
	board.EachHeld(v, "", func(h *board.Held) bool {
		if h.Node == n.ID {
			x.Running++
		}
		return true
	})
	return x
}

// BoardOf is a board as the API shows it; cards are counted when asked for.
func BoardOf(v board.View, b *board.Board, count bool) Board {
	x := Board{Slug: b.Slug, Prefix: b.Prefix, Label: b.Label, Home: b.Home, Zone: b.Zone, Keep: b.Keep, Workflow: b.Workflow, Archived: b.Archived, Created: at(b.Created)}
	if len(b.Params) > 0 {
		_ = json.Unmarshal(b.Params, &x.Params)
	}
	if b.PausedBy != "" {
		x.Paused, x.PausedAt = b.PausedBy+": "+b.PausedWhy, optAt(b.PausedAt)
	}
	if count {
		x.Cards = map[string]int{}
		board.EachGlance(v, b, func(c *board.Glance) bool {
			x.Cards[c.Status]++
			return true
		})
		x.Needs = len(needy(v, b))
	}
	return x
}

// whyOf is the scheduler's explanation as the API shows it: this node's own, or
// the leader's as it came.
func whyOf(x any) (Why, error) {
	b, err := json.Marshal(x)
	if err != nil {
		return Why{}, err
	}
	var raw struct {
		Why
		Since int64 `json:"since"`
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return Why{}, err
	}
	raw.Why.Since = optAt(raw.Since)
	return raw.Why, nil
}
