package foreign

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"muster/board"
	"muster/cmd/muster/api"
)

const now = int64(1_800_000_000_000)

func read(t *testing.T, from, src string) *Board {
	t.Helper()
	b, err := Read(from, []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// lines are the file's lines, held against its last one.
func (b *Board) lines(t testing.TB) (cards []board.ExportCard, events []board.ExportEvent, runs []board.ExportRun, links []board.ExportLink) {
	t.Helper()
	file, err := b.File("old-board", now)
	if err != nil {
		t.Fatal(err)
	}
	f := api.NewBoardFile(bytes.NewReader(file))
	first, err := f.Next()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := board.ParseExportHead(first); err != nil {
		t.Fatal(err)
	}
	for line, err := f.Next(); line != nil; line, err = f.Next() {
		var l board.ExportLine
		if err != nil || json.Unmarshal(line, &l) != nil {
			t.Fatalf("%v: %s", err, line)
		}
		switch {
		case l.Card != nil:
			cards = append(cards, *l.Card)
		case l.Event != nil:
			events = append(events, *l.Event)
		case l.Run != nil:
			runs = append(runs, *l.Run)
		case l.Link != nil:
			links = append(links, *l.Link)
		}
	}
	return cards, events, runs, links
}

func (b *Board) wantLeft(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for _, l := range b.Left() {
		got = append(got, fmt.Sprintf("%d %s", l.Count, l.What))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("left over:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

const kanban = `[{"table":"tasks","id":"t_1","title":"Build it","body":"the text","status":"done","assignee":"claude","priority":3,"created_at":1700000000,"started_at":1700000100,"consecutive_failures":0,"workspace_kind":"scratch"},
{"table":"tasks","id":"t_2","title":"Test it","status":"running","claim_lock":"host:1:x","claim_expires":1,"worker_pid":7,"consecutive_failures":1,"last_failure_error":"boom","max_retries":2,"max_runtime_seconds":3600,"skills":"[\"go\",\"web\"]","goal_mode":1,"goal_max_turns":5,"model_override":"m","provider_override":"p","reasoning_effort":"high","tenant":"x"},
{"table":"tasks","id":"t_3","title":"Ship it","status":"todo","workspace_kind":"dir","workspace_path":"/srv/x","score":9},
{"table":"tasks","id":"t_4","title":"Later","status":"scheduled","scheduled_at":1900000000}]
[{"table":"task_links","parent_id":"t_1","child_id":"t_2"},{"table":"task_links","parent_id":"t_2","child_id":"t_3"},{"table":"task_links","parent_id":"t_9","child_id":"t_3"}]
[{"table":"task_comments","id":2,"task_id":"t_2","author":"ben","body":"second","created_at":1700000300},{"table":"task_comments","id":1,"task_id":"t_2","author":"ann","body":"first","created_at":1700000200}]
[{"table":"task_events","id":1,"task_id":"t_1","run_id":7,"kind":"completed","payload":"{\"x\":1}","created_at":1700000300},{"table":"task_events","id":2,"task_id":"t_2","kind":"claimed","payload":"text","created_at":1700000101}]
[{"table":"task_runs","id":7,"task_id":"t_1","profile":"claude","step_key":"running","outcome":"completed","started_at":1700000100,"ended_at":1700000300,"metadata":"{}"},
{"table":"task_runs","id":8,"task_id":"t_2","profile":"claude","step_key":"running","started_at":1700000101}]
{"supercode_cards":[{"task_id":"t_3","machine":"atlas","subtask_of":"t_1","sponsor":"ann"},{"task_id":"t_1","archived":1}],"metadata":[{"a":1}]}
`

// Every column of Hermes's tables that is documented becomes what it is here; what has no place is told, claims and
// processes too, and nothing else is lost.
func TestHermes(t *testing.T) {
	b := read(t, "hermes", kanban)
	cards, events, runs, links := b.lines(t)
	if len(cards) != 4 || len(events) != 4 || len(runs) != 1 || len(links) != 2 {
		t.Fatalf("%d cards, %d events, %d runs, %d links", len(cards), len(events), len(runs), len(links))
	}
	for i, want := range []string{"archived", "ready", "todo", "todo"} {
		if cards[i].Status != want || cards[i].ID != fmt.Sprint("oldboard-", i+1) {
			t.Errorf("card %d is %s in %s, want %s", i, cards[i].ID, cards[i].Status, want)
		}
	}
	first, second := cards[0], cards[1]
	if first.Title != "Build it" || first.Body != "the text" || first.Assignee != "claude" || first.Priority != 3 || first.Created != 1700000000000 ||
		first.Started != 1700000100000 || first.Previous != "done" || first.Runs != 1 {
		t.Errorf("%+v", first)
	}
	if second.Failures != 1 || second.LastError != "boom" || *second.MaxRetries != 2 || *second.MaxRuntime != 3600 || !slices.Equal(second.Skills, []string{"go", "web"}) ||
		!second.Goal || *second.GoalMaxTurns != 5 || second.Model != "m" || second.Provider != "p" || second.Effort != "high" || second.Tenant != "x" {
		t.Errorf("%+v", second)
	}
	if cards[2].Machine != "atlas" || cards[2].SubtaskOf != "oldboard-1" || cards[3].StartAfter != 1900000000000 {
		t.Errorf("%+v, %+v", cards[2], cards[3])
	}
	if e := events[0]; e.Kind != "completed" || string(e.Payload) != `{"x":1}` || e.Run != 1 {
		t.Errorf("%+v", e)
	}
	if events[2].Text != "first" || events[2].Actor.Name != "ann" || !events[3].Said || events[3].Text != "second" || string(events[1].Payload) != `{"value":"text"}` {
		t.Errorf("%+v", events[1:])
	}
	if r := runs[0]; r.Outcome != "completed" || r.Profile != "claude" || r.Ended != 1700000300000 || r.Role != "implementer" {
		t.Errorf("%+v", r)
	}
	b.wantLeft(t, "3 claims and processes", "1 a claim: the card was running, and waits to be started here", "1 a run that was going on",
		"1 a card that it waits for and that is not there", "1 a workspace: it is a folder of another machine", "1 machine atlas, unless this fleet has one of that name",
		"1 tasks score", "1 task_runs metadata", "1 supercode_cards sponsor", "1 a row of table metadata")
}

// A table: the first line names the columns; unknown columns, statuses and times are told.
func TestCSV(t *testing.T) {
	b := read(t, "csv", "\ufeffID,Title,Status,Priority,After,Labels,Created,Points,Max_Runtime\n"+
		"a,one,Done,2,,area=web;urgent,2024-01-02,3,\nb,\"two\nmore of it\",Doing,x,a,,soon,,1h30m\nc,three,,,\"b, zz\",,,,\n,four,todo,,,,,,,beyond\n\n")
	cards, _, _, links := b.lines(t)
	if len(cards) != 4 || len(links) != 2 {
		t.Fatalf("%+v, %+v", cards, links)
	}
	if c := cards[0]; c.Status != "done" || c.Priority != 2 || c.Labels["area"] != "web" || c.Labels["urgent"] != "yes" || c.Created != 1704153600000 {
		t.Errorf("%+v", c)
	}
	if c := cards[1]; c.Title != "two" || c.Body != "more of it" || c.Status != "ready" || *c.MaxRuntime != 5400 || c.Created != now { // its only parent is done
		t.Errorf("%+v", c)
	}
	if cards[2].Status != "todo" || cards[3].Status != "ready" || links[1] != (board.ExportLink{Card: "oldboard-3", After: "oldboard-2"}) {
		t.Errorf("%+v %+v", cards[2:], links)
	}
	b.wantLeft(t, "1 column points", "1 status doing: such cards are todo here", "1 priority that is no number", "1 created_at that is no time",
		"1 a card that it waits for and that is not there", "1 a field beyond the last column")
}

// JSON: a list, an object of cards, or an object a line; comments come along.
func TestJSON(t *testing.T) {
	const card = `{"id":1,"title":"one","labels":{"a":"b"},"skills":["x"],"max_retries":0,"comments":["said",{"author":"ann","text":"more","at":"2024-01-02T03:04:05Z","mood":"ok"}],"nest":{"x":1}}`
	for _, src := range []string{"[" + card + `,{"title":"two","depends_on":[1],"triage":true}]`, `{"cards":[` + card + `,{"title":"two","after":"1","triage":"yes"}]}`,
		card + "\n" + `{"title":"two","after":[1],"status":"triage"}`} {
		b := read(t, "json", src)
		cards, events, _, links := b.lines(t)
		if len(cards) != 2 || len(links) != 1 || cards[1].Status != "triage" || cards[0].Labels["a"] != "b" || *cards[0].MaxRetries != 0 {
			t.Fatalf("%+v, %+v", cards, links)
		}
		if len(events) != 2 || events[0].Text != "said" || events[1].Actor.Name != "ann" && events[0].Actor.Name != "ann" {
			t.Errorf("%+v", events)
		}
		b.wantLeft(t, "1 column nest", "1 a comment's mood")
	}
}

// What cannot be meant is refused with its row; a database is told from its tables.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ from, src, says string }{
		{"xls", "", "use hermes, csv, json"},
		{"csv", "", "names its columns"},
		{"csv", "title\n", "no card"},
		{"csv", "id,title\na,x\na,y\n", `line 3: line 2 has the id "a" already`},
		{"csv", "id,body\na,x\n", "line 2: the card has no title"},
		{"csv", "id,title,after\na,x,b\nb,y,c\nc,z,b\n", "circle: b, c"},
		{"json", "[1]", "card 1 is no JSON object"},
		{"json", `[{"title":"x"`, "at byte"},
		{"hermes", "SQLite format 3\x00...", "the database itself"},
		{"hermes", `[{"id":1}]`, "of which table"},
	} {
		_, err := Read(c.from, []byte(c.src))
		if err == nil || !strings.Contains(err.Error()+hint(err), c.says) || board.CodeOf(err) != board.Invalid {
			t.Errorf("%s %q: %v, want %q", c.from, c.src, err, c.says)
		}
	}
}

func hint(err error) string {
	if e, ok := err.(*board.Error); ok {
		return " " + e.Hint
	}
	return ""
}

// INV-27: nothing of any content makes it panic; what it takes is a whole file, and what it cuts or leaves it tells.
func FuzzRead(f *testing.F) {
	f.Add("hermes", []byte(kanban))
	f.Add("csv", []byte("id,title,after\na,\"x\ny\",b\nb,y,\n"))
	f.Add("json", []byte(`[{"id":1,"title":"\ud800","after":[1,2],"labels":["a=b"],"comments":[null,1]}]`))
	f.Add("json", []byte(`{"title":"`+strings.Repeat("t", 3000)+`","body":"`+strings.Repeat("b", 300<<10)+`"}`))
	f.Add("csv", []byte("title,after,id\n"+strings.Repeat("x,n,n\n", 3)))
	f.Fuzz(func(t *testing.T, from string, src []byte) {
		b, err := Read(from, src)
		if err != nil {
			if err.Error() == "" || board.CodeOf(err) != board.Invalid {
				t.Fatalf("%v", err)
			}
			return
		}
		cards, events, _, _ := b.lines(t)
		for _, c := range cards {
			if c.Title == "" || len(c.Title) > maxTitle || len(c.Body) > maxBody || strings.ContainsAny(c.Title, "\n\r") || statuses[c.Status] == "" {
				t.Fatalf("%+v", c)
			}
		}
		for _, e := range events {
			if len(e.Text) > maxText || len(e.Payload) > maxText {
				t.Fatalf("%d and %d bytes", len(e.Text), len(e.Payload))
			}
		}
		if len(b.Left()) > maxLeft+1 {
			t.Fatalf("%d kinds of things are left", len(b.Left()))
		}
	})
}
