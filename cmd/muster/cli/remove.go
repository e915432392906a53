package cli

import (
	"github.com/spf13/cobra"

	"muster/board"
)

// removed is what a removal comes to.
type removed struct {
	Node   string   `json:"node"`
	Name   string   `json:"name"`
	Cards  []string `json:"cards"`
	Left   []string `json:"left"`
	Orders int      `json:"orders"`
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
			a.hint("its data folder is not touched; to let it in again: muster token create, and there: muster join -")
		})
	})
	f := c.Flags()
	f.BoolVar(&o.Dead, "dead", false, "the machine is lost for good: its sessions count as dead (they may overlap with new ones if it is not)")
	f.StringVar(&o.Why, "why", "", "the reason, for everybody who reads the events")
	return c
}
