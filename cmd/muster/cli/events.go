package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

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
	line := fmt.Sprintf("%s  %s  %-8s  %-28s  %s", a.color(dim, fmt.Sprintf("%-8s", e.ID)), e.At.Local().Format("15:04:05.000"), oneLine(orDash(e.Card)), oneLine(what), oneLine(joinNonEmpty(e.Actor, e.Agent)))
	if payload != "" {
		line += "  " + a.color(dim, oneLine(clip(payload, 160)))
	}
	a.printf("%s\n", line)
}
