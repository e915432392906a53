package tui

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"muster/board"
	"muster/cmd/muster/api"
)

var update = flag.Bool("update", false, "write the golden views anew")

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestMain(m *testing.M) {
	time.Local = time.UTC // what people see is local time
	flag.Parse()
	os.Exit(m.Run())
}

var statuses = []api.LiveStatus{{Name: "triage", Stored: "triage"}, {Name: "todo", Stored: "todo"}, {Name: "ready", Stored: "ready"}, {Name: "running", Stored: "running", Run: true},
	{Name: "review", Stored: "review"}, {Name: "blocked", Stored: "blocked"}, {Name: "done", Stored: "done"}}

func aCard(n int, status, title string) api.LiveCard {
	at := noon.Add(-time.Duration(n) * time.Minute)
	return api.LiveCard{Card: api.Card{ID: fmt.Sprintf("d-%d", n), Board: "default", Title: title, Status: status, Stored: status, Assignee: "claude", CreatedAt: at, UpdatedAt: at}}
}

// dayBoard is a board in the middle of a day.
func dayBoard() []api.LiveCard {
	run := "d-1.1"
	at := noon.Add(-5 * time.Minute)
	list := []api.LiveCard{aCard(1, "running", "Move the parser to the new grammar 世界"), aCard(2, "todo", "Publish the release"), aCard(3, "triage", "What about a dark theme?"),
		aCard(4, "review", "Flaky test in the importer"), aCard(5, "done", "Upgrade dependency 1"), aCard(6, "blocked", "Choose the licence header"), aCard(7, "todo", "Later"), aCard(8, "done", "Upgrade dependency 2")}
	list[0].Run, list[0].Session = &run, &api.Session{Run: run, Card: "d-1", Node: "atlas", Since: at, Turn: "permission"}
	list[1].WaitsFor = []string{"d-1"}
	list[5].Attention = &api.Attention{Kind: "blocked", Text: "MIT or Apache?", Since: &at}
	return list
}

// at is a model that a node has told of a board and of its fleet.
func at(w, h int, list []api.LiveCard) *model {
	m := newModel("default")
	m.now = noon
	m.update(sizeMsg{w, h})
	m.update(liveMsg{board: &api.LiveBoard{Board: api.Board{Slug: "default", Profiles: []string{"codex", "claude"}}, You: api.You{Name: "ann@atlas", Role: "manager", Node: "atlas"}, Columns: statuses, List: list}})
	age := 2.5
	m.update(liveMsg{fleet: &api.Status{Node: "atlas", Leader: "borea", Quorum: true, Voters: 3, Sessions: 1, Nodes: []api.Node{
		{ID: "n1", Name: "atlas", Role: "voter", State: "online", Slots: 4, Running: 1, MemoryPressure: "normal", FreeMB: 8000, DiskFreeMB: 70000, Load: 0.5, AgeS: &age},
		{ID: "n2", Name: "borea", Role: "voter", Leader: true, State: "online", Slots: 4, Draining: true}, {ID: "n3", Name: "cleo", Role: "voter", State: "offline", Slots: 2}},
		Pauses: []api.Pause{{Of: "node", Name: "borea", By: "ann", Why: "new kernel", Since: &noon}}, Notes: []string{"1 of 3 voters are away (cleo): if one more fails, nothing can be written"}}})
	m.update(liveMsg{needs: &api.Needs{List: []api.Need{{Card: "d-6", Board: "default", Title: "Choose the licence header", Status: "blocked", Attention: api.Attention{Kind: "blocked", Text: "MIT or Apache?", Since: &noon}}}}})
	return m
}

func (m *model) press(keys ...string) (asks []ask) {
	for _, k := range keys {
		text := ""
		if len([]rune(k)) == 1 {
			text = k
		}
		asks = m.update(keyMsg{k, text})
	}
	return asks
}

func (m *model) types(text string) {
	for _, r := range text {
		m.update(keyMsg{string(r), string(r)})
	}
}

func (m *model) text() string {
	rows, _, _ := m.screen()
	for i := range rows {
		rows[i] = strings.TrimRight(ansi.Strip(rows[i]), " ")
	}
	return strings.Join(rows, "\n") + "\n"
}

