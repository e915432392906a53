package document

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster/board"
)

// nasty are pieces of text that a file's own form is made of.
var nasty = []string{"---", "\n", "\n\n", "\r\n", "\r", markThread, markSay, "<!-- muster:", "\\<!-- muster:said 1.2 -->", "### a, b <!-- muster:said 3.4 -->", "### x",
	"#", ": ", " #", "'", `"`, `\`, "- ", "{", "}", "[", "&a", "*a", "!x", "|", ">", "%", "@", "`", "true", "null", "~", "yes", "1e3", "0x1f", "1_000", ".inf", "2030-01-01", "\t", "\u0085",
	"\u2028", "\ufeff", "\U0001f600", "\x00", "\x1b[31m", "\x7f", "é", "a", "b c", " ", "web-1", "new", "..", "../x", "\ufffd", "\uffff", "=", "<<"}

func anyText(t *rapid.T, label string) string {
	return strings.Join(rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(nasty), rapid.StringN(0, 6, -1)), 0, 6).Draw(t, label), "")
}

// anyLine is text as a title is: trimmed, one line.
func anyLine(t *rapid.T, label string) string {
	s := strings.TrimSpace(strings.NewReplacer("\n", " ", "\r", " ").Replace(anyText(t, label)))
	if s == "" {
		return "x"
	}
	return s
}

func anyNumber(t *rapid.T, label string) *int64 {
	if !rapid.Bool().Draw(t, label+"?") {
		return nil
	}
	n := rapid.Int64Range(0, 1<<31).Draw(t, label)
	return &n
}

func anyCard(t *rapid.T, id string) board.ExportCard {
	c := board.ExportCard{ID: id, Title: anyLine(t, "title"), Body: anyText(t, "body"), Status: "todo", Assignee: anyText(t, "assignee"), Priority: rapid.Int64().Draw(t, "priority"),
		Created: rapid.Int64Range(0, 1<<42).Draw(t, "created"), Creator: board.Actor{Kind: "person", Name: anyText(t, "creator")}, Failures: 3, LastError: anyText(t, "error"),
		MaxRetries: anyNumber(t, "retries"), MaxRuntime: anyNumber(t, "runtime"), GoalMaxTurns: anyNumber(t, "turns"), Goal: rapid.Bool().Draw(t, "goal"),
		StartAfter: rapid.Int64Range(0, 1<<42).Draw(t, "start"), Workspace: anyText(t, "workspace"), BlockReason: anyText(t, "block")}
	for range rapid.IntRange(0, 3).Draw(t, "skills") {
		c.Skills = append(c.Skills, anyText(t, "skill"))
	}
	for range rapid.IntRange(0, 3).Draw(t, "labels") {
		if c.Labels == nil {
			c.Labels = map[string]string{}
		}
		c.Labels[anyLine(t, "label")] = anyLine(t, "value")
	}
	return c
}

// lines is an export of a random board.
func anyExport(t *rapid.T) [][]byte {
	var out [][]byte
	add := func(x any) {
		raw, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, raw)
	}
	params := rapid.MapOfN(rapid.StringMatching(`[a-z]{1,4}`), rapid.SampledFrom([]string{"null", `"x"`, `"1"`, "1.50", "7", "[1,\"a, b\",{\"k \":null}]", "true", `"a: b #c"`, `"\u0007"`}), 0, 4).Draw(t, "params")
	raw := map[string]json.RawMessage{}
	for k, v := range params {
		raw[k] = json.RawMessage(v)
	}
	all, err := json.Marshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	flow := rapid.SampledFrom([]string{"version: 1\nname: web\nextends: default\n", "version: 1\nname: web\nprofiles:\n  a: {harness: command}\n\n# of statuses\nstatuses: {}\n",
		"profiles: # who\n  a:\n    args: [x]", "name: web\nprofiles:\n  b: {}\n# the end", "name: x\r\nprofiles:\r\n  a: {}\r\n", "profiles: {a: {}}\n", "a: |\n  profiles:\nprofiles:\n  x: {}\n",
		profilesPlace + "profiles:\n  y: {}\n", "# yaml-language-server: $schema=x\nname: y\n"}).Draw(t, "workflow")
	add(board.ExportHead{Version: 1, Fleet: "f", Slug: "web", Prefix: "web", Label: anyText(t, "label"), Keep: 90, Params: all, Workflow: flow, WorkflowVersion: 3})
	n := rapid.IntRange(0, 4).Draw(t, "cards")
	ids := []string{"web-1", "web-2", "web-10", "web-3"}[:n]
	for i, id := range ids {
		c := anyCard(t, id)
		add(board.ExportLine{Card: &c})
		for j := range rapid.IntRange(0, 3).Draw(t, "said") {
			text := anyText(t, "comment")
			add(board.ExportLine{Event: &board.ExportEvent{Card: id, ID: "9." + string(rune('0'+j)), Kind: "comment", At: int64(j) * 1000, Said: true, Text: text, Actor: board.Actor{Kind: "person", Name: anyText(t, "who")}}})
		}
		if i > 0 {
			add(board.ExportLine{Link: &board.ExportLink{Card: id, After: ids[i-1]}})
		}
	}
	return out
}

