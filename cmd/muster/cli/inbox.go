package cli

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"muster/board"
	"muster/cmd/muster/api"
)

// tellCmds are the verbs about who is told what.
func (a *app) tellCmds() []*cobra.Command {
	return []*cobra.Command{a.attentionCmd(), a.inboxCmd(), a.sendCmd(), a.subscribeCmd(false), a.subscribeCmd(true)}
}

func (a *app) subscribeCmd(off bool) *cobra.Command {
	use, short := "subscribe [CARD|--board B]", "be told of a card's or a board's changes; or send a board's events to a webhook"
	if off {
		use, short = "unsubscribe [CARD|--board B]", "be told no longer; or end a webhook"
	}
	var kinds []string
	var hook, secret string
	c := verb(use, short, 0, 1, func(c *cobra.Command, args []string) error {
		if hook != "" || secret != "" {
			return a.webhook(c, args, board.WebhookSet{Board: a.boardName(), URL: hook, Secret: secret, Kinds: kinds, Off: off})
		}
		req := board.Subscribe{Kinds: kinds, Off: off, Board: a.board}
		switch {
		case len(args) > 0:
			req.Card, req.Board = args[0], ""
		case a.board == "":
			return usagef("of what? give CARD, or --board B")
		}
		ans, err := a.do(c.Context(), board.VSubscribe, req)
		return show(a, ans, err, func(r subAnswer) []string { return []string{r.On} }, func(r subAnswer) {
			if r.Off {
				a.printf("%s is told nothing more of %s\n", oneLine(r.Who), oneLine(r.On))
				return
			}
			a.printf("%s is told of %s\n", oneLine(r.Who), oneLine(r.On))
			a.hint("muster inbox -f")
		})
	})
	f := c.Flags()
	f.StringArrayVar(&kinds, "kind", nil, "only events of this kind, as often as you like")
	f.StringVar(&hook, "webhook", "", "https address that the board's events are sent to (http only to this machine)")
	if !off {
		f.BoolVar(&off, "off", false, "the same as unsubscribe")
		f.StringVar(&secret, "secret-file", "", "file that holds the webhook's secret, on every machine that may lead: a path, or a name in DATA/secrets")
	}
	return c
}

type subAnswer struct {
	On    string `json:"on"`
	Who   string `json:"who"`
	Off   bool   `json:"off"`
	Board string `json:"board"`
	ID    string `json:"id"`
}

func (a *app) webhook(c *cobra.Command, args []string, req board.WebhookSet) error {
	switch {
	case len(args) > 0:
		return usagef("a webhook is a board's: give --board B, no card")
	case req.URL == "":
		return usagef("where to? give --webhook URL")
	case !req.Off && req.Secret == "":
		return usagef("how is it signed? give --secret-file F: its content stays where it is, only its name is stored")
	case strings.ContainsRune(req.Secret, filepath.Separator) && !filepath.IsAbs(req.Secret):
		abs, err := filepath.Abs(req.Secret)
		if err != nil {
			return err
		}
		req.Secret = abs
	}
	ans, err := a.do(c.Context(), board.VWebhook, req)
	return show(a, ans, err, func(r subAnswer) []string { return []string{r.ID} }, func(r subAnswer) {
		if r.Off {
			a.printf("board %s: webhook %s is ended\n", oneLine(r.Board), oneLine(r.ID))
			return
		}
		a.printf("board %s: events go to webhook %s from now on, signed with %s\n", oneLine(r.Board), oneLine(r.ID), oneLine(req.Secret))
		a.hint("the file must be on every machine that may lead, mode 600; see: muster status")
	})
}

