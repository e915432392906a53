package cli

import (
	"context"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/board"
	"muster/cmd/muster/api"
)

func (a *app) cardCmd() *cobra.Command {
	return group("card", "the cards of a board", a.cardAdd(), a.cardList(), a.cardShow(), a.cardEdit(), a.cardPut(), a.cardLink(), a.cardUnlink())
}

// cardFlags are the fields of a card as flags: those that were given become fields.
type cardFlags struct {
	title, body, assignee, machine, model, workspace, branch, kind, startAfter string
	priority, maxRetries, maxTurns                                             int64
	maxRuntime                                                                 time.Duration
	goal                                                                       bool
	skills, labels                                                             []string
}

func (k *cardFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&k.body, "body", "", "the card's text (- reads stdin)")
	f.StringVar(&k.assignee, "assignee", "", "profile that works it")
	f.StringVar(&k.machine, "machine", "", "machine it is bound to")
	f.Int64Var(&k.priority, "priority", 0, "higher starts first")
	f.StringArrayVar(&k.skills, "skill", nil, "skill for its session, as often as you like")
	f.StringVar(&k.model, "model", "", "model of its sessions")
	f.DurationVar(&k.maxRuntime, "max-runtime", 0, "a run takes no longer")
	f.Int64Var(&k.maxRetries, "max-retries", 0, "failures in a row that block it")
	f.BoolVar(&k.goal, "goal", false, "its session is asked to go on until the goal is reached")
	f.Int64Var(&k.maxTurns, "goal-max-turns", 0, "... so often")
	f.StringVar(&k.workspace, "workspace", "", "scratch, dir:PATH or worktree:REPO (a URL, a path, or a name each machine maps)")
	f.StringVar(&k.branch, "branch", "", "branch of its worktree (default: what its profile says, else muster/ID)")
	f.StringVar(&k.kind, "kind", "", "what kind of work it is")
	f.StringArrayVar(&k.labels, "label", nil, "k=v, as often as you like")
	f.StringVar(&k.startAfter, "start-after", "", "do not start it before TIME (+2h, 2030-01-31 09:00, RFC 3339)")
}

// fields are the given ones.
func (a *app) cardFields(c *cobra.Command, k *cardFlags) (x board.CardFields, err error) {
	f := c.Flags()
	str := func(name string, v *string) *string {
		if f.Changed(name) {
			return v
		}
		return nil
	}
	num := func(name string, v *int64) *int64 {
		if f.Changed(name) {
			return v
		}
		return nil
	}
	x.Assignee, x.Machine, x.Model, x.Workspace = str("assignee", &k.assignee), str("machine", &k.machine), str("model", &k.model), str("workspace", &k.workspace)
	x.Kind, x.Branch = str("kind", &k.kind), str("branch", &k.branch)
	x.Priority, x.MaxRetries, x.GoalMaxTurns = num("priority", &k.priority), num("max-retries", &k.maxRetries), num("goal-max-turns", &k.maxTurns)
	if f.Changed("body") {
		if k.body, err = a.orStdin(k.body); err != nil {
			return x, err
		}
		x.Body = &k.body
	}
	if f.Changed("max-runtime") {
		s := int64(k.maxRuntime / time.Second)
		if time.Duration(s)*time.Second != k.maxRuntime || s < 0 || s == 0 && c.Name() == "add" {
			return x, usagef("--max-runtime %s: give whole seconds, at least 1s%s", k.maxRuntime, mark(c.Name() != "add", ", or 0 for no limit"))
		}
		x.MaxRuntime = &s
	}
	if f.Changed("goal") {
		x.Goal = &k.goal
	}
	if f.Changed("skill") {
		x.Skills = &k.skills
	}
	for _, l := range k.labels {
		key, v, err := pair(l)
		if err != nil {
			return x, err
		}
		if x.Labels == nil {
			x.Labels = map[string]string{}
		}
		x.Labels[key] = v
	}
	if f.Changed("start-after") {
		var ms int64
		if k.startAfter != "" {
			t, err := moment(k.startAfter, a.io.Now())
			if err != nil {
				return x, err
			}
			ms = t.UnixMilli()
		}
		x.StartAfter = &ms
	}
	return x, nil
}