func (m *model) shows(t *testing.T, texts ...string) {
	t.Helper()
	for _, x := range texts {
		if s := m.text(); !strings.Contains(s, x) {
			t.Errorf("nothing says %q:\n%s", x, s)
		}
	}
}

func theCard() cardMsg {
	code := int64(1)
	c := aCard(6, "blocked", "Choose the licence header")
	at := noon.Add(-time.Hour)
	return cardMsg{id: "d-6", why: api.Why{Text: "blocked: MIT or Apache?", Fix: "muster unblock d-6 --why ..."}, detail: api.CardDetail{Card: c.Card, Body: "Every file needs one.\n\n\tApache or MIT.", Creator: "ann",
		Comments: []api.Comment{{Author: "run d-6.1", Text: "Legal has no preference.", At: at}},
		Runs:     []api.Run{{ID: "d-6.1", State: "ended", Outcome: "blocked", Node: "atlas", Profile: "claude", ExitCode: &code, StartedAt: at, EndedAt: &noon}}}}
}

// Each view in 80x24, as a person sees it; and the board in a narrow terminal.
func TestViews(t *testing.T) {
	for _, c := range []struct {
		name string
		w, h int
		do   func(m *model)
	}{
		{"board", 80, 24, func(*model) {}},
		{"narrow", 40, 15, func(m *model) { m.press("l", "l") }},
		{"filter", 80, 24, func(m *model) { m.press("/"); m.types("upgrade") }},
		{"card", 80, 24, func(m *model) { m.press("l", "l", "l", "l", "enter"); m.update(theCard()) }},
		{"timeline", 80, 24, func(m *model) {
			m.press("l", "l", "l", "l", "enter")
			m.update(theCard())
			m.press("3")
			m.update(eventsMsg{id: "d-6", list: []api.Event{{At: noon, Kind: "created", To: "ready", Actor: "ann"}, {At: noon, Kind: "block", From: "running", To: "blocked", Actor: "d-6.1", Payload: json.RawMessage(`{"kind":"needs_input"}`)}}})
		}},
		{"log", 80, 24, func(m *model) {
			m.press("l", "l", "l", "l", "enter")
			m.update(theCard())
			m.press("2")
			m.update(logMsg{run: "d-6.1", chunk: api.LogChunk{Chunk: []byte("one\r\n\x1b[31mtwo\x1b[0m\x1b]0;title\x07\r\nlast"), Next: 30, EOF: true}})
		}},
		{"fleet", 80, 24, func(m *model) {
			m.press("f", "j")
			m.update(sessionsMsg{list: []api.Session{{Run: "d-1.1", Node: "atlas", Slot: "worker", Profile: "claude", Status: "running", Since: noon.Add(-time.Minute)}}})
		}},
		{"attention", 80, 24, func(m *model) { m.press("a") }},
		{"inbox", 80, 24, func(m *model) {
			m.press("i")
			m.update(inboxMsg{inbox: api.Inbox{Notices: []api.Notice{{Event: "9.0", At: noon, Card: "d-6", Title: "Choose the licence header", Kind: "blocked", By: "d-6.1", Text: "MIT or Apache?"}}}})
		}},
		{"new", 80, 24, func(m *model) {
			m.press("n")
			m.types("A licence 世")
			m.press("enter", "ctrl+j")
			m.types("second line")
			m.press("tab", "right")
		}},
		{"moves", 80, 24, func(m *model) {
			m.press("m")
			m.update(movesMsg{id: "d-3", list: []api.Move{{Event: "specify", OK: true, Target: "todo"}, {Event: "complete", Text: "card d-3 is triage: nobody has worked on it"}, {Event: "own_event", OK: true}}})
		}},
		{"help", 80, 24, func(m *model) { m.press("?") }},
		{"away", 80, 24, func(m *model) {
			m.update(lostMsg{"the node at /home/ann/.muster/muster.sock ended the connection: it is being restarted, or was stopped"})
			m.now = noon.Add(2 * time.Second)
		}},
	} {
		m := at(c.w, c.h, dayBoard())
		c.do(m)
		file, got := filepath.Join("testdata", c.name+".txt"), m.text()
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(file); err != nil || got != string(want) {
			t.Errorf("%s (%v): got\n%s\nwant\n%s", c.name, err, got, want)
		}
	}
}

