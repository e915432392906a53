package cli

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"muster/board"
	"muster/cmd/muster/api/apitest"
)

var roundTrips = flag.Int("folder.boards", 6, "random boards that go to a folder, are edited and come back")

// tree is what a folder holds, in order.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		rel, rerr := filepath.Rel(dir, path)
		fmt.Fprintf(&b, "== %s\n%s\n", rel, raw)
		return errors.Join(err, rerr)
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// edit replaces text in a file of a folder.
func edit(t *testing.T, file, from, to string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(raw), from) {
		t.Fatalf("%s has no %q (%v):\n%s", file, from, err, raw)
	}
	put(t, file, strings.Replace(string(raw), from, to, 1))
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// sameAsFresh holds a folder against one that is made anew: after an apply it says what the board says.
func sameAsFresh(t *testing.T, w *world, slug, dir string) {
	t.Helper()
	fresh := filepath.Join(t.TempDir(), "fresh")
	w.ok("board", "export", slug, "--dir", fresh)
	if got, want := tree(t, dir), tree(t, fresh); got != want {
		t.Errorf("the folder is not the board:\n%s\n----\n%s", got, want)
	}
}

const sayLine = "<!-- muster:say, below this line -->\n"

// WSP-04: what is edited in a folder goes to the board: fields, text, comments, links, new cards, settings, parameters and workflow.
func TestFolderGoesBack(t *testing.T) {
	w := newWorld(t, story())
	dir := filepath.Join(w.dir, "docs")
	wants(t, w.ok("board", "export", "default", "--dir", dir), "board default is in "+dir+": 5 card(s)")
	before := tree(t, dir)
	wants(t, w.ok("board", "apply", "--dir", dir), "board default and "+dir+" say the same")
	wants(t, w.ok("board", "export", "default", "--dir", dir), "nothing new")
	if got := tree(t, dir); got != before {
		t.Fatalf("export, apply, export:\n%s\n----\n%s", got, before)
	}
	card := func(id string) string { return filepath.Join(dir, "cards", id+".md") }
	edit(t, card("d-3"), "title: count on", "title: \"count: on\"\npriority: 7\nlabels:\n  k: v")
	edit(t, card("d-3"), "seq 11 20", "seq 11 30\n\n---\n")
	edit(t, card("d-4"), sayLine, sayLine+"\nblue, *please*\n")
	edit(t, card("d-5"), "title:", "after:\n  - idea\n  - d-4\ntitle:")
	put(t, card("idea"), "---\ntitle: an idea\nsubtask_of: d-4\nmax_runtime: 60\n---\nits text\n\n"+sayLine+"\nsaid at once\n")
	put(t, card("second"), "---\ntitle: after it\nafter: [idea]\nstatus: triage\n---\n")
	edit(t, filepath.Join(dir, "board.yaml"), "keep: 90", "keep: 30\nzone: Europe/Berlin\nparams: {failure_limit: 5}")
	edit(t, filepath.Join(dir, "profiles.yaml"), "  script:\n", "  other: {harness: command, args: [\"true\"]}\n  script:\n")
	out := w.ok("board", "apply", "--dir", dir, "--dry-run")
	wants(t, out, `change:    cards/d-3.md  priority: nothing, now 7`, `comment:   cards/d-4.md  "blue, *please*"`, `new card:  cards/idea.md  "an idea"`, "workflow.yaml  workflow:", "params.failure_limit: nothing, now 5", "would take")
	asked := len(w.f.Asked())
	if w.ok("board", "apply", "--dir", dir, "--dry-run"); len(w.f.Asked()) != asked {
		t.Error("a dry run has asked for something")
	}
	wants(t, w.ok("board", "apply", "--dir", dir), "board default has taken 12 change(s)")
	wants(t, w.ok("card", "show", "d-3"), "count: on", "seq 11 30\n\n---\n")
	wants(t, w.ok("card", "show", "d-4"), "blue, *please*")
	wants(t, w.ok("card", "show", "d-6"), "an idea", "its text", "said at once", "d-4")
	wants(t, w.ok("card", "show", "d-7", "--json"), `"title":"after it"`, `"waits_for":["d-6"]`, `"status":"triage"`)
	wants(t, w.ok("card", "show", "d-5", "--json"), `"waits_for":["d-4","d-6"]`)
	wants(t, w.ok("board", "show", "default", "--json"), `"keep":30`, `"zone":"Europe/Berlin"`, `"failure_limit":5`)
	if yaml := w.ok("workflow", "show"); yaml != strings.Replace(apitest.Commands, "  script:\n", "  other: {harness: command, args: [\"true\"]}\n  script:\n", 1) {
		t.Errorf("the workflow is now\n%s", yaml)
	}
	if _, err := os.Stat(card("idea")); !os.IsNotExist(err) {
		t.Errorf("the new card's file is still there: %v", err)
	}
	sameAsFresh(t, w, "default", dir)
	edit(t, card("d-3"), "labels:\n  k: v\n", "")
	edit(t, card("d-5"), "after:\n  - d-4\n  - d-6\n", "")
	w.ok("board", "apply", "--dir", dir)
	sameAsFresh(t, w, "default", dir)
	if s := w.ok("card", "show", "d-5", "--json"); strings.Contains(s, "d-6") {
		t.Errorf("still linked: %s", s)
	}
}