// afterAdd says where a new card is, and what it lacks when nobody would ever start it.
func (a *app) afterAdd(ctx context.Context, r doneAnswer) {
	if a.json || a.quiet {
		return
	}
	w, err := api.Decode[api.Why](a.get(ctx, "/v1/cards/"+url.PathEscape(r.ID)+"/why", nil))
	if err == nil && (w.Check == "unassigned" || w.Check == "profile") {
		a.hint("it does not start: %s; %s", oneLine(w.Text), oneLine(w.Fix))
		return
	}
	a.hint("it is %s; see: muster card show %s, muster why %s", r.Status, r.ID, r.ID)
}

func (a *app) cardAdd() *cobra.Command {
	k := &cardFlags{}
	req := board.CardAdd{}
	var after func() []string
	c := verb("add TITLE", "file a card", 1, 1, func(c *cobra.Command, args []string) (err error) {
		if req.CardFields, err = a.cardFields(c, k); err != nil {
			return err
		}
		req.Title, req.Board, req.After = &args[0], a.boardName(), after()
		ans, err := a.do(c.Context(), board.VCardAdd, req)
		return show(a, ans, err, func(r doneAnswer) []string { return []string{r.ID} }, func(r doneAnswer) {
			a.printf("%s\n", r.ID)
			a.afterAdd(c.Context(), r)
		})
	})
	k.add(c)
	after = afterFlags(c)
	f := c.Flags()
	f.StringVar(&req.SubtaskOf, "subtask-of", "", "card it is a part of")
	f.BoolVar(&req.Triage, "triage", false, "only an idea yet")
	return c
}

func (a *app) cardEdit() *cobra.Command {
	k := &cardFlags{}
	c := verb("edit CARD", "change fields of a card", 1, 1, func(c *cobra.Command, args []string) (err error) {
		req := board.CardEdit{Card: args[0]}
		if req.CardFields, err = a.cardFields(c, k); err != nil {
			return err
		}
		if c.Flags().Changed("title") {
			req.Title = &k.title
		}
		if reflect.DeepEqual(req.CardFields, board.CardFields{}) {
			return usagef("change what? give a field")
		}
		ans, err := a.do(c.Context(), board.VCardEdit, req)
		return show(a, ans, err, func(r doneAnswer) []string { return []string{r.ID} }, func(r doneAnswer) {
			a.printf("%s is changed\n", oneLine(r.ID))
			if len(r.NextRun) > 0 {
				if len(r.Now) > 0 {
					a.printf("  now: %s\n", oneLine(join(r.Now)))
				}
				a.printf("  with the next run: %s (%s keeps what it was started with)\n", oneLine(join(r.NextRun)), oneLine(r.Run))
			}
		})
	})
	k.add(c)
	c.Flags().StringVar(&k.title, "title", "", "its title")
	return c
}

// afterFlags are --after and --parent, which say the same.
func afterFlags(c *cobra.Command) func() []string {
	after := c.Flags().StringArray("after", nil, "card it waits for, as often as you like")
	parent := c.Flags().StringArray("parent", nil, "the same as --after")
	return func() []string { return slices.Concat(*after, *parent) }
}

func (a *app) cardLink() *cobra.Command {
	return a.linkCmd("link CARD --after ID", "let a card wait for another", board.VCardLink, "%s waits for %s\n")
}

func (a *app) cardUnlink() *cobra.Command {
	return a.linkCmd("unlink CARD --after ID", "let it wait no longer", board.VCardUnlink, "%s does not wait for %s any more\n")
}

func (a *app) linkCmd(use, short, verbName, said string) *cobra.Command {
	var after func() []string
	c := verb(use, short, 1, 1, func(c *cobra.Command, args []string) error {
		req := board.CardLink{Card: args[0], After: after()}
		if len(req.After) == 0 {
			return usagef("use: muster card %s", use)
		}
		ans, err := a.do(c.Context(), verbName, req)
		return show(a, ans, err, func(r doneAnswer) []string { return []string{r.ID} }, func(r doneAnswer) { a.printf(said, oneLine(r.ID), oneLine(join(req.After))) })
	})
	after = afterFlags(c)
	return c
}

func cardIDs(l []api.Card) (ids []string) {
	for _, c := range l {
		ids = append(ids, c.ID)
	}
	return ids
}

