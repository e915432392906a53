package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// WSP-01: each kind is made on the machine that runs it, and found again.
func TestKinds(t *testing.T) {
	g := newRig(t)
	p := g.make(Want{Card: "web-1", Spec: ""})
	if p.Kind != Scratch || p.Path != filepath.Join(g.dir, "data", "workspaces", "web-1") || !g.stands(p.Path) {
		t.Errorf("%+v", p)
	}
	g.write(p.Path, "x", "mine")
	if again := g.make(Want{Card: "web-1", Spec: "scratch"}); again != p || !g.stands(filepath.Join(p.Path, "x")) {
		t.Errorf("%+v, then %+v", p, again)
	}
	there := t.TempDir()
	if p = g.make(Want{Card: "web-2", Spec: "dir:" + there}); p.Kind != Dir || p.Path != there {
		t.Errorf("%+v", p)
	}
	p = g.make(g.want("web-3"))
	if p.Kind != Worktree || p.Branch != "muster/web-3" || g.git(p.Path, "symbolic-ref", "--short", "HEAD") != "muster/web-3" || !g.stands(filepath.Join(p.Path, "a")) {
		t.Errorf("%+v", p)
	}
	if again := g.make(g.want("web-3")); again != p {
		t.Errorf("%+v, then %+v", p, again)
	}
	g.refused(Want{Card: "web-4", Spec: "moon:1"}, "scratch, dir:PATH or worktree:REPO")
}

// T27, T28: names that come from other machines name nothing else.
func TestNamesLeadNowhere(t *testing.T) {
	g := newRig(t)
	for _, card := range []string{"", "..", "../x", "/x", "a/b", ".x", "-x", "a\x00"} {
		g.refused(Want{Card: card, Spec: "scratch"}, "cannot name a folder")
	}
	for spec, say := range map[string]string{
		"worktree:":                      "no URL",
		"worktree:--upload-pack=touch x": "no URL",
		"worktree:ext::sh -c touch% x":   "no URL",
		"worktree:/no/such/repo":         "no folder on this machine",
		"worktree:app":                   "does not know a repository",
		"worktree:../up":                 "use a URL",
		"dir:../up":                      "has to be absolute",
		"dir:/no/such":                   "no folder on this machine",
		"dir:" + filepath.Join(g.dir, "data", "worktrees"): "each folder has its own card",
	} {
		g.refused(Want{Card: "web-1", Spec: spec}, say)
	}
	for branch, say := range map[string]string{"--upload-pack=x": "dash", "a..b": "no name", "a b": "no name", "x.lock": "no name"} {
		w := g.want("web-1")
		w.Branch = branch
		g.refused(w, say)
	}
	w := g.want("web-1")
	w.Base = "--all"
	g.refused(w, "no branch, tag or commit")
	if n := names(t, filepath.Join(g.dir, "data", "worktrees")); len(n) != 0 {
		t.Errorf("left behind: %q", n)
	}
	if n := names(t, filepath.Join(g.dir, "data", "workspaces.d")); len(n) != 0 {
		t.Errorf("left behind: %q", n)
	}
}

// WSP-02: what is at a card's place is what was made there, of this user, and nobody else's.
func TestOwnerIsChecked(t *testing.T) {
	g := newRig(t)
	p := g.make(Want{Card: "web-1", Spec: "scratch"})
	must(t, os.Rename(p.Path, p.Path+".away"))
	must(t, os.Symlink(t.TempDir(), p.Path))
	g.refused(Want{Card: "web-1", Spec: "scratch"}, p.Path, "symbolic link")
	must(t, os.Remove(p.Path))
	must(t, os.WriteFile(p.Path, nil, 0o600))
	g.refused(Want{Card: "web-1", Spec: "scratch"}, p.Path, "no folder")

	there, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(there, link))
	if p := g.make(Want{Card: "web-2", Spec: "dir:" + link}); p.Path != there {
		t.Errorf("resolved to %s", p.Path)
	}
	must(t, os.Remove(link))
	must(t, os.Symlink(t.TempDir(), link))
	g.refused(Want{Card: "web-2", Spec: "dir:" + link}, "led to", there)

	g.live["web-2"] = true
	g.refused(Want{Card: "web-3", Spec: "dir:" + there}, there, "card web-2")
	g.live["web-2"] = false
	g.make(Want{Card: "web-3", Spec: "dir:" + there})

	w := g.want("web-4")
	p = g.make(w)
	must(t, os.WriteFile(filepath.Join(p.Path, ".git"), []byte("gitdir: "+filepath.Join(g.dir, "seed", ".git")+"\n"), 0o644))
	g.refused(w, p.Path, "not the worktree any more")
	if os.Getuid() == 0 {
		must(t, os.Chown(there, 12345, -1))
		g.refused(Want{Card: "web-3", Spec: "dir:" + there}, "12345")
	}
}

