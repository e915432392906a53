package cli

import (
	"github.com/spf13/cobra"

	"muster/board"
)

// forgetCmd lets a card's sessions go, so that its next start begins afresh.
func (a *app) forgetCmd() *cobra.Command {
	req := board.Forget{}
	c := verb("forget CARD", "let a card's sessions go: its next start begins afresh", 1, 1, func(c *cobra.Command, args []string) error {
		req.Card = args[0]
		ans, err := a.do(c.Context(), board.VForget, req)
		return show(a, ans, err, func(r doneAnswer) []string { return []string{r.ID} }, func(r doneAnswer) {
			a.printf("%s begins afresh with its next start\n", oneLine(r.ID))
			for _, l := range r.Left {
				a.printf("  let go: %s\n", oneLine(l))
			}
			if r.To != r.From {
				a.printf("%s: %s -> %s\n", oneLine(r.ID), oneLine(r.From), oneLine(r.To))
			}
		})
	})
	c.Example = `  muster forget d-7
  muster forget d-7 --slot reviewer --why "it went astray"`
	c.Flags().StringVar(&req.Slot, "slot", "", "of this slot only (worker, reviewer, ...)")
	c.Flags().StringVar(&req.Why, "why", "", "why")
	return c
}