func (a *app) cardList() *cobra.Command {
	var status, labels []string
	var assignee, machine string
	var all, attention bool
	c := verb("list", "cards, oldest first", 0, 0, func(c *cobra.Command, _ []string) error {
		q := url.Values{"status": status, "label": labels}
		for k, v := range map[string]string{"assignee": assignee, "machine": machine, "board": a.board} {
			if v != "" {
				q.Set(k, v)
			}
		}
		for k, v := range map[string]bool{"all": all, "attention": attention} {
			if v {
				q.Set(k, "true")
			}
		}
		ans, err := a.get(c.Context(), "/v1/cards", q)
		return show(a, ans, err, cardIDs, a.printCards)
	})
	f := c.Flags()
	f.StringSliceVar(&status, "status", nil, "in this status, as often as you like")
	f.StringVar(&assignee, "assignee", "", "of this profile")
	f.StringVar(&machine, "machine", "", "bound to this machine")
	f.StringArrayVar(&labels, "label", nil, "with this label, k=v or k")
	f.BoolVar(&all, "all", false, "archived ones too")
	f.BoolVar(&attention, "attention", false, "that need a person")
	return c
}

func (a *app) printCards(l []api.Card) {
	t := a.table("CARD", "STATUS", "ASSIGNEE", "AGE", "TITLE", "")
	for _, c := range l {
		t.row(c.ID, cell{c.Status, statusColor(c.Stored)}, orDash(c.Assignee), a.since(c.CreatedAt), clip(c.Title, 60), cell{strings.TrimSpace(aside(c)), dim})
	}
	t.print(a.io.Out)
}

func (a *app) cardShow() *cobra.Command {
	return verb("show [CARD]", "a card with its text, thread and runs", 0, 1, func(c *cobra.Command, args []string) error {
		id, err := a.cardArg(args)
		if err != nil {
			return err
		}
		ans, err := a.get(c.Context(), "/v1/cards/"+url.PathEscape(id), nil)
		return show(a, ans, err, func(d api.CardDetail) []string { return []string{d.ID} }, func(d api.CardDetail) { a.printCard(&d) })
	})
}

// contextCmd shows what a session is told of a card.
func (a *app) contextCmd() *cobra.Command {
	return verb("context [CARD]", "what a session is told of a card", 0, 1, func(c *cobra.Command, args []string) error {
		id, err := a.cardArg(args)
		if err != nil {
			return err
		}
		ans, err := a.get(c.Context(), "/v1/cards/"+url.PathEscape(id)+"/context", nil)
		return show(a, ans, err, func(x api.CardContext) []string { return []string{x.Card} }, func(x api.CardContext) { a.printf("%s\n", visible(x.Text)) })
	})
}

// cardArg is the card of the arguments, or the session's own.
func (a *app) cardArg(args []string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	return a.ownCard()
}

func (a *app) printCard(d *api.CardDetail) {
	a.printf("%s  %s\n", a.color(bold, oneLine(d.ID)), oneLine(d.Title))
	run, reason, attention, start := "", "", "", ""
	if d.Run != nil {
		run = *d.Run
	}
	if d.Reason != nil {
		reason = d.Reason.Text
		if d.Reason.Since != nil {
			reason += " (since " + a.since(*d.Reason.Since) + ")"
		}
	}
	if d.Attention != nil {
		attention = d.Attention.Kind + ": " + d.Attention.Text
	}
	if d.StartAfter != nil {
		start = clock(*d.StartAfter)
	}
	a.fields([][2]string{{"status", d.Status}, {"board", d.Board}, {"assignee", d.Assignee}, {"machine", d.Machine}, {"priority", nonZero(d.Priority)},
		{"run", run}, {"waits", reason}, {"attention", attention}, {"waits for", join(d.WaitsFor)}, {"waited by", join(d.WaitedBy)}, {"part of", d.SubtaskOf},
		{"not before", start}, {"failures", nonZero(d.Failures)}, {"last error", d.LastError}, {"workspace", d.Workspace}, {"branch", d.Branch},
		{"skills", join(d.Skills)}, {"labels", dict(d.Labels)}, {"told of it", join(d.Subscribers)}, {"filed", clock(d.CreatedAt) + " by " + d.Creator}, {"changed", a.since(d.UpdatedAt) + " ago"}})
	if d.Body != "" {
		a.printf("\n%s\n", strings.TrimRight(visible(d.Body), "\n"))
	}
	if len(d.Runs) > 0 {
		a.printf("\n")
		a.printRuns(d.Runs)
	}
	a.printWorkers(d.Agents)
	a.printTold(d)
	for _, m := range d.Comments {
		a.printf("\n%s\n%s\n", a.color(dim, oneLine(m.Author)+", "+a.since(m.At)+" ago:"), strings.TrimRight(visible(m.Text), "\n"))
	}
}

func nonZero(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}