// WSP-04: what both sides changed is shown by file and field, and nothing at all is done; what one side changed is merged.
func TestFolderConflicts(t *testing.T) {
	w := newWorld(t, story())
	dir := filepath.Join(w.dir, "docs")
	w.ok("board", "export", "default", "--dir", dir)
	card := func(id string) string { return filepath.Join(dir, "cards", id+".md") }
	edit(t, card("d-3"), "title: count on", "title: mine")
	edit(t, card("d-3"), "seq 11 20", "seq 1")
	edit(t, card("d-4"), "status: blocked", "status: ready")
	edit(t, card("d-1"), "well done", "badly done")
	if err := os.Remove(card("d-5")); err != nil {
		t.Fatal(err)
	}
	w.ok("card", "edit", "d-3", "--title", "theirs", "--priority", "4")
	w.ok("card", "add", "from elsewhere")
	before, asked := tree(t, dir), len(w.f.Asked())
	out, errs, code := w.run("board", "apply", "--dir", dir)
	if code != ExitFailed || !strings.Contains(errs, "4 thing(s) stand in the way, and nothing was changed") {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	wants(t, out, `cards/d-3.md title: both sides have changed it`, `in the folder "mine"; on the board "theirs"`, "cards/d-4.md status: a status is changed by an event", "muster event d-4 EVENT",
		"cards/d-1.md said: what was said is not changed", "cards/d-5.md id: its file is gone", "cards/d-3.md  priority", "cards/d-6.md  new card")
	out, errs, code = w.run("board", "apply", "--dir", dir, "--json")
	if code != ExitFailed || errs != "" {
		t.Errorf("exit %d: %s", code, errs)
	}
	wants(t, out, `"field":"title","dir":"mine","board":"theirs","why":"both sides have changed it"`, `"error":{"code":"refused"`)
	if tree(t, dir) != before || len(w.f.Asked()) != asked {
		t.Error("something was changed")
	}
	_, errs, code = w.run("board", "export", "default", "--dir", dir)
	if code != ExitFailed || !strings.Contains(errs, "were changed in the folder and not taken back") || tree(t, dir) != before {
		t.Errorf("exit %d: %s", code, errs)
	}
	edit(t, card("d-1"), "badly done", "well done")
	if _, errs, code = w.run("board", "apply", "--dir", dir, "--prefer", "dir", "--put"); code != ExitFailed || !strings.Contains(errs, "1 thing(s)") {
		t.Errorf("exit %d: %s", code, errs)
	}
	out = w.ok("board", "apply", "--dir", dir, "--prefer", "board")
	wants(t, out, "from board: cards/d-3.md  title", "from board: cards/d-5.md  id", "change:    cards/d-3.md  body")
	wants(t, w.ok("card", "show", "d-3"), "theirs", "seq 1")
	sameAsFresh(t, w, "default", dir)
	edit(t, card("d-3"), "title: theirs", "title: mine")
	edit(t, card("d-4"), "status: blocked", "status: todo")
	w.ok("card", "edit", "d-3", "--title", "theirs again")
	w.ok("board", "apply", "--dir", dir, "--prefer", "dir", "--put")
	wants(t, w.ok("card", "show", "d-3"), "mine")
	wants(t, w.ok("card", "list", "--status", "blocked", "-q")+"none", "none")
	sameAsFresh(t, w, "default", dir)
	edit(t, card("d-3"), "title: mine", "title: given up")
	w.ok("board", "export", "default", "--dir", dir, "--force")
	sameAsFresh(t, w, "default", dir)
}

// WSP-04: an edit that comes between the comparison and the request is refused by the board, not overwritten; what was
// not done stays in its file.
func TestFolderEditInBetween(t *testing.T) {
	w := newWorld(t, story())
	dir := filepath.Join(w.dir, "docs")
	w.ok("board", "export", "default", "--dir", dir)
	edit(t, filepath.Join(dir, "cards", "d-3.md"), "title: count on", "title: mine")
	edit(t, filepath.Join(dir, "cards", "d-4.md"), sayLine, sayLine+"hello\n")
	title := "theirs"
	failAt = func(name string) error {
		if name == applyFile {
			w.f.Must(apitest.Manager(), board.VCardEdit, board.CardEdit{Card: "d-3", CardFields: board.CardFields{Title: &title}})
		}
		return nil
	}
	_, errs, code := w.run("board", "apply", "--dir", dir)
	failAt = nil
	if code != ExitFailed || !strings.Contains(errs, "card.edit d-3: card d-3: its title was changed meanwhile") {
		t.Fatalf("exit %d: %s", code, errs)
	}
	wants(t, w.ok("card", "show", "d-3"), "theirs")
	out, _, code := w.run("board", "apply", "--dir", dir)
	if wants(t, out, "both sides have changed it", `comment:   cards/d-4.md  "hello"`); code != ExitFailed {
		t.Errorf("exit %d", code)
	}
}

// WSP-04: killed at any write, an export or apply leaves a folder that the next run mends, and nothing is said or filed twice.
func TestFolderIsMended(t *testing.T) {
	dead := errors.New("killed")
	for n := 0; ; n++ {
		w := newWorld(t, story())
		dir := filepath.Join(w.dir, "docs")
		w.ok("board", "export", "default", "--dir", dir)
		edit(t, filepath.Join(dir, "cards", "d-3.md"), "title: count on", "title: mine")
		edit(t, filepath.Join(dir, "cards", "d-4.md"), sayLine, sayLine+"once\n")
		put(t, filepath.Join(dir, "cards", "new.md"), "---\ntitle: only one\n---\n")
		w.ok("card", "edit", "d-5", "--priority", "3")
		left := n
		failAt = func(string) error {
			if left--; left < 0 {
				return dead
			}
			return nil
		}
		_, errs, code := w.run("board", "apply", "--dir", dir)
		failAt = nil
		if code == 0 {
			if n < 8 {
				t.Errorf("only %d steps", n)
			}
			return
		}
		if !strings.Contains(errs, "killed") {
			t.Fatalf("write %d: %s", n, errs)
		}
		w.ok("board", "apply", "--dir", dir)
		sameAsFresh(t, w, "default", dir)
		if got := w.ok("card", "list", "-q"); strings.Count(got, "d-") != 6 {
			t.Errorf("write %d: cards %s", n, got)
		}
		if got := w.ok("card", "show", "d-4"); strings.Count(got, "once") != 1 {
			t.Errorf("write %d: said twice: %s", n, got)
		}
	}
}

// WSP-04: an export that is killed leaves no folder or the old one, and its next run makes the new one.
func TestExportToAFolderIsWhole(t *testing.T) {
	for n := 0; ; n++ {
		w := newWorld(t, story())
		dir := filepath.Join(w.dir, "docs")
		left := n
		kill := func(string) error {
			if left--; left < 0 {
				return errors.New("killed")
			}
			return nil
		}
		failAt = kill
		_, _, code := w.run("board", "export", "web", "--dir", dir)
		if _, err := os.Stat(dir); code != 0 && !os.IsNotExist(err) {
			t.Fatalf("write %d: half a folder", n)
		}
		failAt = nil
		w.ok("board", "export", "web", "--dir", dir)
		w.ok("card", "edit", "w-1", "--title", "another")
		w.ok("card", "add", "one more", "--board", "web")
		left, failAt = n, kill
		_, _, later := w.run("board", "export", "web", "--dir", dir)
		failAt = nil
		w.ok("card", "edit", "w-1", "--title", "yet another")
		w.ok("board", "export", "web", "--dir", dir)
		sameAsFresh(t, w, "web", dir)
		if code == 0 && later == 0 {
			return
		}
	}
}

// WSP-04: an apply that found no leader goes on where it was, under the same ids.
func TestFolderWithoutLeader(t *testing.T) {
	w := newWorld(t, story())
	dir := filepath.Join(w.dir, "docs")
	w.ok("board", "export", "default", "--dir", dir)
	edit(t, filepath.Join(dir, "cards", "d-4.md"), sayLine, sayLine+"once\n")
	failAt = func(name string) error {
		w.f.Fail = board.Errorf(board.Unavailable, "no leader is reachable")
		return nil
	}
	_, _, code := w.run("board", "apply", "--dir", dir)
	failAt, w.f.Fail = nil, nil
	if code == 0 {
		t.Fatal("it went without a leader")
	}
	if _, errs, code := w.run("board", "export", "default", "--dir", dir); code == 0 || !strings.Contains(errs, "an apply was broken off") {
		t.Errorf("an export goes over it: %s", errs)
	}
	w.ok("board", "apply", "--dir", dir)
	sameAsFresh(t, w, "default", dir)
}

// WSP-04: what is no plain file is not followed, and what is no text, or too much of it, is refused by its name.
func TestFolderOfOddFiles(t *testing.T) {
	w := newWorld(t, story())
	secret := filepath.Join(w.dir, "secret")
	put(t, secret, "---\ntitle: secret\n---\n")
	for name, x := range map[string]struct {
		do   func(dir string) error
		want string
	}{
		"a link":        {func(d string) error { return os.Symlink(secret, filepath.Join(d, "cards", "x.md")) }, "cards/x.md: is no plain file"},
		"a link inside": {func(d string) error { return os.Symlink("d-1.md", filepath.Join(d, "cards", "x.md")) }, "cards/x.md: is no plain file"},
		"a folder":      {func(d string) error { return os.Mkdir(filepath.Join(d, "cards", "x.md"), 0o755) }, "cards/x.md: a card is a file"},
		"another file":  {func(d string) error { return os.WriteFile(filepath.Join(d, "cards", "x.txt"), nil, 0o644) }, "cards/x.txt: a card is a file"},
		"a pipe":        {func(d string) error { return syscall.Mkfifo(filepath.Join(d, "cards", "x.md"), 0o644) }, "cards/x.md: is no plain file"},
		"no text": {func(d string) error {
			return os.WriteFile(filepath.Join(d, "cards", "x.md"), []byte{0xff, 0xfe}, 0o644)
		}, "cards/x.md: it holds bytes that are no UTF-8"},
		"huge": {func(d string) error { return os.Truncate(filepath.Join(d, "cards", "d-1.md"), 1<<30) }, "cards/d-1.md: has 1073741824 bytes"},
		"cards a link": {func(d string) error {
			return errors.Join(os.Rename(filepath.Join(d, "cards"), filepath.Join(d, "c")), os.Symlink("c", filepath.Join(d, "cards")))
		}, "cards: it is no folder"},
	} {
		dir := filepath.Join(t.TempDir(), "docs")
		w.ok("board", "export", "default", "--dir", dir)
		if err := x.do(dir); err != nil {
			t.Fatal(err)
		}
		if out, _, code := w.run("board", "apply", "--dir", dir); code != ExitFailed || !strings.Contains(out, x.want) {
			t.Errorf("%s: exit %d: %s", name, code, out)
		}
	}
	dir := filepath.Join(t.TempDir(), "docs")
	for _, x := range []struct {
		code  int
		words string
		args  []string
	}{
		{ExitFailed, "no such file", []string{"board", "apply", "--dir", dir}},
		{ExitFailed, "is no board's folder", []string{"board", "apply", "--dir", w.dir}},
		{ExitUsage, "not both", []string{"board", "apply", "--dir", dir, "-f", "x"}},
		{ExitUsage, "use dir or board", []string{"board", "apply", "--dir", dir, "--prefer", "me"}},
		{ExitUsage, "not one file", []string{"board", "export", "default", "x", "--dir", dir}},
		{ExitUsage, "not one file", []string{"board", "export", "default", "--format", "json", "--dir", dir}},
		{ExitUsage, "use json or markdown", []string{"board", "export", "default", "--format", "xml"}},
	} {
		if _, err, code := w.run(x.args...); code != x.code || !strings.Contains(err, x.words) {
			t.Errorf("%v: exit %d: %s", x.args, code, err)
		}
	}
	w.ok("board", "export", "default", "--dir", dir)
	for _, args := range [][]string{{"board", "apply", "web", "--dir", dir}, {"board", "export", "web", "--dir", dir}} {
		if _, err, code := w.run(args...); code != ExitFailed || !strings.Contains(err, "is the folder of board default") {
			t.Errorf("%v: exit %d: %s", args, code, err)
		}
	}
	for _, file := range []string{"d-1.md", "d-3.md"} { // of an editor of another system
		raw, err := os.ReadFile(filepath.Join(dir, "cards", file))
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, "cards", file), string(bytes.ReplaceAll(raw, []byte("\n"), []byte("\r\n"))))
	}
	wants(t, w.ok("board", "apply", "--dir", dir), "say the same")
}

