package apitest

import (
	"time"

	"muster/board"
)

// Commands is a board whose profile runs a card's body as a script.
const Commands = `version: 1
name: default
extends: default
params: {default_assignee: script}
profiles:
  script:
    harness: command
    args: [sh, -c, 'sh "$MUSTER_BODY"']
    verdict: exit
`

// Hostile is text that would steer a terminal: colours, a title, a link to the
// clipboard, an order of writing turned round, and a byte that is no text.
const Hostile = "red \x1b[31m title \x1b]0;owned\x07 copy \x1b]52;c;ZWNobw==\x07 turned \u202eecho\u202c bell \x07 back \x08 c1 \u009b31m"

// Story is a fleet with a past:
//
//	d-1  done by a run, with a comment of its session
//	d-2  running, its session's secret is "s2"
//	d-3  waits for d-2
//	d-4  blocked, needs a person
//	d-5  ready; its title and body are hostile
//	w-1  on the board web
func Story() *Fleet {
	f := New()
	m := Manager()
	f.Must(m, board.VBoardApply, board.BoardApply{Board: "default", YAML: Commands})
	f.Must(m, board.VBoardCreate, board.BoardCreate{Slug: "web", Prefix: "w", Label: "The web", YAML: Commands})
	add := func(b, title, body string, after ...string) {
		f.Pass(time.Second)
		f.Must(m, board.VCardAdd, board.CardAdd{Board: b, After: after, CardFields: board.CardFields{Title: &title, Body: &body}})
	}
	add("default", "count to five", "seq 5")
	add("default", "count to ten", "seq 10")
	add("default", "count on", "seq 11 20", "d-2")
	add("default", "ask somebody", "")
	add("default", "say \x1b[31mred", Hostile)
	add("web", "a page", "")
	f.Pass(time.Second)
	one := f.Run("d-1", "s1")
	f.Must(board.Actor{Kind: board.ActorPerson, Name: "ann@atlas", Node: Node}, board.VEvent, board.FireEvent{Card: "d-1", Event: "comment", Payload: map[string]any{"text": "well done"}})
	f.Pass(2 * time.Second)
	f.Exit(one, 0)
	f.Run("d-2", "s2")
	f.Must(m, board.VEvent, board.FireEvent{Card: "d-4", Event: "block", Payload: map[string]any{"kind": "needs_input", "reason": "which colour?"}})
	f.Pass(time.Minute)
	return f
}