// Whatever stands in cards, names and logs: every row fits the terminal, and holds no control character but our own looks.
func TestNothingSteersTheTerminal(t *testing.T) {
	evil := "\x1b[2J\x1b]0;x\x07\u009b31m\u202e\r\n\ttail 世界\x00\xff" + strings.Repeat("wide 世 ", 40)
	list := dayBoard()
	for i := range list {
		list[i].Title, list[i].Assignee, list[i].WaitsFor = evil, evil, []string{evil}
		if list[i].Session != nil {
			list[i].Session.Node, list[i].Session.Turn = evil, evil
		}
		list[i].Reason = &api.Reason{Check: evil, Text: evil}
	}
	card := theCard()
	card.detail.Title, card.detail.Body, card.detail.Comments[0] = evil, evil, api.Comment{Author: evil, Text: evil}
	card.detail.Runs[0].Node, card.why.Text, card.detail.Labels = evil, evil, map[string]string{evil: evil}
	for _, size := range [][2]int{{80, 24}, {40, 15}, {20, 6}, {7, 3}, {1, 1}, {200, 50}} {
		m := at(size[0], size[1], list)
		m.slug = evil
		m.fleet.Nodes[0].Name, m.fleet.Pauses[0].Why, m.fleet.Alarms, m.needs[0].Text = evil, evil, []string{evil}, evil
		check := func(what string) {
			t.Helper()
			rows, x, y := m.screen()
			if len(rows) != size[1] || x >= size[0] || y >= size[1] {
				t.Errorf("%s at %v: %d rows, cursor %d,%d", what, size, len(rows), x, y)
			}
			for _, r := range rows {
				if n := ansi.StringWidth(r); n > size[0] {
					t.Errorf("%s at %v: a row of %d columns: %q", what, size, n, r)
				}
				if bare := ansi.Strip(r); strings.ContainsFunc(bare, func(c rune) bool { return c < 0x20 || c >= 0x7f && c < 0xa0 || c == 0x202e }) || strings.Contains(r, "\x1b]") || strings.Contains(r, "\x1b[2J") {
					t.Errorf("%s at %v: %q", what, size, r)
				}
			}
		}
		check("board")
		m.press("m")
		m.update(movesMsg{id: m.target(), list: []api.Move{{Event: evil, OK: true, Target: evil}, {Event: "x", Text: evil}}})
		check("moves")
		m.press("esc", "enter")
		card.id, card.detail.ID = m.card.id, m.card.id
		m.update(card)
		check("card")
		m.press("3")
		m.update(eventsMsg{id: card.id, list: []api.Event{{Kind: evil, Actor: evil, From: evil, Payload: json.RawMessage(`"` + "\\u001b[2J" + `"`)}}})
		check("timeline")
		m.press("2")
		m.update(logMsg{run: m.card.run, chunk: api.LogChunk{Chunk: []byte(evil + "\n" + evil)}})
		check("log")
		m.press("4")
		m.update(diffMsg{id: card.id, diff: api.Diff{Branch: evil, Text: evil + "\n+" + evil}})
		check("diff")
		m.press("f")
		m.update(sessionsMsg{list: []api.Session{{Run: evil, Node: evil}}})
		check("fleet")
		m.press("a")
		check("attention")
		m.press("i")
		m.update(inboxMsg{inbox: api.Inbox{Notices: []api.Notice{{Title: evil, Text: evil, By: evil}}}})
		check("inbox")
		m.press("n")
		m.update(pasteMsg(evil))
		check("form")
		m.form.wrong = evil
		check("form, refused")
		m.press("esc", "B")
		check("menu")
		m.update(attachedMsg{text: evil})
		check("a word that stays")
		m.update(lostMsg{evil})
		m.now = noon.Add(time.Minute)
		check("away")
	}
}

