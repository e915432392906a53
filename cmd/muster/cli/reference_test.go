package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestReferenceIsOfThisProgram: the pages in the repository are what this program
// says of itself. Written anew with: make docs.
func TestReferenceIsOfThisProgram(t *testing.T) {
	w := newWorld(t, story())
	dir := t.TempDir()
	if _, err, code := w.run("docs", dir); code != 0 {
		t.Fatal(err)
	}
	for _, name := range []string{"cli.md", "workflow.md"} {
		got, err := os.ReadFile(filepath.Join(dir, "reference", name))
		if err != nil {
			t.Fatal(err)
		}
		kept := filepath.Join("..", "..", "..", "docs", "reference", name)
		if *update {
			if err := os.WriteFile(kept, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(kept)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("docs/reference/%s is of another program: write it anew with make docs", name)
		}
	}
}

// TestManPages: every verb has a page, that names it and its flags, and that man can read.
func TestManPages(t *testing.T) {
	a := &app{io: IO{Env: func(string) string { return "" }}}
	root := a.root()
	dir := t.TempDir()
	if err := writeDocs(root, dir, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	for _, c := range root.Commands() {
		if c.Hidden || !c.IsAvailableCommand() {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, "man", "muster-"+c.Name()+".1"))
		if err != nil {
			t.Error(err)
			continue
		}
		page := string(raw)
		if !strings.Contains(page, ".SH NAME") || !strings.Contains(page, c.Short[:10]) || strings.Contains(page, "Auto generated") {
			t.Errorf("%s: %s", c.Name(), page)
		}
	}
	if man, err := exec.LookPath("man"); err == nil {
		c := exec.Command(man, "--warnings", "-l", filepath.Join(dir, "man", "muster-service-install.1"))
		c.Env = append(os.Environ(), "MANPAGER=cat", "LC_ALL=C.UTF-8")
		if out, err := c.CombinedOutput(); err == nil && (strings.Contains(string(out), "warning:") || !strings.Contains(string(out), "install")) {
			t.Errorf("man says: %s", out)
		}
	}
	for name, want := range map[string]string{"completion/muster.bash": "__start_muster", "completion/_muster": "#compdef muster", "completion/muster.fish": "complete -c muster"} {
		if raw, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(raw), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
