package cli

import (
	"time"

	"github.com/spf13/cobra"

	"muster/cmd/muster/api"
)

const mirrorTime = 2 * time.Minute

// boardMirror waits for this machine's mirror of a board.
func (a *app) boardMirror() *cobra.Command {
	c := verb("mirror [B]", "wait until this machine has pushed a board to its git repository", 0, 1, func(c *cobra.Command, args []string) error {
		cl, err := a.client()
		if err != nil {
			return err
		}
		if !a.timeoutSet {
			cl.Timeout = mirrorTime
		}
		a.waiting("committing and pushing ...")
		ans, err := cl.Post(c.Context(), "/v1/mirror", api.Mirror{Board: a.boardArg(args)})
		return show(a, ans, err, func(m api.Mirror) []string { return []string{m.Board} }, func(m api.Mirror) {
			a.printf("board %s is in %s, branch %s%s\n", oneLine(m.Board), oneLine(m.Repo), oneLine(m.Branch), oneLine(mark(m.Folder != "", ", folder "+m.Folder)))
		})
	})
	c.Long = `wait until this machine has pushed a board to its git repository

Which boards this machine mirrors, and to where, stands in node.yaml in its data folder: mirrors: {BOARD: {repo: URL, branch: muster,
folder: DIR}}, read at the node's start. It commits and pushes by itself, a commit an event, by who caused it; this verb only waits. When
nothing is left to push that is no error. See: docs/folder.md.`
	return c
}
