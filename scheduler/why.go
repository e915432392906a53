package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"muster/board"
)

// maxProfiles bounds the profiles that an answer names.
const maxProfiles = 12

// WhyAnswer explains where a card stands: the recorded reason, what it looks
// like now, its place in the queue and what would change it.
type WhyAnswer struct {
	Card     string         `json:"card"`
	Status   string         `json:"status"`
	Check    string         `json:"check"`
	Text     string         `json:"text"`
	Since    int64          `json:"since,omitempty"` // board time, ms
	Values   map[string]any `json:"values,omitempty"`
	Fix      string         `json:"fix,omitempty"`
	Position int            `json:"position,omitempty"` // in its board's queue, from 1
	Live     bool           `json:"live"`               // with the leader's readings
}

// Why explains a card of any status. live says that the readings are the
// leader's; without them the answer is made from the state alone (M-31).
func Why(in Input, id string, live bool) (*WhyAnswer, *board.Error) {
	c := board.GetCard(in.View, id)
	if c == nil {
		return nil, board.Errorf(board.NotFound, "no card %q", clip(id, 60)).WithHint("see: muster card list")
	}
	in.Nodes = frozen(in.Nodes)
	a := &WhyAnswer{Card: c.ID, Status: c.Status, Live: live, Values: map[string]any{}}
	switch {
	case c.Run != "":
		a.running(in, c)
	case board.Finished(c.Stored):
		a.Check, a.Text = "finished", "nothing more happens to it by itself"
		a.Fix = "to do it again: muster reopen " + c.ID
		switch c.Stored {
		case "archived":
			a.Fix = "to get it back: muster unarchive " + c.ID
		case "cancelled":
			a.Text += "; cards that wait for it go on waiting: only done satisfies them"
		}
	case c.Stored == "blocked":
		a.Check, a.Text, a.Since = "blocked", fmt.Sprintf("%s: %s", orElse(c.BlockKind, "blocked"), orElse(c.BlockReason, c.Attention.Text)), c.Attention.Since
		a.Fix = "a person answers: muster unblock " + c.ID
		if c.Attention.Check == "failures" {
			a.Fix = "muster log " + c.ID + " shows what it printed; when that is mended: muster unblock " + c.ID
		}
	default:
		a.waiting(in, c, live)
	}
	return a, nil
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func (a *WhyAnswer) running(in Input, c *board.Card) {
	r := board.GetRun(in.View, c.Run)
	if r == nil {
		return
	}
	name, state := r.Node, in.Nodes(r.Node)
	if n := board.GetNode(in.View, r.Node); n != nil {
		name = n.Name
	}
	a.Check, a.Since = "running", r.Claimed
	who := r.Profile
	if r.Instead != "" {
		who += ", in place of " + r.Instead
	}
	a.Text = fmt.Sprintf("run %s (%s, profile %s) is %s on %s, which is %s", r.ID, r.Role, who, r.State, name, state.State)
	a.Values["run"], a.Values["machine"], a.Values["machine_state"] = r.ID, name, state.State
	if r.Lease > 0 {
		a.Values["lease_s"] = r.Lease / 1000
	}
	if c.Attention.Check != "" {
		a.Text += "; " + c.Attention.Text
	}
	if state.NoSpace {
		a.Text += fmt.Sprintf("; NOSPACE: %d MB are left on %s's disk: how its session ends may not be told before there is room", state.DiskMB, name)
		a.Values["disk_free_mb"] = state.DiskMB
	}
	a.Fix = fmt.Sprintf("muster log %s -f", c.ID)
	if r.Surface == "pane" {
		a.Fix = fmt.Sprintf("to look on, and type, on %s: muster attach %s; to read: %s", name, c.ID, a.Fix)
	}
}

// waiting explains a card that could start, or that waits for others or for its time.
func (a *WhyAnswer) waiting(in Input, c *board.Card, live bool) {
	a.Check, a.Text, a.Since = c.Waits.Check, c.Waits.Text, c.Waits.Since
	if open := board.Waiting(in.View, in.Workflows, c.ID); len(open) > 0 {
		a.Check, a.Text = "parents", "waits for "+strings.Join(a.describe(in, open), ", ")
		a.Fix = "finish them, or: muster card unlink " + c.ID + " --after " + open[0]
		return
	}
	if c.StartAfter > in.Now {
		a.Check, a.Text = "start_after", fmt.Sprintf("is not to start for another %s", (time.Duration(c.StartAfter-in.Now)*time.Millisecond).Round(time.Second))
		a.Fix = "to start it now: muster card edit " + c.ID + " --start-after +0s"
		return
	}
	if c.Hook != "" {
		a.hook(in, c)
		return
	}
	room := board.NewRoom(in.View, in.Workflows)
	in.Fleet = in.fleet()
	cand, w := look(in, room, c)
	if cand == nil {
		if w != nil {
			a.Check, a.Text = w.Check, w.Text
		} else if a.Check == "" {
			a.Check, a.Text = "status", fmt.Sprintf("nothing starts a card in %q; a person or another event moves it", c.Status)
		}
		a.fix(in, c)
		return
	}
	a.Position = position(in, room, cand)
	if !live {
		a.Check, a.Text = orElse(a.Check, "starting"), orElse(a.Text, "it could start; the leader decides")+" (without live readings)"
		return
	}
	room.Try() // the card's own place is not to be seen below
	if s, w := try(in, room, cand); s != nil {
		a.Check, a.Text = "starting", "nothing holds it: it starts now"
	} else if w != nil {
		a.Check, a.Text = w.Check, w.Text
		if w.Until > in.Now {
			a.Values["wait_s"] = (w.Until - in.Now + 999) / 1000
		}
	}
	room.Undo()
	a.readings(in, room, c)
	a.fix(in, c)
}

// hook is the answer of a card that waits for a command on the machine of its workspace.
func (a *WhyAnswer) hook(in Input, c *board.Card) {
	node, id, _ := strings.Cut(c.Hook, "/")
	name := node
	if n := board.GetNode(in.View, node); n != nil {
		name = n.Name
	}
	a.Check, a.Text = "hook", fmt.Sprintf("waits for its hook on %s, which is %s", name, in.Nodes(node).State)
	if o := board.GetOrder(in.View, node, id); o != nil {
		a.Since = o.At
	}
	a.Values["machine"] = name
	a.Fix = "muster card put " + c.ID + " STATUS --why TEXT moves it past the workflow"
}

func (a *WhyAnswer) describe(in Input, ids []string) (out []string) {
	for _, id := range ids {
		if p := board.GetCard(in.View, id); p != nil {
			s := fmt.Sprintf("%s (%s)", id, p.Status)
			if p.Stored == "cancelled" {
				s += ": only done satisfies it"
			}
			out = append(out, s)
		}
	}
	return out
}

// readings lists what each machine looks like, and what it says to a start of the card.
func (a *WhyAnswer) readings(in Input, room *board.Room, c *board.Card) {
	says := map[string]reason{}
	if s, err := board.NewScope(in.View, in.Workflows, board.GetBoard(in.View, c.Board), c, in.Now, in.Nodes); err == nil {
		if p, refusal := s.PlanStart(); refusal == nil {
			a.Values["profile"], a.Values["role"], a.Values["slot"], a.Values["target"] = p.Profile.Name, p.Role, p.Slot, p.Target
			_, why := place(in, s, p, room)
			for _, x := range why.each {
				says[x.node] = x
			}
			if rest := why.others(); rest != "" && a.Text == why.Text {
				a.Text = strings.TrimSuffix(a.Text, noOther) + "; " + rest
			}
		}
	}
	m := map[string]any{}
	for _, n := range in.Fleet {
		r := in.Nodes(n.ID)
		x := map[string]any{"state": r.State, "slots": n.Slots, "held": room.Held(n.ID), "memory_pressure": r.Pressure, "free_mb": r.FreeMB, "load": r.Load,
			"estop": r.Estop, "draining": n.Draining}
		if no, refused := says[n.Name]; refused {
			x["check"], x["text"] = no.Check, no.Text
		}
		m[n.Name] = x
	}
	a.Values["machines"] = m
}

// fix is what a person can type about what holds the card.
func (a *WhyAnswer) fix(in Input, c *board.Card) {
	switch a.Check {
	case board.NoTransition, "status": // it waits for a word: a review by a person, say
		a.Fix = "another event moves it: muster card show " + c.ID
		if can := board.Possible(in.View, in.Workflows, c, in.Now, in.Nodes); len(can) > 0 {
			a.Fix = "a person moves it on: " + strings.Join(can, "; ")
		}
		return
	case "pause":
		a.Fix = board.ResumeCommand(in.View, board.GetBoard(in.View, c.Board))
		return
	}
	elsewhere := ""
	if c.Machine != "" {
		elsewhere = ", or let it run on another: muster move " + c.ID + " --machine any"
	}
	a.Fix = map[string]string{
		"unassigned":       "muster card edit " + c.ID + " --assignee PROFILE" + profiles(in, c),
		"profile":          "muster card edit " + c.ID + " --assignee PROFILE" + profiles(in, c),
		"cap":              "a session that ends makes room; or: muster start " + c.ID + " --force --why TEXT",
		"estop":            "remove the ESTOP file on that machine",
		"session_open":     "end it on its machine; or have it ended: muster forget " + c.ID,
		"drain":            "muster node undrain MACHINE" + orElse(elsewhere, ", or add another machine: muster token create"),
		"memory":           "a session that ends there makes room",
		"workspace":        "its session's end lets go of the folder" + orElse(elsewhere, "; another one: muster card edit "+c.ID+" --workspace dir:PATH"),
		"nospace":          "free space on that machine's disk",
		"eligible":         "wait, or: muster start " + c.ID,
		"requires":         "give the machine what the profile requires, or: muster card edit " + c.ID + " --assignee PROFILE",
		"harness":          "install it there, or: muster card edit " + c.ID + " --assignee PROFILE",
		"surface":          "install tmux there, then: muster restart; or: muster card edit " + c.ID + " --assignee PROFILE",
		"set_aside":        "see on that machine why it refuses; or wait",
		"machine_unknown":  "bring the machine back" + orElse(elsewhere, ", or wait until the leader has heard of it"),
		"workflow":         "mend it: muster board apply " + c.Board + " -f FILE",
		"order":            "mend it: muster board apply " + c.Board + " -f FILE",
		"expression":       "mend it: muster board apply " + c.Board + " -f FILE",
		"validator":        "muster start " + c.ID + " --force --why TEXT",
		"session_not_gone": "wait for the machine's word; if it is dead: muster reclaim " + c.ID + " --force --why TEXT",
		"machine":          "muster card edit " + c.ID + " --machine M",
		"machine_offline":  "bring the machine back, or add another: muster token create",
		"cooldown":         "wait, or: muster start " + c.ID + " --force --why TEXT",
		"rate_limit":       "wait, or: muster start " + c.ID + " --force --why TEXT",
		"blocker_auth":     "repair the login, then: muster unblock, or muster start " + c.ID + " --force --why TEXT",
		"recent_success":   "muster start " + c.ID + " --force --why TEXT",
		"active_pr":        "muster start " + c.ID + " --force --why TEXT",
	}[a.Check]
}

// profiles names what a card may be given, some of it where that is much.
func profiles(in Input, c *board.Card) string {
	b := board.GetBoard(in.View, c.Board)
	if b == nil {
		return ""
	}
	wf, err := in.Workflows.Of(in.View, b)
	if err != nil {
		return ""
	}
	names := slices.Sorted(maps.Keys(wf.Profiles))
	if more := len(names) - maxProfiles; more > 0 {
		names = append(names[:maxProfiles], fmt.Sprintf("and %d more", more))
	}
	return "; profiles: " + orElse(strings.Join(names, ", "), "none, give the board one: muster board apply "+b.Slug+" -f FILE")
}

// position is a candidate's place among its board's candidates. Where no loop runs the whole board is read.
func position(in Input, room *board.Room, me *Candidate) int {
	if in.Rank != nil {
		return in.Rank(me)
	}
	var all []*Candidate
	b := board.GetBoard(in.View, me.board)
	if b == nil {
		return 0
	}
	board.EachCard(in.View, b, func(c *board.Card) bool {
		if cand, _ := look(in, room, c); cand != nil {
			all = append(all, cand)
		}
		return true
	})
	slices.SortFunc(all, before)
	return 1 + slices.IndexFunc(all, func(c *Candidate) bool { return c.Card == me.Card })
}
