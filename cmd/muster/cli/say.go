package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"muster/board"
)

// say fires an event of the workflow on a card.
func (a *app) say(c *cobra.Command, req board.FireEvent) error {
	ans, err := a.do(c.Context(), board.VEvent, req)
	return show(a, ans, err, func(r doneAnswer) []string { return []string{r.ID} }, func(r doneAnswer) {
		switch {
		case r.To != "" && r.To != r.From:
			a.printf("%s: %s -> %s\n", oneLine(r.ID), oneLine(r.From), oneLine(r.To))
		default:
			a.printf("%s: %s is taken\n", oneLine(orElse(r.ID, req.Card)), oneLine(req.Event))
		}
		a.printTellings(&r)
		if req.Force {
			fmt.Fprintf(a.io.Err, "its session counts as dead now; if it lives, it and the next one may overlap\n")
		}
	})
}

// printTellings prints whom an event was told to, and who hears of it later, and why.
func (a *app) printTellings(r *doneAnswer) {
	if len(r.Notified) > 0 {
		names := make([]string, len(r.Notified))
		for i, x := range r.Notified {
			names[i] = x.Address
		}
		a.printf("  told: %s%s\n", oneLine(join(names)), more(r.NotifiedCount, len(names)))
	}
	for _, x := range r.Undelivered {
		if x.Address == "" {
			a.printf("  not told: %s\n", oneLine(x.Error))
			continue
		}
		a.printf("  told with the next prompt: %s (%s)\n", oneLine(x.Address), oneLine(x.Error))
	}
	if n := more(r.UndeliveredCount, len(r.Undelivered)); n != "" {
		a.printf("  told with the next prompt:%s\n", n)
	}
}

