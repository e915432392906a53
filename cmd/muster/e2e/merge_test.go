package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/board"
)

// merges is a board whose reviewed work is merged by the hook of the default workflow.
const merges = `
version: 1
name: default
extends: default
params: {merge: true, lease: 600}
profiles:
  impl: {harness: command, verdict: explicit, args: [sh, -c, 'sh "$MUSTER_BODY"'], workspace: {kind: worktree, repo: app, push: origin}}
`

// TRI-08: an approved card's branch is merged into main and pushed by the hook, and the card is done;
// one that does not merge goes back to its implementer with git's words, on its branch as it left it.
func TestReviewedWorkIsMerged(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git: worktrees are made by it")
	}
	f := newFleetAt(t, 1, 4, func(_ int, m *machine) {
		dir := filepath.Dir(m.data)
		m.env = append(m.env, "HOME="+filepath.Join(dir, "home"), "GIT_CONFIG_NOSYSTEM=1")
		m.args = append(m.args, "--repo", "app="+filepath.Join(dir, "app.git"))
	})
	origin, git := f.repo()
	m := f.machines[0]
	f.do(m, board.VBoardApply, board.BoardApply{Board: "default", YAML: merges})
	impl := func(a *board.CardAdd) { p := "impl"; a.Assignee = &p }
	work := func(text string) string {
		return "if [ ! -f made ]; then echo " + text + " > made; git add . && git commit -qm " + text + " && muster request-review --summary " + text +
			"; else muster block --kind needs_input 'it does not merge'; fi"
	}
	one := f.add(m, "one", work("one"), impl)
	two := f.add(m, "two", work("two"), impl)
	f.await(m, "review", one, two)
	approve := func(id string) {
		t.Helper()
		if _, stderr, code := m.run("complete", id, "--summary", "seen"); code != 0 {
			t.Fatalf("complete: %s", stderr)
		}
	}
	approve(one)
	f.await(m, "done", one)
	if got := git(origin, "log", "--format=%s", "-1", "main"); got != "one" {
		t.Errorf("main ends with %q", got)
	}
	approve(two) // the same file, begun before the first was merged
	f.eventually(30*time.Second, "sent back, and blocked", func() (bool, string) {
		out, stderr, code := m.run("card", "show", two)
		return code == 0 && strings.Contains(out, "blocked") && strings.Contains(out, "merge failed: it ended with exit code 1") && strings.Contains(out, "made"), out + stderr
	})
	place := filepath.Join(m.data, "worktrees", two)
	if got := git(place, "status", "--porcelain", "--branch"); got != "## muster/"+two {
		t.Errorf("its worktree: %q", got)
	}
	if got := git(origin, "log", "--format=%s", "-1", "main"); got != "one" {
		t.Errorf("main ends with %q", got)
	}
}