// However cards come, go and change, the columns hold what sorting everything anew would give.
func TestColumnsAreWhatSortingGives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newColumns()
		c.reset(statuses, nil)
		c.setFilter(rapid.SampledFrom([]string{"", "a", "!"}).Draw(t, "filter"))
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			x := aCard(rapid.IntRange(1, 9).Draw(t, "card"), rapid.SampledFrom([]string{"todo", "done", "new one"}).Draw(t, "status"), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "title"))
			x.Priority = rapid.Int64Range(0, 2).Draw(t, "priority")
			x.UpdatedAt = noon.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "at")) * time.Second)
			if rapid.Bool().Draw(t, "needs") {
				x.Attention = &api.Attention{}
			}
			if rapid.IntRange(0, 4).Draw(t, "what") == 0 {
				c.drop(x.ID)
			} else {
				c.put(&x)
			}
		}
		ids := func() (all []string) {
			for _, x := range c.list {
				all = append(all, fmt.Sprint(x.Name, x.all))
				for _, k := range x.list {
					all = append(all, k.ID)
				}
			}
			return all
		}
		got := ids()
		c.fill()
		if want := ids(); !slices.Equal(got, want) {
			t.Fatalf("%v, sorted anew %v", got, want)
		}
		if c.sel != "" && (c.by[c.sel] == nil || c.list[c.col].list[c.row].ID != c.sel) {
			t.Fatalf("the choice is %q at %d,%d", c.sel, c.col, c.row)
		}
	})
}

// The choice stays on its card when the card moves, and in its place when the card goes.
func TestChoiceFollowsItsCard(t *testing.T) {
	m := at(80, 24, dayBoard())
	m.press("l") // d-7, the older of todo
	if m.cols.sel != "d-7" {
		t.Fatalf("chosen: %s", m.cols.sel)
	}
	x := aCard(7, "running", "Later")
	m.update(liveMsg{cards: &api.LiveCards{List: []api.LiveCard{x}}})
	if m.cols.sel != "d-7" || m.cols.list[m.cols.col].Name != "running" {
		t.Errorf("chosen: %s in %d", m.cols.sel, m.cols.col)
	}
	m.update(liveMsg{cards: &api.LiveCards{Gone: []string{"d-7"}}})
	if m.cols.sel != "d-1" {
		t.Errorf("after it went: %s", m.cols.sel)
	}
}

// A card's change and the drawing after it cost the same on a board of 5,000 cards as on one of 50: as many cards are looked at.
func TestWorkIsOfWhatChanged(t *testing.T) {
	cost := func(n int) (looked int, allocs float64) {
		var list []api.LiveCard
		for i := range n {
			list = append(list, aCard(i+1, statuses[i%len(statuses)].Name, "A card like any other"))
		}
		m := at(80, 24, list)
		m.cols.match = func(*api.LiveCard) bool { looked++; return true }
		k := 0
		allocs = testing.AllocsPerRun(50, func() {
			k++
			x := aCard(20, statuses[k%2].Name, "It moves")
			m.update(liveMsg{cards: &api.LiveCards{List: []api.LiveCard{x}}})
			m.press("j", "k")
			m.screen()
		})
		return looked, allocs
	}
	few, fewAllocs := cost(50)
	many, manyAllocs := cost(5000)
	if many > few || manyAllocs > fewAllocs*1.5 {
		t.Errorf("with 5,000 cards %d are looked at, %.0f allocations; with 50 %d, %.0f", many, manyAllocs, few, fewAllocs)
	}
}

// What a form said stays until it is done; after an unknown outcome the same words go under the same id.
func TestFormsAreSentOnce(t *testing.T) {
	m := at(80, 24, dayBoard())
	m.press("n")
	if asks := m.press("ctrl+s"); asks != nil || m.form.wrong == "" {
		t.Fatalf("a card without a title: %v", asks)
	}
	m.types("Choose a name")
	asks := m.press("ctrl+s")
	first := asks[0].(askDo)
	if x := first.args.(board.CardAdd); first.verb != board.VCardAdd || *x.Title != "Choose a name" || x.Board != "default" || x.Body != nil || first.id != "" {
		t.Fatalf("%+v", first)
	}
	if asks := m.press("ctrl+s"); asks != nil {
		t.Errorf("sent twice: %v", asks)
	}
	m.update(doneMsg{ask: first, id: "e1-9-xyz", err: board.Errorf(board.UnknownOutcome, "no answer in time").WithHint("Enter asks again")})
	m.shows(t, "no answer in time", "Choose a name")
	again := m.press("ctrl+s")[0].(askDo)
	if again.id != "e1-9-xyz" {
		t.Errorf("under another id: %+v", again)
	}
	m.update(doneMsg{ask: again, id: "e1-9-xyz", err: board.Errorf(board.UnknownOutcome, "no answer in time")})
	m.types("s") // other words are another request
	if a := m.press("ctrl+s")[0].(askDo); a.id != "" {
		t.Errorf("other words under an old id: %+v", a)
	}
	m.update(doneMsg{ask: askDo{verb: board.VCardAdd, form: m.form.number}, said: said{ID: "d-9"}})
	m.shows(t, "filed as d-9")
	if m.form != nil {
		t.Error("the form is still there")
	}
}

