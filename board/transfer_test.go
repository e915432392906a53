package board

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// exported are the lines of a board's file.
func (f *fleet) exported(slug string) (lines []string) {
	f.t.Helper()
	if err := Export(f.v, GetBoard(f.v, slug), func(line []byte) error { lines = append(lines, string(line)); return nil }); err != nil {
		f.t.Fatal(err)
	}
	return lines
}

// beginImport opens the import of a file and gives the slug.
func (f *fleet) beginImport(lines []string, as string) (string, Result) {
	f.t.Helper()
	h, err := ParseExportHead([]byte(lines[0]))
	if err != nil {
		f.t.Fatal(err)
	}
	return orElse(as, h.Slug), f.do(f.person(VImportBegin), ImportBegin{Token: "token-of-" + as, As: as, Head: *h})
}

// slice brings lines of a file, from one number on up to before another.
func (f *fleet) slice(lines []string, slug, as string, n int64, from, to int) Result {
	f.t.Helper()
	s := ImportSlice{Slug: slug, Token: "token-of-" + as, N: n, First: from + 1}
	for _, l := range lines[from:to] {
		s.Lines = append(s.Lines, json.RawMessage(l))
	}
	return f.do(f.person(VImportSlice), s)
}

// imported brings a whole file in slices of a few lines.
func (f *fleet) imported(lines []string, as string) string {
	f.t.Helper()
	slug, res := f.beginImport(lines, as)
	if res.Err != nil {
		f.t.Fatal(res.Err)
	}
	n := int64(0)
	for from := 1; from < len(lines); from += 5 {
		if res := f.slice(lines, slug, as, n, from, min(from+5, len(lines))); res.Err != nil {
			f.t.Fatal(res.Err)
		}
		n++
	}
	f.must(f.person(VImportEnd), ImportEnd{Slug: slug, Token: "token-of-" + as, N: n})
	return slug
}

// busy is a fleet whose board has a card of every kind: done with an attempt, running, waiting, blocked, a part of another.
func busy(t testing.TB) *fleet {
	f := newFleet(t)
	first, second, third := f.card("first"), f.card("second"), f.card("third")
	f.must(f.person(VCardLink), CardLink{Card: second, After: []string{first}})
	zero := int64(0)
	f.report(atlas, Report{Kind: ReportExited, Run: f.launched(first), Code: &zero})
	f.comment(ben, first, "well done \u2713")
	f.launchedOn(third)
	f.must(by(ann, VEvent), FireEvent{Card: second, Event: "block", Payload: map[string]any{"kind": "needs_input", "reason": "which"}})
	title, body, dir, at := "part", strings.Repeat("text\n", 100), "dir:/tmp/x", f.now+3600_000
	f.must(f.person(VCardAdd), CardAdd{SubtaskOf: third, CardFields: CardFields{Title: &title, Body: &body, Workspace: &dir, StartAfter: &at, Labels: map[string]string{"a": "b"}}})
	f.must(by(ben, VSubscribe), Subscribe{Card: first})
	f.must(by(ann, VWebhook), WebhookSet{Board: "default", URL: "https://example.org/", Secret: "k"})
	return f
}

