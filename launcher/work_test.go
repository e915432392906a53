package launcher

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muster/board"
)

// workNode is a node beside a repository with one commit, and a board whose
// profiles work in worktrees of it.
type workNode struct {
	*testNodeT
	origin string
	env    []string
}

func newWorkNode(t *testing.T, more string) *workNode {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git: worktrees are made by it")
	}
	dir := t.TempDir()
	w := &workNode{origin: filepath.Join(dir, "app.git"), env: append(os.Environ(), "HOME="+dir, "GIT_CONFIG_NOSYSTEM=1")}
	must(t, os.WriteFile(filepath.Join(dir, ".gitconfig"), []byte("[user]\nname = t\nemail = t@example.org\n[init]\ndefaultBranch = main\n"), 0o600))
	w.testNodeT = newNode(t, func(c *Config) {
		c.Env = w.env
		c.Repos = func() (map[string]string, error) { return map[string]string{"app": w.origin}, nil }
	})
	w.git(dir, "init", "-q", "--bare", w.origin)
	seed := filepath.Join(dir, "seed")
	w.git(dir, "clone", "-q", w.origin, seed)
	must(t, os.WriteFile(filepath.Join(seed, "a"), []byte("one\n"), 0o600))
	w.git(seed, "add", "a")
	w.git(seed, "commit", "-qm", "first")
	w.git(seed, "push", "-q", "origin", "HEAD:main")
	yaml := strings.Replace(testWorkflow, "  missing:", `  wt: {harness: command, args: [sh, -c, 'sh "$MUSTER_BODY"'], workspace: {kind: worktree, repo: app, push: origin`+more+`}}
  talks: {harness: command, verdict: explicit, args: [sh, -c, 'sh "$MUSTER_BODY"'], workspace: {kind: worktree, repo: app, push: origin}}
  keep: {harness: command, args: [sh, -c, 'sh "$MUSTER_BODY"'], workspace: {kind: worktree, repo: app}}
  missing:`, 1)
	req := request(person(), board.VBoardApply, board.BoardApply{Board: "web", YAML: yaml})
	if res := w.do(context.Background(), &req); res.Err != nil {
		t.Fatal(res.Err)
	}
	return w
}

