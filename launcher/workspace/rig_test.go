package workspace

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rig is a store beside a repository with one commit on main.
type rig struct {
	*Store
	t      testing.TB
	dir    string
	origin string
	env    []string
	live   map[string]bool
}

func newRig(t testing.TB) *rig {
	t.Helper()
	return newRigAt(t, t.TempDir(), nil)
}

// newRigAt opens a rig in a folder; what an earlier rig made there stays.
func newRigAt(t testing.TB, dir string, failpoint func(string)) *rig {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git: worktrees are made by it")
	}
	dir, err := filepath.EvalSymlinks(dir)
	must(t, err)
	g := &rig{t: t, dir: dir, origin: filepath.Join(dir, "origin.git"), live: map[string]bool{}}
	home := filepath.Join(dir, "home")
	must(t, os.MkdirAll(home, 0o700))
	must(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\nname = t\nemail = t@example.org\n[init]\ndefaultBranch = main\n[protocol \"file\"]\nallow = always\n"), 0o600))
	g.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1"}
	if _, err := os.Stat(g.origin); err != nil {
		g.git(dir, "init", "-q", "--bare", g.origin)
		seed := filepath.Join(dir, "seed")
		g.git(dir, "clone", "-q", g.origin, seed)
		g.write(seed, ".gitignore", "*.ign\n.env\n")
		g.write(seed, "a", "one\n")
		g.git(seed, "add", ".")
		g.git(seed, "commit", "-qm", "first")
		g.git(seed, "push", "-q", "origin", "HEAD:main")
	}
	g.Store = New(Config{Dir: filepath.Join(dir, "data"), Env: g.env, Run: g.script, Live: func(c string) bool { return g.live[c] }, Failpoint: failpoint})
	must(t, g.Open())
	return g
}

// script runs a set-up as the node would, without its keeper.
func (g *rig) script(ctx context.Context, x Script) error {
	cmd := exec.CommandContext(ctx, "sh", "-c", x.Text)
	cmd.Dir, cmd.Env = x.Dir, x.Env
	out, err := cmd.CombinedOutput()
	if err != nil {
		return errors.Join(err, errors.New(string(out)))
	}
	return nil
}

func (g *rig) try(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, g.env
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (g *rig) git(dir string, args ...string) string {
	g.t.Helper()
	out, err := g.try(dir, args...)
	if err != nil {
		g.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (g *rig) write(dir, name, text string) {
	g.t.Helper()
	must(g.t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
	must(g.t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
}

func (g *rig) want(card string) Want {
	return Want{Card: card, Board: "web", Spec: "worktree:" + g.origin, Push: "origin"}
}

func (g *rig) make(w Want) Place {
	g.t.Helper()
	p, err := g.Make(context.Background(), w)
	if err != nil {
		g.t.Fatal(err)
	}
	return p
}

// refused makes a workspace that is not to be had, and wants the reason to hold these words.
func (g *rig) refused(w Want, words ...string) {
	g.t.Helper()
	p, err := g.Make(context.Background(), w)
	if err == nil {
		g.t.Fatalf("%+v was made: %+v", w, p)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			g.t.Errorf("%q does not say %q", err, word)
		}
	}
}

// commit writes a file and commits it.
func (g *rig) commitFile(dir, name, text string) string {
	g.t.Helper()
	g.write(dir, name, text)
	g.git(dir, "add", "--", name)
	g.git(dir, "commit", "-qm", "more "+name)
	return g.git(dir, "rev-parse", "HEAD")
}

func (g *rig) settle(card string, push bool) Left {
	g.t.Helper()
	l, err := g.Settle(context.Background(), card, g.path(card), push)
	must(g.t, err)
	return l
}

func (g *rig) path(card string) string { return filepath.Join(g.dir, "data", "worktrees", card) }

func (g *rig) clear(card string) string {
	if err := g.Clear(context.Background(), card); err != nil {
		return err.Error()
	}
	return ""
}

func (g *rig) stands(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func names(t testing.TB, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	must(t, err)
	var out []string
	for _, e := range list {
		out = append(out, e.Name())
	}
	slices.Sort(out)
	return out
}
