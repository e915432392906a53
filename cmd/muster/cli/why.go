package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/cmd/muster/api"
	"muster/scheduler"
)

func (a *app) whyCmd() *cobra.Command {
	var all bool
	c := verb("why [CARD]", "why a card is where it is, and what would change it", 0, 1, func(c *cobra.Command, args []string) error {
		id, err := a.cardArg(args)
		if err != nil {
			return err
		}
		ans, err := a.get(c.Context(), "/v1/cards/"+url.PathEscape(id)+"/why", nil)
		return show(a, ans, err, func(w api.Why) []string { return []string{w.Check} }, func(w api.Why) { a.printWhy(w, all) })
	})
	c.Long = `why a card is where it is, and what would change it

With --all also the values that were compared, and what each machine says to a start. Asked of the leader, which has the
readings of the machines; without one from this node's copy, and it says so.`
	c.Example = "  muster why web-12\n  muster why web-12 --all"
	c.Flags().BoolVar(&all, "all", false, "the values that were compared, and what each machine says")
	return c
}

func (a *app) printWhy(w api.Why, all bool) {
	a.printf("%s is %s: %s\n", a.color(bold, oneLine(w.Card)), oneLine(w.Status), visible(orElse(w.Text, "nothing holds it")))
	since, position := "", ""
	if w.Since != nil {
		since = a.since(*w.Since)
	}
	if w.Position > 0 {
		position = fmt.Sprintf("%d on its board", w.Position)
	}
	live := ""
	if !w.Live {
		live = "no: from this node's copy, without the leader's readings"
	}
	a.fields([][2]string{{"check", w.Check}, {"since", since}, {"position", position}, {"live", live}, {"what helps", w.Fix}})
	if !all {
		return
	}
	keys := slices.Sorted(maps.Keys(w.Values))
	for _, k := range keys {
		if m, ok := w.Values[k].(map[string]any); ok && k == "machines" {
			a.printMachines(m)
			continue
		}
		text, ok := w.Values[k].(string)
		if !ok {
			b, _ := json.Marshal(w.Values[k])
			text = string(b)
		}
		a.printf("  %s %s\n", oneLine(k), oneLine(text))
	}
}

func (a *app) printMachines(m map[string]any) {
	t := a.table("  MACHINE", "STATE", "SESSIONS", "MEMORY", "SAYS")
	for _, n := range slices.Sorted(maps.Keys(m)) {
		x, _ := m[n].(map[string]any)
		says, _ := x["text"].(string)
		t.row("  "+n, x["state"], fmt.Sprintf("%v of %v", x["held"], x["slots"]), x["memory_pressure"], orElse(says, "it could start here"))
	}
	t.print(a.io.Out)
}

func (a *app) dispatchCmd() *cobra.Command {
	var last, follow, dry bool
	c := verb("dispatch --dry-run|--last", "what the scheduler would start now, or last decided, and why", 0, 0, func(c *cobra.Command, _ []string) error {
		switch {
		case dry && (last || follow):
			return usagef("--dry-run is of now, --last and -f are of what was decided: use one of them")
		case dry:
			return a.dryRun(c.Context())
		case !last && !follow:
			return usagef("use: muster dispatch --dry-run, or muster dispatch --last [-f]")
		}
		ctx := c.Context()
		shown := int64(0)
		look := func() (bool, error) {
			n := "1"
			if shown > 0 {
				n = "50"
			}
			ans, err := a.get(ctx, "/v1/rounds", url.Values{"n": {n}})
			return false, show(a, ans, err, func(l []scheduler.Round) (ids []string) {
				for _, r := range l {
					for _, s := range r.Started {
						ids = append(ids, s.Card)
					}
				}
				return ids
			}, func(l []scheduler.Round) {
				if len(l) == 0 && shown == 0 {
					a.printf("nothing was decided yet in this term\n")
				}
				for i := range l {
					if l[i].Time > shown {
						a.printRound(&l[i])
						shown = l[i].Time
					}
				}
			})
		}
		if !follow {
			_, err := look()
			return err
		}
		err := a.changes(ctx, url.Values{}, look)
		if ctx.Err() != nil {
			return nil
		}
		return err
	})
	c.Long = `what the scheduler would start now, or last decided, and why

With --dry-run the leader plans as it does for a round, over all boards, and nothing is written; --board B shows that board
alone. Without a leader the plan is made from this node's state, and says so.`
	c.Example = `  muster dispatch --dry-run --board web
  muster dispatch --last -f`
	c.Flags().BoolVar(&dry, "dry-run", false, "what would start now, where and as what, and what waits for what")
	c.Flags().BoolVar(&last, "last", false, "the last round in which something happened")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on")
	return c
}

func (a *app) dryRun(ctx context.Context) error {
	q := url.Values{}
	if a.board != "" {
		q.Set("board", a.board)
	}
	ans, err := a.get(ctx, "/v1/dryrun", q)
	return show(a, ans, err, func(d scheduler.DryAnswer) (ids []string) {
		for _, r := range d.Would {
			ids = append(ids, r.Card)
		}
		return ids
	}, func(d scheduler.DryAnswer) {
		if len(d.Would) > 0 {
			t := a.table("WOULD START", "ON", "ROLE", "ASSIGNEE", "SURFACE", "FROM", "TO")
			for _, r := range d.Would {
				t.row(r.Card, r.Node, r.Role, inPlace(r.Assignee, r.Instead), r.Surface, r.Status, r.Target)
			}
			t.print(a.io.Out)
		} else {
			a.printf("nothing would start now\n")
		}
		for _, w := range d.Waiting {
			until := ""
			if w.WaitS > 0 {
				until = ", " + age(time.Duration(w.WaitS)*time.Second) + " yet"
			}
			a.printf("  %s   %s: %s (%s%s)\n", a.color(yellow, "wait"), oneLine(w.Card), oneLine(w.Text), oneLine(w.Check), until)
		}
		if d.More > 0 {
			a.printf("  ... and %d more wait\n", d.More)
		}
		if !d.Live {
			a.printf("%s no leader answers: this is planned from this node's state, without live readings\n", a.color(yellow, "note:"))
		}
	})
}

// inPlace is a profile, with the one that it stands in for.
func inPlace(profile, instead string) string {
	if instead != "" {
		profile += ", in place of " + instead
	}
	return oneLine(profile)
}

func (a *app) printRound(r *scheduler.Round) {
	ms := 0.0
	for _, v := range r.MS {
		ms += v
	}
	a.printf("%s  started %d, waiting %d, failed %d  %s\n", clock(time.UnixMilli(r.Time)), len(r.Started), len(r.Queued), len(r.Failed), a.color(dim, fmt.Sprintf("%.1f ms", ms)))
	for _, s := range r.Started {
		a.printf("  %s  %s as run %s on %s (%s)\n", a.color(green, "start"), oneLine(s.Card), oneLine(s.Run), oneLine(s.Machine), inPlace(s.Profile, s.Instead))
	}
	for _, w := range r.Queued {
		a.printf("  %s   %s: %s (%s)\n", a.color(yellow, "wait"), oneLine(w.Card), oneLine(w.Text), oneLine(w.Check))
	}
	for _, w := range r.Failed {
		a.printf("  %s   %s: %s (%s)\n", a.color(red, "fail"), oneLine(w.Card), oneLine(w.Text), oneLine(w.Check))
	}
	for _, s := range r.Seen {
		a.printf("  seen   %s: %s\n", oneLine(s.What), oneLine(strings.ReplaceAll(s.Event, "_", " ")))
	}
}