func fromLines(lines [][]byte) (*Board, error) {
	i := 0
	return FromExport(func() ([]byte, error) {
		if i == len(lines) {
			return nil, io.EOF
		}
		i++
		return lines[i-1], nil
	}, func(err error) bool { return errors.Is(err, io.EOF) })
}

// WSP-04: a folder says what its board says, whatever text a card holds, and gives nothing to be done.
func TestFolderIsTheBoard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, err := fromLines(anyExport(t))
		if err != nil {
			t.Fatal(err)
		}
		files := b.Render()
		got, problems := Parse(files)
		if len(problems) > 0 {
			t.Fatalf("%v\n%s", problems, files[strings.TrimPrefix(problems[0].File, "/")])
		}
		for _, c := range b.Cards {
			g := got.Card(c.ID())
			if !reflect.DeepEqual(g.Values, c.Values) || g.thread() != c.thread() || len(g.Said) != len(c.Said) || len(g.Fresh) > 0 {
				t.Fatalf("%s:\n%v\n%v\n%q\n%q", c.File, c.Values, g.Values, c.thread(), g.thread())
			}
			for i := range c.Said {
				if c.Said[i].Text != g.Said[i].Text {
					t.Fatalf("%q is read as %q", c.Said[i].Text, g.Said[i].Text)
				}
			}
			if string(g.render()) != string(files[c.File]) {
				t.Fatalf("%s is written otherwise when it was read:\n%s\n%s", c.File, files[c.File], g.render())
			}
		}
		if w := got.Values.text(fieldWorkflow); w != b.Values.text(fieldWorkflow) {
			t.Fatalf("workflow %q is read as %q", b.Values.text(fieldWorkflow), w)
		}
		base, err := ParseBase(files[BaseFile])
		if err != nil {
			t.Fatal(err)
		}
		if p := Compare(base, got, b, Options{}); len(p.Changes)+len(p.Incoming)+len(p.Conflicts)+len(p.Steps) > 0 {
			t.Fatalf("something is to be done: %+v", p)
		}
	})
}

func parseOne(t *testing.T, text string) (*Card, []Problem) {
	t.Helper()
	return parseCard("cards/x.md", []byte(text))
}

// WSP-04: what cannot be meant in a card's file is said with its place; nothing of it is guessed.
func TestOddCardFiles(t *testing.T) {
	for name, x := range map[string]struct{ text, want string }{
		"no front matter":  {"title: x\n", "cards/x.md: it does not begin with front matter"},
		"no end":           {"---\ntitle: x\n", "it does not begin with front matter"},
		"empty":            {"", "it does not begin with front matter"},
		"no yaml":          {"---\ntitle: [x\n---\n", "this is no YAML"},
		"tab":              {"---\ntitle: x\n\tkind: y\n---\n", "this is no YAML"},
		"a list":           {"---\n- x\n---\n", "cards/x.md:2: names with values are wanted"},
		"unknown":          {"---\ntitle: x\nassigne: y\n---\n", "cards/x.md:3: a card has no field \"assigne\""},
		"twice":            {"---\ntitle: x\ntitle: y\n---\n", "cards/x.md:3: \"title\" stands here a second time"},
		"alias":            {"---\ntitle: &a x\nkind: *a\n---\n", "cards/x.md:2: anchors and aliases"},
		"tag":              {"---\ntitle: !!binary aGk=\n---\n", "cards/x.md:2: tags"},
		"no title":         {"---\nkind: x\n---\n", "the card has no title"},
		"priority":         {"---\ntitle: x\npriority: high\n---\n", "cards/x.md:3: priority: \"high\" is no whole number"},
		"goal":             {"---\ntitle: x\ngoal: yes\n---\n", "true or false is wanted"},
		"time":             {"---\ntitle: x\nstart_after: tomorrow\n---\n", "is no time"},
		"labels":           {"---\ntitle: x\nlabels: [a, b]\n---\n", "labels: names with a text each"},
		"nested labels":    {"---\ntitle: x\nlabels: {a: {b: c}}\n---\n", "labels: names with a text each"},
		"skills":           {"---\ntitle: x\nskills: {a: b}\n---\n", "skills: a list of texts"},
		"title is a map":   {"---\ntitle: {a: b}\n---\n", "a single value is wanted"},
		"two documents":    {"---\ntitle: x\n...\nkind: y\n---\n", "it goes on after the end of its first document"},
		"a mark of ours":   {"---\ntitle: x\n---\n\n<!-- muster:thread -->\n<!-- muster:what -->\n", "cards/x.md:6: a line of muster's own"},
		"text in a thread": {"---\ntitle: x\n---\n\n<!-- muster:thread -->\nhello\n", "text stands between the thread's beginning"},
		"a bomb":           {"---\na: &a [x,x]\nb: &b [*a,*a]\n---\n", "anchors and aliases"},
	} {
		_, problems := parseOne(t, x.text)
		if len(problems) == 0 || !strings.Contains(problems[0].String(), x.want) {
			t.Errorf("%s: %v, want %q", name, problems, x.want)
		}
	}
}

