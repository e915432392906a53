package workspace

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a workspace holds is told for each way to leave something behind (M-05),
// and it stays for as long as it does.
func TestWhatIsLeft(t *testing.T) {
	for name, x := range map[string]struct {
		do   func(g *rig, dir string)
		work string
		say  string
	}{
		"nothing":    {func(*rig, string) {}, Saved, ""},
		"ignored":    {func(g *rig, d string) { g.write(d, "x.ign", "x") }, Saved, ""},
		"untracked":  {func(g *rig, d string) { g.write(d, "new/x", "x") }, Uncommitted, "new/x"},
		"changed":    {func(g *rig, d string) { g.write(d, "a", "two\n") }, Uncommitted, "changed file"},
		"staged":     {func(g *rig, d string) { g.write(d, "a", "two\n"); g.git(d, "add", "a") }, Uncommitted, "changed file"},
		"removed":    {func(g *rig, d string) { g.git(d, "rm", "-q", "a") }, Uncommitted, "changed file"},
		"commit":     {func(g *rig, d string) { g.commitFile(d, "b", "b") }, Unpushed, "on no remote: 1"},
		"detached":   {func(g *rig, d string) { g.git(d, "checkout", "-q", "--detach"); g.commitFile(d, "b", "b") }, Unpushed, "on no remote"},
		"stash":      {func(g *rig, d string) { g.write(d, "a", "two\n"); g.git(d, "stash", "-q") }, Uncommitted, "stash"},
		"flagged":    {func(g *rig, d string) { g.git(d, "update-index", "--assume-unchanged", "a"); g.write(d, "a", "x\n") }, Uncommitted, "not to look at a"},
		"hidden":     {func(g *rig, d string) { hide(g, d, "secret"); g.write(d, "secret", "x") }, Uncommitted, "secret"},
		"unseen":     {func(g *rig, d string) { g.git(d, "config", "status.showUntrackedFiles", "no"); g.write(d, "n", "x") }, Uncommitted, "n"},
		"merging":    {func(g *rig, d string) { conflict(g, d) }, Uncommitted, "MERGE_HEAD"},
		"bisecting":  {func(g *rig, d string) { g.git(d, "bisect", "start") }, Uncommitted, "BISECT_LOG"},
		"own refs":   {func(g *rig, d string) { g.git(d, "update-ref", "refs/worktree/x", "HEAD") }, Unpushed, "refs/worktree"},
		"repository": {func(g *rig, d string) { nestedRepo(g, filepath.Join(d, "deps.ign")) }, Unpushed, "deps.ign"},
		"orphan":     {func(g *rig, d string) { g.git(d, "checkout", "-q", "--orphan", "other"); g.git(d, "rm", "-qrf", ".") }, Saved, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t)
			p := g.make(g.want("web-1"))
			x.do(g, p.Path)
			if l := g.settle("web-1", false); l.Work != x.work || !strings.Contains(l.Why, x.say) {
				t.Errorf("%+v, want %s with %q", l, x.work, x.say)
			}
			why := g.clear("web-1")
			if gone := why == ""; gone != (x.work == Saved) || gone == g.stands(p.Path) {
				t.Errorf("cleared: %q, stands %v", why, g.stands(p.Path))
			}
			if why != "" {
				if again := g.make(g.want("web-1")); again.Path != p.Path {
					t.Errorf("%+v", again)
				}
			}
		})
	}
}

// hide lets the clone, not the repository, ignore a name.
func hide(g *rig, dir, name string) {
	common := g.git(dir, "rev-parse", "--path-format=absolute", "--git-common-dir")
	g.write(common, "info/exclude", name+"\n")
}

func conflict(g *rig, dir string) {
	g.commitFile(dir, "a", "mine\n")
	g.git(dir, "push", "-q", "origin", "HEAD")
	g.git(dir, "checkout", "-q", "-b", "other", "HEAD~1")
	g.commitFile(dir, "a", "other\n")
	_, _ = g.try(dir, "merge", "muster/web-1")
	g.git(dir, "checkout", "-q", "--ours", "a")
}

func nestedRepo(g *rig, dir string) {
	g.git(g.dir, "clone", "-q", g.origin, dir)
	g.commitFile(dir, "n", "n")
}

