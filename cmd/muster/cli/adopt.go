package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"muster/board"
	"muster/cmd/muster/api"
)

// adopted is the answer to an attach: Env is what lets the session speak as its run, where that is on this machine.
type adopted struct {
	ID      string            `json:"id"`
	From    string            `json:"from"`
	To      string            `json:"to"`
	Run     string            `json:"run"`
	Machine string            `json:"machine"`
	Env     map[string]string `json:"env,omitempty"`
	Brief   string            `json:"brief,omitempty"` // file with what the session is told of its card
}

// adoptCmd makes a session that a person has a card's.
func (a *app) adoptCmd() *cobra.Command {
	req := board.Adopt{}
	c := verb("adopt CARD --session ID", "let a session that you have work a card", 1, 1, func(c *cobra.Command, args []string) error {
		if req.Card = args[0]; req.Session == "" {
			return usagef("which session? give its id, as its program calls it: --session ID")
		}
		switch {
		case req.PID != 0 && req.Pane != "":
			return usagef("--pid or --pane: which?")
		case req.Machine != "" && req.Dir != "" && !filepath.IsAbs(strings.TrimPrefix(req.Dir, "dir:")):
			return usagef("--dir %s: on another machine a whole path, from / on", oneLine(req.Dir))
		case req.Machine == "" && req.Dir != "":
			abs, err := filepath.Abs(req.Dir)
			if err != nil {
				return err
			}
			req.Dir = abs
		}
		ans, err := a.do(c.Context(), board.VAdopt, req)
		x, err := api.Decode[adopted](ans, err)
		if err != nil {
			return err
		}
		if home, err := a.home(); err == nil && a.node == "" && req.Machine == "" {
			dir := filepath.Join(home, "runs", x.Run)
			x.Brief = filepath.Join(dir, "brief")
			x.Env = map[string]string{"MUSTER_SOCKET": filepath.Join(home, "session.sock"), "MUSTER_SECRET_FILE": filepath.Join(dir, "secret.json"),
				"MUSTER_CARD": x.ID, "MUSTER_RUN": x.Run}
		}
		if ans.Data, err = json.Marshal(x); err != nil {
			return err
		}
		return show(a, ans, nil, func(r adopted) []string { return []string{r.Run} }, func(r adopted) {
			a.printf("%s: %s -> %s, worked by session %s on %s (run %s)\n", oneLine(r.ID), oneLine(r.From), oneLine(r.To), oneLine(req.Session), oneLine(r.Machine), oneLine(r.Run))
			if r.Brief != "" {
				a.printf("what it is told: %s\n", oneLine(r.Brief))
				a.printf("so that what it says counts as its run's: export %s\n", oneLine(dict(r.Env)))
			} else {
				a.printf("on %s, so that what it says counts as its run's: its secret is in runs/%s/secret.json of muster's folder there (MUSTER_SECRET_FILE)\n", oneLine(r.Machine), oneLine(r.Run))
			}
		})
	})
	c.Long = `let a session that you have work a card

The node of the machine on which the session runs looks at the process (that it lives, is its user's, where it works),
speaks for what it saw, and watches it from then on. That is the node you ask, or the one named by --machine, if its
owner lets others at its terminals (attach in node.yaml). Nothing is started. When the session ends before it has said how the
work went, the card waits for you. Its run is over with its last word, as any run; the session itself stays yours, and the
card's next start in that slot waits until you end it. It is ended for you (TERM, then KILL) by what ends every session from
outside: cancel, reclaim, stop-run, reassign, move, forget, and the limits of the workflow.

It takes processes, on Linux; a session that muster started has its card already.`
	c.Example = `  muster adopt d-7 --session 0b0e6a1e-52f1-4b6c-9f4a-6a1d6e0f9c11
  muster adopt d-7 --session 0b0e6a1e --pid 4711 --dir ~/src/app --profile claude
  muster adopt d-7 --session 0b0e6a1e --pane work:1.0 --machine atlas`
	f := c.Flags()
	f.StringVar(&req.Session, "session", "", "id of the session, as its program calls it (claude --resume ID, ...)")
	f.Int64Var(&req.PID, "pid", 0, "its process (default: the one of yours that names the session in its arguments)")
	f.StringVar(&req.Pane, "pane", "", "the pane of your own tmux in which it runs (%3, work:1.0), instead of --pid")
	f.StringVar(&req.Machine, "machine", "", "the machine that has it (default: the one you ask)")
	f.StringVar(&req.Dir, "dir", "", "its workspace, in which the process works (default: where the process stands)")
	f.StringVar(&req.Slot, "slot", "", "the slot whose session it becomes (default: the workflow's, worker)")
	f.StringVar(&req.Profile, "profile", "", "the profile it counts as (default: the card's, or the board's first of its harness)")
	f.StringVar(&req.Harness, "harness", "", "what it is (default: by the program's name)")
	return c
}