// more says how many a list leaves out; all is 0 when it is whole.
func more(all, shown int) string {
	if all <= shown {
		return ""
	}
	return fmt.Sprintf(" and %d more", all-shown)
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// word is an event as a verb of its own: `muster NAME [CARD] [TEXT]`.
type word struct {
	name, short string
	text        string // payload key of an argument; "" takes none
	flags       [][2]string
	need        string // flag that must be given
	force       bool
}

// words are the events people and sessions say, in the order of a card's life.
var words = []word{
	{name: "comment", short: "say something on a card", text: "text"},
	{name: "heartbeat", short: "tell that the work goes on"},
	{name: "block", short: "the work cannot go on: what is needed, and from whom", text: "reason", need: "kind",
		flags: [][2]string{{"kind", "needs_input, capability, transient or dependency"}}},
	{name: "unblock", short: "a blocked card may go on", flags: [][2]string{{"why", "the answer to what was asked"}}},
	{name: "request-review", short: "hand the work over", need: "summary", flags: [][2]string{{"summary", "what changed, and how you know that it works"}}},
	{name: "request-changes", short: "send a card back to who worked it", text: "text"},
	{name: "complete", short: "the card is done", need: "summary", flags: [][2]string{{"summary", "what was done, or checked"}}},
	{name: "specify", short: "turn an idea into a clear card", flags: [][2]string{{"title", "its title"}, {"body", "its text"}}},
	{name: "stop-run", short: "take the run away and hold the card", force: true},
	{name: "reclaim", short: "take the run away and let it start again", force: true},
	{name: "cancel", short: "the card is not to be done", force: true},
	{name: "reopen", short: "a finished card is not finished", flags: [][2]string{{"why", "why"}}},
	{name: "archive", short: "put a card away"},
	{name: "unarchive", short: "get a card back"},
}

func (a *app) sayCmds() []*cobra.Command {
	cmds := []*cobra.Command{a.eventCmd(), a.reassignCmd(), a.decomposeCmd(), a.moveCmd(), a.adoptCmd(), a.forgetCmd()}
	for _, w := range words {
		cmds = append(cmds, a.wordCmd(w))
	}
	return cmds
}

func (a *app) wordCmd(w word) *cobra.Command {
	use, most := w.name+" CARD", 1
	if w.text != "" {
		use, most = use+" "+strings.ToUpper(w.text), 2
	}
	if w.need != "" {
		use += " --" + w.need + " " + strings.ToUpper(w.need)
	}
	vals := map[string]*string{}
	req := board.FireEvent{Event: strings.ReplaceAll(w.name, "-", "_"), Payload: map[string]any{}}
	c := verb(use, w.short, 0, most, func(c *cobra.Command, args []string) (err error) {
		if w.text != "" {
			if len(args) == 0 || strings.TrimSpace(args[len(args)-1]) == "" || len(args) == 1 && !a.inSession() {
				return usagef("use: muster %s", use)
			}
			text, err := a.orStdin(args[len(args)-1])
			if err != nil {
				return err
			}
			if strings.TrimSpace(text) == "" {
				return usagef("stdin holds no text; use: muster %s", use)
			}
			req.Payload[w.text] = text
			args = args[:len(args)-1]
		}
		if req.Card, err = a.cardArg(args); err != nil {
			return err
		}
		for k, v := range vals {
			if c.Flags().Changed(k) {
				if req.Payload[k], err = a.orStdin(*v); err != nil {
					return err
				}
			}
		}
		if w.need != "" && req.Payload[w.need] == nil {
			return usagef("use: muster %s (%s)", use, w.flags[0][1])
		}
		if req.Force && req.Why == "" {
			return usagef("--force also takes the session for dead, and two may overlap if it is not: say --why")
		}
		return a.say(c, req)
	})
	for _, f := range w.flags {
		vals[f[0]] = c.Flags().String(f[0], "", f[1])
	}
	if w.force {
		c.Flags().StringVar(&req.Why, "why", "", "why")
		c.Flags().BoolVar(&req.Force, "force", false, "also take its session for dead, without its machine's word")
	}
	return c
}

func (a *app) eventCmd() *cobra.Command {
	var sets []string
	var payload string
	c := verb("event CARD EVENT", "file any event of the workflow", 1, 2, func(c *cobra.Command, args []string) (err error) {
		req := board.FireEvent{Event: args[len(args)-1]}
		if req.Card, err = a.cardArg(args[:len(args)-1]); err != nil {
			return err
		}
		if req.Payload, err = payloadOf(payload, sets); err != nil {
			return err
		}
		return a.say(c, req)
	})
	c.Flags().StringArrayVar(&sets, "set", nil, "k=v of the payload (v is JSON, or text)")
	c.Flags().StringVar(&payload, "payload", "", "the payload, a JSON object")
	return c
}

func payloadOf(object string, sets []string) (map[string]any, error) {
	p := map[string]any{}
	if object != "" {
		if err := json.Unmarshal([]byte(object), &p); err != nil {
			return nil, usagef("--payload is no JSON object: %v", err)
		}
	}
	for _, s := range sets {
		k, v, err := pair(s)
		if err != nil {
			return nil, err
		}
		p[k] = value(v)
	}
	return p, nil
}

func (a *app) reassignCmd() *cobra.Command {
	req := board.FireEvent{Event: "reassign"}
	c := verb("reassign CARD PROFILE", "give a card to another profile", 2, 2, func(c *cobra.Command, args []string) error {
		req.Card, req.Payload = args[0], map[string]any{"assignee": args[1]}
		return a.say(c, req)
	})
	c.Flags().StringVar(&req.Agent, "agent", "", "and to this agent, with its memory: it works the card from now on")
	c.Flags().StringVar(&req.Why, "why", "", "why")
	c.Flags().BoolVar(&req.Force, "force", false, "also take its session for dead, without its machine's word")
	return c
}

// moveCmd binds a card to another machine; what was there stays behind, and is said.
func (a *app) moveCmd() *cobra.Command {
	req := board.Move{}
	c := verb("move CARD --machine N|any", "let a card run on another machine", 1, 1, func(c *cobra.Command, args []string) error {
		req.Card = args[0]
		if req.Machine == "" {
			return usagef("use: muster move CARD --machine N|any")
		}
		if req.Force && req.Why == "" {
			return usagef("--force also takes its session for dead, and two may overlap if it is not: say --why")
		}
		ans, err := a.do(c.Context(), board.VMove, req)
		return show(a, ans, err, func(r doneAnswer) []string { return []string{r.ID} }, func(r doneAnswer) {
			where := "on any machine"
			if r.Machine != "" {
				where = "on " + oneLine(r.Machine)
			}
			a.printf("%s runs %s from now on\n", oneLine(r.ID), where)
			for _, l := range r.Left {
				a.printf("  left behind: %s\n", oneLine(l))
			}
			if r.To != r.From {
				a.printf("%s: %s -> %s\n", oneLine(r.ID), oneLine(r.From), oneLine(r.To))
			}
		})
	})
	c.Flags().StringVar(&req.Machine, "machine", "", "the machine, or any")
	c.Flags().StringVar(&req.Why, "why", "", "why")
	c.Flags().BoolVar(&req.Force, "force", false, "also take its session for dead, without its machine's word")
	return c
}

func (a *app) decomposeCmd() *cobra.Command {
	var titles []string
	var file string
	c := verb("decompose CARD", "split a card into parts, each done before it", 0, 1, func(c *cobra.Command, args []string) error {
		id, err := a.cardArg(args)
		if err != nil {
			return err
		}
		children := []any{}
		for _, t := range titles {
			title, profile, _ := strings.Cut(t, "@")
			child := map[string]any{"title": title}
			if profile != "" {
				child["profile"] = profile
			}
			children = append(children, child)
		}
		if file != "" {
			src, err := a.source(file)
			if err != nil {
				return err
			}
			var more []any
			if err := json.Unmarshal(src, &more); err != nil {
				return usagef("%s is no JSON list of {title, body, profile}: %v", file, err)
			}
			children = append(children, more...)
		}
		if len(children) == 0 {
			return usagef("into what? give --child TITLE, or -f FILE")
		}
		return a.say(c, board.FireEvent{Card: id, Event: "decompose", Payload: map[string]any{"children": children}})
	})
	c.Flags().StringArrayVar(&titles, "child", nil, "TITLE, or TITLE@PROFILE, as often as you like")
	c.Flags().StringVarP(&file, "file", "f", "", "JSON list of {title, body, profile}")
	return c
}