func (w *workNode) git(dir string, args ...string) string {
	w.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, w.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

const commitOne = `echo "$MUSTER_RUN" > "made-by-$MUSTER_SLOT"; git add . && git commit -qm work`

// WSP-01, M-26: a run works in the card's worktree, its resolved path is
// recorded, and what it committed is pushed when it has ended by its own word.
func TestRunWorksInAWorktreeAndPushes(t *testing.T) {
	t.Parallel()
	w := newWorkNode(t, ", setup: 'touch ../../set-up'")
	run := w.start("wt", commitOne+`; test "$PWD" = "$MUSTER_WORKSPACE" && test "$MUSTER_PORT_BASE" -gt 1000`)
	r := w.gone(run)
	path := filepath.Join(w.cfg.Dir, "worktrees", r.Card)
	if r.Workspace != path || r.Outcome != "completed" || !exists(filepath.Join(w.cfg.Dir, "set-up")) {
		t.Errorf("%+v", r)
	}
	head := w.git(path, "rev-parse", "HEAD")
	if got := w.git(w.origin, "rev-parse", "refs/heads/muster/"+r.Card); got != head {
		t.Errorf("the remote has %s, want %s", got, head)
	}
	if c := w.card(r.Card); c.WorkNode != "" || c.WorkHead != head || c.Branch != "muster/"+r.Card || c.Workspace != "worktree:app" {
		t.Errorf("%+v", c)
	}
	if n, bytes := w.Workspaces(); n != 1 {
		t.Errorf("%d workspaces, %d bytes", n, bytes)
	}
}

// M-05: what is nowhere else ties the card to this machine: a branch that no
// profile pushes, and one that a run has left without a word of its own.
func TestWorkThatIsNotPushedTiesTheCard(t *testing.T) {
	t.Parallel()
	w := newWorkNode(t, "")
	for profile, script := range map[string]string{"keep": commitOne, "wt": commitOne + "; exit 1"} {
		r := w.gone(w.start(profile, script))
		if c := w.card(r.Card); c.WorkNode != testNode || c.WorkLeft != "unpushed" {
			t.Errorf("%s: %+v", profile, c)
		}
	}
	r := w.gone(w.start("wt", "echo x > new"))
	if c := w.card(r.Card); c.WorkLeft != "uncommitted" {
		t.Errorf("%+v", c)
	}
	if out := w.git(w.origin, "for-each-ref", "--format=%(refname)"); out != "refs/heads/main" {
		t.Errorf("pushed: %s", out)
	}
}

// M-05: by a session's word the next one may begin elsewhere, while it lives on:
// its branch is pushed, and what it leaves is known, before the word counts.
func TestWorkIsSavedBeforeTheWord(t *testing.T) {
	t.Parallel()
	w := newWorkNode(t, "")
	for script, left := range map[string]string{commitOne: "", commitOne + "; echo x > new": "uncommitted"} {
		marks := filepath.Join(t.TempDir(), "marks")
		run := w.start("talks", script+"; echo done > "+marks+"; "+untilStopped)
		w.launched(run)
		eventually(t, "its work", func() bool { b, _ := os.ReadFile(marks); return len(b) > 0 })
		if res := w.SessionSay(context.Background(), run, w.secret(run), say(w.fleet, run, "request_review")); res.Err != nil {
			t.Fatal(res.Err)
		}
		r := w.fleet.run(run)
		head := w.git(r.Workspace, "rev-parse", "HEAD")
		if got := w.git(w.origin, "rev-parse", "refs/heads/muster/"+r.Card); got != head || r.Gone != "" {
			t.Errorf("the remote has %s, want %s; gone %q", got, head, r.Gone)
		}
		if c := w.card(r.Card); c.WorkLeft != left || left == "" && c.WorkHead != head {
			t.Errorf("%+v", c)
		}
	}
}

// M-26: clean-up is an order for the node of the workspace, answered once: what
// is safe elsewhere goes, the rest is kept and said.
func TestCleanupOrder(t *testing.T) {
	t.Parallel()
	w := newWorkNode(t, "")
	for script, kind := range map[string]string{commitOne: "workspace_cleaned", commitOne + "; echo x > new": "workspace_kept"} {
		r := w.gone(w.start("wt", script))
		must(t, w.event(r.Card, "archive"))
		e := w.told(r.Card, kind)
		if gone := !exists(r.Workspace); gone != (kind == "workspace_cleaned") || kind == "workspace_kept" && !strings.Contains(string(e.Payload), "new") {
			t.Errorf("%s: gone %v, %s", kind, gone, e.Payload)
		}
	}
}

// told waits for an event of a card.
func (w *workNode) told(card, kind string) (found board.Event) {
	w.t.Helper()
	eventually(w.t, kind+" of "+card, func() bool {
		ok := false
		_ = w.view(func(v board.View) error {
			board.EachEvent(v, "", func(_ string, e *board.Event) bool {
				if e.Card == card && e.Kind == kind {
					found, ok = *e, true
				}
				return !ok
			})
			return nil
		})
		return ok
	})
	return found
}

// M-26: a workspace that is deleted under a session: the session goes on, the
// next start is refused with the path, and gc lets the card begin anew.
func TestWorkspaceDeletedUnderASession(t *testing.T) {
	t.Parallel()
	w := newWorkNode(t, "")
	dir := t.TempDir()
	first := w.start("agent", "while [ ! -e "+dir+"/go ]; do sleep 0.02; done; exit 1")
	w.launched(first)
	card := w.fleet.run(first).Card
	path := filepath.Join(w.cfg.Dir, "workspaces", card)
	must(t, os.RemoveAll(path))
	if w.fleet.run(first).Gone != "" {
		t.Fatal("the session has ended with its folder")
	}
	must(t, os.WriteFile(dir+"/go", nil, 0o600))
	if r := w.gone(first); r.ExitCode == nil || *r.ExitCode != 1 {
		t.Errorf("%+v", r)
	}
	again := func() *board.Run {
		t.Helper()
		req := request(board.Platform(), board.VStart, board.Start{Card: card, Node: testNode})
		res := w.do(context.Background(), &req)
		if res.Err != nil {
			t.Fatal(res.Err)
		}
		var a struct{ Run string }
		must(t, json.Unmarshal(res.Data, &a))
		return w.gone(a.Run)
	}
	if r := again(); r.Outcome != "spawn_failed" || !strings.Contains(r.Error, path) || !strings.Contains(r.Error, "muster gc") {
		t.Errorf("%q %q", r.Outcome, r.Error)
	}
	items, err := w.Gc(context.Background(), false, false)
	must(t, err)
	if len(items) != 1 || !items[0].Gone || items[0].Card != card {
		t.Errorf("%+v", items)
	}
	if w.card(card).Status == "blocked" {
		must(t, w.event(card, "unblock"))
	}
	if r := again(); r.Launched == 0 {
		t.Errorf("%q %q", r.Outcome, r.Error)
	}
}

// M-35: a set-up is a tree of its own: a start that is stopped meanwhile is gone
// when nothing of the set-up lives, one that takes too long is ended, and one
// that fails is told with its last words.
func TestSetupIsEndedWithItsStart(t *testing.T) {
	t.Parallel()
	w := newWorkNode(t, `, timeout: 600, setup: 'sh "$MUSTER_WORKSPACE/../../setup.sh"'`)
	script := filepath.Join(w.cfg.Dir, "setup.sh")
	pids := filepath.Join(w.cfg.Dir, "pid")
	must(t, os.WriteFile(script, []byte("trap '' TERM; sh -c 'trap \"\" TERM; echo $$ > "+pids+"; while :; do sleep 1; done' & wait\n"), 0o600))
	run := w.start("wt", "exit 0")
	pid := pidIn(t, pids)
	must(t, w.event(w.fleet.run(run).Card, "cancel"))
	if r := w.gone(run); r.Launched != 0 || alive(pid) {
		t.Errorf("launched %d, the set-up lives: %v", r.Launched, alive(pid))
	}
	must(t, os.WriteFile(script, []byte("echo what a pity; exit 3\n"), 0o600))
	if r := w.gone(w.start("wt", "exit 0")); r.Outcome != "spawn_failed" || !strings.Contains(r.Error, "exit code 3: what a pity") {
		t.Errorf("%q %q", r.Outcome, r.Error)
	}
	slow := newWorkNode(t, ", timeout: 1, setup: 'while :; do sleep 0.05; done'")
	if r := slow.gone(slow.start("wt", "exit 0")); r.Outcome != "spawn_failed" || !strings.Contains(r.Error, "took longer than 1s") {
		t.Errorf("%q %q", r.Outcome, r.Error)
	}
}

// A node that was killed during a set-up ends it before it does anything else,
// and the next start runs it again.
func TestSetupOfAnEarlierLifeIsEnded(t *testing.T) {
	t.Parallel()
	w := newWorkNode(t, "")
	must(t, w.Close())
	dir := filepath.Join(w.cfg.Dir, "jobs", "web-7.setup")
	must(t, os.MkdirAll(dir, 0o700))
	pids := filepath.Join(t.TempDir(), "pid")
	s := &Spec{Run: "web-7.setup", Node: testNode, Nonce: randomHex(16), Argv: []string{"sh", "-c", "echo $$ > " + pids + "; while :; do sleep 0.05; done"}, Dir: "/",
		Env: []string{"PATH=/usr/bin:/bin"}, Boot: BootID(), StartBy: BootNow().Add(slow), Kill: scriptKill}
	s.Env = append(s.Env, envNonce+"="+s.Nonce)
	must(t, writeJSON(dir, fileSpec, s, false))
	k := testKeepers(t)
	link, err := k.Start(dir)
	must(t, err)
	pid := pidIn(t, pids)
	link.Close()
	w.open()
	if alive(pid) || exists(dir) {
		t.Errorf("alive %v, folder %v", alive(pid), exists(dir))
	}
}

// WSP-01: ports are few and folders stay: a card that has no session here any more holds none.
func TestPortsAreGivenBack(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	n := newNode(t, nil)
	run := n.start("sh", "echo started")
	n.gone(run)
	held, err := filepath.Glob(filepath.Join(os.TempDir(), "muster-ports-*", "*"))
	if err != nil || len(held) != 0 {
		t.Errorf("after its session %v are held (%v)", held, err)
	}
}
