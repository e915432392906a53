package cli

import (
	"context"
	"fmt"
	"net/url"
	"os"

	"github.com/spf13/cobra"

	"muster/board"
)

// attachCmd shows the pane of a card's session in this terminal, on whatever machine it is.
func (a *app) attachCmd() *cobra.Command {
	var slot string
	var readOnly bool
	c := verb("attach [CARD]", "look at a session's terminal pane on any machine, and type into it; Ctrl-] leaves it running", 0, 1, func(c *cobra.Command, args []string) error {
		id, err := a.cardArg(args)
		if err != nil {
			return err
		}
		q := url.Values{"card": {id}}
		if slot != "" {
			q.Set("slot", slot)
		}
		if readOnly {
			q.Set("read_only", "true")
		}
		return a.look(c.Context(), "attach", id, q)
	})
	c.Long = `look at a session's terminal pane on any machine, and type into it

The way is muster's own: from this machine's node to the one that has the session, no ssh. Managers type, members and
viewers look on; a machine's node.yaml may allow less (attach: read, attach: none). Several people may look at once; the
pane has the size of who types. Ctrl-] leaves; in a paste it is a character like any other.

When the link stops you are told within seconds, what you type is thrown away, and the look goes on when the
machine answers again: nothing that you typed before is typed later.`
	c.Flags().StringVar(&slot, "slot", "", "of this slot (default: the newest session)")
	c.Flags().BoolVar(&readOnly, "read-only", false, "only look: nothing is typed, and the pane keeps its size")
	return c
}

// shellCmd opens a shell where a card works, or on a machine.
func (a *app) shellCmd() *cobra.Command {
	c := verb("shell CARD|NODE", "a shell in a card's workspace, or on a machine, wherever it is (managers)", 1, 1, func(c *cobra.Command, args []string) error {
		q := url.Values{"shell": {"true"}}
		switch _, err := a.get(c.Context(), "/v1/nodes/"+url.PathEscape(args[0]), nil); {
		case err == nil:
			q.Set("machine", args[0])
		case board.CodeOf(err) == board.NotFound:
			q.Set("card", args[0])
		default:
			return err
		}
		return a.look(c.Context(), "shell", args[0], q)
	})
	c.Long = `a shell in a card's workspace, or on a machine, wherever it is

It is a shell of the user who runs that machine's node, for managers only, and ends when you leave (Ctrl-], or exit).
A machine's node.yaml forbids it with attach: read or attach: none.`
	return c
}

// look shows a terminal until the person leaves it, or it ends.
func (a *app) look(ctx context.Context, verb, what string, q url.Values) error {
	in, isFile := a.io.In.(*os.File)
	out, toFile := a.out.w.(*os.File)
	switch {
	case a.json || a.quiet:
		return usagef("%s shows a terminal: it has no --json and no -q; for a session's text: muster log %s", verb, what)
	case a.inSession():
		return board.Errorf(board.Refused, "%s is for people: a session does not look at another's terminal", verb)
	case !a.io.Terminal || !isFile || !toFile:
		return board.Errorf(board.Refused, "%s needs a terminal", verb).WithHint("for a session's text: muster log %s -f", what)
	}
	cl, err := a.client()
	if err != nil {
		return err
	}
	term := a.io.Env("TERM")
	if term != "" {
		q.Set("term", term)
	}
	if c := a.io.Env("COLORTERM"); c == "truecolor" || c == "24bit" {
		q.Set("color", "true")
	}
	l := &looker{cl: cl, q: q, in: in, out: out, what: what, verb: verb}
	text, err := l.run(ctx)
	if text != "" {
		fmt.Fprintf(a.io.Err, "muster: %s\n", oneLine(text))
	}
	return err
}
