package cli

import (
	"github.com/spf13/cobra"

	"muster/cmd/muster/api"
)

// Finding is one thing that the doctor found; severity is error, warn or note.
type Finding struct {
	Code     string `json:"code"`
	Severity string `json:"severity"`
	Text     string `json:"text"`
	Fix      string `json:"fix"`
}

func (a *app) doctorCmd() *cobra.Command {
	c := verb("doctor", "what would lose data or stop the fleet, and what to do about it", 0, 0, func(c *cobra.Command, _ []string) error {
		home, err := a.home()
		if err != nil {
			return err
		}
		a.waiting("looking at this machine, its node and the others ...")
		list := a.deps.Doctor(c.Context(), home)
		bad := false
		for _, f := range list {
			bad = bad || f.Severity == "error"
			if a.quiet {
				a.printf("%s\n", f.Code)
			}
		}
		switch {
		case a.json:
			if list == nil {
				list = []Finding{}
			}
			a.printJSON(map[string]any{"v": api.Version, "data": map[string]any{"ok": !bad, "findings": list}})
		case a.quiet:
		case len(list) == 0:
			a.printf("%s\n", a.color(green, "nothing found"))
		default:
			for _, f := range list {
				col := map[string]string{"error": red, "warn": yellow}[f.Severity]
				if col == "" {
					col = dim
				}
				a.printf("%s %s (%s)\n  %s\n", a.color(col, f.Severity+":"), visible(f.Text), f.Code, visible(f.Fix))
			}
		}
		if bad {
			return codeError(ExitFailed)
		}
		return nil
	})
	c.Long = `what would lose data or stop the fleet, and what to do about it

It looks at the data folder, the disk and its sync time, memory, tmux, git, the agent programs and their login, whether
what this user started outlives its logins; and, while the node runs, at quorum, alarms, versions, sessions that could
read a voter's key, and how every other node answers from here: latency and clock. It works while the node is stopped,
too. Exit code 1 when there is an error; a warning or a note is none. The codes in brackets stay.`
	return c
}
