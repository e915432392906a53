package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/cmd/muster/api/apitest"
)

// cli.md: board export and import: to a file, through a pipe, under another name; what fails leaves no file and no board.
func TestBoardExportAndImport(t *testing.T) {
	w := newWorld(t, story())
	file := filepath.Join(w.dir, "web.muster")
	wants(t, w.ok("board", "export", "web", file), "board web is in "+file)
	piped := w.ok("board", "export", "web")
	if b, err := os.ReadFile(file); err != nil || string(b) != piped {
		t.Errorf("the file and the pipe differ (%v):\n%s\n%s", err, b, piped)
	}
	wants(t, w.ok("board", "import", file, "--as", "copy"), "board copy is made: 1 card(s) copy-...", "nothing of it starts before muster resume --board copy")
	wants(t, w.ok("status"), "paused: board copy, by root@atlas", "imported: look, then muster resume --board copy")
	wants(t, w.ok("why", "copy-1"), "muster resume --board copy")
	if out := w.ok("board", "import", file, "--as", "runs", "--start"); strings.Contains(out, "paused") {
		t.Errorf("with --start: %s", out)
	}
	wants(t, w.ok("board", "import", file, "--as", "told", "--json"), `"paused":true`)
	wants(t, w.ok("board", "import", file, "--as", "begins", "--start", "--json"), `"paused":false`)
	wants(t, w.ok("card", "show", "copy-1"), "a page", "board", "copy")
	w.stdin = piped
	if out := w.ok("board", "import", "-", "--as", "third", "-q"); out != "third\n" {
		t.Errorf("got %q", out)
	}
	for _, x := range []struct {
		code  int
		words string
		args  []string
	}{
		{ExitFailed, `board "web" exists`, []string{"board", "import", file}},
		{ExitFailed, "no such file", []string{"board", "import", filepath.Join(w.dir, "none")}},
		{ExitFailed, "is a folder", []string{"board", "import", w.dir}},
		{ExitFailed, `no board "none"`, []string{"board", "export", "none", filepath.Join(w.dir, "none.muster")}},
		{ExitUsage, "use: muster board export", []string{"board", "export"}},
	} {
		if _, err, code := w.run(x.args...); code != x.code || !strings.Contains(err, x.words) {
			t.Errorf("%v: exit %d, want %d with %q: %s", x.args, code, x.code, x.words, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(w.dir, "*none*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
	w.terminal = true
	if _, err, code := w.run("board", "export", "web"); code != ExitUsage || !strings.Contains(err, "give FILE") {
		t.Errorf("to a terminal: exit %d: %s", code, err)
	}
	other := newWorld(t, apitest.New())
	wants(t, other.ok("board", "import", file), "board web is made: 1 card(s) w-...")
	wants(t, other.ok("card", "show", "w-1"), "a page")
}

// cli.md: board import --from: what is read of another system becomes a board; what has no place is told, and a dry run
// sends nothing.
func TestImportFromOtherSystems(t *testing.T) {
	w := newWorld(t, apitest.New())
	file := filepath.Join(w.dir, "Old board.csv")
	if err := os.WriteFile(file, []byte("id,title,status,after,points\na,one,done,,3\nb,two,running,a,\nc,three,,b,\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const told = "3 card(s), 0 event(s), 0 attempt(s), 2 link(s)"
	wants(t, w.ok("board", "import", file, "--from", "csv", "--dry-run"), "board old-board would be made: "+told, "1  column points (e.g. 3)", "a claim: the card was running")
	if out := w.ok("board", "list", "-q"); strings.Contains(out, "old-board") {
		t.Fatalf("the dry run made it: %s", out)
	}
	wants(t, w.ok("board", "import", file, "--from", "csv"), "board old-board is made: "+told, "column points", "muster resume --board old-board")
	wants(t, w.ok("card", "show", "oldboard-2"), "two", "ready", "old-board")
	wants(t, w.ok("why", "oldboard-3"), "oldboard-2")
	w.stdin = `[{"title":"x","comments":["said"]}]`
	wants(t, w.ok("board", "import", "-", "--from", "json", "--as", "web", "--json"), `"slug":"web"`, `"prefix":"web"`, `"cards":1`, `"left":[]`, `"paused":true`)
	wants(t, w.ok("board", "import", "-", "--from", "json", "--as", "at-once", "--start", "--json"), `"paused":false`)
	wants(t, w.ok("card", "show", "web-1"), "said")
	database := filepath.Join(w.dir, "kanban.db")
	if err := os.WriteFile(database, []byte("SQLite format 3\x00\xff\xfe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		code  int
		words string
		args  []string
	}{
		{ExitFailed, `board "old-board" exists`, []string{"board", "import", file, "--from", "csv"}},
		{ExitFailed, "sqlite3 -json", []string{"board", "import", database, "--from", "hermes"}},
		{ExitFailed, "use hermes, csv, json", []string{"board", "import", file, "--from", "xls"}},
		{ExitUsage, "give --as SLUG", []string{"board", "import", "-", "--from", "csv"}},
		{ExitUsage, "--dry-run goes with --from", []string{"board", "import", file, "--dry-run"}},
	} {
		if _, err, code := w.run(x.args...); code != x.code || !strings.Contains(err, x.words) {
			t.Errorf("%v: exit %d, want %d with %q: %s", x.args, code, x.code, x.words, err)
		}
	}
}