// M-01: a board is one file; imported elsewhere it has the same cards, under the same ids while those are free, with their
// history, comments, attempts and links, and without claims, sessions, paths, subscriptions and webhooks.
func TestABoardIsOneFile(t *testing.T) {
	a := busy(t)
	lines := a.exported("default")
	b := newFleet(t)
	b.now += 5000
	slug := b.imported(lines, "copy")
	again := b.exported(slug)
	if len(again) != len(lines) {
		t.Fatalf("%d lines became %d", len(lines), len(again))
	}
	prefix := GetBoard(b.v, slug).Prefix
	if prefix == "d" {
		t.Fatal("two boards have one prefix")
	}
	for i := 1; i < len(lines); i++ {
		want := strings.NewReplacer(`"id":"d-`, `"id":"`+prefix+`-`, `"card":"d-`, `"card":"`+prefix+`-`, `"after":"d-`, `"after":"`+prefix+`-`, `"subtask_of":"d-`, `"subtask_of":"`+prefix+`-`,
			`"workspace":"dir:/tmp/x",`, "").Replace(lines[i])
		if again[i] != want {
			t.Errorf("line %d was\n%s\nand is\n%s", i+1, want, again[i])
		}
	}
	c := newFleet(t) // its own board default is in the way of the slug; the prefix is taken too
	if _, res := c.beginImport(lines, ""); code(res) != Conflict {
		t.Fatalf("imported over a board: %v", res.Err)
	}
	EachCard(b.v, GetBoard(b.v, slug), func(x *Card) bool {
		if x.Run != "" || GetSub(b.v, x.ID, "ben@atlas") != nil {
			t.Errorf("card %s has %q", x.ID, x.Run)
		}
		EachHeld(b.v, x.ID, func(h *Held) bool { t.Errorf("held %+v", h); return true })
		return true
	})
	EachOrder(b.v, "", func(o *Order) bool { t.Errorf("order %+v", o); return true })
	EachWebhook(b.v, func(h *Webhook) bool { t.Errorf("webhook %+v", h); return true })
	if got := GetCard(b.v, prefix+"-3").Status; got != "ready" {
		t.Errorf("the card that was running is %s", got)
	}
	var said []string
	EachComment(b.v, GetCard(b.v, prefix+"-1"), func(m *Comment) bool { said = append(said, m.Author.Name+": "+m.Body); return true })
	if fmt.Sprint(said) != "[ben@atlas: well done \u2713]" {
		t.Errorf("comments %q", said)
	}
}

// M-01: ids are kept when their prefix is free.
func TestImportKeepsFreeIDs(t *testing.T) {
	a := newFleet(t)
	title := "x"
	a.must(a.person(VBoardCreate), BoardCreate{Slug: "web", Prefix: "w"})
	a.must(a.person(VCardAdd), CardAdd{Board: "web", CardFields: CardFields{Title: &title}})
	b := newFleet(t)
	b.imported(a.exported("web"), "")
	if c := GetCard(b.v, "w-1"); c == nil || BoardOfCard(b.v, "w-1").Slug != "web" {
		t.Fatalf("card w-1 is %+v", c)
	}
	if id := b.must(b.person(VCardAdd), CardAdd{Board: "web", CardFields: CardFields{Title: &title}})["id"]; id != "w-2" {
		t.Fatalf("the next card is %v", id)
	}
}

// M-01: nothing of an import is seen before its last slice, and nobody can write to it; a slice that comes twice counts once.
func TestImportIsInvisibleUntilItsLastSlice(t *testing.T) {
	a := busy(t)
	lines := a.exported("default")
	b := newFleet(t)
	own := b.card("own")
	slug, _ := b.beginImport(lines, "copy")
	prefix := GetImport(b.v, slug).Board.Prefix
	for range 2 {
		if res := b.slice(lines, slug, "copy", 0, 1, len(lines)); res.Err != nil {
			t.Fatal(res.Err)
		}
	}
	var seen []string
	EachCard(b.v, nil, func(c *Card) bool { seen = append(seen, c.ID); return true })
	EachBoard(b.v, func(x *Board) bool { seen = append(seen, x.Slug); return true })
	if fmt.Sprint(seen) != "["+own+" default]" || GetBoard(b.v, slug) != nil || BoardOfCard(b.v, prefix+"-1") != nil {
		t.Fatalf("seen before its end: %v", seen)
	}
	for verb, x := range map[string]any{VEvent: FireEvent{Card: prefix + "-1", Event: "comment", Payload: map[string]any{"text": "x"}},
		VCardEdit: CardEdit{Card: prefix + "-1"}, VCardLink: CardLink{Card: own, After: []string{prefix + "-1"}}, VSend: Send{To: prefix + "-2", Text: "x"}, VSubscribe: Subscribe{Card: prefix + "-1"}} {
		if res := b.do(b.person(verb), x); code(res) != NotFound {
			t.Errorf("%s reached it: %v", verb, res.Err)
		}
	}
	if res := b.do(b.person(VBoardCreate), BoardCreate{Slug: slug}); code(res) != Conflict {
		t.Errorf("a board of that name: %v", res.Err)
	}
	if res := b.do(b.person(VImportEnd), ImportEnd{Slug: slug, Token: "token-of-copy", N: 2}); code(res) != Conflict {
		t.Errorf("ended with a slice missing: %v", res.Err)
	}
	for range 2 {
		b.must(b.person(VImportEnd), ImportEnd{Slug: slug, Token: "token-of-copy", N: 1})
	}
	if GetBoard(b.v, slug) == nil || len(b.exported(slug)) != len(lines) {
		t.Fatal("not there after its end")
	}
}

