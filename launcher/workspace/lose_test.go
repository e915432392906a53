package workspace

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Each check is dozens of processes: the long form is asked for by name.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "die" { // see crash_test.go
		os.Exit(dying(os.Args[2:]))
	}
	_ = flag.Set("rapid.checks", "12")
	flag.Parse()
	os.Exit(m.Run())
}

// snapshot is what a card's workspace holds that somebody may miss, found out
// without any of the code under test.
type snapshot struct {
	commits map[string]string // reachable in it, and where
	unsaved map[string]string // path -> what is different from what is checked out there
	files   map[string]string // path -> content
}

// repos lists the folders of all work trees below dir, itself included.
func repos(t testing.TB, dir string) (list []string) {
	must(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == ".git" {
			list = append(list, filepath.Dir(p))
			if d.IsDir() {
				return fs.SkipDir
			}
		}
		return err
	}))
	return list
}

func (g *rig) snapshot(dir string) snapshot {
	s := snapshot{map[string]string{}, map[string]string{}, map[string]string{}}
	roots := repos(g.t, dir)
	for _, root := range roots {
		// A stash's entries below the newest are reachable through its log.
		out := g.git(root, "rev-list", "--all") // HEAD is one of all
		stashes, _ := g.try(root, "reflog", "show", "--format=%H", "refs/stash")
		if strings.Contains(stashes, "fatal") {
			stashes = ""
		}
		for _, c := range strings.Fields(out + " " + stashes) {
			s.commits[c] = root
		}
	}
	must(g.t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == ".git" {
			if d != nil && d.Name() == ".git" && d.IsDir() {
				return fs.SkipDir
			}
			return err
		}
		root := dir
		for _, r := range roots {
			if strings.HasPrefix(p, r+"/") && len(r) > len(root) {
				root = r
			}
		}
		rel, err := filepath.Rel(root, p)
		if err != nil || strings.HasSuffix(strings.SplitN(rel, "/", 2)[0], ".ign") {
			return err
		}
		b, err := os.ReadFile(p)
		s.files[p] = string(b)
		if had, gerr := g.try(root, "show", "HEAD:"+rel); gerr != nil || had != strings.TrimSpace(string(b)) {
			s.unsaved[p] = string(b)
		}
		return err
	}))
	return s
}

// lost holds what was there against what is there now.
func (g *rig) lost(dir string, was snapshot, safe []string) error {
	if g.stands(dir) {
		for p, text := range was.files {
			if b, err := os.ReadFile(p); err != nil || string(b) != text {
				return fmt.Errorf("%s has changed", p)
			}
		}
		safe = append(safe, repos(g.t, dir)...)
	} else if len(was.unsaved) > 0 {
		return fmt.Errorf("these are lost: %v", was.unsaved)
	}
	have := map[string]bool{}
	for _, repo := range safe {
		out := g.git(repo, "rev-list", "--all")
		stashes, _ := g.try(repo, "reflog", "show", "--format=%H", "refs/stash")
		for _, c := range strings.Fields(out + " " + stashes) {
			have[c] = true
		}
	}
	for c, where := range was.commits {
		if !have[c] {
			return fmt.Errorf("commit %s of %s is lost", c, where)
		}
	}
	return nil
}

