package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"muster/board"
	"muster/board/workflow"
	"muster/cmd/muster/api"
	"muster/cmd/muster/node"
)

// applyWorkflow saves another version of a board's workflow, while its cards are worked.
func (u *user) applyWorkflow(string, int) {
	a := board.BoardApply{Board: "lab", YAML: lab(u.rng.IntN(6)), DryRun: u.rng.IntN(6) == 0}
	switch u.rng.IntN(6) {
	case 0:
		a.Board, a.YAML = "web", Workflow+fmt.Sprintf("breaker: {limit: 'card.max_retries ?? params.failure_limit', target: blocked, kind: %s}\n", u.some("capability", "transient"))
	case 1:
		a.Was = uint64(1 + u.rng.IntN(3))
	case 2:
		a.YAML = Lab // the status of another version is gone: its cards have nowhere to go
	}
	u.ask(board.VBoardApply, a)
}

// applyBroken tries a file with mistakes; it is not saved, whatever is in it.
func (u *user) applyBroken(string, int) {
	text := u.some(Workflow, Lab)
	if u.rng.IntN(3) == 0 {
		text = string(workflow.DefaultSource())
	}
	u.ask(board.VBoardApply, board.BoardApply{Board: "lab", YAML: spoil(u.rng, text), DryRun: true})
}

func (u *user) setBoard(string, int) {
	set := func(slug, key, val string) {
		a := board.BoardSet{Board: slug, Set: map[string]json.RawMessage{key: json.RawMessage(val)}}
		if u.rng.IntN(5) == 0 {
			a.Was = map[string]json.RawMessage{key: json.RawMessage(`"something else"`)}
		}
		u.ask(board.VBoardSet, a)
	}
	switch u.rng.IntN(9) {
	case 0:
		set("web", "label", u.some(`"Web"`, `null`))
	case 1:
		set("web", "keep", u.some("30", "1", `"x"`))
	case 2:
		set("web", "zone", u.some(`"Europe/Berlin"`, `"No/Where"`, `null`))
	case 3:
		set("lab", "home", u.some(`"m1"`, `"nobody"`, `null`))
	case 4:
		set("web", "params.failure_limit", u.some("2", "3", "4", "null"))
	case 5:
		set("lab", "params.tier", u.some("1", "7", `"text"`, "null"))
	case 6:
		set("lab", "params.no_such", "1")
	case 7:
		set("lab", "params.goal_max_turns", u.some("5", "6"))
	default:
		u.ask(board.VBoardArchive, board.BoardArchive{Board: u.some("web", "lab", "nowhere"), Undo: u.rng.IntN(3) > 0}) // refused: it is at work, or there
		u.ask(board.VBoardArchive, board.BoardArchive{Board: "lab", Undo: true})
	}
}

// agent declares, ends, forks and takes back the agent of a card.
func (u *user) agent(card string, _ int) {
	id := "ag-000000000000"
	u.look(func(v board.View) {
		board.EachAgent(v, func(a *board.Agent) bool { id = a.ID; return u.rng.IntN(8) > 0 })
	})
	switch u.rng.IntN(6) {
	case 0, 1:
		u.ask(board.VAgentDeclare, board.AgentDeclare{Card: card, Role: u.some("", "reviewer", "nobody")})
	case 2:
		u.ask(board.VAgentEnd, board.AgentEnd{Agent: id, Why: "sim"})
	case 3:
		u.ask(board.VAgentFork, board.AgentFork{Agent: id, Key: fmt.Sprint("k", u.rng.IntN(9))})
	case 4:
		u.ask(board.VAgentMemory, board.AgentMemory{Agent: id, Hash: "aaaaaa"})
	default:
		u.ask(board.VEvent, board.FireEvent{Card: card, Event: "reassign", Payload: map[string]any{"assignee": "sh"}, Agent: id})
	}
}

// token makes one, calls with it, and ends it.
func (u *user) token(card string, _ int) {
	doors := u.f.doors()
	if len(doors) == 0 {
		return
	}
	door := doors[u.rng.IntN(len(doors))]
	who, name := door.Self()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	manager := board.Actor{Kind: board.ActorPerson, Role: "manager", Name: "ann@" + name, Node: who}
	got, err := door.NewToken(ctx, manager, api.TokenOptions{Role: u.some("member", "viewer", "manager"), TTL: 60, Uses: int64(u.rng.IntN(3)), Name: "kit"})
	if err != nil {
		return
	}
	req := request(door, board.VEvent, board.FireEvent{Card: card, Event: "shout", Payload: map[string]any{"text": "by token"}})
	if u.rng.IntN(2) == 0 {
		req = request(door, board.VCardAdd, board.CardAdd{Board: "lab", CardFields: board.CardFields{Title: &name}})
	}
	if t, err := node.ParseToken(got.Token); err == nil {
		req.Secret = t.Secret
	}
	if res := door.Do(ctx, req); res.Err == nil {
		u.f.count("done with a token")
	}
	u.ask(board.VTokenRevoke, board.TokenRevoke{ID: got.ID})
}