// The branch of a run that ended by its own word goes to its remote, once, and
// never over what others have put there; what cannot be pushed is unpushed.
func TestPush(t *testing.T) {
	g := newRig(t)
	p := g.make(g.want("web-1"))
	if l := g.settle("web-1", true); l.Work != Saved || l.Head != "" {
		t.Errorf("nothing was done: %+v", l)
	}
	if out := g.git(g.origin, "for-each-ref", "refs/heads/muster"); out != "" {
		t.Errorf("an empty branch was pushed: %s", out)
	}
	head := g.commitFile(p.Path, "b", "b")
	if l := g.settle("web-1", false); l.Work != Unpushed {
		t.Errorf("%+v", l)
	}
	hook := filepath.Join(g.git(p.Path, "rev-parse", "--path-format=absolute", "--git-common-dir"), "hooks", "pre-push")
	must(t, os.MkdirAll(filepath.Dir(hook), 0o755))
	must(t, os.WriteFile(hook, []byte("#!/bin/sh\ntouch "+g.dir+"/hooked\nexit 1\n"), 0o755))
	if l := g.settle("web-1", true); l.Work != Saved || l.Head != head || g.stands(filepath.Join(g.dir, "hooked")) {
		t.Errorf("%+v, a hook of the repository ran: %v", l, g.stands(filepath.Join(g.dir, "hooked")))
	}
	if got := g.git(g.origin, "rev-parse", "refs/heads/muster/web-1"); got != head {
		t.Errorf("pushed %s, want %s", got, head)
	}
	seed := filepath.Join(g.dir, "seed")
	g.git(seed, "fetch", "-q")
	g.git(seed, "checkout", "-q", "muster/web-1")
	theirs := g.commitFile(seed, "c", "c")
	g.git(seed, "push", "-q", "origin", "HEAD")
	g.commitFile(p.Path, "d", "d")
	l, err := g.Settle(context.Background(), "web-1", p.Path, true)
	if err == nil || !strings.Contains(err.Error(), "rejected") || l.Work != Unpushed {
		t.Errorf("%+v, %v", l, err)
	}
	if got := g.git(g.origin, "rev-parse", "refs/heads/muster/web-1"); got != theirs {
		t.Errorf("the remote has %s, want %s", got, theirs)
	}
}

// A start on another machine has what was pushed, or says what is missing.
func TestStartElsewhere(t *testing.T) {
	g := newRig(t)
	there := func() *rig {
		o := newRigAt(t, t.TempDir(), nil)
		o.origin = g.origin
		return o
	}
	p := g.make(g.want("web-1"))
	g.commitFile(p.Path, "b", "b")
	l := g.settle("web-1", true)
	w := g.want("web-1")
	w.Head = l.Head
	o := there()
	q := o.make(w)
	if got := o.git(q.Path, "rev-parse", "HEAD"); got != l.Head {
		t.Errorf("there is %s, want %s", got, l.Head)
	}
	later := o.commitFile(q.Path, "c", "c")
	w.Head = o.settle("web-1", true).Head
	if g.make(w); g.git(p.Path, "rev-parse", "HEAD") != later || w.Head != later {
		t.Error("the first machine does not follow")
	}
	g.git(g.origin, "update-ref", "-d", "refs/heads/muster/web-1")
	there().refused(w, short(later), "muster/web-1", g.origin)
	g.git(g.origin, "update-ref", "refs/heads/muster/web-1", "refs/heads/main")
	there().refused(w, short(later), "muster/web-1", g.origin)
	g.write(p.Path, "local", "x")
	w.Head = "0000000000000000000000000000000000000001"
	g.refused(w, "000000000000", "is not on branch")
}

// Submodules go with their worktree, so they are looked at like it.
func TestSubmodules(t *testing.T) {
	g := newRig(t)
	lib := filepath.Join(g.dir, "lib.git")
	g.git(g.dir, "clone", "-q", "--bare", g.origin, lib)
	p := g.make(g.want("web-1"))
	g.git(p.Path, "submodule", "--quiet", "add", lib, "lib")
	g.git(p.Path, "commit", "-qm", "lib")
	if l := g.settle("web-1", true); l.Work != Saved {
		t.Fatalf("%+v", l)
	}
	sub := filepath.Join(p.Path, "lib")
	for name, undo := range map[string]func(){
		"untracked": func() { must(t, os.Remove(filepath.Join(sub, "new"))) },
		"commit":    func() { g.git(sub, "push", "-q", "origin", "topic:refs/heads/x") },
	} {
		g.write(sub, "new", "x")
		if name == "commit" {
			g.git(sub, "checkout", "-q", "-B", "topic")
			g.commitFile(sub, "new", "x")
			g.git(sub, "checkout", "-q", "--detach", "main")
		}
		if why := g.clear("web-1"); !strings.Contains(why, "lib") {
			t.Errorf("%s: %q", name, why)
		}
		undo()
	}
	if why := g.clear("web-1"); why != "" || g.stands(p.Path) {
		t.Errorf("stays: %s", why)
	}
}

