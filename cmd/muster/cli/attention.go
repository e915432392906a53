package cli

import (
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"muster/board"
	"muster/cmd/muster/api"
)

func (a *app) attentionCmd() *cobra.Command {
	var follow bool
	c := verb("attention", "what needs a person now: questions, permissions, limits, blocks, reviews", 0, 0, func(c *cobra.Command, _ []string) error {
		q := url.Values{}
		if a.board != "" {
			q.Set("board", a.board)
		}
		if follow {
			return a.followNeeds(c.Context(), q)
		}
		ans, err := a.get(c.Context(), "/v1/attention", q)
		return show(a, ans, err, needIDs, func(x api.Needs) { a.printNeeds(x.List) })
	})
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on, and tell what is new")
	return c
}

func needIDs(x api.Needs) (ids []string) {
	for _, n := range x.List {
		if !slices.Contains(ids, n.Card) {
			ids = append(ids, n.Card)
		}
	}
	return ids
}

// followNeeds shows what needs a person, then what comes to it. It goes on when its node is started anew.
func (a *app) followNeeds(ctx context.Context, q url.Values) error {
	cl, err := a.client()
	if err != nil {
		return err
	}
	var known []string
	for first, seen := true, time.Now(); ctx.Err() == nil; {
		ans, err := cl.Get(ctx, "/v1/attention", q)
		x, err := api.Decode[api.Needs](ans, err)
		switch {
		case ctx.Err() != nil:
			return nil // a person ended it
		case board.CodeOf(err) == board.Unavailable && time.Since(seen) < a.patience:
			select {
			case <-ctx.Done():
			case <-time.After(300 * time.Millisecond):
			}
			continue
		case err != nil:
			return err
		}
		seen = time.Now()
		changed := x.Tag != q.Get("tag")
		q.Set("tag", x.Tag)
		q.Set("wait", "true")
		if !changed {
			continue
		}
		fresh := x
		fresh.List = nil
		var now []string
		for _, n := range x.List {
			key := n.Card + " " + n.Session + " " + n.Kind + " " + n.Text
			if now = append(now, key); !slices.Contains(known, key) {
				fresh.List = append(fresh.List, n)
			}
		}
		known = now
		if a.json {
			fresh = x // a program wants the whole
		}
		if first || a.json || len(fresh.List) > 0 {
			if err := show(a, ans, nil, func(api.Needs) []string { return needIDs(fresh) }, func(api.Needs) { a.printNeeds(fresh.List) }); err != nil {
				return err
			}
		}
		first = false
	}
	return nil
}

func (a *app) printNeeds(list []api.Need) {
	if len(list) == 0 {
		a.printf("nothing needs a person\n")
		return
	}
	t := a.table("CARD", "WHAT", "AGE", "SESSION", "TITLE", "")
	for _, n := range list {
		age, text := "-", n.Text
		if n.Since != nil {
			age = a.since(*n.Since)
		}
		if n.Until != nil {
			text += " (until " + clock(*n.Until) + ")"
		}
		session := n.Session
		if n.Node != "" {
			session += " on " + n.Node
		}
		t.row(n.Card, cell{needWords(n.Kind), yellow}, age, orDash(session), clip(n.Title, 40), cell{clip(text, 100), dim})
	}
	t.print(a.io.Out)
}

// printAttention is the line of a status, with the first few.
func (a *app) printAttention(s *api.Status) {
	if s.Needs == 0 {
		return
	}
	a.printf("\n%s %d, see: muster attention\n", a.color(yellow, "attention:"), s.Needs)
	a.printNeeds(s.First)
}

// needWords says in words why a person is needed.
func needWords(kind string) string {
	switch kind {
	case board.TurnPermission, board.TurnQuestion, board.TurnLimit:
		return turnWords(kind)
	case board.NeedReview:
		return "review by a person"
	case board.NeedDeaf:
		return "its pane takes no text"
	case board.NeedUndelivered:
		return "delivery unknown"
	}
	return kind
}

// turnWords says in words what a session is doing.
func turnWords(turn string) string {
	switch turn {
	case board.TurnBusy:
		return "in a turn"
	case board.TurnPermission:
		return "asks for permission"
	case board.TurnQuestion:
		return "asks a question"
	case board.TurnLimit:
		return "at a limit"
	}
	return turn
}