// M-26: a workspace that was taken away is named, not made anew; gc lets it go.
func TestMissingWorkspaceIsNamed(t *testing.T) {
	g := newRig(t)
	for _, w := range []Want{{Card: "web-1", Spec: "scratch"}, g.want("web-2")} {
		p := g.make(w)
		must(t, os.RemoveAll(p.Path))
		g.refused(w, p.Path, "muster gc")
		var miss *MissingError
		if _, err := g.Make(context.Background(), w); !errors.As(err, &miss) || miss.Path != p.Path {
			t.Errorf("%v", err)
		}
		if why := g.clear(w.Card); why != "" {
			t.Error(why)
		}
		if again := g.make(w); again.Path != p.Path {
			t.Errorf("%+v", again)
		}
	}
}

// A repository is a URL, a path, or a name of this machine.
func TestRepoNames(t *testing.T) {
	g := newRig(t)
	g.cfg.Repos = func() (map[string]string, error) { return map[string]string{"app": g.origin}, nil }
	w := g.want("web-1")
	w.Spec = "worktree:app"
	g.make(w)
	w = g.want("web-2")
	w.Spec = "worktree:file://" + g.origin
	g.make(w)
	for _, url := range []string{"https://example.org/a/b.git", "ssh://git@example.org/b", "git@example.org:a/b.git", "host:b"} {
		if c, err := g.repo(url); err != nil || c.url != url || c.folder != "" {
			t.Errorf("%s: %+v %v", url, c, err)
		}
	}
}

// Set-up runs once for a workspace, before its first session, and again when it
// failed; its ports and paths are told to it.
func TestSetupRunsOnce(t *testing.T) {
	g := newRig(t)
	w := g.want("web-1")
	w.Setup, w.Env = `echo "$MUSTER_CARD $MUSTER_PORT_BASE $EXTRA" >> setup.ign; test -e ../../go || { echo no luck; exit 3; }`, []string{"EXTRA=e"}
	g.refused(w, "set-up", "no luck")
	must(t, os.WriteFile(filepath.Join(g.dir, "data", "go"), nil, 0o600))
	p := g.make(w)
	g.make(w)
	b, err := os.ReadFile(filepath.Join(p.Path, "setup.ign"))
	must(t, err)
	if lines := strings.Split(strings.TrimSpace(string(b)), "\n"); len(lines) != 2 || !strings.HasSuffix(lines[1], " e") || !strings.HasPrefix(lines[1], "web-1 2") {
		t.Errorf("%q", lines)
	}
}

// A workspace whose set-up failed and that could not go after all, because work
// came into it at the last moment, is set up at its next start.
func TestSetupComesAfterAStay(t *testing.T) {
	var g *rig
	g = newRigAt(t, t.TempDir(), func(step string) {
		if step == "in the trash" {
			g.write(filepath.Join(g.trash(), "worktree-web-1"), "late", "work of the last moment")
		}
	})
	w := g.want("web-1")
	w.Setup = `test -e ../../go || { echo no luck; exit 3; }; echo done > made.ign`
	g.refused(w, "set-up", "no luck")
	if err := g.Clear(context.Background(), "web-1"); err == nil || !strings.Contains(err.Error(), "stays") {
		t.Fatalf("it went with the late file: %v", err)
	}
	must(t, os.WriteFile(filepath.Join(g.dir, "data", "go"), nil, 0o600))
	p := g.make(w)
	for _, name := range []string{"made.ign", "late"} {
		if !g.stands(filepath.Join(p.Path, name)) {
			t.Errorf("%s is not there", name)
		}
	}
}

