package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"muster/board"
)

// act is something that a user does; how often, beside the others, is its weight in wide histories and in others.
type act struct {
	wide, narrow int
	does         func(u *user, card string, i int)
}

func (a act) weight(wide bool) int {
	if wide {
		return a.wide
	}
	return a.narrow
}

// acts are what users do: most of it work on cards, some of it everything else that can be asked of a fleet.
var acts = []act{
	{40, 22, (*user).file},
	{36, 18, (*user).comment},
	{24, 12, (*user).setPriority},
	{28, 14, func(u *user, card string, _ int) { u.read(card) }},
	{8, 4, func(u *user, _ string, _ int) { u.glance() }},
	{8, 4, (*user).link},
	{4, 0, (*user).unlink},
	{6, 0, (*user).edit},
	{4, 2, (*user).move},
	{4, 2, (*user).pauseBoard},
	{4, 2, (*user).drainNode},
	{6, 3, func(u *user, card string, _ int) { u.ask(board.VStart, board.Start{Card: card}) }},
	{30, 17, (*user).workflowEvent},
	{4, 0, (*user).split},
	{4, 0, (*user).forget},
	{4, 0, (*user).put},
	{6, 0, (*user).subscribe},
	{6, 0, (*user).send},
	{8, 0, (*user).applyWorkflow},
	{6, 0, (*user).applyBroken},
	{6, 0, (*user).setBoard},
	{4, 0, (*user).agent},
	{4, 0, (*user).token},
	{5, 0, (*user).machine},
	{3, 0, (*user).webhook},
	{6, 0, (*user).lab},
	{10, 0, (*user).wonder},
	{4, 0, (*user).takeOver},
	{2, 0, (*user).copyBoard},
	{4, 0, (*user).nonsense},
}

func (u *user) act(i int) {
	card := u.all.one(u.rng)
	if card == "" {
		u.file(card, i)
		return
	}
	all := 0
	for _, a := range acts {
		all += a.weight(u.f.cfg.Wide)
	}
	k := u.rng.IntN(all)
	for _, a := range acts {
		if k -= a.weight(u.f.cfg.Wide); k < 0 {
			a.does(u, card, i)
			return
		}
	}
}

func (u *user) short() time.Duration { return time.Duration(u.rng.IntN(3000)) * time.Millisecond }

func (u *user) some(list ...string) string { return list[u.rng.IntN(len(list))] }

func (u *user) someMachine() *Machine { return u.f.machines[u.rng.IntN(len(u.f.machines))] }

func (u *user) file(parent string, _ int) {
	title := fmt.Sprintf("card of %d", u.n)
	who := u.some("sh", "agent", "agent", "two")
	a := board.CardAdd{Board: "web", CardFields: board.CardFields{Title: &title, Assignee: &who}, Triage: u.rng.IntN(12) == 0}
	switch k := u.rng.IntN(24); {
	case parent == "" || k > 6 || k > 3 && !u.f.cfg.Wide:
	case k < 4:
		a.After = []string{parent}
	case k < 6:
		a.SubtaskOf = parent
	default:
		u.fill(&a.CardFields)
	}
	if u.rng.IntN(8) == 0 {
		secs := int64(3)
		a.MaxRuntime = &secs
	}
	got := u.ask(board.VCardAdd, a)
	var ans struct {
		ID string `json:"id"`
	}
	if got.done() && json.Unmarshal(got.data, &ans) == nil {
		u.all.add(ans.ID)
	}
}

// fill gives fields that most cards leave out. The priority stays: the models know it.
func (u *user) fill(f *board.CardFields) {
	body, machine, model, kind := "look at https://example.org/x/pull/7\n- one\n- two", u.some("any", u.someMachine().Name, "nowhere"), "large", u.some("doc", "bug")
	skills, retries, goal, turns := []string{"sql", "go"}, int64(1+u.rng.IntN(3)), u.rng.IntN(2) == 0, int64(2)
	later := u.f.boardTime() + int64(u.rng.IntN(9000))
	f.Labels = map[string]string{"area": u.some("db", "ui"), "old": ""}
	switch u.rng.IntN(5) {
	case 0:
		f.Body, f.Machine = &body, &machine
	case 1:
		f.Model, f.Kind, f.Skills = &model, &kind, &skills
	case 2:
		f.MaxRetries, f.Goal, f.GoalMaxTurns = &retries, &goal, &turns
	case 3:
		f.StartAfter = &later
	default:
		space, branch := u.some("scratch", "dir:/nowhere/else", "worktree", "no such kind"), u.some("work/x", "main", "a..b")
		f.Workspace, f.Branch = &space, &branch
	}
}