// M-01: an imported board is paused by who imported it, and nothing of it starts before it is resumed, unless that was asked for.
func TestImportedBoardIsPaused(t *testing.T) {
	lines := busy(t).exported("default")
	for _, start := range []bool{false, true} {
		f := newFleet(t)
		slug, _ := f.beginImport(lines, "copy")
		if res := f.slice(lines, slug, "copy", 0, 1, len(lines)); res.Err != nil {
			t.Fatal(res.Err)
		}
		end := ImportEnd{Slug: slug, Token: "token-of-copy", N: 1, Start: start}
		for range 2 { // a copy of the request is answered alike
			if out := f.must(f.person(VImportEnd), end); out["paused"] != !start {
				t.Errorf("start %v: %v", start, out)
			}
		}
		b := GetBoard(f.v, slug)
		if by, text := Paused(f.v, b); (by == "") != start || !start && !strings.HasSuffix(text, "imported: look, then muster resume --board copy") {
			t.Fatalf("start %v: paused by %q: %s", start, by, text)
		}
		third := b.Prefix + "-3" // it ran where it came from
		began := f.do(by(Platform(), VStart), Start{Card: third, Node: atlas})
		if start != (began.Err == nil) || !start && began.Err.Check != "pause" {
			t.Fatalf("start %v: %v", start, began.Err)
		}
		if start {
			continue
		}
		f.must(f.person(VResume), Pause{Board: slug})
		f.must(by(Platform(), VStart), Start{Card: third, Node: atlas})
	}
}

// rows counts the records of each table.
func rows(v View) map[string]int {
	m := map[string]int{}
	for tab := Table(1); tab < tableEnd; tab++ {
		v.Scan(tab, "", "", func(string, []byte) bool { m[tab.String()]++; return true })
	}
	return m
}

// M-01: an import that is given up is taken away whole, in slices, by its due time; another may then begin.
func TestImportThatIsGivenUpIsTakenAway(t *testing.T) {
	a := busy(t)
	for i := range 400 { // more than one step takes away
		a.comment(ann, "d-2", fmt.Sprint(i))
	}
	lines := a.exported("default")
	b := newFleet(t)
	before := fmt.Sprint(rows(b.v))
	slug, _ := b.beginImport(lines, "copy")
	n := int64(0)
	for from := 1; from < len(lines); from += MaxImportLines {
		if res := b.slice(lines, slug, "copy", n, from, min(from+MaxImportLines, len(lines))); res.Err != nil {
			t.Fatal(res.Err)
		}
		n++
	}
	b.now += importIdle + 1
	steps := 0
	for ; GetImport(b.v, slug) != nil && steps < 50; steps++ {
		var keys []string
		EachDue(b.v, b.now, func(k string, _ *Due) bool { keys = append(keys, k); return true })
		b.must(Request{Actor: Platform(), Verb: VDue}, DueArgs{Keys: keys})
		b.now += 10
		if res := b.slice(lines, slug, "copy", n, 1, 2); GetImport(b.v, slug) != nil && code(res) != Refused {
			t.Fatalf("a slice for an import that is given up: %v", res.Err)
		}
	}
	if after := fmt.Sprint(rows(b.v)); after != before || steps < 2 {
		t.Fatalf("after %d steps there is\n%s\nand there was\n%s", steps, after, before)
	}
}

