package cli

import (
	"net/url"

	"github.com/spf13/cobra"

	"muster/board"
	"muster/cmd/muster/api"
)

// attachCmd shows the pane of a card's session in this terminal.
func (a *app) attachCmd() *cobra.Command {
	var slot string
	var readOnly bool
	c := verb("attach [CARD]", "look at a session's terminal pane, and type into it; Ctrl-] leaves it running", 0, 1, func(c *cobra.Command, args []string) error {
		id, err := a.cardArg(args)
		if err != nil {
			return err
		}
		switch {
		case a.json || a.quiet:
			return usagef("attach shows a terminal: it has no --json and no -q; for its text: muster log %s", id)
		case a.node != "" || a.inSession():
			return board.Errorf(board.Refused, "a pane is attached to by a person on its own machine")
		case !a.io.Terminal:
			return board.Errorf(board.Refused, "attach needs a terminal").WithHint("for its text: muster log %s -f", id)
		}
		cl, err := a.client()
		if err != nil {
			return err
		}
		runs, err := api.Decode[[]api.Run](a.get(c.Context(), "/v1/cards/"+url.PathEscape(id)+"/runs", nil))
		if err != nil {
			return err
		}
		info, err := api.Decode[api.Info](cl.Get(c.Context(), "/v1/info", nil))
		if err != nil {
			return err
		}
		run, err := openPane(id, slot, runs, info)
		if err != nil {
			return err
		}
		return a.deps.Attach(info.Data, run, readOnly)
	})
	c.Flags().StringVar(&slot, "slot", "", "of this slot (default: the newest session)")
	c.Flags().BoolVar(&readOnly, "read-only", false, "only look: nothing is typed, and the pane keeps its size")
	return c
}

// openPane is the newest run of a card whose pane is open on this machine.
func openPane(card, slot string, runs []api.Run, here api.Info) (string, error) {
	for i := len(runs) - 1; i >= 0; i-- {
		switch r := runs[i]; {
		case r.Surface != "pane" || r.Gone != "" || r.Launched == nil || slot != "" && r.Slot != slot:
		case r.Node != here.Name && r.Node != here.ID:
			return "", board.Errorf(board.Refused, "the pane of run %s is on %s, and this is %s", r.ID, r.Node, here.Name).
				WithHint("there: muster attach %s; from here: muster log %s -f", card, card)
		default:
			return r.ID, nil
		}
	}
	of := ""
	if slot != "" {
		of = " of slot " + slot
	}
	return "", board.Errorf(board.Refused, "card %s has no open pane%s", card, of).WithHint("see: muster runs %s", card)
}
