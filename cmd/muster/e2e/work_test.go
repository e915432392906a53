package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
)

// worktrees is a board whose implementer and reviewer are scripts; the first
// works in a worktree of what each machine calls app.
const worktrees = `
version: 1
name: default
extends: default
params: {reviewer: rev, lease: 600}
profiles:
  impl: {harness: command, verdict: explicit, args: [sh, -c, 'sh "$MUSTER_BODY"'], workspace: {kind: worktree, repo: app, push: origin, setup: 'echo up > set-up.ign'}}
  rev:
    harness: command
    verdict: explicit
    args: [sh, -c, 'test -f set-up.ign && git log --format=%s -1 | grep -qE "made|half" && muster complete --summary seen || muster request-changes "it is not there"']
`

// repo is a repository on the disk with one commit on main, and the environment in which git makes it.
func (f *fleet) repo() (origin string, git func(dir string, args ...string) string) {
	f.t.Helper()
	home := filepath.Join(f.dir, "home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\nname = t\nemail = t@example.org\n[init]\ndefaultBranch = main\n"), 0o600); err != nil {
		f.t.Fatal(err)
	}
	git = func(dir string, args ...string) string {
		f.t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+home)
		out, err := cmd.CombinedOutput()
		if err != nil {
			f.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	origin = filepath.Join(f.dir, "app.git")
	git(f.dir, "init", "-q", "--bare", origin)
	seed := filepath.Join(f.dir, "seed")
	git(f.dir, "clone", "-q", origin, seed)
	if err := os.WriteFile(filepath.Join(seed, ".gitignore"), []byte("*.ign\n"), 0o600); err != nil {
		f.t.Fatal(err)
	}
	git(seed, "add", ".")
	git(seed, "commit", "-qm", "first")
	git(seed, "push", "-q", "origin", "HEAD:main")
	return origin, git
}

// WSP-01, M-05, M-26: a card in a worktree runs, commits and is pushed when its
// session asks for review; the reviewer sees it wherever it starts; the card
// moved to another machine goes on there with what was pushed; every machine
// shows its diff; archived, its workspaces go.
func TestWorktreesOfAFleet(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git: worktrees are made by it")
	}
	home := ""
	f := newFleetAt(t, 3, 4, func(_ int, m *machine) {
		dir := filepath.Dir(m.data)
		home = filepath.Join(dir, "home")
		m.env = append(m.env, "HOME="+home, "GIT_CONFIG_NOSYSTEM=1")
		m.args = append(m.args, "--repo", "app="+filepath.Join(dir, "app.git"))
	})
	origin, git := f.repo()
	f.do(f.machines[0], board.VBoardApply, board.BoardApply{Board: "default", YAML: worktrees})
	impl := func(a *board.CardAdd) { p := "impl"; a.Assignee = &p }
	id := f.add(f.machines[0], "made and reviewed", "echo x > made; git add . && git commit -qm made && muster request-review --summary made", impl)
	f.await(f.machines[1], "done", id)
	if got := git(origin, "log", "--format=%s", "-1", "muster/"+id); got != "made" {
		t.Errorf("the remote's branch ends with %q", got)
	}
	runs, err := f.machines[0].runs(id)
	if err != nil || len(runs) != 2 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}

	// Moved in the middle.
	id = f.add(f.machines[0], "moved", "if [ -f half ]; then muster request-review --summary whole; else echo x > half; git add . && git commit -qm half && muster block --kind needs_input 'go on elsewhere'; fi", impl)
	f.await(f.machines[0], "blocked", id)
	var from *machine
	f.eventually(30*time.Second, "gone from its machine", func() (bool, string) {
		runs, err := f.machines[0].runs(id)
		if err != nil || len(runs) != 1 || runs[0].Gone == "" {
			return false, fmt.Sprintf("%+v %v", runs, err)
		}
		from = f.named(runs[0].Node)
		return true, ""
	})
	to := f.other(from)
	for _, m := range f.machines {
		d, err := api.Decode[api.Diff](m.api.Get(context.Background(), "/v1/cards/"+id+"/diff", nil))
		if err != nil || d.Machine != from.name || !strings.Contains(d.Text, "b/half") {
			t.Errorf("%s: %+v %v", m.name, d, err)
		}
	}
	if _, stderr, code := to.run("move", id, "--machine", to.name); code != 0 {
		t.Fatalf("move: %s", stderr)
	}
	if _, stderr, code := to.run("unblock", id); code != 0 {
		t.Fatalf("unblock: %s", stderr)
	}
	f.await(f.machines[0], "done", id)
	runs, err = f.machines[0].runs(id)
	if err != nil || newest(runs).Node != to.name {
		t.Errorf("%+v %v", runs, err)
	}
	place := filepath.Join(to.data, "worktrees", id)
	if got := git(place, "log", "--format=%s", "-1"); got != "half" {
		t.Errorf("on %s the branch ends with %q", to.name, got)
	}

	// Archived: the machine that had it last lets it go, the other's goes with gc.
	if _, stderr, code := from.run("archive", id); code != 0 {
		t.Fatalf("archive: %s", stderr)
	}
	there := func(m *machine) bool {
		_, err := os.Lstat(filepath.Join(m.data, "worktrees", id))
		return err == nil
	}
	f.eventually(30*time.Second, "cleaned up", func() (bool, string) { return !there(to), "it stands" })
	if out, stderr, code := from.run("gc", "--dry-run"); code != 0 || !strings.Contains(out, "would go") || !there(from) {
		t.Errorf("gc --dry-run: %s%s", out, stderr)
	}
	if out, stderr, code := from.run("gc"); code != 0 || there(from) {
		t.Errorf("gc: %s%s", out, stderr)
	}
	f.sameState()
}

// named is the machine of a name.
func (f *fleet) named(name string) *machine {
	for _, m := range f.machines {
		if m.name == name {
			return m
		}
	}
	f.t.Fatalf("no machine %q", name)
	return nil
}