// WSP-04: export, apply, export gives the same bytes, and what is edited at random arrives.
func TestFolderRoundTrip(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	texts := []string{"plain", "", "a: b", "- x", "two\nlines", "---\n", "<!-- muster:thread -->", "\r\nwin", "#", "é \U0001f600", "'q' \"q\"", "\\<!-- muster:say", "trailing \n\n"}
	pick := func() string { return texts[r.IntN(len(texts))] + texts[r.IntN(len(texts))] }
	w := newWorld(t, apitest.New())
	for i := range *roundTrips {
		slug := fmt.Sprintf("b%d", i)
		w.f.Must(apitest.Manager(), board.VBoardCreate, board.BoardCreate{Slug: slug, Label: pick(), YAML: apitest.Commands})
		var ids []string
		for range 1 + r.IntN(6) {
			title, body, prio, goal := "t "+strings.Join(strings.Fields(pick()), " "), pick(), int64(r.IntN(3)), r.IntN(2) == 0
			skills := []string{pick()}
			add := board.CardAdd{Board: slug, Triage: r.IntN(3) == 0, CardFields: board.CardFields{Title: &title, Body: &body, Priority: &prio, Goal: &goal, Skills: &skills, Labels: map[string]string{"k": "v w"}}}
			if len(ids) > 0 && r.IntN(2) == 0 {
				add.After = []string{ids[r.IntN(len(ids))]}
			}
			id, _ := w.f.Must(apitest.Manager(), board.VCardAdd, add)["id"].(string)
			ids = append(ids, id)
			for range r.IntN(3) {
				w.f.Must(apitest.Manager(), board.VEvent, board.FireEvent{Card: id, Event: "comment", Payload: map[string]any{"text": "x" + pick()}})
			}
		}
		dir := filepath.Join(t.TempDir(), slug)
		w.ok("board", "export", slug, "--dir", dir)
		before := tree(t, dir)
		w.ok("board", "apply", "--dir", dir)
		w.ok("board", "export", slug, "--dir", dir)
		if got := tree(t, dir); got != before {
			t.Fatalf("export, apply, export of %s:\n%s\n----\n%s", slug, got, before)
		}
		id := ids[r.IntN(len(ids))]
		edit(t, filepath.Join(dir, "cards", id+".md"), "title: ", "kind: by hand\ntitle: ")
		w.ok("board", "apply", "--dir", dir)
		sameAsFresh(t, w, slug, dir)
	}
}

