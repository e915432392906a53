package cli

import (
	"github.com/spf13/cobra"

	"muster/board"
)

// cardPut moves a card past the workflow: for a manager who finds one where no transition takes it out (M-22).
func (a *app) cardPut() *cobra.Command {
	var req board.CardPut
	c := verb("put CARD STATUS --why TEXT", "move a card to a status by hand, past the workflow", 2, 2, func(c *cobra.Command, args []string) error {
		req.Card, req.Status = args[0], args[1]
		if req.Why == "" {
			return usagef("why? give --why TEXT")
		}
		ans, err := a.do(c.Context(), board.VCardPut, req)
		return show(a, ans, err, func(r doneAnswer) []string { return []string{r.ID} }, func(r doneAnswer) {
			a.printf("%s: %s, now %s\n", oneLine(r.ID), oneLine(r.From), oneLine(r.To))
		})
	})
	c.Flags().StringVar(&req.Why, "why", "", "the reason, for its history")
	c.Flags().BoolVar(&req.Force, "force", false, "also when its machine cannot be asked: you say that its session is dead")
	return c
}
