package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"muster/board"
	"muster/cmd/muster/api"
)

func (a *app) waitCmd() *cobra.Command {
	var until []string
	c := verb("wait CARD...", "wait until cards have reached a status", 1, -1, func(c *cobra.Command, args []string) error {
		ctx := c.Context()
		if a.timeoutSet {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, a.timeout)
			defer cancel()
		}
		for _, id := range args {
			w := &waiting{a: a, id: id, until: until}
			if err := w.run(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	c.Long = `wait until cards have reached a status

Without --timeout it waits as long as that takes, through a block as well: a person may answer it. It says on stderr, at
once, when a card needs a person, and after some seconds what else it waits for, and what would end that. To be told of a
block as an end: --until done,blocked. It ends with exit code 1 when the time is up, or when a card is finished in
another way (cancelled, say).`
	c.Flags().StringSliceVar(&until, "until", []string{"done"}, "one of these statuses")
	return c
}

// waitQuiet is how long a wait says nothing of why it lasts, unless a person is needed.
const waitQuiet = 2 * time.Second

// waiting is a wait for one card.
type waiting struct {
	a     *app
	id    string
	until []string
	last  api.CardDetail // as it was seen last

	mu   sync.Mutex
	long bool   // it lasts: whatever it waits for is told
	told string // what was told last
}

// run waits, by the event stream. A card that is finished another way is waited
// for no longer: that is a failure, with a reason.
func (w *waiting) run(ctx context.Context) error {
	a := w.a
	if _, err := a.client(); err != nil { // before two ask at once
		return err
	}
	slow := time.AfterFunc(waitQuiet, func() {
		w.mu.Lock()
		w.long = true
		w.mu.Unlock()
		w.tell(ctx)
	})
	defer slow.Stop()
	err := a.changes(ctx, url.Values{"card": {w.id}}, func() (bool, error) { return w.look(ctx) })
	if errors.Is(err, context.DeadlineExceeded) || err != nil && ctx.Err() == context.DeadlineExceeded {
		if w.last.Status == "" {
			return board.Errorf(board.Unavailable, "the node did not answer about card %s within %s", w.id, a.timeout.Round(time.Millisecond)).WithCheck("no_node").WithHint("give more --timeout; see: muster status")
		}
		return board.Errorf(board.Refused, "card %s is %s after %s, not %s", w.id, w.last.Status, a.timeout.Round(time.Millisecond), strings.Join(w.until, " or ")).
			WithCheck("timeout").WithHint("see: muster why %s", w.id)
	}
	return err
}

func (w *waiting) look(ctx context.Context) (enough bool, err error) {
	a := w.a
	ans, err := a.get(ctx, "/v1/cards/"+url.PathEscape(w.id), nil)
	c, err := api.Decode[api.CardDetail](ans, err)
	if err != nil {
		return false, err
	}
	first := w.last.ID == ""
	w.last = c
	switch {
	case slices.Contains(w.until, c.Status):
		return true, show(a, ans, nil, func(d api.CardDetail) []string { return []string{d.ID} }, func(d api.CardDetail) { a.printf("%s is %s\n", oneLine(d.ID), oneLine(d.Status)) })
	case first:
		if err := a.knownStatuses(ctx, c.Board, w.until); err != nil {
			return false, err
		}
	}
	if board.Finished(c.Stored) {
		return false, board.Errorf(board.Refused, "card %s is %s and will not be %s by itself", c.ID, c.Status, strings.Join(w.until, " or ")).WithHint("see: muster why %s", c.ID)
	}
	if c.Attention != nil || c.Stored == "blocked" || w.lasts() {
		w.tell(ctx)
	}
	return false, nil
}

func (w *waiting) lasts() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.long
}

// tell says why the card is where it is and what would change that, each thing
// once. What cannot be found out now is told another time.
func (w *waiting) tell(ctx context.Context) {
	if w.a.json || w.a.quiet {
		return
	}
	y, err := api.Decode[api.Why](w.a.get(ctx, "/v1/cards/"+url.PathEscape(w.id)+"/why", nil))
	if err != nil {
		return
	}
	text := fmt.Sprintf("%s is %s: %s", y.Card, y.Status, orElse(y.Text, "nothing holds it"))
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.told == text {
		return
	}
	w.told = text
	fmt.Fprintf(w.a.io.Err, "waiting: %s\n", oneLine(text))
	if y.Fix != "" {
		fmt.Fprintf(w.a.io.Err, "hint: %s\n", oneLine(y.Fix))
	}
	if y.Check == "blocked" {
		fmt.Fprintf(w.a.io.Err, "hint: it goes on waiting; to end at a block: --until %s,%s\n", oneLine(strings.Join(w.until, ",")), oneLine(y.Status))
	}
}

// knownStatuses refuses a status that the board does not have: a typing mistake would be waited for without end.
func (a *app) knownStatuses(ctx context.Context, slug string, until []string) error {
	b, err := api.Decode[api.BoardDetail](a.get(ctx, "/v1/boards/"+url.PathEscape(slug), nil))
	if err != nil || len(b.Statuses) == 0 {
		return err
	}
	for _, s := range until {
		if !slices.Contains(b.Statuses, s) {
			return board.Errorf(board.Invalid, "board %s has no status %q", slug, s).WithHint("it has: %s", strings.Join(b.Statuses, ", "))
		}
	}
	return nil
}
