package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

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
		o.TTL = int64(ttl / time.Second)
		cl, err := a.client()
		if err != nil {
			return err
		}
		ans, err := cl.Post(c.Context(), "/v1/token", o)
		return show(a, ans, err, func(t api.TokenAnswer) []string { return []string{t.Token} }, func(t api.TokenAnswer) {
			a.printf("%s\n", t.Token)
			uses := ""
			if o.Role == "node" && o.Uses > 0 {
				uses = fmt.Sprintf(", lets %d machine(s) in", o.Uses)
			}
			fmt.Fprintf(a.io.Err, "role %s%s, until %s; who has it may use it: send it safely\n", o.Role, uses, clock(t.Expires))
			if o.Role == "node" {
				fmt.Fprintf(a.io.Err, "on the other machine: muster join -   (it reads the token from stdin), or: muster join --token-file F\n")
			}
		})
	})
	f := c.Flags()
	f.StringVar(&o.Role, "role", "node", "node, manager, member or viewer")
	f.DurationVar(&ttl, "ttl", 24*time.Hour, "how long it holds")
	f.Int64Var(&o.Uses, "uses", 1, "how many machines it lets in; 0: no bound")
	f.StringVar(&o.Local, "local", "", "what users of that node's socket may do: manager, member, viewer or none (default manager)")
	return c
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
			t := a.table("ID", "ROLE", "USES", "ENDS", "MADE BY")
			for _, k := range l {
				uses, ends := "no bound", "never"
				if k.Uses > 0 {
					uses = fmt.Sprint(k.Uses)
				}
				if k.Expires != nil {
					ends = clock(*k.Expires)
				}
				t.row(k.ID, k.Role, uses, ends, k.By)
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