// Files that git ignores are brought along from a repository that is a folder
// here; nothing leads out of it, and one that a session changed is work.
func TestBring(t *testing.T) {
	g := newRig(t)
	seed := filepath.Join(g.dir, "seed")
	g.write(seed, ".env", "KEY=1")
	g.write(seed, "conf/local.ign", "x")
	g.write(seed, "plain", "not ignored")
	must(t, os.Symlink("/etc/passwd", filepath.Join(seed, "conf", "out")))
	w := g.want("web-1")
	w.Spec, w.Bring = "worktree:"+seed, []string{".env", "conf", "*.none", "plain", "a"}
	p := g.make(w)
	for name, text := range map[string]string{".env": "KEY=1", "conf/local.ign": "x", "plain": "not ignored", "a": "one\n"} {
		if b, _ := os.ReadFile(filepath.Join(p.Path, name)); string(b) != text {
			t.Errorf("%s is %q", name, b)
		}
	}
	if g.stands(filepath.Join(p.Path, "conf", "out")) {
		t.Error("a link was brought along")
	}
	if l := g.settle("web-1", false); l.Work != Saved {
		t.Errorf("%+v", l)
	}
	g.write(p.Path, ".env", "KEY=2")
	if l := g.settle("web-1", false); l.Work != Uncommitted || !strings.Contains(l.Why, ".env") {
		t.Errorf("%+v", l)
	}
	for _, bad := range []string{"../x", "/etc/passwd", ".git/config", "."} {
		w := g.want("web-2")
		w.Spec, w.Bring = "worktree:"+seed, []string{bad}
		g.refused(w, "bring")
	}
}

// A card has ten ports on a machine for as long as it has a workspace there, and
// no other card of any node of this user has them.
func TestPorts(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	g := newRig(t)
	other := newRigAt(t, t.TempDir(), nil)
	seen := map[int]string{}
	for _, x := range []struct {
		g    *rig
		card string
	}{{g, "web-1"}, {other, "web-1"}, {g, "web-2"}, {other, "web-2"}} {
		p := x.g.make(Want{Card: x.card, Spec: "scratch"})
		if seen[p.Port] != "" || p.Port < FirstPort || p.Port%PortsPerCard != 0 {
			t.Errorf("%s has port %d, and so has %s", x.card, p.Port, seen[p.Port])
		}
		seen[p.Port] = x.card
	}
	first := g.make(Want{Card: "web-1", Spec: "scratch"}).Port
	if again := g.make(g.want("web-1")).Port; again != first {
		t.Errorf("another workspace of the card has %d, not %d", again, first)
	}
	if why := g.clear("web-1"); why != "" {
		t.Fatal(why)
	}
	if p := other.make(Want{Card: "web-9", Spec: "scratch"}); p.Port != first {
		t.Errorf("the ports of a workspace that is gone are not given again: %d, want %d", p.Port, first)
	}
	full := newRig(t)
	full.cfg.Ports = [2]int{31000, 31009}
	full.make(Want{Card: "web-1", Spec: "scratch"})
	full.refused(Want{Card: "web-2", Spec: "scratch"}, "no ports are left")
	full.Rest("web-1") // its session is gone, and its folder stays
	full.make(Want{Card: "web-2", Spec: "scratch"})
	full.refused(Want{Card: "web-1", Spec: "scratch"}, "no ports are left")
	full.RestAll(func(card string) bool { return card == "web-2" })
	full.refused(Want{Card: "web-1", Spec: "scratch"}, "no ports are left")
	full.RestAll(func(string) bool { return false }) // a node that was killed before it gave them back
	if p := full.make(Want{Card: "web-1", Spec: "scratch"}); p.Port != 31000 {
		t.Errorf("the ports that are free are not those of the card: %d", p.Port)
	}
	full.Rest("web-1")
	full.make(full.want("web-3"))
	full.Rest("web-3")
	full.refused(Want{Card: "web-1", Spec: "scratch"}, "no ports are left") // a worktree keeps its ports while it stands
}

// What a start costs does not grow with the ports that others hold: its record is
// synced for its own only.
func TestHeldPortsAreSeenFirst(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	g := newRig(t)
	for i := range 20 {
		g.make(Want{Card: fmt.Sprintf("web-%d", i), Spec: "scratch"})
	}
	recorded := 0
	other := newRigAt(t, t.TempDir(), func(step string) {
		if strings.HasPrefix(step, "recorded ") {
			recorded++
		}
	})
	other.make(Want{Card: "web-1", Spec: "scratch"})
	first := recorded
	recorded = 0
	alone := newRigAt(t, t.TempDir(), func(step string) {
		if strings.HasPrefix(step, "recorded ") {
			recorded++
		}
	})
	t.Setenv("TMPDIR", t.TempDir())
	alone.make(Want{Card: "web-1", Spec: "scratch"})
	if first != recorded {
		t.Errorf("%d records were synced where 20 sets of ports are held, %d where none is", first, recorded)
	}
}
