package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"muster/board"
	"muster/cmd/muster/api"
)

// agentOrg shows or sets whose the fleet's agents are.
func (a *app) agentOrg() *cobra.Command {
	c := verb("org [NAME]", "the organisation whose directory is told of the agents, and what waits for it", 0, 1, func(c *cobra.Command, args []string) error {
		if len(args) == 1 {
			ans, err := a.do(c.Context(), board.VOrgSet, board.OrgSet{Org: args[0]})
			return show(a, ans, err, func(x struct{ Org string }) []string { return []string{x.Org} }, func(x struct{ Org string }) {
				a.printf("the fleet's agents are those of %s; its directory is told of them\n", oneLine(x.Org))
			})
		}
		ans, err := a.get(c.Context(), "/v1/organisations", nil)
		return show(a, ans, err, func(l []api.Organisation) (ids []string) {
			for _, o := range l {
				ids = append(ids, o.Name)
			}
			return ids
		}, a.printOrgs)
	})
	c.Long = "The organisation whose directory is told of the fleet's agents: that there is one, and that it has ended.\n\n" +
		"Without NAME: which it is, which machine tells its directory, and what waits. With NAME: the fleet's agents become\n" +
		"those of that organisation, for good; its directory is told of all of them, also of those that were there before.\n" +
		"A machine that can tell it names it in node.yaml in its data folder:\n\n" +
		"  organisations: {NAME: {url: https://HOST/PATH, credentials: FILE}}\n\n" +
		"The credentials stay on that machine. Without a url the fleet itself is the directory. docs/directory.md has the rest."
	return c
}

func (a *app) printOrgs(l []api.Organisation) {
	if len(l) == 0 {
		a.printf("the fleet's agents are its own: no directory is told of them\n")
		a.hint("an organisation: muster agent org --help")
		return
	}
	for _, o := range l {
		state := "up to date"
		if s := o.Said(); s != "" {
			state = s
		}
		node := o.Node
		if node != "" && o.Since != nil {
			node += ", for " + a.since(*o.Since)
		}
		failing := ""
		if o.Failing != nil {
			failing = a.since(*o.Failing)
		}
		a.printf("%s\n", a.color(bold, oneLine(o.Name)))
		a.fields([][2]string{{"delivers", orDash(node)}, {"credentials on", orDash(strings.Join(o.Holders, ", "))}, {"state", state}, {"failing for", failing}})
		if len(o.First) == 0 {
			continue
		}
		t := a.table("WAITS", "AGENT", "SINCE", "TRIES", "WHY")
		for _, w := range o.First {
			t.row(w.Kind, w.Agent, a.since(w.Since)+" ago", w.Failures, orDash(w.Error))
		}
		t.print(a.io.Out)
		if n := o.Waiting - len(o.First); n > 0 {
			a.printf("... and %d more\n", n)
		}
	}
}
