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
	wants(t, w.ok("board", "import", file, "--as", "copy"), "board copy is made: 1 card(s) copy-...")
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
