package workspace

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// dying is what the test's own binary does as a node that is killed: it makes a
// workspace, or clears it, and ends at the n-th time that it comes to a step.
func dying(args []string) int {
	dir, step := args[0], args[2]
	left, err := strconv.Atoi(args[3])
	if err != nil {
		return 2
	}
	g := newRigAt(&fatal{}, dir, func(s string) {
		if s == step {
			if left--; left == 0 {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
		}
	})
	if args[1] == "clear" {
		err = g.Clear(context.Background(), "web-1")
	} else {
		_, err = g.Make(context.Background(), crashWant(g))
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// fatal lets a rig be used where there is no test.
type fatal struct{ testing.TB }

func (*fatal) Helper()           {}
func (*fatal) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

func crashWant(g *rig) Want {
	w := g.want("web-1")
	w.Setup = "echo up >> up.ign"
	return w
}

// killed tells whether the node died on its way.
func killed(t *testing.T, dir, verb, step string, n int, after time.Duration) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cmd := exec.CommandContext(ctx, must1(os.Executable()), "die", dir, verb, step, strconv.Itoa(n))
	if after > 0 {
		timer := time.AfterFunc(after, cancel)
		defer timer.Stop()
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == -1 {
		return true
	}
	if err != nil && !errors.Is(err, context.Canceled) { // it was over when its killer came
		t.Fatalf("%s: %v\n%s", verb, err, out)
	}
	return false
}

// whole is one worktree, on its branch, set up, with nothing left of another.
func whole(t *testing.T, g *rig, where string) {
	t.Helper()
	p, err := g.Make(context.Background(), crashWant(g))
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	clones := must1(filepath.Glob(filepath.Join(g.dir, "data", "repos", "*.git")))
	if len(clones) != 1 {
		t.Fatalf("%s: clones %q", where, clones)
	}
	if list := strings.Count(g.git(clones[0], "worktree", "list", "--porcelain"), "worktree "); list != 2 { // the clone itself is one
		t.Errorf("%s: %d worktrees, want 1", where, list-1)
	}
	if s := g.git(p.Path, "status", "--porcelain"); s != "" || g.git(p.Path, "symbolic-ref", "--short", "HEAD") != "muster/web-1" {
		t.Errorf("%s: status %q", where, s)
	}
	if b, err := os.ReadFile(filepath.Join(p.Path, "up.ign")); err != nil || len(b) == 0 {
		t.Errorf("%s: it was not set up: %v", where, err)
	}
	g.git(clones[0], "fsck", "--connectivity-only")
}

// A node that is killed at any line of the making or the removal of a workspace
// finishes it or begins anew: there is one, and it is whole.
func TestNodeDiesOnTheWay(t *testing.T) {
	for verb, steps := range map[string][]string{
		"make":  {"recorded making", "clone begun", "cloned", "added", "recorded setup", "setup", "set-up", "recorded ready"},
		"clear": {"recorded leaving", "in the trash", "recorded removing", "removing", "removed"},
	} {
		for _, step := range steps {
			t.Run(verb+"/"+strings.ReplaceAll(step, " ", "-"), func(t *testing.T) {
				t.Parallel()
				g := newRigAt(t, t.TempDir(), nil)
				if verb == "clear" {
					whole(t, g, "before")
				}
				if !killed(t, g.dir, verb, step, 1, 0) {
					t.Fatalf("the node was never killed at %q: the step is not there", step)
				}
				g = newRigAt(t, g.dir, nil)
				whole(t, g, "after")
				if verb == "clear" && step != "removed" {
					killed(t, g.dir, verb, step, 1, 0)
					if why := newRigAt(t, g.dir, nil).clear("web-1"); why != "" || g.stands(g.path("web-1")) {
						t.Errorf("after another death it stays: %s", why)
					}
				}
			})
		}
	}
}

// The same at moments that nobody chose, git's own among them.
func TestNodeDiesAtAnyMoment(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	g := newRigAt(t, t.TempDir(), nil)
	for i := range 12 {
		verb := []string{"make", "clear"}[r.IntN(2)]
		after := time.Duration(1+r.IntN(400)) * time.Millisecond
		died := killed(t, g.dir, verb, "", 1, after)
		if r.IntN(2) == 0 || i == 11 {
			whole(t, newRigAt(t, g.dir, nil), fmt.Sprintf("%d: %s after %s (died %v)", i, verb, after, died))
		}
	}
}

// What a git that was killed inside of `worktree add` leaves, file by file: the workspace of its card is made whole, and so
// is another card's; a worktree that was checked out stays, whatever its entry lacks.
func TestHalfAWorktree(t *testing.T) {
	t.Parallel()
	g := newRigAt(t, t.TempDir(), nil)
	whole(t, g, "before")
	clone := must1(filepath.Glob(filepath.Join(g.dir, "data", "repos", "*.git")))[0]
	begun := func(card string, files map[string]string) string {
		entry := filepath.Join(clone, "worktrees", card)
		for name, text := range files {
			g.write(entry, name, text)
		}
		return entry
	}
	path := g.path("web-2") + "/.git\n"
	for name, files := range map[string]map[string]string{
		"named":              {"locked": ""},
		"an empty gitdir":    {"locked": "", "gitdir": ""},
		"no commondir":       {"locked": "", "gitdir": path},
		"an empty commondir": {"locked": "", "gitdir": path, "commondir": "", "HEAD": "ref: refs/heads/x\n"},
		"an empty HEAD":      {"locked": "", "gitdir": path, "commondir": "../..\n", "HEAD": ""},
	} {
		t.Run(name, func(t *testing.T) {
			entry := begun("web-2", files)
			must(t, g.begin(&record{Card: "web-2", Kind: Worktree, Path: g.path("web-2"), Spec: g.want("web-2").Spec, Clone: clone, URL: g.origin, Branch: "muster/web-2", State: stateMaking}))
			must(t, os.MkdirAll(g.path("web-2"), 0o700))
			must(t, os.WriteFile(filepath.Join(g.path("web-2"), ".git"), nil, 0o600))
			g.make(g.want("web-3"))
			if g.stands(entry) {
				t.Errorf("%s still stands in the way of every fetch", entry)
			}
			if p := g.make(g.want("web-2")); g.git(p.Path, "symbolic-ref", "--short", "HEAD") != "muster/web-2" {
				t.Error("it is on another branch")
			}
			for _, card := range []string{"web-2", "web-3"} {
				if why := g.clear(card); why != "" {
					t.Fatal(why)
				}
			}
		})
	}
	must(t, os.Truncate(filepath.Join(clone, "worktrees", "web-1", "commondir"), 0))
	if err := dropHalves(clone); err != nil || !g.stands(filepath.Join(clone, "worktrees", "web-1", "HEAD")) {
		t.Errorf("what a session worked in is gone: %v", err)
	}
}
