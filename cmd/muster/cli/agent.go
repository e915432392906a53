package cli

import (
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"muster/board"
	"muster/cmd/muster/api"
)

func (a *app) agentCmd() *cobra.Command {
	return group("agent", "who works: identities that outlive their sessions", a.agentList(), a.agentShow(), a.agentDeclare(), a.agentEnd(), a.agentFork(), a.agentMemory(), a.agentOrg())
}

func (a *app) agentList() *cobra.Command {
	var all bool
	c := verb("list", "the fleet's agents", 0, 0, func(c *cobra.Command, _ []string) error {
		q := url.Values{}
		if all {
			q.Set("all", "true")
		}
		ans, err := a.get(c.Context(), "/v1/agents", q)
		return show(a, ans, err, func(l []api.Agent) (ids []string) {
			for _, x := range l {
				ids = append(ids, x.ID)
			}
			return ids
		}, func(l []api.Agent) {
			a.printAgents(l)
			orgs, _ := api.Decode[[]api.Organisation](a.get(c.Context(), "/v1/organisations", nil)) // a detail: the list stands without it
			for _, o := range orgs {
				if s := o.Said(); s != "" {
					a.hint("%s; see: muster agent org", s)
				}
			}
		})
	})
	c.Flags().BoolVar(&all, "all", false, "those that have ended too")
	return c
}

func (a *app) printAgents(l []api.Agent) {
	t := a.table("AGENT", "KEY", "STATE", "PROFILE", "FOR", "MEMORY", "SINCE")
	for _, x := range l {
		memory := "-"
		if x.Memory != nil {
			memory = sizeText(x.Memory.Bytes)
		}
		t.row(x.ID, x.Key, cell{x.State, agentColor(x.State)}, orDash(x.Profile), orDash(x.Sponsor), memory, a.since(x.CreatedAt)+" ago")
	}
	t.print(a.io.Out)
}

func agentColor(state string) string {
	switch state {
	case "active":
		return cyan
	case "ended":
		return dim
	}
	return plain
}

func (a *app) agentShow() *cobra.Command {
	return verb("show AGENT", "one agent, what it works, and its sessions", 1, 1, func(c *cobra.Command, args []string) error {
		ans, err := a.get(c.Context(), "/v1/agents/"+url.PathEscape(args[0]), nil)
		return show(a, ans, err, func(d api.AgentDetail) []string { return []string{d.ID} }, a.printAgent)
	})
}

func (a *app) printAgent(d api.AgentDetail) {
	a.printf("%s  %s\n", a.color(bold, oneLine(d.ID)), oneLine(d.Path))
	state, memory := d.State, ""
	if d.Why != "" {
		state += " (" + d.Why + ")"
	}
	if m := d.Memory; m != nil {
		memory = m.Hash[:min(12, len(m.Hash))] + ", " + sizeText(m.Bytes) + ", of run " + m.Run + " on " + m.Node + ", " + a.since(m.At) + " ago"
	}
	synced := "no"
	if d.Synced {
		synced = "yes"
	}
	a.fields([][2]string{{"key", d.Key}, {"state", state}, {"organisation", d.Org}, {"handed on", synced}, {"parent", d.Parent}, {"profile", d.Profile}, {"card", d.Card}, {"role", d.Role},
		{"for", d.Sponsor}, {"started by", joinNonEmpty(d.StartedBy, d.Starter)}, {"memory", memory}, {"writes it", d.Writer}, {"declared", clock(d.CreatedAt) + " by " + d.By}})
	if len(d.Assignments) > 0 {
		a.printf("\n")
		t := a.table("WORKS", "ROLE", "STATE", "SINCE", "WHY")
		for _, w := range d.Assignments {
			t.row(w.Kind+" "+w.Target, orDash(w.Role), w.State, a.since(w.Since)+" ago", orDash(w.Why))
		}
		t.print(a.io.Out)
	}
	if len(d.Sessions) > 0 {
		a.printf("\n")
		a.printRuns(d.Sessions)
	}
}

func joinNonEmpty(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + " " + b
}

// agentAnswer is what the verbs of agents answer.
type agentAnswer struct {
	ID, Key, Org, State string
	Generation          uint64
	Fresh, Synced       bool
}

func (a *app) printDeclared(x agentAnswer) {
	if x.Fresh {
		a.printf("%s is declared (%s)\n", oneLine(x.ID), oneLine(x.Key))
		return
	}
	a.printf("%s stands (%s, %s)\n", oneLine(x.ID), oneLine(x.Key), oneLine(x.State))
}

func agentIDs(x agentAnswer) []string { return []string{x.ID} }

func (a *app) agentDeclare() *cobra.Command {
	req := board.AgentDeclare{}
	c := verb("declare CARD", "the agent of a card and a role, before a session starts", 1, 1, func(c *cobra.Command, args []string) error {
		req.Card = args[0]
		ans, err := a.do(c.Context(), board.VAgentDeclare, req)
		return show(a, ans, err, agentIDs, a.printDeclared)
	})
	f := c.Flags()
	f.StringVar(&req.Role, "role", "", "its role (default: the one that the card's assignee plays)")
	f.StringVar(&req.ID, "id", "", "its id, if its key has no agent yet (default: made of the key)")
	f.Uint64Var(&req.Next, "after", 0, "the generation that ended, as you saw it: where another is the newest, that one is answered")
	return c
}

func (a *app) agentEnd() *cobra.Command {
	req := board.AgentEnd{}
	c := verb("end AGENT", "end an agent for good: its card's next start is by another, without its memory", 1, 1, func(c *cobra.Command, args []string) error {
		req.Agent = args[0]
		ans, err := a.do(c.Context(), board.VAgentEnd, req)
		return show(a, ans, err, agentIDs, func(x agentAnswer) { a.printf("%s has ended (%s)\n", oneLine(x.ID), oneLine(x.Key)) })
	})
	c.Flags().StringVar(&req.Why, "why", "", "why")
	return c
}

func (a *app) agentFork() *cobra.Command {
	req := board.AgentFork{}
	c := verb("fork AGENT --key KEY", "an agent after another: its configuration, without its memory", 1, 1, func(c *cobra.Command, args []string) error {
		if req.Agent = args[0]; req.Key == "" {
			return usagef("use: muster agent fork AGENT --key KEY")
		}
		ans, err := a.do(c.Context(), board.VAgentFork, req)
		return show(a, ans, err, agentIDs, func(x agentAnswer) {
			a.printDeclared(x)
			a.hint("give it a card: muster reassign CARD PROFILE --agent %s", x.ID)
		})
	})
	f := c.Flags()
	f.StringVar(&req.Key, "key", "", "what to call it; the same key is the same agent")
	f.StringVar(&req.Session, "session", "", "the session that it comes of (default: the agent's newest)")
	return c
}

// printWorkers prints who works a card, and who did.
func (a *app) printWorkers(l []api.Assignment) {
	if len(l) == 0 {
		return
	}
	a.printf("\n")
	t := a.table("AGENT", "ROLE", "STATE", "SINCE", "WHY")
	for _, w := range l {
		t.row(w.Agent, orDash(w.Role), w.State, a.since(w.Since)+" ago", orDash(w.Why))
	}
	t.print(a.io.Out)
}

// sizeText is a number of bytes as people say it.
func sizeText(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KB", (n+1023)>>10)
	}
	return fmt.Sprintf("%d MB", n>>20)
}
