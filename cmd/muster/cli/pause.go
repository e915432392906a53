package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/board"
	"muster/cmd/muster/api"
)

// pauseAnswer is what pause and resume did; Paused is absent when that was so already.
type pauseAnswer struct {
	Board  string `json:"board"`
	Paused *bool  `json:"paused"`
}

// paused is what a pause is of, in words and as its end is typed.
func (a *app) paused() (what, resume string) {
	if a.board == "" {
		return "the fleet", "muster resume"
	}
	return "board " + oneLine(a.board), "muster resume --board " + oneLine(a.board)
}

// pauseCmd stops claims of the fleet, or of one board (M-16).
func (a *app) pauseCmd() *cobra.Command {
	var why string
	c := verb("pause --why TEXT", "let nothing start, in the fleet or on one board (--board B)", 0, 0, func(c *cobra.Command, _ []string) error {
		if strings.TrimSpace(why) == "" {
			return usagef("who finds it paused wants to know why: give --why TEXT")
		}
		ans, err := a.do(c.Context(), board.VPause, board.Pause{Board: a.board, Why: why})
		return show(a, ans, err, a.pausedIDs, func(r pauseAnswer) {
			what, resume := a.paused()
			if r.Paused == nil {
				a.printf("%s is paused already, for that reason\n", what)
			} else {
				a.printf("%s is paused: nothing new starts; what runs goes on\n", what)
			}
			a.hint("%s", resume)
		})
	})
	c.Long = `let nothing start, in the fleet or on one board (--board B, or MUSTER_BOARD)

From its answer on no run is claimed, by whatever way; what was claimed before is launched, and what runs goes on. Only
muster start CARD --force --why T passes it. It is shown in muster status, with who, since when and why.`
	c.Example = `  muster pause --why "the network is rebuilt tonight"
  muster pause --board web --why "release freeze"`
	c.Flags().StringVar(&why, "why", "", "the reason, for whoever wonders why nothing starts")
	return c
}

// pausedIDs is what -q prints: the board, or nothing for the fleet.
func (a *app) pausedIDs(pauseAnswer) []string {
	if a.board == "" {
		return nil
	}
	return []string{a.board}
}

func (a *app) resumeCmd() *cobra.Command {
	c := verb("resume", "end a pause, of the fleet or of one board (--board B)", 0, 0, func(c *cobra.Command, _ []string) error {
		ans, err := a.do(c.Context(), board.VResume, board.Pause{Board: a.board})
		return show(a, ans, err, a.pausedIDs, func(r pauseAnswer) {
			what, _ := a.paused()
			if r.Paused == nil {
				a.printf("%s was not paused\n", what)
				return
			}
			a.printf("%s is paused no more\n", what)
		})
	})
	c.Long = `end a pause, of the fleet or of one board (--board B, or MUSTER_BOARD)

Each is ended by itself: a board that is paused stays so when the fleet goes on.`
	c.Example = `  muster resume
  muster resume --board web`
	return c
}

// drainAnswer is a node that drains, or does so no more, and how many sessions it has.
type drainAnswer struct {
	Node     string `json:"node"`
	Sessions int    `json:"sessions"`
}

// nodeDrain lets a machine finish what it runs and take nothing new (M-16).
func (a *app) nodeDrain() *cobra.Command {
	req := board.Drain{}
	var wait bool
	c := verb("drain N", "let a machine finish what it runs and take nothing new", 1, 1, func(c *cobra.Command, args []string) error {
		req.Node = args[0]
		ans, err := a.do(c.Context(), board.VDrain, req)
		r, err := api.Decode[drainAnswer](ans, err)
		if err != nil {
			return err
		}
		if wait && r.Sessions > 0 {
			d := &draining{a: a, name: args[0], ans: ans, left: r.Sessions}
			if err := d.run(c.Context()); err != nil {
				return err
			}
			ans = d.ans
		}
		return show(a, ans, nil, func(r drainAnswer) []string { return []string{r.Node} }, func(r drainAnswer) {
			name := oneLine(args[0])
			switch {
			case r.Sessions == 0:
				a.printf("%s takes nothing new, and has no session\n", name)
			case req.EndSessions:
				a.printf("%s takes nothing new; %d session(s) there are told to end\n", name, r.Sessions)
			default:
				a.printf("%s takes nothing new; %d session(s) go on there\n", name, r.Sessions)
			}
			a.hint("muster node undrain %s", name)
		})
	})
	c.Long = `let a machine finish what it runs and take nothing new

Nothing is claimed for it from the answer on, not by force either; it goes on as a node of the fleet, votes and leads. With
--wait the command ends when no session is left there, or fails when --timeout is over (without one it waits as long as that
takes). --end-sessions takes the runs away, as muster reclaim does, so that their cards start elsewhere.`
	c.Example = `  muster node drain atlas --wait --why "new memory"
  muster node drain atlas --end-sessions --wait --timeout 5m`
	c.Flags().BoolVar(&wait, "wait", false, "end when it has no session any more")
	c.Flags().BoolVar(&req.EndSessions, "end-sessions", false, "take its runs away; their cards start elsewhere")
	c.Flags().StringVar(&req.Why, "why", "", "the reason, for whoever wonders")
	return c
}

func (a *app) nodeUndrain() *cobra.Command {
	c := verb("undrain N", "let a machine take cards again", 1, 1, func(c *cobra.Command, args []string) error {
		ans, err := a.do(c.Context(), board.VDrain, board.Drain{Node: args[0], End: true})
		return show(a, ans, err, func(r drainAnswer) []string { return []string{r.Node} }, func(drainAnswer) {
			a.printf("%s takes cards again\n", oneLine(args[0]))
		})
	})
	c.Example = "  muster node undrain atlas"
	return c
}

// draining is a wait for the last session of a machine that drains.
type draining struct {
	a    *app
	name string
	ans  *api.Answer // as the drain was answered; at the end, with no sessions
	left int         // sessions that were there last
	told int         // how many a person was told of last
}

func (d *draining) run(ctx context.Context) error {
	a := d.a
	if a.timeoutSet {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.timeout)
		defer cancel()
	}
	err := a.changes(ctx, url.Values{}, func() (bool, error) { return d.look(ctx) })
	if err != nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded)) {
		return board.Errorf(board.Refused, "%s has %d session(s) after %s; it goes on draining", d.name, d.left, a.timeout.Round(time.Millisecond)).
			WithCheck("timeout").WithHint("see: muster status; to take them away: muster node drain %s --end-sessions", d.name)
	}
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return board.Errorf(board.Internal, "not waited for any longer: %s has %d session(s), and goes on draining", d.name, d.left).WithHint("to let it take cards again: muster node undrain %s", d.name)
	}
	return err
}

func (d *draining) look(ctx context.Context) (enough bool, err error) {
	a := d.a
	ans, err := a.get(ctx, "/v1/nodes/"+url.PathEscape(d.name), nil)
	n, err := api.Decode[api.Node](ans, err)
	switch {
	case err != nil:
		return false, err
	case !n.Draining:
		return false, board.Errorf(board.Refused, "somebody has let %s take cards again", d.name).WithHint("see: muster events --kind node_undrained")
	case n.Running > 0:
		if d.left = n.Running; d.told != d.left && !a.json && !a.quiet {
			fmt.Fprintf(a.io.Err, "waiting: %d session(s) are left on %s\n", n.Running, oneLine(n.Name))
		}
		d.told = d.left
		return false, nil
	}
	data, err := json.Marshal(drainAnswer{Node: n.ID})
	d.ans = &api.Answer{Data: data, Index: ans.Index, AgeMS: ans.AgeMS}
	return true, err
}