// gc lets go what nobody needs and nothing would miss, and says why the rest stays.
func TestGc(t *testing.T) {
	g := newRig(t)
	over := map[string]bool{}
	g.make(g.want("done-1"))
	g.commitFile(g.make(g.want("done-2")).Path, "b", "b")
	g.make(g.want("open-3"))
	g.write(g.make(Want{Card: "done-4", Spec: "scratch"}).Path, "x", "x")
	g.make(Want{Card: "done-5", Spec: "scratch"})
	g.live["done-6"] = true
	g.make(g.want("done-6"))
	must(t, os.Mkdir(filepath.Join(g.dir, "data", "worktrees", "stray"), 0o700))
	for _, c := range []string{"done-1", "done-2", "done-4", "done-5", "done-6"} {
		over[c] = true
	}
	sweep := Sweep{Dry: true, Over: func(c string) (bool, string) { return over[c], "its card is ready" }}
	want := map[string]string{"done-1": "", "done-2": "on no remote", "open-3": "its card is ready", "done-4": "muster gc --scratch", "done-5": "", "done-6": "a session", "": ""}
	run := func() {
		t.Helper()
		items, err := g.Gc(context.Background(), sweep)
		must(t, err)
		for _, it := range items {
			if it.Card == "" {
				if it.Gone || it.Why == "" {
					t.Errorf("%+v", it)
				}
				continue
			}
			if say := want[it.Card]; it.Gone != (say == "") || !strings.Contains(it.Why, say) || strings.Contains(it.Why, it.Path) {
				t.Errorf("%+v, want %q", it, say)
			}
		}
		if len(items) < 7 {
			t.Errorf("only %d are listed", len(items))
		}
	}
	run()
	if !g.stands(g.path("done-1")) {
		t.Fatal("a dry run has deleted")
	}
	sweep.Dry = false
	run()
	if g.stands(g.path("done-1")) || !g.stands(g.path("done-2")) {
		t.Error("deleted the wrong ones")
	}
	sweep.Scratch = true
	delete(want, "done-1")
	delete(want, "done-5")
	want["done-4"] = ""
	items, err := g.Gc(context.Background(), sweep)
	must(t, err)
	if len(items) == 0 || g.stands(filepath.Join(g.dir, "data", "workspaces", "done-4")) {
		t.Error("the files of a scratch folder stay although a person let them go")
	}
}

// A diff is all that a card has changed, committed or not, and bounded.
func TestDiff(t *testing.T) {
	g := newRig(t)
	p := g.make(g.want("web-1"))
	g.commitFile(p.Path, "b", "committed\n")
	g.write(p.Path, "a", "changed\n")
	g.write(p.Path, "n", "untracked\n")
	g.write(p.Path, "x.ign", "ignored\n")
	before := g.git(p.Path, "status", "--porcelain")
	d, err := g.Diff(context.Background(), "web-1", false)
	must(t, err)
	for _, line := range []string{"+committed", "-one", "+changed", "+untracked"} {
		if !strings.Contains(d.Text, line) {
			t.Errorf("no %q in\n%s", line, d.Text)
		}
	}
	if strings.Contains(d.Text, "ignored") || d.Branch != "muster/web-1" || d.Cut || g.git(p.Path, "status", "--porcelain") != before {
		t.Errorf("%+v; status was %q", d, before)
	}
	if d, err = g.Diff(context.Background(), "web-1", true); err != nil || !strings.Contains(d.Text, "3 files changed") {
		t.Errorf("%+v %v", d, err)
	}
	g.write(p.Path, "n", strings.Repeat("long line of text\n", MaxDiff/10))
	if d, err = g.Diff(context.Background(), "web-1", false); err != nil || !d.Cut || len(d.Text) != MaxDiff {
		t.Errorf("cut %v, %d bytes, %v", d.Cut, len(d.Text), err)
	}
	if _, err = g.Diff(context.Background(), "web-9", false); err == nil {
		t.Error("a card without a worktree has a diff")
	}
}