// what sessions do in a workspace, good and bad; a step that makes no sense where it stands does nothing.
func (g *rig) steps(t *rapid.T, dir string) map[string]func() {
	n := rapid.IntRange(0, 3).Draw(t, "file")
	name := []string{"a", "b", "sub/c", "x.ign"}[n]
	text := fmt.Sprintf("%d\n", rapid.IntRange(0, 1<<30).Draw(t, "text"))
	do := func(args ...string) { _, _ = g.try(dir, args...) }
	in := func(sub string, args ...string) { _, _ = g.try(filepath.Join(dir, sub), args...) }
	there := func(sub string) bool { return g.stands(filepath.Join(dir, sub)) }
	return map[string]func(){
		"write":          func() { g.write(dir, name, text) },
		"stage":          func() { g.write(dir, name, text); do("add", "--", name) },
		"commit":         func() { g.write(dir, name, text); do("add", "--", name); do("commit", "-qm", text) },
		"commit all":     func() { do("add", "-A"); do("commit", "-qm", text) },
		"amend":          func() { do("commit", "-q", "--amend", "-m", text) },
		"remove":         func() { do("rm", "-qf", "--", name) },
		"stash":          func() { do("stash", "-qu") },
		"pop":            func() { do("stash", "pop", "-q") },
		"detach":         func() { do("checkout", "-q", "--detach") },
		"other branch":   func() { do("checkout", "-q", "-B", "side") },
		"own branch":     func() { do("checkout", "-q", "muster/web-1") },
		"back":           func() { do("reset", "-q", "--hard", "HEAD~1") },
		"tag":            func() { do("tag", "t"+strings.TrimSpace(text)) },
		"push":           func() { do("push", "-q", "origin", "HEAD:refs/heads/muster/web-1") },
		"push by us":     func() { _, _ = g.Settle(context.Background(), "web-1", dir, true) },
		"remote forgets": func() { _, _ = g.try(g.origin, "update-ref", "-d", "refs/heads/muster/web-1") },
		"merge":          func() { do("merge", "-q", "side") },
		"clean":          func() { do("checkout", "-qf", "muster/web-1"); do("clean", "-qfd") },
		"submodule": func() {
			if !there("lib") {
				do("submodule", "--quiet", "add", filepath.Join(g.dir, "lib.git"), "lib")
			}
		},
		"in submodule": func() {
			if there("lib") {
				g.write(dir, "lib/s", text)
			}
		},
		"commit in submodule": func() {
			if there("lib") {
				in("lib", "add", "-A")
				in("lib", "commit", "-qm", text)
			}
		},
		"push of submodule": func() {
			if there("lib") {
				in("lib", "push", "-q", "origin", "HEAD:refs/heads/s"+strings.TrimSpace(text))
			}
		},
		"deinit": func() { do("submodule", "--quiet", "deinit", "-f", "lib") },
		"repository inside": func() {
			if !there("deps.ign") {
				_, _ = g.try(g.dir, "clone", "-q", g.origin, filepath.Join(dir, "deps.ign"))
			}
		},
		"work inside": func() {
			if there("deps.ign") {
				g.write(dir, "deps.ign/w", text)
			}
		},
		"commit inside": func() {
			if there("deps.ign") {
				in("deps.ign", "add", "-A")
				in("deps.ign", "commit", "-qm", text)
			}
		},
	}
}

// M-26: whatever sessions leave in their workspaces, clean-up and gc delete no
// file that git does not have and no commit that can be reached.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "r")
		must(t, err)
		g := newRigAt(t, dir, nil)
		g.git(g.dir, "clone", "-q", "--bare", g.origin, filepath.Join(g.dir, "lib.git"))
		p := g.make(g.want("web-1"))
		var did []string
		for range rapid.IntRange(1, 12).Draw(r, "steps") {
			steps := g.steps(r, p.Path)
			name := rapid.SampledFrom(slices.Sorted(maps.Keys(steps))).Draw(r, "step")
			steps[name]()
			did = append(did, name)
		}
		was := g.snapshot(p.Path)
		clone := must1(filepath.Glob(filepath.Join(g.dir, "data", "repos", "*.git")))
		why := ""
		if rapid.Bool().Draw(r, "gc") {
			items, err := g.Gc(context.Background(), Sweep{Scratch: true, Over: func(string) (bool, string) { return true, "" }})
			must(t, err)
			why = fmt.Sprint(items)
		} else {
			why = g.clear("web-1")
		}
		if err := g.lost(p.Path, was, append(clone, g.origin, filepath.Join(g.dir, "lib.git"))); err != nil {
			r.Fatalf("after %q: %v (stands %v: %s)", did, err, g.stands(p.Path), why)
		}
		if g.stands(p.Path) {
			if again := g.make(g.want("web-1")); again.Path != p.Path {
				r.Fatalf("after %q: %+v", did, again)
			}
		}
	})
}

func must1[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}
