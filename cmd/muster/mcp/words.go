package mcp

import (
	"context"
	"errors"

	"muster/board"
)

type commentArgs struct {
	Card string `json:"card,omitempty" jsonschema:"a card's id, as d-12; left out: your own"`
	Text string `json:"text" jsonschema:"what to say, in Markdown"`
}

type heartbeatArgs struct {
	Card string `json:"card,omitempty" jsonschema:"a card's id, as d-12; left out: your own"`
	Note string `json:"note,omitempty" jsonschema:"a line of news for people: what you are at"`
}

type blockArgs struct {
	Card   string `json:"card,omitempty" jsonschema:"a card's id, as d-12; left out: your own"`
	Reason string `json:"reason" jsonschema:"what is needed, and from whom, so that a person can answer in one line"`
	Kind   string `json:"kind" jsonschema:"needs_input: a person has to decide or answer; capability: you lack a right, a tool or a key; transient: something is down and will come back; dependency: another card has to be done first"`
}

type summaryArgs struct {
	Card    string `json:"card,omitempty" jsonschema:"a card's id, as d-12; left out: your own"`
	Summary string `json:"summary" jsonschema:"what was done, and how you know that it works, in a few lines"`
}

type changesArgs struct {
	Card string `json:"card,omitempty" jsonschema:"a card's id, as d-12; left out: your own"`
	Text string `json:"text" jsonschema:"what has to be different, point by point"`
}

type specifyArgs struct {
	Card  string `json:"card,omitempty" jsonschema:"a card's id, as d-12; left out: your own"`
	Title string `json:"title,omitempty" jsonschema:"its new title"`
	Body  string `json:"body,omitempty" jsonschema:"its new text, in Markdown: what, why, and how one can tell that it is done"`
}

type child struct {
	Title   string `json:"title" jsonschema:"one line that says what is to be done"`
	Body    string `json:"body,omitempty" jsonschema:"Markdown: what, why, and how one can tell that it is done"`
	Profile string `json:"profile,omitempty" jsonschema:"the profile that works on it; left out: the board's usual one"`
}

type decomposeArgs struct {
	Card     string  `json:"card,omitempty" jsonschema:"a card's id, as d-12; left out: your own"`
	Children []child `json:"children" jsonschema:"the parts, each small enough for one session"`
}

// wordTools are what is said about a card, by who works on it and by people.
func (s *server) wordTools() {
	say := func(ctx context.Context, card, event, key, text, what string) (any, error) {
		if text == "" {
			return nil, errors.New(what)
		}
		return s.event(ctx, card, event, map[string]any{key: text}, "")
	}
	tool(s, "comment", "Says something on a card, for people and for who works on it next. It changes nothing else.", writes, func(ctx context.Context, in commentArgs) (any, error) {
		return say(ctx, in.Card, "comment", "text", in.Text, "what do you want to say? text is empty")
	})
	tool(s, "heartbeat", "Tells that the work goes on. Say it at times while something takes long: a run that says nothing may be taken for stuck.", writes, func(ctx context.Context, in heartbeatArgs) (any, error) {
		p := map[string]any{}
		if in.Note != "" {
			p["note"] = in.Note
		}
		return s.event(ctx, in.Card, "heartbeat", p, "")
	})
	tool(s, "block", "The work cannot go on without a person or a thing: ends your run and puts the card on the list of what needs attention. Its session goes on when it is answered.", writes,
		func(ctx context.Context, in blockArgs) (any, error) {
			if in.Reason == "" || in.Kind == "" {
				return nil, errors.New("say the reason and its kind: needs_input, capability, transient or dependency")
			}
			return s.event(ctx, in.Card, "block", map[string]any{"reason": in.Reason, "kind": in.Kind}, "")
		})
	tool(s, "request_review", "Hands the work over to be checked: ends your run.", writes, func(ctx context.Context, in summaryArgs) (any, error) {
		return say(ctx, in.Card, "request_review", "summary", in.Summary, "summary is empty: say what changed, and how you know that it works")
	})
	tool(s, "request_changes", "For a reviewer: sends the card back to who worked on it, with what has to be different. Ends your run.", writes, func(ctx context.Context, in changesArgs) (any, error) {
		return say(ctx, in.Card, "request_changes", "text", in.Text, "text is empty: say what has to be different")
	})
	tool(s, "complete", "The card is done: ends your run. Cards that wait for it may start.", writes, func(ctx context.Context, in summaryArgs) (any, error) {
		return say(ctx, in.Card, "complete", "summary", in.Summary, "summary is empty: say what was done, or checked")
	})
	tool(s, "specify", "Turns an idea (a card in triage) into a clear card that can start: gives it a title and a text.", writes, func(ctx context.Context, in specifyArgs) (any, error) {
		p := map[string]any{}
		if in.Title != "" {
			p["title"] = in.Title
		}
		if in.Body != "" {
			p["body"] = in.Body
		}
		if len(p) == 0 {
			return nil, errors.New("give a title or a body, or both")
		}
		return s.event(ctx, in.Card, "specify", p, "")
	})
	tool(s, "decompose", "Splits a card into parts, each a card of its own; the card goes on when all of them are done.", writes, func(ctx context.Context, in decomposeArgs) (any, error) {
		if len(in.Children) == 0 {
			return nil, errors.New("into what? give children")
		}
		list := []any{}
		for _, c := range in.Children {
			m := map[string]any{"title": c.Title}
			if c.Body != "" {
				m["body"] = c.Body
			}
			if c.Profile != "" {
				m["profile"] = c.Profile
			}
			list = append(list, m)
		}
		return s.event(ctx, in.Card, "decompose", map[string]any{"children": list}, "")
	})
}