func (u *user) comment(card string, i int) {
	text := fmt.Sprintf("u%d.%d", u.n, i)
	o := op{User: u.n, Kind: "comment", Card: card, Text: text, Call: time.Now()}
	u.record(o, u.fire(card, "comment", map[string]any{"text": text}))
}

func (u *user) setPriority(card string, _ int) {
	p := int64(u.rng.IntN(1000))
	o := op{User: u.n, Kind: "priority", Card: card, Prio: p, Call: time.Now()}
	u.record(o, u.ask(board.VCardEdit, board.CardEdit{Card: card, CardFields: board.CardFields{Priority: &p}}))
}

func (u *user) edit(card string, _ int) {
	e := board.CardEdit{Card: card}
	u.fill(&e.CardFields)
	if u.rng.IntN(3) == 0 { // written against what somebody saw: it may have changed
		title, was := "another title", fmt.Sprintf("card of %d", u.rng.IntN(4))
		e.Title, e.Was = &title, &board.CardFields{Title: &was}
	}
	u.ask(board.VCardEdit, e)
}

func (u *user) link(card string, _ int) {
	if other := u.all.one(u.rng); other != card {
		u.ask(board.VCardLink, board.CardLink{Card: card, After: []string{other}})
	}
}

func (u *user) unlink(card string, _ int) {
	after := u.all.one(u.rng)
	u.look(func(v board.View) {
		if list := board.Parents(v, card); len(list) > 0 {
			after = list[u.rng.IntN(len(list))]
		}
	})
	u.ask(board.VCardUnlink, board.CardLink{Card: card, After: []string{after}})
}

func (u *user) move(card string, _ int) {
	u.ask(board.VMove, board.Move{Card: card, Machine: u.some("any", u.someMachine().Name), Force: u.rng.IntN(8) == 0, Why: "sim"})
}

func (u *user) pauseBoard(string, int) {
	slug := "web"
	if u.f.cfg.Wide {
		slug = u.some("web", "web", "lab", "")
	}
	u.ask(board.VPause, board.Pause{Board: slug, Why: "sim"})
	_ = pass(context.Background(), u.short())
	u.ask(board.VResume, board.Pause{Board: slug})
}

func (u *user) drainNode(string, int) {
	m := u.someMachine().Name
	u.ask(board.VDrain, board.Drain{Node: m, Why: "sim", EndSessions: u.rng.IntN(2) == 0})
	_ = pass(context.Background(), u.short())
	u.ask(board.VDrain, board.Drain{Node: m, End: true})
}

func (u *user) workflowEvent(card string, _ int) {
	events := []string{"unblock", "unblock", "reclaim", "stop_run", "cancel", "reopen", "archive", "complete", "request_changes", "forget", "specify", "reassign"}
	if u.f.cfg.Wide {
		events = append(events, "reopen", "unarchive", "request_review", "block")
	}
	event := u.some(events...)
	payload := map[string]any{"why": "sim", "summary": "by hand", "text": "again", "assignee": "sh"}
	if event == "block" {
		payload = map[string]any{"kind": u.some("needs_input", "dependency", "capability"), "reason": "sim"}
	}
	u.fire(card, event, payload)
}

// split turns an idea into a card, or into some.
func (u *user) split(card string, _ int) {
	u.look(func(v board.View) {
		board.EachCard(v, nil, func(c *board.Card) bool {
			if c.Stored == "triage" {
				card = c.ID
			}
			return c.Stored != "triage"
		})
	})
	if u.rng.IntN(2) == 0 {
		u.fire(card, "specify", map[string]any{"title": "a clear one", "body": "how to see it"})
		return
	}
	u.fire(card, "decompose", map[string]any{"children": []any{map[string]any{"title": "part one", "body": "b", "profile": "sh"}, map[string]any{"title": "part two", "profile": "agent"}}})
}