// WSP-04: a file of an editor of another system says the same, and what people write by hand is understood.
func TestHandWrittenCards(t *testing.T) {
	c, problems := parseOne(t, "\ufeff---\r\ntitle: \"a: b\"\r\npriority: 3\r\nskills: go\r\nlabels:\r\n  k: 1\r\n---\r\n\r\nline one\r\nline two\r\n")
	if len(problems) > 0 || c.Values.text(fieldBody) != "line one\nline two" || c.Values.text("title") != "a: b" || c.Values["priority"] != int64(3) ||
		!reflect.DeepEqual(c.Values["skills"], []string{"go"}) || !reflect.DeepEqual(c.Values["labels"], map[string]string{"k": "1"}) {
		t.Errorf("%v %v", c.Values, problems)
	}
	c, problems = parseOne(t, "---\ntitle: 2030-01-01\nkind:\n---\nbody\n\n"+markSay+"\n\nfirst\n\n"+markSay+"\nsecond\nline\n")
	if len(problems) > 0 || c.Values.text("title") != "2030-01-01" || c.Values["kind"] != nil || c.Values.text(fieldBody) != "body" || !reflect.DeepEqual(c.Fresh, []string{"first", "second\nline"}) {
		t.Errorf("%v %q %v", c.Values, c.Fresh, problems)
	}
}

// WSP-04: files that are no board's, or say another id than their name, are told by name.
func TestOddFolders(t *testing.T) {
	ok := map[string][]byte{BoardFile: []byte("board: web\n"), WorkflowFile: []byte("name: x\n")}
	for name, x := range map[string]struct {
		file, text, want string
	}{
		"two of one id":    {"cards/web-2.md", "---\nid: web-1\ntitle: x\n---\n", "card web-1 is in cards/web-1.md as well"},
		"another id":       {"cards/web-2.md", "---\nid: web-3\ntitle: x\n---\n", `the file says that it is card "web-3"`},
		"an id that leads": {"cards/web-2.md", "---\nid: ../../x\ntitle: x\n---\n", `the file says that it is card "../../x"`},
		"an id is gone":    {"cards/web-2.md", "---\ntitle: x\n---\n", "a card's file without its id"},
		"a setting":        {BoardFile, "colour: red\n", "board.yaml:1: a board has no setting \"colour\""},
		"no map":           {BoardFile, "params: 3\n", "params: names with values"},
		"no number":        {BoardFile, "keep: long\n", "keep: \"long\" is no whole number"},
		"nan":              {BoardFile, "params: {x: .nan}\n", "is no number that JSON has"},
		"not profiles":     {ProfilesFile, "statuses: {}\n", "this file has profiles alone"},
	} {
		files := map[string][]byte{"cards/web-1.md": []byte("---\nid: web-1\ntitle: x\n---\n"), x.file: []byte(x.text)}
		for k, v := range ok {
			if files[k] == nil {
				files[k] = v
			}
		}
		_, problems := Parse(files)
		if len(problems) != 1 || !strings.Contains(problems[0].String(), x.want) {
			t.Errorf("%s: %v, want %q", name, problems, x.want)
		}
	}
	_, problems := Parse(map[string][]byte{BoardFile: []byte("board: web\n"), WorkflowFile: []byte("profiles:\n  a: {}\n"), ProfilesFile: []byte("profiles:\n  a: {}\n")})
	if len(problems) != 1 || problems[0].File != WorkflowFile {
		t.Errorf("profiles twice: %v", problems)
	}
}

// Whatever bytes a file holds, it is read or refused, and what was read can be written.
func FuzzCard(f *testing.F) {
	f.Add([]byte("---\ntitle: x\n---\n\nbody\n\n" + markThread + "\n\n### a, 2030-01-01T00:00:00.000Z <!-- muster:said 1.2 -->\n\nhi\n\n" + markSay + "\n"))
	f.Add([]byte("---\r\ntitle: x\r\n---\r\n"))
	if list, err := filepath.Glob("testdata/odd/*"); err == nil {
		for _, name := range list {
			if raw, err := os.ReadFile(name); err == nil {
				f.Add(raw)
			}
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, problems := parseCard("cards/x.md", raw)
		if len(problems) > 0 {
			return
		}
		again, problems := parseCard("cards/x.md", c.render())
		if len(problems) > 0 || string(again.render()) != string(c.render()) {
			t.Errorf("%v\n%q\n%q", problems, c.render(), again.render())
		}
	})
}
