package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"muster/board"
	"muster/cmd/muster/api"
)

func (a *app) tokenCmd() *cobra.Command {
	return group("token", "strings that let machines join and people call", a.tokenCreate(), a.tokenList(), a.tokenRevoke())
}

func (a *app) tokenCreate() *cobra.Command {
	var o api.TokenOptions
	var ttl time.Duration
	c := verb("create", "make a token", 0, 0, func(c *cobra.Command, _ []string) error {
		if ttl < time.Second {
			return usagef("--ttl %s: at least a second", ttl)
		}
		if o.Uses < 0 {
			return usagef("--uses %d: a number above 0, or 0 for no bound", o.Uses)
		}
		if o.Role != "node" && !c.Flags().Changed("uses") {
			o.Uses = 0 // who calls with it calls often
		}
		if c.Flags().Changed("board") { // said, and not only in the environment: a token for less than was meant is a surprise, too
			o.Board = a.board
		}
		o.TTL = int64(ttl / time.Second)
		cl, err := a.client()
		if err != nil {
			return err
		}
		ans, err := cl.Post(c.Context(), "/v1/token", o)
		return show(a, ans, err, func(t api.TokenAnswer) []string { return []string{t.Token} }, func(t api.TokenAnswer) { a.printToken(o, t) })
	})
	f := c.Flags()
	f.StringVar(&o.Role, "role", "node", "node, manager, member or viewer")
	f.DurationVar(&ttl, "ttl", 24*time.Hour, "how long it holds (also --expires)")
	f.Int64Var(&o.Uses, "uses", 1, "how many machines it lets in; of other roles how many changes it makes (default there: 0); 0: no bound")
	f.StringVar(&o.Local, "local", "", "what users of that node's socket may do: manager, member, viewer or none (default manager)")
	f.StringVar(&o.Name, "name", "", "who calls with it: what is done with it bears this name")
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "expires" {
			name = "ttl"
		}
		return pflag.NormalizedName(name)
	})
	c.Long = "Make a token: a string that lets a machine join (--role node), or a person or a program call from elsewhere\n" +
		"(manager, member, viewer; with --board B of that board alone).\n\n" +
		"What it may do is held against the fleet's state at each call: muster token revoke ID ends it at once.\n" +
		"The fleet keeps a hash of its secret only, so it is shown once."
	return c
}

// printToken prints a new token alone on stdout, and on stderr what it is good for.
func (a *app) printToken(o api.TokenOptions, t api.TokenAnswer) {
	a.printf("%s\n", t.Token)
	what := "role " + o.Role
	if o.Name != "" {
		what += ", as " + o.Name
	}
	if o.Board != "" {
		what += ", on board " + oneLine(o.Board)
	}
	switch {
	case o.Uses > 0 && o.Role == "node":
		what += fmt.Sprintf(", lets %d machine(s) in", o.Uses)
	case o.Uses > 0:
		what += fmt.Sprintf(", good for %d change(s)", o.Uses)
	}
	fmt.Fprintf(a.io.Err, "%s, until %s; who has it may use it: send it safely\n", what, clock(t.Expires))
	if o.Role == "node" {
		fmt.Fprintf(a.io.Err, "on the other machine: muster join -   (it reads the token from stdin), or: muster join --token-file F\n")
	} else {
		fmt.Fprintf(a.io.Err, "elsewhere: muster --node IP:PORT --token-file F ...\n")
	}
}

func (a *app) tokenList() *cobra.Command {
	return verb("list", "tokens that hold", 0, 0, func(c *cobra.Command, _ []string) error {
		ans, err := a.get(c.Context(), "/v1/tokens", nil)
		return show(a, ans, err, func(l []api.Token) (ids []string) {
			for _, t := range l {
				ids = append(ids, t.ID)
			}
			return ids
		}, func(l []api.Token) {
			t := a.table("ID", "ROLE", "FOR", "USES", "ENDS", "MADE BY")
			for _, k := range l {
				uses, ends := "no bound", "never"
				if k.Uses > 0 {
					uses = fmt.Sprint(k.Uses)
				}
				if k.Expires != nil {
					ends = clock(*k.Expires)
				}
				who := orElse(k.Name, "-")
				if k.Board != "" {
					who += " on " + k.Board
				}
				t.row(k.ID, k.Role, who, uses, ends, k.By)
			}
			t.print(a.io.Out)
		})
	})
}

func (a *app) tokenRevoke() *cobra.Command {
	return verb("revoke ID", "end a token", 1, 1, func(c *cobra.Command, args []string) error {
		ans, err := a.do(c.Context(), board.VTokenRevoke, board.TokenRevoke{ID: args[0]})
		return show(a, ans, err, func(map[string]any) []string { return []string{args[0]} }, func(map[string]any) {
			a.printf("token %s lets nobody in any more\n", oneLine(args[0]))
		})
	})
}
