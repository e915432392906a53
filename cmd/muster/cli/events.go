package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/board"
	"muster/cmd/muster/api"
)

func (a *app) eventsCmd() *cobra.Command {
	var since, card, kind string
	var follow bool
	var last int
	c := verb("events", "what happened, oldest first", 0, 0, func(c *cobra.Command, _ []string) error {
		q := url.Values{}
		for k, v := range map[string]string{"card": card, "kind": kind, "board": a.board} {
			if v != "" {
				q.Set(k, v)
			}
		}
		switch {
		case since != "":
			q.Set("since", since)
		case last < 1:
			return usagef("--last %d: give a number above 0", last)
		default:
			q.Set("last", fmt.Sprint(last))
		}
		return a.events(c.Context(), q, follow)
	})
	f := c.Flags()
	f.StringVar(&since, "since", "", "after the event with this id (now: only new ones)")
	f.IntVar(&last, "last", 100, "without --since: so many of the newest")
	f.BoolVarP(&follow, "follow", "f", false, "go on as they come")
	f.StringVar(&card, "card", "", "of this card")
	f.StringVar(&kind, "kind", "", "of this kind")
	return c
}

// events prints a page after the other, then what comes.
func (a *app) events(ctx context.Context, q url.Values, follow bool) error {
	cursor := q.Get("since")
	if cursor == "now" || cursor == "" && follow { // before the page: what happens after it is not missed
		var err error
		if cursor, err = a.cursor(ctx); err != nil {
			return err
		}
	}
	for q.Get("since") != "now" {
		list, err := api.Decode[[]api.Event](a.get(ctx, "/v1/events", q))
		if err != nil {
			return err
		}
		for _, e := range list {
			a.printEvent(e)
		}
		if n := len(list); n > 0 && (q.Get("since") != "" || newer(list[n-1].ID, cursor)) {
			cursor = list[n-1].ID
		}
		if q.Get("since") == "" || len(list) == 0 {
			break
		}
		q.Set("since", cursor)
	}
	if !follow {
		return nil
	}
	q.Del("last")
	q.Set("since", cursor)
	cl, err := a.client()
	if err != nil {
		return err
	}
	err = cl.Events(ctx, q, func(e api.Event) bool {
		a.printEvent(e)
		return true
	})
	if ctx.Err() != nil {
		return nil // a person ended it
	}
	return err
}

// newer tells whether an event id is after another.
func newer(id, than string) bool {
	x, err1 := board.ParseEventID(id)
	y, err2 := board.ParseEventID(than)
	return err1 == nil && (err2 != nil || x > y)
}

func (a *app) printEvent(e api.Event) {
	switch {
	case a.json:
		b, err := json.Marshal(e)
		if err == nil {
			a.printJSON(api.Envelope{V: api.Version, Data: b})
		}
		return
	case a.quiet:
		a.printf("%s\n", e.ID)
		return
	}
	what := e.Kind
	if e.From != "" || e.To != "" {
		what += " " + strings.TrimSpace(e.From+" -> "+e.To)
	}
	payload := string(e.Payload)
	if payload == "{}" || payload == "null" {
		payload = ""
	}
	line := fmt.Sprintf("%s  %s  %-8s  %-28s  %s", a.color(dim, fmt.Sprintf("%-8s", e.ID)), e.At.Local().Format("15:04:05.000"), oneLine(orDash(e.Card)), oneLine(what), oneLine(e.Actor))
	if payload != "" {
		line += "  " + a.color(dim, oneLine(clip(payload, 160)))
	}
	a.printf("%s\n", line)
}

func (a *app) waitCmd() *cobra.Command {
	var until []string
	c := verb("wait CARD... --until STATUS", "wait until cards have reached a status", 1, -1, func(c *cobra.Command, args []string) error {
		ctx := c.Context()
		if a.timeoutSet {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, a.timeout)
			defer cancel()
		}
		for _, id := range args {
			if err := a.waitFor(ctx, id, until); err != nil {
				return err
			}
		}
		return nil
	})
	c.Long = `wait until cards have reached a status

Without --timeout it waits as long as that takes, and says when a card needs a person. It ends with exit code 1 when the
time is up, or when a card is finished in another way (cancelled, say).`
	c.Flags().StringSliceVar(&until, "until", []string{"done"}, "one of these statuses")
	return c
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

// waitFor waits for one card, by the event stream. A card that is finished
// another way is waited for no longer: that is a failure, with a reason.
func (a *app) waitFor(ctx context.Context, id string, until []string) error {
	told, last := "", api.CardDetail{}
	err := a.changes(ctx, url.Values{"card": {id}}, func() (bool, error) {
		ans, err := a.get(ctx, "/v1/cards/"+url.PathEscape(id), nil)
		c, err := api.Decode[api.CardDetail](ans, err)
		if err != nil {
			return false, err
		}
		first := last.ID == ""
		last = c
		if first && !slices.Contains(until, c.Status) {
			if err := a.knownStatuses(ctx, c.Board, until); err != nil {
				return false, err
			}
		}
		switch {
		case slices.Contains(until, c.Status):
			return true, show(a, ans, nil, func(d api.CardDetail) []string { return []string{d.ID} }, func(d api.CardDetail) { a.printf("%s is %s\n", oneLine(d.ID), oneLine(d.Status)) })
		case finished(c.Stored):
			return false, board.Errorf(board.Refused, "card %s is %s and will not be %s by itself", c.ID, c.Status, strings.Join(until, " or ")).WithHint("see: muster why %s", c.ID)
		case c.Attention != nil && told != c.Attention.Text && !a.json && !a.quiet:
			told = c.Attention.Text
			fmt.Fprintf(a.io.Err, "%s needs a person: %s\n", oneLine(c.ID), oneLine(told))
		}
		return false, nil
	})
	if errors.Is(err, context.DeadlineExceeded) || err != nil && ctx.Err() == context.DeadlineExceeded {
		if last.Status == "" {
			return board.Errorf(board.Unavailable, "the node did not answer about card %s within %s", id, a.timeout.Round(time.Millisecond)).WithCheck("no_node").WithHint("give more --timeout; see: muster status")
		}
		return board.Errorf(board.Refused, "card %s is %s after %s, not %s", id, last.Status, a.timeout.Round(time.Millisecond), strings.Join(until, " or ")).
			WithCheck("timeout").WithHint("see: muster why %s", id)
	}
	return err
}