// machine changes what the fleet's list says of one.
func (u *user) machine(string, int) {
	m := u.someMachine().Name
	switch u.rng.IntN(2) {
	case 0:
		u.ask(board.VNodeLabel, board.NodeLabel{Node: m, Labels: map[string]string{"tier": u.some("gold", "", "iron"), "sim": "yes"}})
	case 1:
		u.ask(board.VNodeSet, board.NodeSet{Node: m, Local: u.some("manager", "manager", "king")})
	}
}

// webhook names an address that nothing is sent to: the file of its secret is nowhere.
func (u *user) webhook(string, int) {
	u.ask(board.VWebhook, board.WebhookSet{Board: "web", URL: u.some("https://example.org/a", "http://127.0.0.1:9/b", "http://example.org/c", "ftp://x"), Secret: "none", Kinds: []string{"complete", "block"},
		Off: u.rng.IntN(3) == 0})
}

// lab files a card where rules are tried, or tries them on one.
func (u *user) lab(string, int) {
	var card string
	u.look(func(v board.View) {
		board.EachCard(v, board.GetBoard(v, "lab"), func(c *board.Card) bool {
			if !board.Finished(c.Stored) {
				card = c.ID
			}
			return u.rng.IntN(4) > 0
		})
	})
	title, who := "try this", u.some("sh", "bot", "bot")
	if card == "" || u.rng.IntN(4) == 0 {
		a := board.CardAdd{Board: "lab", Triage: u.rng.IntN(3) == 0, CardFields: board.CardFields{Title: &title, Assignee: &who}}
		u.fill(&a.CardFields)
		u.ask(board.VCardAdd, a)
		return
	}
	payload := map[string]any{"list": []any{"a", "b", u.all.one(u.rng)}, "nums": []any{1, 2.5, 3}, "n": u.rng.IntN(9), "word": u.some("a word", "", "ä"), "map": map[string]any{"a": map[string]any{"b": 1}}, "kind": "shelved"}
	if u.rng.IntN(3) == 0 { // not what the rules expect
		payload = map[string]any{"list": u.some("text", ""), "nums": map[string]any{"x": "y"}, "n": "seven", "word": 7, "kind": "later"}
	}
	event := u.some("probe", "probe", "probe", "shelve", "shelve", "back", "rename", "grow", "tell", "tie", "nudge", "wipe", "break_off")
	if event == "tie" {
		payload["list"] = []any{u.all.one(u.rng)}
	}
	if u.fire(card, event, payload).done() {
		u.f.count("lab: " + event)
	}
}

// takeOver says that a person's session is the card's. Its node speaks for a process that is not there: the start fails.
func (u *user) takeOver(card string, _ int) {
	u.look(func(v board.View) {
		board.EachCard(v, nil, func(c *board.Card) bool {
			if c.Stored == "todo" || c.Stored == "triage" {
				card = c.ID
			}
			return u.rng.IntN(6) > 0
		})
	})
	u.ask(board.VAdopt, board.Adopt{Card: card, Session: fmt.Sprint("s", u.rng.IntN(20)), Harness: "bot", Profile: u.some("", "bot", "nobody")})
}

// vouch is a node's word for the session that a request names.
func (u *user) vouch(door api.Backend, verb string, args any) *board.Vouch {
	a, ok := args.(board.Adopt)
	if verb != board.VAdopt || !ok {
		return nil
	}
	id, _ := door.Self()
	return &board.Vouch{Node: id, Session: a.Session, Harness: a.Harness, Surface: "headless", PID: 1 << 30, SecretHash: []byte("none")}
}

// copyBoard takes a board to a file and brings it back under another name; half of the copies are given up.
func (u *user) copyBoard(string, int) {
	var lines []json.RawMessage
	var wrong error
	u.look(func(v board.View) {
		b := board.GetBoard(v, u.some("lab", "web"))
		if b != nil {
			wrong = board.Export(v, b, func(line []byte) error { lines = append(lines, append(json.RawMessage{}, line...)); return nil })
		}
	})
	var head board.ExportHead
	if wrong != nil || len(lines) == 0 || json.Unmarshal(lines[0], &head) != nil {
		return
	}
	token := fmt.Sprintf("t%d-%d", u.n, u.rng.IntN(1<<30))
	slug := fmt.Sprint("copy", u.n)
	if got := u.ask(board.VImportBegin, board.ImportBegin{Token: token, As: slug, Head: head}); !got.done() {
		return
	}
	n, rest := int64(0), lines[1:]
	for ; len(rest) > 0; n++ {
		take := min(len(rest), 40)
		if got := u.ask(board.VImportSlice, board.ImportSlice{Slug: slug, Token: token, N: n, First: len(lines) - len(rest) + 1, Lines: rest[:take]}); !got.done() {
			break
		}
		rest = rest[take:]
	}
	end := board.ImportEnd{Slug: slug, Token: token, N: n, Drop: len(rest) > 0 || u.rng.IntN(2) == 0}
	if got := u.ask(board.VImportEnd, end); got.done() && !end.Drop {
		u.f.count("board copied")
		u.ask(board.VBoardArchive, board.BoardArchive{Board: slug})
	}
}
