package cli

import (
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"muster/board"
	"muster/cmd/muster/api"
)

func (a *app) nodeCmd() *cobra.Command {
	return group("node", "the machines of the fleet", a.nodeList(), a.nodeShow(), a.nodeDrain(), a.nodeUndrain(), a.nodeVote(true), a.nodeVote(false), a.nodeSet(), a.nodeLabel(), a.nodeRemove())
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
				{"tools", join(n.Tools)}, {"always on", yesNo(n.AlwaysOn)}, {"vote", n.Vote}, {"draining", a.drainText(n)},
				{"ESTOP", a.estopText(n)}, {"free memory", mb(n.FreeMB)},
				{"free disk", mb(n.DiskFreeMB) + mark(n.NoSpace, ": too little, it takes nothing new")}, {"workspaces", workspacesText(n)}, {"clock", clockText(n.ClockOffS)},
			})
		})
	})
}

// drainText is who lets a machine take nothing new, since when, and why.
func (a *app) drainText(n api.Node) string {
	if n.Drain == nil {
		return mark(n.Draining, "yes")
	}
	return a.pauseText(*n.Drain)
}

// estopText is who made a machine start nothing, since when, and why.
func (a *app) estopText(n api.Node) string {
	if n.EstopBy == nil {
		return ""
	}
	return a.pauseText(*n.EstopBy) + "; it starts nothing while the file ESTOP is in its data folder"
}

// workspacesText is how many workspaces a machine has and what they take of its disk.
func workspacesText(n api.Node) string {
	if n.Workspaces == 0 {
		return ""
	}
	if n.WorkspacesMB == 0 {
		return fmt.Sprintf("%d, less than 1 MB on its disk", n.Workspaces)
	}
	return fmt.Sprintf("%d, %s on its disk", n.Workspaces, mb(n.WorkspacesMB))
}

// clockText tells of a clock that is more than a second off board time.
func clockText(off float64) string {
	switch d := time.Duration(off * float64(time.Second)).Round(time.Second); {
	case d > time.Second:
		return d.String() + " ahead of board time"
	case d < -time.Second:
		return (-d).String() + " behind board time"
	}
	return ""
}

// nodeVote promotes or demotes: a person's word about who votes.
func (a *app) nodeVote(vote bool) *cobra.Command {
	use, short, said := "demote N", "let a machine keep its copy but not vote", "%s shall not vote; the leader takes its vote when the others still have a majority\n"
	if vote {
		use, short, said = "promote N", "let a machine vote, even one with a battery", "%s shall vote; the leader lets it as soon as its copy is up to date\n"
	}
	return verb(use, short, 1, 1, func(c *cobra.Command, args []string) error {
		ans, err := a.do(c.Context(), board.VNodeVote, board.NodeVote{Node: args[0], Vote: vote})
		return show(a, ans, err, func(r doneAnswer) []string { return []string{r.Node} }, func(r doneAnswer) {
			if had := r.Role == board.RoleVoter; had == vote {
				a.printf("%s %s\n", oneLine(args[0]), map[bool]string{true: "votes already, and will go on", false: "does not vote, and will not"}[vote])
				return
			}
			a.printf(said, oneLine(args[0]))
			a.votersSoon(r.Voters, r.Soon, vote)
			a.hint("see: muster status")
		})
	})
}

func (a *app) nodeSet() *cobra.Command {
	return verb("set N local=ROLE", "what the users of a machine's own socket may do: manager, member, viewer or none", 2, 2, func(c *cobra.Command, args []string) error {
		k, v, err := pair(args[1])
		if err != nil || k != "local" {
			return usagef("use: muster node set N local=manager|member|viewer|none")
		}
		ans, err := a.do(c.Context(), board.VNodeSet, board.NodeSet{Node: args[0], Local: v})
		return show(a, ans, err, func(r doneAnswer) []string { return []string{r.Node} }, func(doneAnswer) {
			a.printf("users of %s's own socket are %s now\n", oneLine(args[0]), oneLine(v))
		})
	})
}

// nodeLabel gives a machine labels that stay, whatever its node is started with.
func (a *app) nodeLabel() *cobra.Command {
	c := verb("label N NAME=VALUE...", "labels of a machine, which placement may ask for (NAME= takes one away)", 2, -1, func(c *cobra.Command, args []string) error {
		labels := map[string]string{}
		for _, s := range args[1:] {
			k, v, err := pair(s)
			if err != nil {
				return err
			}
			labels[k] = v
		}
		ans, err := a.do(c.Context(), board.VNodeLabel, board.NodeLabel{Node: args[0], Labels: labels})
		type answer struct {
			Node   string            `json:"node"`
			Labels map[string]string `json:"labels"`
		}
		return show(a, ans, err, func(r answer) []string { return []string{r.Node} }, func(r answer) {
			a.printf("labels of %s: %s\n", oneLine(args[0]), orElse(dict(r.Labels), "none"))
		})
	})
	c.Long = "Labels of a machine, which placement may ask for (requires, prefer: machine.labels.NAME). NAME= takes one away.\n\n" +
		"They are the fleet's and stay: a label given here wins over the one that the node is started with (up --label),\n" +
		"and one taken away here stays away. always-on=true lets a machine with a battery count as one that stays on."
	return c
}

// votersSoon tells what a person's word comes to: the fleet keeps 1, 3 or 5 voters, so one word may move two of them,
// or none yet.
func (a *app) votersSoon(now, soon int, vote bool) {
	switch {
	case !vote && soon < now-1:
		a.printf("no other machine may take its place, and two voters are worse than one: %d of %d will be left. promote another to keep %d: muster node promote N\n", soon, now, now)
	case !vote && soon == now:
		a.printf("another machine takes its place: there will be %d voters\n", soon)
	case vote && soon == now:
		a.printf("the fleet keeps 1, 3 or 5 voters, and has %d: this one votes as soon as another may too, or one of them fails\n", now)
	case soon != now:
		a.printf("there will be %d voters\n", soon)
	}
}
