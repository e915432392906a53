package cli

import (
	"os"
	"slices"

	"github.com/spf13/cobra"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/cmd/muster/tui"
)

// tuiCmd shows the board in this terminal.
func (a *app) tuiCmd() *cobra.Command {
	c := verb("tui", "the board in this terminal: cards, logs, fleet, what needs you, and every verb by a key", 0, 0, func(c *cobra.Command, _ []string) error {
		in, isFile := a.io.In.(*os.File)
		out, toFile := a.out.w.(*os.File)
		switch {
		case a.json || a.quiet:
			return usagef("tui shows a board on a terminal: it has no --json and no -q; for programs: muster board show --json, muster events -f --json")
		case a.inSession():
			return board.Errorf(board.Refused, "tui is for people: a session has the verbs").WithHint("see: muster help; muster context")
		case !a.io.Terminal && a.io.Env("TERM") == "dumb":
			return board.Errorf(board.Refused, "tui needs a terminal whose cursor can be moved, and TERM=dumb says that this one's cannot").
				WithHint("set TERM to what the terminal is (TERM=xterm); line by line: muster board show --watch, muster attention -f")
		case !a.io.Terminal || !isFile || !toFile:
			return board.Errorf(board.Refused, "tui needs a terminal, on its input and its output").WithHint("line by line: muster board show --watch, muster events -f; over ssh: ssh -t")
		}
		cl, err := a.client()
		if err != nil {
			return err
		}
		list, err := api.Decode[[]api.Board](cl.Get(c.Context(), "/v1/boards", nil))
		if err != nil {
			return err
		}
		slugs := make([]string, len(list))
		for i, b := range list {
			slugs[i] = b.Slug
		}
		name := a.boardName()
		if a.board == "" && !slices.Contains(slugs, name) && len(slugs) == 1 {
			name = slugs[0]
		}
		if !slices.Contains(slugs, name) {
			return board.Errorf(board.NotFound, "there is no board %q here", name).WithHint("there are: %s; another one: muster --board B tui", orElse(join(slugs), "none"))
		}
		self, err := os.Executable()
		if err != nil {
			return err
		}
		return tui.Run(c.Context(), tui.Config{Client: cl, Board: name, Attach: append([]string{self}, a.whichNode()...), NoColor: a.noColor, Env: os.Environ(), In: in, Out: out})
	})
	c.Long = `the board in this terminal: cards, logs, fleet, what needs you, and every verb by a key

It follows the board as it changes, and says when what it shows is old and why; after a restart of the node or a change of the leader it goes on
by itself. It works over ssh, in 80x24 and less, and without colours (NO_COLOR, --no-color). ? shows the keys.`
	c.Example = `  muster tui
  muster --board web tui
  ssh -t box muster tui
  muster --node 192.0.2.7:7100 --token-file ~/muster.token tui`
	return c
}

// whichNode are the flags that name the same node to another call of this program.
func (a *app) whichNode() (flags []string) {
	for _, f := range [][2]string{{"--data", a.data}, {"--node", a.node}, {"--token-file", a.tokenFile}} {
		if f[1] != "" {
			flags = append(flags, f[0], f[1])
		}
	}
	return flags
}
