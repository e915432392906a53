package tui

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"muster/board"
	"muster/cmd/muster/api"
)

// said is what a request is answered with.
type said struct {
	ID, Status, From, To, Run, Machine string
}

// elsewhere are events that have a key of their own, or are not for people in passing.
var elsewhere = map[string]bool{"comment": true, "heartbeat": true, "adopt": true, "forget": true}

// eventForm is what an event of the default workflow asks; one of a board's own asks why.
type eventForm struct {
	say    string
	fields func(m *model, c *board.CardFields) []field
}

func oneField(name, label string, must bool) func(*model, *board.CardFields) []field {
	return func(*model, *board.CardFields) []field { return []field{typed(name, label, true, must, "")} }
}

func noField(*model, *board.CardFields) []field { return nil }

var forms = map[string]eventForm{
	"comment":         {"comment", oneField("text", "comment", true)},
	"complete":        {"complete", oneField("summary", "what was done or checked, and how you know that it works", false)},
	"request_review":  {"ask for review", oneField("summary", "what changed", false)},
	"request_changes": {"send back", oneField("text", "what is wrong, where, and how to see it", true)},
	"unblock":         {"unblock", oneField("why", "your answer to what it waits for", false)},
	"start":           {"start now", noField},
	"archive":         {"archive", noField},
	"unarchive":       {"unarchive", noField},
	"block": {"block", func(*model, *board.CardFields) []field {
		return []field{{name: "kind", label: "what it needs", choices: [][2]string{{"needs_input", "a person must answer"}, {"capability", "it cannot be done as it stands"},
			{"transient", "something outside is down"}, {"dependency", "another card must be done first"}}}, typed("reason", "why", true, true, "")}
	}},
	"specify": {"specify", func(_ *model, c *board.CardFields) []field {
		return []field{typed("title", "title", false, true, *c.Title), typed("body", "body", true, false, *c.Body)}
	}},
	"decompose": {"split", func(*model, *board.CardFields) []field {
		return []field{typed("children", "one card a line, TITLE or TITLE@PROFILE", true, true, "")}
	}},
	"reassign": {"reassign", func(m *model, c *board.CardFields) []field { return []field{m.profiles("", *c.Assignee)} }},
	"stop_run": {"stop its session", oneField("why", "why", false)},
	"reclaim":  {"take it back", oneField("why", "why", false)},
}

func sayOf(event string) string {
	if f, ok := forms[event]; ok {
		return f.say
	}
	return strings.ReplaceAll(event, "_", " ")
}

// fire sends an event to a card, with the words it asks for.
func (m *model) fire(id, event string) []ask {
	if id == "" {
		m.say("no card is chosen", true)
		return nil
	}
	if !m.role("member", "manager") {
		return nil
	}
	fields := oneField("why", "why", false)
	if f, ok := forms[event]; ok {
		fields = f.fields
	}
	title, body, assignee := m.known(id)
	list := fields(m, &board.CardFields{Title: &title, Body: &body, Assignee: &assignee})
	do := func(values map[string]string) askDo {
		a := askDo{verb: board.VEvent, args: board.FireEvent{Card: id, Event: event, Payload: payload(event, values)}, say: id + ": " + sayOf(event), card: id}
		if event == "start" {
			a.verb, a.args = board.VStart, board.Start{Card: id}
		}
		return a
	}
	if len(list) == 0 {
		return []ask{do(nil)}
	}
	return m.ask(&form{title: sayOf(event) + " " + id, note: title, fields: list, makes: do})
}

// known is what is known here of a card.
func (m *model) known(id string) (title, body, assignee string) {
	if d := m.card.detail; d != nil && d.ID == id {
		return d.Title, d.Body, d.Assignee
	}
	if c := m.cols.by[id]; c != nil {
		return c.Title, "", c.Assignee
	}
	for i := range m.needs {
		if m.needs[i].Card == id {
			return m.needs[i].Title, "", ""
		}
	}
	return "", "", ""
}

func payload(event string, values map[string]string) map[string]any {
	p := map[string]any{}
	for k, v := range values {
		if v != "" {
			p[k] = v
		}
	}
	if event == "decompose" {
		var list []any
		for _, l := range strings.Split(values["children"], "\n") {
			title, profile := strings.TrimSpace(l), ""
			if i := strings.LastIndex(title, "@"); i > 0 {
				title, profile = strings.TrimSpace(title[:i]), strings.TrimSpace(title[i+1:])
			}
			child := map[string]any{"title": title}
			if profile != "" {
				child["profile"] = profile
			}
			if title != "" {
				list = append(list, child)
			}
		}
		p["children"] = list
	}
	return p
}

