package cli

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"muster/board"
	"muster/cmd/muster/api"
)

// A shell that completes asks this program; ids, names and statuses are asked of
// the node. What a word stands for is read from the verb's own line of use, so
// that a verb cannot forget it.

// completeIn is how long a shell waits for the node's word.
const completeIn = 2 * time.Second

// lister gives what a word may be, each with an optional description after a tab.
type lister func(ctx context.Context, args []string) []string

// completions gives every verb below c what completes its arguments and flags.
func (a *app) completions(c *cobra.Command) {
	for _, sub := range c.Commands() {
		a.completions(sub)
	}
	words := nouns(c)
	if c.ValidArgs == nil && c.ValidArgsFunction == nil && c.Runnable() && !c.HasSubCommands() {
		c.ValidArgsFunction = a.completer(c, func(n int) string {
			if n >= len(words) && len(words) > 0 && strings.HasSuffix(words[len(words)-1], "...") {
				n = len(words) - 1
			}
			if n >= len(words) {
				return ""
			}
			return words[n]
		})
	}
	flags := map[string]string{"board": "B", "assignee": "PROFILE", "profile": "PROFILE", "machine": "N", "status": "STATUS", "until": "STATUS", "after": "CARD",
		"parent": "CARD", "subtask-of": "CARD", "card": "CARD", "role": "ROLE", "local": "LOCAL", "timers": "TIMERS", "file": "FILE", "token-file": "FILE", "data": "FILE",
		"binary": "FILE", "since": "SINCE"}
	visit := func(f *pflag.Flag) {
		word := flags[f.Name]
		if f.Name == "kind" {
			word = map[string]string{"events": "KIND", "block": "BLOCK"}[c.Name()]
		}
		if word != "" && word != "FILE" {
			_ = c.RegisterFlagCompletionFunc(f.Name, a.completer(c, func(int) string { return word })) // it is there: it was visited
		}
	}
	c.LocalNonPersistentFlags().VisitAll(visit)
	if !c.HasParent() {
		c.PersistentFlags().VisitAll(visit)
	}
}

// nouns are the words of a verb's line of use that are its arguments: CARD, [B], STATUS...
func nouns(c *cobra.Command) (words []string) {
	for _, w := range strings.Fields(c.Use)[1:] {
		if strings.HasPrefix(w, "-") {
			break
		}
		words = append(words, strings.Trim(w, "[]"))
	}
	return words
}

func (a *app) completer(c *cobra.Command, word func(n int) string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		w := strings.TrimSuffix(word(len(args)), "...")
		if w == "FILE" || w == "DATA" {
			return nil, cobra.ShellCompDirectiveDefault
		}
		list := a.lister(c, w)
		if list == nil || a.settle(cmd) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if !a.timeoutSet {
			a.timeout = completeIn
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeIn)
		defer cancel()
		how := cobra.ShellCompDirectiveNoFileComp
		if w == "KEY=VALUE" {
			how |= cobra.ShellCompDirectiveNoSpace
		}
		given := args
		if strings.Contains(typed, ",") { // --until review,done
			head := typed[:strings.LastIndex(typed, ",")+1]
			return prefixed(head, list(ctx, given)), how
		}
		return slices.DeleteFunc(list(ctx, given), func(s string) bool { return !strings.HasPrefix(s, typed) }), how
	}
}

func prefixed(head string, list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = head + s
	}
	return out
}

// lister is what a word of a line of use stands for; nil for free text.
func (a *app) lister(c *cobra.Command, word string) lister {
	switch {
	case word == "ID" && c.HasParent() && c.Parent().Name() == "card":
		word = "CARD"
	case word == "ID" && c.HasParent() && c.Parent().Name() == "token":
		word = "TOKEN"
	case word == "B" && c.Name() == "create":
		return nil // a new name
	}
	fixed := func(list ...string) lister { return func(context.Context, []string) []string { return list } }
	switch word {
	case "CARD":
		return a.listCards
	case "B":
		return a.listBoards
	case "N":
		return a.listNodes
	case "PROFILE":
		return func(ctx context.Context, _ []string) []string { return a.boardDetail(ctx).Profiles }
	case "STATUS":
		return func(ctx context.Context, _ []string) []string { return a.boardDetail(ctx).Statuses }
	case "TOKEN":
		return a.listTokens
	case "EVENT", "KIND":
		return a.listKinds
	case "SINCE":
		return fixed("now", "0")
	case "BLOCK":
		return fixed("needs_input", "capability", "transient", "dependency")
	case "ROLE":
		return fixed("node", "manager", "member", "viewer")
	case "LOCAL":
		return fixed("manager", "member", "viewer", "none")
	case "TIMERS":
		return fixed("lan", "wan")
	case "local=ROLE":
		return fixed("local=manager", "local=member", "local=viewer", "local=none")
	case "KEY=VALUE":
		return a.listKeys
	}
	return nil
}

// list asks the node; a shell is told nothing of what fails.
func list[T any](a *app, ctx context.Context, path string, q url.Values) T {
	x, err := api.Decode[T](a.get(ctx, path, q))
	if err != nil {
		var none T
		return none
	}
	return x
}

func (a *app) listCards(ctx context.Context, given []string) (out []string) {
	q := url.Values{}
	if a.board != "" {
		q.Set("board", a.board)
	}
	for _, c := range list[[]api.Card](a, ctx, "/v1/cards", q) {
		if !slices.Contains(given, c.ID) {
			out = append(out, c.ID+"\t"+oneLine(c.Status+": "+clip(c.Title, 60)))
		}
	}
	return out
}

func (a *app) listBoards(ctx context.Context, _ []string) (out []string) {
	for _, b := range list[[]api.Board](a, ctx, "/v1/boards", nil) {
		out = append(out, b.Slug+"\t"+oneLine(b.Label))
	}
	return out
}

func (a *app) listNodes(ctx context.Context, _ []string) (out []string) {
	for _, n := range list[[]api.Node](a, ctx, "/v1/nodes", nil) {
		out = append(out, n.Name+"\t"+n.Role+", "+n.State)
	}
	return out
}

func (a *app) listTokens(ctx context.Context, _ []string) (out []string) {
	for _, t := range list[[]api.Token](a, ctx, "/v1/tokens", nil) {
		out = append(out, t.ID+"\t"+t.Role)
	}
	return out
}

func (a *app) boardDetail(ctx context.Context) api.BoardDetail {
	return list[api.BoardDetail](a, ctx, "/v1/boards/"+url.PathEscape(a.boardName()), nil)
}

// listKinds are the kinds of events; after a card, the events that people say.
func (a *app) listKinds(ctx context.Context, given []string) (out []string) {
	kinds := list[[]string](a, ctx, "/v1/kinds", url.Values{"board": {a.board}})
	own := board.EventKinds() // of the board and the fleet: nobody says them
	for _, k := range kinds {
		if len(given) == 0 || !slices.Contains(own, k) {
			out = append(out, k)
		}
	}
	return out
}

func (a *app) listKeys(ctx context.Context, given []string) []string {
	if len(given) > 0 && !strings.Contains(given[0], "=") {
		a.board = given[0]
	}
	out := []string{"label=", "home=", "keep=", "zone="}
	for k := range a.boardDetail(ctx).InForce {
		out = append(out, "params."+k+"=")
	}
	slices.Sort(out)
	return out
}