// Bad files are refused with the line, and a refused slice changes nothing.
func TestBadFilesAreRefusedWithTheirLine(t *testing.T) {
	a := busy(t)
	lines := a.exported("default")
	card := lines[1]
	for name, x := range map[string]struct{ line, want string }{
		"unknown key":      {`{"card":{"id":"d-9","run":"d-9.1"}}`, `line 3: json: unknown field "run"`},
		"nothing":          {`{}`, "line 3: neither a card"},
		"two at once":      {`{"link":{"card":"d-1","after":"d-2"},"run":{"card":"d-1"}}`, "line 3: neither a card"},
		"twice":            {card, "line 3: card d-1 is there twice"},
		"another board":    {`{"card":{"id":"e-9","title":"x","status":"ready"}}`, `line 3: card "e-9" is not one of the prefix "d"`},
		"id with a zero":   {`{"card":{"id":"d-09","title":"x","status":"ready"}}`, `line 3: card "d-09" is not`},
		"no title":         {`{"card":{"id":"d-9","title":" ","status":"ready"}}`, "line 3: card d-9: a title is one line"},
		"unknown status":   {`{"card":{"id":"d-9","title":"x","status":"flying"}}`, `line 3: card d-9: the file's workflow has no status "flying"`},
		"a running card":   {`{"card":{"id":"d-9","title":"x","status":"running"}}`, `line 3: card d-9: status "running" has a run`},
		"event of nothing": {`{"event":{"card":"d-8","id":"1.0","kind":"x"}}`, `line 3: there is no card "d-8" before it`},
		"bad payload":      {`{"event":{"card":"d-1","id":"1.0","kind":"x","payload":[1]}}`, "line 3: the payload of an event is no JSON object"},
		"run out of count": {`{"run":{"card":"d-1","n":7}}`, "line 3: run 7 of card d-1: the card has 1"},
		"circle":           {`{"link":{"card":"d-1","after":"d-1"}}`, "line 3: card copy-1 cannot wait for itself"},
	} {
		b := newFleet(t)
		slug, res := b.beginImport(lines, "copy")
		if res.Err != nil {
			t.Fatal(res.Err)
		}
		seq := b.v.Seq()
		res = b.slice([]string{lines[0], card, x.line}, slug, "copy", 0, 1, 3)
		if res.Err == nil || !strings.HasPrefix(res.Err.Message, x.want) || b.v.Seq() != seq {
			t.Errorf("%s: %v, want %q", name, res.Err, x.want)
		}
	}
	for name, head := range map[string]string{"other file": `{"name":"x"}`, "no JSON": "PK\x03\x04", "newer": `{"muster_board":2}`, "unknown key": `{"muster_board":1,"extra":1}`} {
		if _, err := ParseExportHead([]byte(head)); err == nil || !strings.HasPrefix(err.Message, "line 1: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzImport: no line of any content makes the executor panic, or leaves something of a slice that was refused (invariant 27).
func FuzzImport(f *testing.F) {
	a := busy(f)
	lines := a.exported("default")
	for _, l := range lines[1:] {
		f.Add([]byte(l))
	}
	for _, l := range []string{"", "{}", "null", `{"card":null}`, `{"card":{"id":"d-18446744073709551615"}}`, `{"event":{"card":"d-1","kind":"\u0000"}}`, `{"run":{"card":"d-1","n":1}}`,
		`{"link":{"card":"d-1","after":"d-1"}}`, `{"card":{"id":"d-7","title":"x","status":"ready","labels":{"":""},"creator":{"kind":"node","run":"."}}}`} {
		f.Add([]byte(l))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		b := newFleet(t)
		slug, _ := b.beginImport(lines, "copy")
		if !json.Valid(line) {
			return // it does not become an argument
		}
		seq := b.v.Seq()
		res := b.slice([]string{lines[0], lines[1], string(line)}, slug, "copy", 0, 1, 3)
		switch {
		case code(res) == Internal:
			t.Fatal(res.Err)
		case res.Err != nil && b.v.Seq() != seq:
			t.Fatal("a refused slice has changed the state")
		}
	})
}