// Every word of the default workflow that a person says has a key or stands in the menu, and asks for what the workflow reads.
func TestWordsAskForWhatTheWorkflowReads(t *testing.T) {
	m := at(80, 24, dayBoard())
	for _, c := range []struct {
		key, event string
		types      string
		want       map[string]any
	}{
		{"c", "comment", "hello", map[string]any{"text": "hello"}}, {"y", "complete", "it works", map[string]any{"summary": "it works"}}, {"r", "request_changes", "wrong", map[string]any{"text": "wrong"}},
		{"u", "unblock", "Apache", map[string]any{"why": "Apache"}}, {"x", "stop_run", "", map[string]any{}},
	} {
		m.press(c.key)
		m.types(c.types)
		asks := m.press("enter")
		got := asks[0].(askDo).args.(board.FireEvent)
		if want := (board.FireEvent{Card: "d-3", Event: c.event, Payload: c.want}); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", c.key, got, want)
		}
		m.update(doneMsg{ask: asks[0].(askDo)})
	}
	if a := m.press("s"); fmt.Sprint(a[0].(askDo).args) != fmt.Sprint(board.Start{Card: "d-3"}) {
		t.Errorf("start: %v", a)
	}
	m.press("m")
	m.update(movesMsg{id: "d-3", list: []api.Move{{Event: "block", OK: true}, {Event: "complete", Text: "nobody has worked on it"}}})
	m.press("enter", "right", "tab")
	m.types("no way")
	if got := m.press("ctrl+s")[0].(askDo).args.(board.FireEvent); got.Event != "block" || got.Payload["kind"] != "capability" || got.Payload["reason"] != "no way" {
		t.Errorf("%v", got)
	}
	m.press("esc", "m")
	m.update(movesMsg{id: "d-3", list: []api.Move{{Event: "complete", Text: "nobody has worked on it"}}})
	m.press("enter")
	m.shows(t, "nobody has worked on it")
}

// A viewer is told that they look on, before anything is asked of the node.
func TestViewersAreToldTheyLookOn(t *testing.T) {
	m := at(80, 24, dayBoard())
	m.board.You.Role = "viewer"
	for _, k := range []string{"n", "c", "s", "p", "S"} {
		if asks := m.press(k); asks != nil || m.form != nil {
			t.Errorf("%s: %v", k, asks)
		}
		m.shows(t, "you are a viewer at atlas")
	}
}

// Pause and drain say the board, the fleet or the machine that is chosen, and undo what is in force.
func TestPauseAndDrain(t *testing.T) {
	m := at(80, 24, dayBoard())
	send := func(keys ...string) any {
		m.press(keys...)
		m.types("w")
		asks := m.press("enter")
		m.update(doneMsg{ask: asks[0].(askDo)})
		return asks[0].(askDo).args
	}
	for _, c := range []struct{ got, want any }{
		{send("p"), board.Pause{Board: "default", Why: "w"}}, {send("f", "p"), board.Pause{Why: "w"}},
		{send("D"), board.Drain{Node: "n1", Why: "w"}}, {send("j", "D"), board.Drain{Node: "n2", End: true}},
	} {
		if c.got != c.want {
			t.Errorf("%+v, want %+v", c.got, c.want)
		}
	}
	m.fleet.Pauses = append(m.fleet.Pauses, api.Pause{Of: "fleet", By: "ann"})
	m.press("p")
	if a := m.press("enter")[0].(askDo); a.verb != board.VResume {
		t.Errorf("%+v", a)
	}
}

