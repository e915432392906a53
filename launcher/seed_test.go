package launcher

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/board"
)

// PAN-01: what a program would ask a person first is set in its settings where nothing stands; what stands there,
// stands, to the digit, and a file that nobody can read is not touched.
func TestSeed(t *testing.T) {
	data, home := t.TempDir(), t.TempDir()
	r := &Reconciler{cfg: Config{Dir: data}}
	s := &Spec{Env: []string{"HOME=" + home}}
	file := filepath.Join(home, ".prog", "settings.json")
	x := &board.SpecExtra{Seed: []board.SpecSeed{{Files: []string{"$PROG_DIR/settings.json", "$HOME/.prog/settings.json"},
		JSON: `{"onboarded": true, "theme": "dark", "projects": {"$MUSTER_FOLDERS": {"trusted": true}}}`}}}
	read := func() (m map[string]any, raw string) {
		t.Helper()
		b, err := os.ReadFile(file)
		must(t, err)
		must(t, json.Unmarshal(b, &m))
		return m, string(b)
	}
	must(t, r.seed(x, s))
	m, _ := read()
	for _, dir := range []string{"workspaces", "worktrees"} {
		if p, _ := m["projects"].(map[string]any)[filepath.Join(data, dir)].(map[string]any); p["trusted"] != true {
			t.Errorf("%v", m)
		}
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", st, err)
	}

	kept := filepath.Join(home, "dotfiles.json") // as people keep their settings: linked, readable, with what they said
	must(t, os.Rename(file, kept))
	must(t, os.Symlink(kept, file))
	said := `{"theme": "light", "n": 12345678901234567890, "projects": {"/mine": {"trusted": false}, "` + filepath.Join(data, "worktrees") + `": {"trusted": false}}}`
	must(t, os.WriteFile(kept, []byte(said), 0o644))
	must(t, os.Chmod(kept, 0o644))
	must(t, r.seed(x, s))
	m, raw := read()
	p := m["projects"].(map[string]any)
	if m["theme"] != "light" || m["onboarded"] != true || !strings.Contains(raw, "12345678901234567890") ||
		p[filepath.Join(data, "worktrees")].(map[string]any)["trusted"] != false || p["/mine"].(map[string]any)["trusted"] != false {
		t.Errorf("what stood there is %s", raw)
	}
	if link, err := os.Readlink(file); err != nil || link != kept {
		t.Errorf("the link is %q, %v", link, err)
	}
	was, err := os.Stat(kept)
	must(t, err)
	if was.Mode().Perm() != 0o644 {
		t.Errorf("its mode is %v", was.Mode())
	}
	must(t, r.seed(x, s))
	if now, err := os.Stat(kept); err != nil || !os.SameFile(was, now) {
		t.Error("it was written again without need")
	}

	for _, broken := range []string{`{"theme": `, `[1]`, `null`} {
		must(t, os.WriteFile(kept, []byte(broken), 0o600))
		if err := r.seed(x, s); err == nil || !strings.Contains(err.Error(), "not touched") {
			t.Errorf("%s: %v", broken, err)
		}
		if b, _ := os.ReadFile(kept); string(b) != broken {
			t.Errorf("%s became %s", broken, b)
		}
	}

	other := t.TempDir() // whose variable is set comes first
	s.Env = append(s.Env, "PROG_DIR="+other)
	must(t, r.seed(x, s))
	if _, err := os.Stat(filepath.Join(other, "settings.json")); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(home, "*", ".muster-seed*")); err != nil || left != nil {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// A file that is written between the look and the answer is looked at again, and what was written stands.
func TestSeedOfAFileThatChanges(t *testing.T) {
	file := filepath.Join(t.TempDir(), "settings.json")
	must(t, os.WriteFile(file, []byte("{}"), 0o600))
	was, err := os.Stat(file)
	must(t, err)
	must(t, os.WriteFile(file, []byte(`{"token": "new"}`), 0o600))
	if err := replaceSettings(file, was, map[string]any{"a": true}); err != errChanged {
		t.Errorf("%v", err)
	}
	must(t, seedFile(file, map[string]any{"a": true}))
	if b, err := os.ReadFile(file); err != nil || !strings.Contains(string(b), "new") || !strings.Contains(string(b), `"a": true`) {
		t.Errorf("%s %v", b, err)
	}
}

// A pane in a folder of muster's own has its program's questions answered before it is opened, by its own environment; one
// in a person's folder has not: that is the person's to trust.
func TestSeedBeforeAPane(t *testing.T) {
	t.Parallel()
	n := paneNode(t)
	home, mine := t.TempDir(), t.TempDir()
	n.apply(t, strings.NewReplacer("\nprofiles:\n", `
profiles:
  sown: {harness: sown, surface: pane, permissions: full, env: {PROG_DIR: `+home+`}}
  dir: {harness: sown, surface: pane, workspace: {kind: dir, path: `+mine+`}, env: {PROG_DIR: `+home+`/dir}}
`, "\nharnesses:\n", `
harnesses:
  sown:
    pane: {fresh: [sh, -c, 'cat "$PROG_DIR/settings"; exit 0']}
    verdict: exit
    seed:
      - {files: [$PROG_DIR/settings], json: '{"projects": {"$MUSTER_FOLDERS": {"trusted": true}}}'}
      - {permissions: full, files: [$PROG_DIR/settings], json: '{"risk": "taken"}'}
      - {permissions: ask, files: [$PROG_DIR/settings], json: '{"risk": "asked"}'}
`).Replace(testWorkflow))
	run := n.start("sown", "it asks first")
	n.gone(run)
	n.logHas(run, filepath.Join(n.cfg.Dir, "workspaces"))
	n.logHas(run, `"risk": "taken"`)
	n.gone(n.start("dir", "it asks first"))
	if exists(filepath.Join(home, "dir", "settings")) {
		t.Error("a person's folder was trusted")
	}
}