// addCard asks for a new card.
func (m *model) addCard() []ask {
	if !m.role("member", "manager") {
		return nil
	}
	slug := m.slug
	f := &form{title: "new card on " + slug, fields: []field{typed("title", "title", false, true, ""), typed("body", "body", true, false, ""), m.profiles("as the board says", ""),
		typed("priority", "priority", false, false, ""), typed("after", "waits for (card ids)", false, false, ""),
		{name: "as", label: "as", choices: [][2]string{{"", "a card to be worked"}, {"triage", "an idea (triage)"}}}}}
	f.makes = func(v map[string]string) askDo {
		title, body, profile := v["title"], v["body"], v["assignee"]
		x := board.CardAdd{Board: slug, Triage: v["as"] != "", After: strings.FieldsFunc(v["after"], func(r rune) bool { return r == ' ' || r == ',' }), CardFields: board.CardFields{Title: &title}}
		if body != "" {
			x.Body = &body
		}
		if profile != "" {
			x.Assignee = &profile
		}
		if n, err := strconv.ParseInt(v["priority"], 10, 64); err == nil && n != 0 {
			x.Priority = &n
		}
		return askDo{verb: board.VCardAdd, args: x, say: "filed"}
	}
	return m.ask(f)
}

// sendText asks for a text for the session that works on a card.
func (m *model) sendText(id string) []ask {
	if id == "" || !m.role("manager") {
		return nil
	}
	return m.ask(&form{title: "send to the session of " + id, note: "typed once, when it takes text", fields: []field{typed("text", "text", true, true, "")},
		makes: func(v map[string]string) askDo {
			return askDo{verb: board.VSend, args: board.Send{To: id, Text: v["text"]}, say: id + ": it is told", card: id}
		}})
}

// pause stops claims of the board, or of the fleet, or lets them go on.
func (m *model) pause() []ask {
	if m.board == nil || !m.role("manager") {
		return nil
	}
	what, slug := "board "+m.slug, m.slug
	if m.view == viewFleet {
		what, slug = "the fleet", ""
	}
	paused := false
	if m.fleet != nil {
		paused = slices.ContainsFunc(m.fleet.Pauses, func(p api.Pause) bool {
			return slug == "" && p.Of == "fleet" || slug != "" && p.Of == "board" && p.Name == slug
		})
	}
	if paused {
		return m.ask(&form{title: "resume " + what + "?", note: "what waits may start again", makes: func(map[string]string) askDo {
			return askDo{verb: board.VResume, args: board.Pause{Board: slug}, say: what + " goes on"}
		}})
	}
	return m.ask(&form{title: "pause " + what, note: "nothing new starts; what runs goes on", fields: []field{typed("why", "why", false, true, "")}, makes: func(v map[string]string) askDo {
		return askDo{verb: board.VPause, args: board.Pause{Board: slug, Why: v["why"]}, say: what + " is paused"}
	}})
}

// drain lets the chosen machine take nothing new, or ends that.
func (m *model) drain() []ask {
	if m.fleet == nil || m.list >= len(m.fleet.Nodes) || !m.role("manager") {
		return nil
	}
	n := m.fleet.Nodes[m.list]
	if n.Draining {
		return m.ask(&form{title: "end the drain of " + n.Name + "?", note: "it takes new runs again", makes: func(map[string]string) askDo {
			return askDo{verb: board.VDrain, args: board.Drain{Node: n.ID, End: true}, say: n.Name + " takes new runs again"}
		}})
	}
	return m.ask(&form{title: "drain " + n.Name, note: "it takes nothing new; what runs there ends by itself", fields: []field{typed("why", "why", false, true, "")}, makes: func(v map[string]string) askDo {
		return askDo{verb: board.VDrain, args: board.Drain{Node: n.ID, Why: v["why"]}, say: n.Name + " drains"}
	}})
}

// boards lets the person choose another board.
func (m *model) boards() []ask {
	if m.fleet == nil || len(m.fleet.Boards) == 0 {
		m.say("no other board is known here", true)
		return nil
	}
	n := &menu{title: "which board?"}
	var slugs []string
	for i, b := range m.fleet.Boards {
		open := 0
		for status, k := range b.Cards {
			if status != "done" && status != "cancelled" && status != "archived" {
				open += k
			}
		}
		text := fmt.Sprintf("%s  %d open", fit(line(b.Slug), 20), open)
		if b.Needs > 0 {
			text += fmt.Sprintf(", %d need a person", b.Needs)
		}
		if b.Paused != "" {
			text += ", paused"
		}
		if b.Slug == m.slug {
			n.at = i
		}
		slugs, n.rows, n.looks = append(slugs, b.Slug), append(n.rows, text), append(n.looks, plain)
	}
	n.pick = func(i int) []ask {
		m.view = viewBoard
		if slugs[i] == m.slug {
			return nil
		}
		m.slug, m.board, m.card, m.cols = slugs[i], nil, cardView{}, newColumns()
		m.filter = lineInput{}
		return []ask{askBoard{m.slug}}
	}
	m.menu = n
	return nil
}

// outcome is what the person is told of a request that was done.
func outcome(x doneMsg) string {
	switch {
	case x.ask.verb == board.VCardAdd && x.said.ID != "":
		return "filed as " + x.said.ID
	case x.said.Run != "" && x.said.Machine != "":
		return x.ask.say + ": run " + x.said.Run + " on " + x.said.Machine
	case x.said.To != "" && x.said.From != x.said.To:
		return x.ask.say + ": " + x.said.From + " -> " + x.said.To
	}
	return x.ask.say
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }
