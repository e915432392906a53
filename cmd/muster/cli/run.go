package cli

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/cmd/muster/harmless"
)

func (a *app) startCmd() *cobra.Command {
	req := board.Start{}
	c := verb("start CARD", "start a card now, where there is room", 1, 1, func(c *cobra.Command, args []string) error {
		req.Card = args[0]
		if req.Force && req.Why == "" {
			return usagef("--force goes past caps and waits: say --why")
		}
		ans, err := a.do(c.Context(), board.VStart, req)
		return show(a, ans, err, func(r doneAnswer) []string { return []string{orElse(r.Run, r.ID)} }, func(r doneAnswer) {
			if r.Run == "" {
				a.printf("%s: %s -> %s\n", oneLine(r.ID), oneLine(r.From), oneLine(r.To))
				return
			}
			a.printf("%s: run %s starts on %s\n", oneLine(r.ID), oneLine(r.Run), oneLine(r.Machine))
			a.hint("muster log %s -f", r.ID)
		})
	})
	c.Flags().StringVar(&req.Profile, "profile", "", "with this profile")
	c.Flags().BoolVar(&req.Force, "force", false, "past caps, waits and pauses")
	c.Flags().StringVar(&req.Why, "why", "", "why")
	return c
}

func (a *app) runsCmd() *cobra.Command {
	return verb("runs [CARD]", "the attempts at a card", 0, 1, func(c *cobra.Command, args []string) error {
		id, err := a.cardArg(args)
		if err != nil {
			return err
		}
		ans, err := a.get(c.Context(), "/v1/cards/"+url.PathEscape(id)+"/runs", nil)
		return show(a, ans, err, func(l []api.Run) (ids []string) {
			for _, r := range l {
				ids = append(ids, r.ID)
			}
			return ids
		}, a.printRuns)
	})
}

func (a *app) printRuns(l []api.Run) {
	t := a.table("RUN", "STATE", "OUTCOME", "EXIT", "GONE", "MACHINE", "PROFILE", "AGENT", "STARTED", "TOOK", "MEM", "ERROR")
	for _, r := range l {
		exit, took := "-", a.since(r.StartedAt)
		if r.ExitCode != nil {
			exit = fmt.Sprint(*r.ExitCode)
		}
		if r.Signal != "" {
			exit = r.Signal
		}
		if r.Means != "" && r.Means != "completed" {
			exit += " " + r.Means
		}
		memory := "-"
		if r.PeakMB > 0 {
			memory = fmt.Sprintf("%d MB", r.PeakMB)
		}
		if r.EndedAt != nil {
			took = age(r.EndedAt.Sub(r.StartedAt))
		}
		t.row(r.ID, cell{r.State, runColor(r.State)}, orDash(r.Outcome), exit, orDash(r.Gone), orDash(r.Node), orDash(inPlace(r.Profile, r.Instead)), orDash(clip(r.Agent, 9)), a.since(r.StartedAt)+" ago", took, memory, cell{clip(r.Error, 60), red})
	}
	t.print(a.io.Out)
}

func runColor(state string) string {
	if state == board.RunRunning {
		return cyan
	}
	return plain
}

func (a *app) logCmd() *cobra.Command {
	var follow, raw bool
	var number int64
	c := verb("log [CARD]", "what a run printed", 0, 1, func(c *cobra.Command, args []string) error {
		id, err := a.cardArg(args)
		if err != nil {
			return err
		}
		if number < 0 {
			return usagef("--run %d: runs count from 1", number)
		}
		return a.log(c.Context(), id, number, follow, raw)
	})
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the run is over")
	c.Flags().Int64Var(&number, "run", 0, "its N-th run (default: the newest)")
	c.Flags().BoolVar(&raw, "raw", false, "every byte as it was printed: control characters, and what a pane's program drew")
	return c
}

// log prints a run's log. With follow it waits for the run, then for its end;
// whoever waits is woken by the node.
func (a *app) log(ctx context.Context, card string, number int64, follow, raw bool) error {
	run, err := a.findRun(ctx, card, number, follow)
	if err != nil {
		return err
	}
	out := &logWriter{a: a, raw: raw || !a.io.Terminal}
	if !raw {
		x, err := a.findCardRun(ctx, card, run)
		if err != nil {
			return err
		}
		if x.Surface == "pane" {
			out.pane = new(harmless.Pane)
		}
	}
	lost := time.Time{} // since when nobody answers
	path := "/v1/runs/" + url.PathEscape(run) + "/log"
	for from := int64(0); ; {
		q := url.Values{"from": {fmt.Sprint(from)}}
		if follow && lost.IsZero() { // after a loss the first answer is news, also without a line in it
			q.Set("wait", "true")
		}
		ans, err := a.get(ctx, path, q)
		switch {
		case ctx.Err() != nil && follow:
			return nil // a person ended it
		case err != nil && follow && from == 0 && board.CodeOf(err) == board.NotFound:
			if err := a.launched(ctx, card, run); err != nil {
				return err
			}
			continue
		case follow && board.CodeOf(err) == board.Unavailable:
			if lost.IsZero() {
				lost = time.Now()
				fmt.Fprintf(a.io.Err, "muster: %s; trying again\n", oneLine(err.Error()))
			}
			if err := a.stillThere(ctx, card, run, lost, err); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		}
		if !lost.IsZero() {
			lost = time.Time{}
			fmt.Fprintf(a.io.Err, "muster: the log of run %s goes on\n", oneLine(run))
		}
		if a.json {
			a.printJSON(api.Envelope{V: api.Version, Data: ans.Data})
		}
		chunk, err := api.Decode[api.LogChunk](ans, nil)
		if err != nil {
			return err
		}
		if !a.json {
			out.write(chunk.Chunk)
		}
		from = chunk.Next
		if chunk.EOF || !follow && len(chunk.Chunk) == 0 {
			out.end()
			return nil
		}
	}
}

// findRun is the id of a card's N-th or newest run; with wait it is waited for.
func (a *app) findRun(ctx context.Context, card string, number int64, wait bool) (string, error) {
	if number > 0 {
		return board.RunID(card, uint64(number)), nil
	}
	found := ""
	look := func() (bool, error) {
		runs, err := api.Decode[[]api.Run](a.get(ctx, "/v1/cards/"+url.PathEscape(card)+"/runs", nil))
		if err == nil && len(runs) > 0 {
			found = runs[len(runs)-1].ID
		}
		return found != "", err
	}
	if ok, err := look(); ok || err != nil {
		return found, err
	}
	if !wait {
		return "", board.Errorf(board.NotFound, "card %s has not been started yet", card).WithHint("see: muster why %s; -f waits for it", card)
	}
	err := a.changes(ctx, url.Values{"card": {card}}, look)
	return found, err
}

// launched waits until a run was launched, or is over without.
func (a *app) launched(ctx context.Context, card, run string) error {
	return a.changes(ctx, url.Values{"card": {card}}, func() (bool, error) {
		runs, err := api.Decode[[]api.Run](a.get(ctx, "/v1/cards/"+url.PathEscape(card)+"/runs", nil))
		if err != nil {
			return false, err
		}
		for _, r := range runs {
			switch {
			case r.ID != run:
			case r.Launched != nil:
				return true, nil
			case r.EndedAt != nil || r.GoneAt != nil:
				return false, board.Errorf(board.NotFound, "run %s was never launched: %s", run, orElse(r.Error, r.Outcome))
			}
		}
		return false, nil
	})
}

// logWriter prints a log; to a terminal colours pass, every other control
// sequence is made visible.
type logWriter struct {
	a    *app
	raw  bool
	pane *harmless.Pane // of what was drawn on a terminal, unless raw
	rest []byte         // an unfinished line
}

func (w *logWriter) write(b []byte) {
	if w.pane != nil {
		w.a.printf("%s", w.pane.Write(b))
		return
	}
	if w.raw {
		_, _ = w.a.io.Out.Write(b)
		return
	}
	w.rest = append(w.rest, b...)
	for {
		i := lineEnd(w.rest)
		if i < 0 {
			return
		}
		w.a.printf("%s", coloured(string(w.rest[:i])))
		w.rest = w.rest[i:]
	}
}

func (w *logWriter) end() {
	if w.pane != nil {
		w.a.printf("%s", w.pane.Rest())
	}
	if len(w.rest) > 0 {
		w.a.printf("%s\n", coloured(string(w.rest)))
		w.rest = nil
	}
}

// lineEnd is the length of the first line with its end; -1 without one. A line
// that is too long is cut.
func lineEnd(b []byte) int {
	for i, c := range b {
		if c == '\n' || i > 1<<16 {
			return i + 1
		}
	}
	return -1
}