type eventArgs struct {
	Card    string         `json:"card" jsonschema:"the card's id, as d-12"`
	Event   string         `json:"event" jsonschema:"the event's name, as the board's workflow has it"`
	Payload map[string]any `json:"payload,omitempty" jsonschema:"what the event takes"`
	Why     string         `json:"why,omitempty" jsonschema:"why, for people"`
}

type whyArgs struct {
	Card string `json:"card" jsonschema:"the card's id, as d-12"`
	Why  string `json:"why" jsonschema:"why, for people: it stands in the card's history"`
}

type unblockArgs struct {
	Card string `json:"card" jsonschema:"the card's id, as d-12"`
	Why  string `json:"why" jsonschema:"the answer to what was asked: the session is told"`
}

type moveArgs struct {
	Card    string `json:"card" jsonschema:"the card's id, as d-12"`
	Machine string `json:"machine" jsonschema:"a machine's name, or any"`
	Why     string `json:"why,omitempty" jsonschema:"why, for people"`
}

type reassignArgs struct {
	Card    string `json:"card" jsonschema:"the card's id, as d-12"`
	Profile string `json:"profile" jsonschema:"the profile that is to work on it"`
	Why     string `json:"why,omitempty" jsonschema:"why, for people"`
}

type editArgs struct {
	Card     string            `json:"card" jsonschema:"the card's id, as d-12"`
	Title    *string           `json:"title,omitempty" jsonschema:"its new title"`
	Body     *string           `json:"body,omitempty" jsonschema:"its new text, all of it"`
	Priority *int64            `json:"priority,omitempty" jsonschema:"higher starts first"`
	Labels   map[string]string `json:"labels,omitempty" jsonschema:"labels to set; an empty value takes one away"`
}

type linkArgs struct {
	Card  string   `json:"card" jsonschema:"the card that waits"`
	After []string `json:"after" jsonschema:"the cards that must be done first"`
	Off   bool     `json:"off,omitempty" jsonschema:"true: it waits for them no longer"`
}

type startArgs struct {
	Card    string `json:"card" jsonschema:"the card's id, as d-12"`
	Profile string `json:"profile,omitempty" jsonschema:"with this profile instead of its own"`
}

type sendArgs struct {
	To   string `json:"to" jsonschema:"a card (its current or next session) or a run"`
	Text string `json:"text" jsonschema:"what to tell the session that works there"`
}

// managerTools change what others work on.
func (s *server) managerTools() {
	tool(s, "unblock", "Lets a blocked card go on, with the answer to what was asked.", writes, func(ctx context.Context, in unblockArgs) (any, error) {
		return s.event(ctx, in.Card, "unblock", map[string]any{"why": in.Why}, "")
	})
	tool(s, "start", "Starts a card now, where there is room. Cards that are ready start by themselves; use it for one that is not to wait its turn.", writes, func(ctx context.Context, in startArgs) (any, error) {
		return s.do(ctx, board.VStart, board.Start{Card: in.Card, Profile: in.Profile})
	})
	tool(s, "send", "Tells a session something, in words: it is given to it when it takes text, once.", writes, func(ctx context.Context, in sendArgs) (any, error) {
		return s.do(ctx, board.VSend, board.Send{To: in.To, Text: in.Text})
	})
	tool(s, "edit", "Changes a card's title, text, priority or labels.", writes, func(ctx context.Context, in editArgs) (any, error) {
		return s.do(ctx, board.VCardEdit, board.CardEdit{Card: in.Card, CardFields: board.CardFields{Title: in.Title, Body: in.Body, Priority: in.Priority, Labels: in.Labels}})
	})
	tool(s, "link", "Lets a card wait for others, or no longer.", writes, func(ctx context.Context, in linkArgs) (any, error) {
		verb := board.VCardLink
		if in.Off {
			verb = board.VCardUnlink
		}
		return s.do(ctx, verb, board.CardLink{Card: in.Card, After: in.After})
	})
	tool(s, "reassign", "Gives a card to another profile.", writes, func(ctx context.Context, in reassignArgs) (any, error) {
		return s.event(ctx, in.Card, "reassign", map[string]any{"assignee": in.Profile}, in.Why)
	})
	tool(s, "move", "Lets a card run on another machine. What is in its workspace here stays behind, and is said.", ends, func(ctx context.Context, in moveArgs) (any, error) {
		return s.do(ctx, board.VMove, board.Move{Card: in.Card, Machine: in.Machine, Why: in.Why})
	})
	for _, x := range []struct{ name, about string }{
		{"stop_run", "Takes the run away from a card's session and holds the card until somebody lets it go on."},
		{"reclaim", "Takes the run away from a card's session and lets the card start again."},
		{"cancel", "The card is not to be done. What waits for it goes on waiting."},
		{"reopen", "A finished card is not finished."},
		{"archive", "Puts a card away: it is not listed any more, and can be got back."},
	} {
		tool(s, x.name, x.about, ends, func(ctx context.Context, in whyArgs) (any, error) {
			p := map[string]any{}
			if x.name == "reopen" {
				p["why"] = in.Why
			}
			return s.event(ctx, in.Card, x.name, p, in.Why)
		})
	}
	tool(s, "event", "Files any event of the board's workflow; see workflow for which there are. Prefer the tools that have a name of their own.", ends, func(ctx context.Context, in eventArgs) (any, error) {
		return s.event(ctx, in.Card, in.Event, in.Payload, in.Why)
	})
}