func (a *app) inboxCmd() *cobra.Command {
	var follow, ack bool
	c := verb("inbox", "what you were told and have not acknowledged", 0, 0, func(c *cobra.Command, _ []string) error {
		if !follow {
			_, err := a.showInbox(c, "", ack)
			return err
		}
		last := ""
		err := a.changes(c.Context(), url.Values{}, func() (bool, error) {
			next, err := a.showInbox(c, last, ack)
			last = orElse(next, last)
			return false, err
		})
		if c.Context().Err() != nil {
			return nil // a person ended it
		}
		return err
	})
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on as they come")
	c.Flags().BoolVar(&ack, "ack", false, "acknowledge what is shown: it does not come again")
	return c
}

// showInbox prints what came after an event, and returns the last one's id.
func (a *app) showInbox(c *cobra.Command, after string, ack bool) (last string, err error) {
	ans, err := a.get(c.Context(), "/v1/inbox", nil)
	box, err := api.Decode[api.Inbox](ans, err)
	if err != nil {
		return "", err
	}
	list := box.Notices[:0]
	for _, n := range box.Notices {
		if after == "" || newer(n.Event, after) {
			list = append(list, n)
		}
	}
	if box.Notices = list; len(list) > 0 {
		last = list[len(list)-1].Event
	}
	if after == "" || len(list) > 0 {
		if ans.Data, err = json.Marshal(box); err != nil {
			return "", err
		}
		if err := show(a, ans, nil, func(x api.Inbox) []string { return noticeIDs(x) }, func(x api.Inbox) { a.printInbox(&x) }); err != nil {
			return "", err
		}
	}
	if ack && last != "" {
		if _, err := a.do(c.Context(), board.VInboxAck, board.InboxAck{UpTo: last}); err != nil {
			return "", err
		}
	}
	return last, nil
}

func noticeIDs(x api.Inbox) (ids []string) {
	for _, n := range x.Notices {
		ids = append(ids, n.ID)
	}
	return ids
}

func (a *app) printInbox(x *api.Inbox) {
	if x.Lost > 0 {
		a.printf("%s\n", a.color(yellow, fmt.Sprintf("%d older ones were dropped unread: muster events", x.Lost)))
	}
	for _, n := range x.Notices {
		a.printf("%s  %s  %s  %s  %s\n", a.color(dim, clock(n.At)), oneLine(n.Card), oneLine(n.Title), oneLine(n.By), a.color(dim, "as "+oneLine(n.Role)))
		a.printf("    %s\n", strings.ReplaceAll(strings.TrimRight(visible(n.Text), "\n"), "\n", "\n    "))
	}
	if len(x.Notices) == 0 && x.Lost == 0 {
		a.printf("nothing new for %s\n", oneLine(x.Who))
	}
}

func (a *app) sendCmd() *cobra.Command {
	return verb("send CARD|RUN TEXT", "say something to a session; without one the next session of the card is told", 2, 2, func(c *cobra.Command, args []string) error {
		text, err := a.orStdin(args[1])
		if err != nil {
			return err
		}
		ans, err := a.do(c.Context(), board.VSend, board.Send{To: args[0], Text: text})
		return show(a, ans, err, func(r sent) []string { return []string{r.Key} }, func(r sent) {
			if r.State == board.DeliveryOrdered {
				a.printf("%s: its machine was asked to tell run %s\n", oneLine(r.ID), oneLine(r.Run))
				return
			}
			a.printf("%s: the next session is told (%s)\n", oneLine(r.ID), oneLine(r.Error))
		})
	})
}

type sent struct {
	ID    string `json:"id"`
	Run   string `json:"run"`
	Key   string `json:"key"`
	State string `json:"state"`
	Error string `json:"error"`
}

// printTold prints what a card's sessions were not told yet, and who is told of the card.
func (a *app) printTold(d *api.CardDetail) {
	if len(d.Deliveries) == 0 {
		return
	}
	a.printf("\n")
	t := a.table("FOR", "WHAT", "STATE", "AGE", "TEXT", "")
	for _, x := range d.Deliveries {
		t.row(orElse(x.Run, x.Slot), x.Kind, x.State, a.since(x.At), clip(x.Text, 60), cell{x.Error, dim})
	}
	t.print(a.io.Out)
}