// It says when what it shows is old, and why; and is live again with the first word.
func TestStaleAndWhy(t *testing.T) {
	m := at(80, 24, dayBoard())
	m.shows(t, "● live")
	old := int64(20000)
	m.update(liveMsg{age: &old})
	m.shows(t, "● stale", "atlas has heard from no leader for 20 s")
	m.update(liveMsg{})
	m.update(liveMsg{fleet: &api.Status{Node: "atlas"}})
	m.shows(t, "● stale", "no leader is reachable from atlas")
	asks := m.update(lostMsg{"it was stopped"})
	if len(asks) != 1 || m.update(lostMsg{""}) != nil {
		t.Errorf("one clock while it is away: %v", asks)
	}
	m.now = noon.Add(500 * time.Millisecond)
	if s := m.text(); strings.Contains(s, "away") {
		t.Errorf("away after half a second:\n%s", s)
	}
	m.now = noon.Add(3 * time.Second)
	m.shows(t, "● away", "it was stopped. What you see is as of 12:00:00", "d-1")
	if asks := m.update(tickMsg{}); len(asks) != 1 {
		t.Errorf("the clock goes on: %v", asks)
	}
	m.update(liveMsg{fleet: &api.Status{Node: "atlas", Quorum: true}})
	m.shows(t, "● live")
	if asks := m.update(tickMsg{}); asks != nil {
		t.Errorf("nothing ticks while all is well: %v", asks)
	}
}

// An open card is read again when it changes, once at a time; its log follows its newest run.
func TestOpenCardIsReadWhenItChanges(t *testing.T) {
	m := at(80, 24, dayBoard())
	m.cols.choose(5, 0)
	if a := m.press("enter"); fmt.Sprint(a) != fmt.Sprint([]ask{askCard{"d-6"}}) {
		t.Fatalf("%v", a)
	}
	x := liveMsg{cards: &api.LiveCards{List: []api.LiveCard{aCard(6, "ready", "Choose")}}}
	if a := m.update(x); a != nil {
		t.Errorf("asked while an answer is on its way: %v", a)
	}
	if a := m.update(theCard()); fmt.Sprint(a) != fmt.Sprint([]ask{askCard{"d-6"}}) {
		t.Errorf("not asked again: %v", a)
	}
	m.update(theCard())
	if a := m.press("2"); fmt.Sprint(a) != fmt.Sprint([]ask{askLog{"d-6.1", 0}}) {
		t.Fatalf("%v", a)
	}
	if a := m.update(logMsg{run: "d-6.1", chunk: api.LogChunk{Chunk: []byte("first\n"), Next: 6}}); fmt.Sprint(a) != fmt.Sprint([]ask{askLog{"d-6.1", 6}}) {
		t.Errorf("%v", a)
	}
	next := theCard()
	next.detail.Runs = append(next.detail.Runs, api.Run{ID: "d-6.2"})
	if a := m.update(next); fmt.Sprint(a) != fmt.Sprint([]ask{askLog{"d-6.2", 0}}) {
		t.Errorf("the newest run is not followed: %v", a)
	}
	if a := m.update(logMsg{run: "d-6.1", chunk: api.LogChunk{Chunk: []byte("late\n"), Next: 11}}); a != nil || strings.Contains(m.text(), "late") {
		t.Errorf("the old run's log goes on: %v", a)
	}
	if a := m.update(liveMsg{cards: &api.LiveCards{List: []api.LiveCard{aCard(1, "ready", "Another")}}}); a != nil {
		t.Errorf("another card's change: %v", a)
	}
}

// A card of another board, opened from what needs a person, brings its board along.
func TestCardOfAnotherBoard(t *testing.T) {
	m := at(80, 24, dayBoard())
	m.needs[0].Card = "w-1"
	m.press("a", "enter")
	x := theCard()
	x.id, x.detail.ID, x.detail.Board = "w-1", "w-1", "web"
	if a := m.update(x); fmt.Sprint(a) != fmt.Sprint([]ask{askBoard{"web"}}) {
		t.Errorf("%v", a)
	}
}

// Keys that were meant for a session's terminal do nothing when its look has ended by itself.
func TestKeysMeantForATerminal(t *testing.T) {
	m := at(80, 24, dayBoard())
	m.update(attachedMsg{text: "the session of run d-1.1 is over"})
	for _, k := range []string{"y", "q", "enter", "x", "enter"} {
		if a := m.press(k); a != nil || m.form != nil {
			t.Errorf("%s: %v", k, a)
		}
	}
	m.shows(t, "the session of run d-1.1 is over")
	m.press("esc")
	if m.menu != nil {
		t.Error("Esc does not end it")
	}
	m.update(attachedMsg{text: "left run d-1.1 on atlas; it goes on", left: true})
	if m.menu != nil {
		t.Error("who left is not asked")
	}
}
