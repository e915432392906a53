package cli

import (
	"net/url"

	"github.com/spf13/cobra"

	"muster/board"
	"muster/cmd/muster/api"
)

func (a *app) nodeCmd() *cobra.Command {
	return group("node", "the machines of the fleet", a.nodeList(), a.nodeShow(), a.nodeVote(true), a.nodeVote(false))
}

func (a *app) nodeList() *cobra.Command {
	return verb("list", "all machines", 0, 0, func(c *cobra.Command, _ []string) error {
		ans, err := a.get(c.Context(), "/v1/nodes", nil)
		return show(a, ans, err, func(l []api.Node) (ids []string) {
			for _, n := range l {
				ids = append(ids, n.ID)
			}
			return ids
		}, a.printNodes)
	})
}

func (a *app) nodeShow() *cobra.Command {
	return verb("show N", "one machine", 1, 1, func(c *cobra.Command, args []string) error {
		ans, err := a.get(c.Context(), "/v1/nodes/"+url.PathEscape(args[0]), nil)
		return show(a, ans, err, func(n api.Node) []string { return []string{n.ID} }, func(n api.Node) {
			a.printNodes([]api.Node{n})
			a.printf("\n")
			a.fields([][2]string{
				{"id", n.ID}, {"start", fmtUint(n.Generation)}, {"system", n.OS + "/" + n.Arch}, {"labels", dict(n.Labels)},
				{"tools", join(n.Tools)}, {"always on", yesNo(n.AlwaysOn)}, {"vote", n.Vote}, {"draining", mark(n.Draining, "yes")},
				{"ESTOP", mark(n.Estop, "starts nothing while the file ESTOP is in its data folder")}, {"free memory", mb(n.FreeMB)},
			})
		})
	})
}

// nodeVote promotes or demotes: a person's word about who votes.
func (a *app) nodeVote(vote bool) *cobra.Command {
	use, short, said := "demote N", "let a machine keep its copy but not vote", "%s shall not vote; the leader takes its vote when the others still have a majority\n"
	if vote {
		use, short, said = "promote N", "let a machine vote, even one with a battery", "%s shall vote; the leader lets it as soon as its copy is up to date\n"
	}
	return verb(use, short, 1, 1, func(c *cobra.Command, args []string) error {
		ans, err := a.do(c.Context(), board.VNodeVote, board.NodeVote{Node: args[0], Vote: vote})
		return show(a, ans, err, func(r doneAnswer) []string { return []string{r.Node} }, func(doneAnswer) {
			a.printf(said, oneLine(args[0]))
			a.hint("see: muster status")
		})
	})
}