// cli.md: a board as JSON is what an import of cards reads, and as Markdown what people read; no text in it is markup of the page.
func TestExportFormats(t *testing.T) {
	w := newWorld(t, story())
	file := filepath.Join(w.dir, "web.json")
	w.ok("card", "edit", "d-4", "--body", "# big\n---\n<b>", "--title", "a *b* <script>", "--label", "k=v", "--priority", "2")
	wants(t, w.ok("board", "export", "default", file, "--format", "json"), "board default is in "+file)
	out := w.ok("board", "export", "default", "--format", "json")
	wants(t, out, `"id": "d-3"`, `"after": [`, `"author": "ann@atlas"`, `"workflow": "version: 1`)
	if raw, err := os.ReadFile(file); err != nil || string(raw) != out {
		t.Errorf("the file and the output differ (%v)", err)
	}
	wants(t, w.ok("board", "import", file, "--from", "json", "--as", "copy"), "board copy is made: 5 card(s)")
	wants(t, w.ok("card", "show", "copy-1"), "count to five", "well done", "done")
	wants(t, w.ok("card", "show", "copy-3", "--json"), `"waits_for":["copy-2"]`)
	wants(t, w.ok("card", "show", "copy-4", "--json"), `"labels":{"k":"v"}`, `"priority":2`, `"body":"# big\n---\n`)
	page := w.ok("board", "export", "default", "--format", "markdown")
	wants(t, page, "# Default\n", "## blocked (1)\n", `### d-4: a \*b\* \<script\>`, "> # big\n> ---\n> <b>\n", "**ann@atlas**, 2030", "> well done")
	if strings.Index(page, "## running") > strings.Index(page, "## done") {
		t.Errorf("not in the workflow's order:\n%s", page)
	}
}
