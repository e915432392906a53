package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"muster/board"
	"muster/cmd/muster/api"
)

// removed is what a removal comes to.
type removed struct {
	Node   string   `json:"node"`
	Name   string   `json:"name"`
	Cards  []string `json:"cards"`
	Left   []string `json:"left"`
	Orders int      `json:"orders"`
	Role   string   `json:"role"`
	Voters int      `json:"voters"`      // that are left
	Soon   int      `json:"voters_soon"` // once the leader has done what the node list wants
}

// nodeRemove takes a machine out of the fleet.
func (a *app) nodeRemove() *cobra.Command {
	var o board.NodeRemove
	c := verb("remove N", "take a machine out of the fleet: nobody trusts it any more", 1, 1, func(c *cobra.Command, args []string) error {
		if o.Dead && o.Why == "" {
			return usagef("--dead says that the machine's sessions are dead: say --why, too")
		}
		o.Node = args[0]
		ans, err := a.do(c.Context(), board.VNodeRemove, o)
		return show(a, ans, err, func(r removed) []string { return []string{r.Node} }, func(r removed) {
			a.printf("%s is out of the fleet: its connections are closed, and gossip gets another key\n", oneLine(r.Name))
			for _, id := range r.Cards {
				a.printf("  card %s is bound to no machine any more\n", oneLine(id))
			}
			for _, s := range r.Left {
				a.printf("  stays behind there: %s\n", oneLine(s))
			}
			if r.Orders > 0 {
				a.printf("  %d order(s) for it are void: what they were to clean up stays there\n", r.Orders)
			}
			a.printf("%s\n", votersLeft(r))
			a.hint("its data folder is not touched; to let it in again: muster token create, and there: muster join -")
		})
	})
	f := c.Flags()
	f.BoolVar(&o.Dead, "dead", false, "the machine is lost for good: its sessions count as dead (they may overlap with new ones if it is not)")
	f.StringVar(&o.Why, "why", "", "the reason, for everybody who reads the events")
	return c
}

// votersLeft says what a removal makes of the voters.
func votersLeft(r removed) string {
	was := "it did not vote: "
	if r.Role == board.RoleVoter {
		was = "it voted: "
	}
	is := func(n int) string {
		if n == 1 {
			return "1 voter is left"
		}
		return fmt.Sprintf("%d voters are left", n)
	}
	now, soon := is(r.Voters), ""
	switch {
	case r.Soon > r.Voters:
		soon = fmt.Sprintf("; the leader makes them %d", r.Soon)
	case r.Soon < r.Voters:
		soon = fmt.Sprintf("; until a third machine may vote the leader makes them %d, since two are worse than one", r.Soon)
	}
	return was + now + soon
}

// leave takes this machine out of the fleet and stops its node.
func (a *app) leaveCmd() *cobra.Command {
	return verb("leave", "take this machine out of the fleet, and stop its node", 0, 0, func(c *cobra.Command, _ []string) error {
		if a.node != "" {
			return usagef("leave is of this machine; for another: muster node remove N")
		}
		cl, err := a.client()
		if err != nil {
			return err
		}
		info, err := api.Decode[api.Info](cl.Get(c.Context(), "/v1/info", nil))
		if err != nil {
			return err
		}
		a.waiting("leaving the fleet ...")
		r, err := a.leave(c.Context(), cl, info.Name)
		if err != nil {
			return err
		}
		if _, err := a.stop(c.Context(), ""); err != nil {
			return err
		}
		switch {
		case a.json:
			a.printJSON(map[string]any{"v": api.Version, "data": r})
		case !a.quiet:
			a.printf("%s is out of the fleet, and its node is stopped\n", oneLine(info.Name))
			for _, s := range r.Left {
				a.printf("  stays behind here: %s\n", oneLine(s))
			}
			if r.Voters > 0 {
				a.printf("%s\n", votersLeft(r))
			}
			a.hint("its data folder %s is not touched; to come back: muster token create on another machine, and here: muster join -", info.Data)
		}
		return nil
	})
}

// leave asks for the removal of this node. The leader closes this node's connections at the commit, so the answer may
// be lost by its own success: then the node's word that it is out counts, which its peers tell it.
func (a *app) leave(ctx context.Context, cl *api.Client, name string) (removed, error) {
	type outcome struct {
		r   removed
		err error
	}
	done := make(chan outcome, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		r, err := api.Decode[removed](a.do(ctx, board.VNodeRemove, board.NodeRemove{Node: name}))
		done <- outcome{r, err}
	}()
	look := time.NewTicker(500 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case o := <-done:
			if board.CodeOf(o.err) != board.UnknownOutcome || !a.isOut(ctx, cl) {
				return o.r, o.err
			}
			return removed{Name: name}, nil
		case <-look.C:
			if a.isOut(ctx, cl) {
				return removed{Name: name}, nil
			}
		}
	}
}

func (a *app) isOut(ctx context.Context, cl *api.Client) bool {
	s, err := api.Decode[api.Status](cl.Get(ctx, "/v1/status", nil))
	return err == nil && s.Removed != ""
}