func (u *user) forget(card string, _ int) {
	u.ask(board.VForget, board.Forget{Card: card, Slot: u.some("", "worker", "reviewer", "no such slot"), Why: "sim"})
}

// put moves a card past the workflow, as managers may.
func (u *user) put(card string, _ int) {
	u.ask(board.VCardPut, board.CardPut{Card: card, Status: u.some("todo", "ready", "blocked", "review", "done", "running", "nowhere"), Why: "sim", Force: u.rng.IntN(6) == 0})
}

func (u *user) subscribe(card string, _ int) {
	switch u.rng.IntN(5) {
	case 0:
		u.ask(board.VSubscribe, board.Subscribe{Board: "web", Kinds: []string{"complete", "block"}})
	case 1:
		u.ask(board.VSubscribe, board.Subscribe{Card: card, Off: true})
	case 2:
		var upTo string
		u.look(func(v board.View) {
			if c := board.GetCard(v, card); c != nil {
				board.CardEvents(v, c, func(e *board.Event) bool { upTo = e.ID; return true })
			}
		})
		u.ask(board.VInboxAck, board.InboxAck{UpTo: upTo})
	default:
		u.ask(board.VSubscribe, board.Subscribe{Card: card})
	}
}

func (u *user) send(card string, _ int) {
	to := card
	u.look(func(v board.View) {
		if c := board.GetCard(v, card); c != nil && c.Run != "" && u.rng.IntN(2) == 0 {
			to = c.Run
		}
	})
	u.ask(board.VSend, board.Send{To: to, Text: u.some("hurry", "look at this again", "")})
}

// nonsense is what people get wrong: it is refused, in words, and changes nothing.
func (u *user) nonsense(card string, _ int) {
	title := ""
	switch u.rng.IntN(7) {
	case 0:
		u.ask("no.such.verb", map[string]any{})
	case 1:
		u.ask(board.VCardAdd, map[string]any{"board": "web", "titel": "a key that is not there"})
	case 2:
		u.ask(board.VCardAdd, board.CardAdd{Board: "nowhere", CardFields: board.CardFields{Title: &title}})
	case 3:
		u.fire(card, "no_such_event", nil)
	case 4:
		u.ask(board.VCardLink, board.CardLink{Card: card, After: []string{card}})
	case 5:
		u.ask(board.VBoardCreate, board.BoardCreate{Slug: u.some("web", "Not A Slug", "other"), YAML: "version: 9"})
	case 6:
		u.ask(board.VNodeRemove, board.NodeRemove{Node: u.some("nobody", u.someMachine().Name)}) // that is there and well
	}
}

// wonder asks what people ask when they look on: why, and what would start now.
func (u *user) wonder(card string, _ int) {
	doors := u.f.doors()
	if len(doors) == 0 {
		return
	}
	door := doors[u.rng.IntN(len(doors))]
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	var err error
	what := u.some("why", "why", "dry run", "rounds", "readings", "context")
	switch what {
	case "why":
		_, err = door.Why(ctx, card)
	case "dry run":
		_, err = door.DryRun(ctx, u.some("", "web", "lab"))
	case "rounds":
		_, err = door.Rounds(ctx, 10)
	case "readings":
		door.Readings(ctx)
		door.Peers(ctx)
	case "context":
		_, err = door.Read(ctx, false, func(v board.View) error { look(v, card); return nil })
	}
	if err == nil {
		u.f.count("looked at: " + what)
	}
}

// look reads what a page of a card and of a fleet reads.
func look(v board.View, card string) {
	c := board.GetCard(v, card)
	if c == nil {
		return
	}
	board.CardEvents(v, c, func(*board.Event) bool { return true })
	_ = board.NeedsOf(v, card)
	_ = board.Inbox(v, "ann@m1", true)
	_ = board.OpenAsks(v, card)
	board.EachAgent(v, func(a *board.Agent) bool { _ = a.State(); return true })
}
