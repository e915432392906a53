package main

import (
	"context"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// together tries rows in one build of each package, as far as they can share it; the others, and those that no test
// sees there, are tried alone.
type together struct {
	tree   *tree
	source string // the repository as it is
	bins   string
	limit  time.Duration
	broken map[int]string // rows that do not compile, with the compiler's words
	alone  map[int]string // rows that need a build of their own, with the reason
	built  map[string]string
	sound  map[string]bool // folder and test: passes where no row is broken
}

func tryTogether(ctx context.Context, w io.Writer, root string, rows []row, limit time.Duration) (bad int, err error) {
	dir, err := os.MkdirTemp("", "rules")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	g := &together{tree: &tree{root: filepath.Join(dir, "tree")}, source: filepath.Join(dir, "source"), bins: dir, limit: limit,
		broken: map[int]string{}, alone: map[int]string{}, built: map[string]string{}, sound: map[string]bool{}}
	for _, to := range []string{g.source, g.tree.root} { // somebody may work on the repository meanwhile
		if err := copyTree(root, to); err != nil {
			return 0, fmt.Errorf("copy the tree: %w", err)
		}
	}
	if err := g.tree.findTests(); err != nil {
		return 0, fmt.Errorf("find the tests: %w", err)
	}
	if err := g.build(ctx, rows); err != nil {
		return 0, err
	}
	fmt.Fprintf(w, "%d rows share their builds, %d do not, %d do not compile\n", len(rows)-len(g.alone)-len(g.broken), len(g.alone), len(g.broken))
	var rest []row
	for i := range rows {
		r := &rows[i]
		if why, ok := g.broken[i+1]; ok {
			bad++
			fmt.Fprintf(w, "BAD  %s %s (%s)\n     %s\n     the edit does not compile: %s\n", r.id, r.sentence, r.at(), r.edits[0], why)
			continue
		}
		why := g.alone[i+1]
		if why == "" {
			var seen []string
			if seen, why, err = g.try(ctx, i+1, r); err != nil {
				return bad, err
			}
			if len(seen) > 0 {
				fmt.Fprintf(w, "ok   %s %s\n     %s\n     seen by %s\n", r.id, r.sentence, r.edits[0], strings.Join(seen, ", "))
				continue
			}
		}
		fmt.Fprintf(w, "later %s (%s): %s\n", r.id, r.at(), why)
		rest = append(rest, *r)
	}
	alone, err := tryRows(ctx, w, g.source, rest, limit)
	return bad + alone, err
}

// build writes the shared tree, without the rows that do not compile.
func (g *together) build(ctx context.Context, rows []row) error {
	files := map[string]*switched{}
	for {
		for path, f := range files { // of the last try
			if err := os.WriteFile(filepath.Join(g.tree.root, path), []byte(f.text), 0o644); err != nil {
				return err
			}
		}
		files = map[string]*switched{}
		for i := range rows {
			if g.broken[i+1] != "" {
				continue
			}
			if why := addRow(g.source, files, i+1, &rows[i]); why != "" {
				g.alone[i+1] = why
			}
		}
		packages := map[string]bool{}
		for path, f := range files {
			text := f.String()
			if err := os.WriteFile(filepath.Join(g.tree.root, path), []byte(text), 0o644); err != nil {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.PackageClauseOnly)
			if err != nil {
				return err
			}
			dir := filepath.Dir(path)
			packages["./"+dir] = true
			if err := os.WriteFile(filepath.Join(g.tree.root, dir, "rules_row.go"), []byte(chooser(file.Name.Name, filepath.Join(g.bins, "row"))), 0o644); err != nil {
				return err
			}
		}
		out, err := g.run(ctx, g.tree.root, "go", slices.Concat([]string{"build", "-gcflags=-e"}, slices.Sorted(maps.Keys(packages)))...)
		if err == nil {
			return nil
		}
		if !g.blame(files, out) {
			return fmt.Errorf("the shared tree does not build: %s", clip(out))
		}
	}
}

var compileError = regexp.MustCompile(`(?m)^(?:\./)?([\w./-]+\.go):(\d+):\d+: (.*)$`)

// blame finds the rows in whose functions the compiler stopped.
func (g *together) blame(files map[string]*switched, out string) (found bool) {
	for _, m := range compileError.FindAllStringSubmatch(out, -1) {
		f := files[m[1]]
		line, err := strconv.Atoi(m[2])
		if f == nil || err != nil {
			continue
		}
		n := 0
		for _, l := range strings.Split(f.String(), "\n")[:line] {
			if s, ok := strings.CutPrefix(l, "//rules:row "); ok {
				n, _ = strconv.Atoi(s)
			}
		}
		if n > 0 && g.broken[n] == "" {
			g.broken[n], found = m[3], true
		}
	}
	return found
}

// try runs a row's tests in the shared build; why says what came of it where no test saw the row.
func (g *together) try(ctx context.Context, n int, r *row) (seen []string, why string, err error) {
	run := g.tree.where(r)
	if len(run) == 0 {
		return nil, "there is no test " + strings.Join(r.tests, ", "), nil
	}
	for _, dir := range slices.Sorted(maps.Keys(run)) {
		var names []string
		for _, test := range run[dir] {
			name, _, _ := strings.Cut(test, "/")
			names = append(names, name)
		}
		slices.Sort(names)
		names = slices.Compact(names)
		if why, err := g.ready(ctx, dir, names); why != "" || err != nil {
			return nil, why, err
		}
		if out, err := g.test(ctx, dir, names, n); err != nil {
			names := failing(out, run[dir])
			if len(names) == 0 { // no word of a failure: something ended it
				names = []string{run[dir][0] + " (its process died)"}
			}
			seen = append(seen, names...)
		}
		if ctx.Err() != nil {
			return nil, "", ctx.Err()
		}
	}
	return seen, "no test sees it in the shared build", nil
}

// ready builds a package's tests, and sees that those named pass where no row is broken.
func (g *together) ready(ctx context.Context, dir string, names []string) (why string, err error) {
	if g.built[dir] == "" {
		bin := filepath.Join(g.bins, fmt.Sprintf("%d.test", len(g.built)))
		if out, err := g.run(ctx, g.tree.root, "go", "test", "-c", "-vet=off", "-ldflags=-w", "-o", bin, "./"+dir); err != nil {
			return "", fmt.Errorf("build the tests of %s: %w: %s", dir, err, clip(out))
		}
		g.built[dir] = bin
	}
	for _, name := range names {
		key := dir + " " + name
		if _, tried := g.sound[key]; !tried {
			_, err := g.test(ctx, dir, []string{name}, 0)
			g.sound[key] = err == nil
		}
		if !g.sound[key] {
			return name + " does not pass in the shared build", nil
		}
	}
	return "", nil
}

func (g *together) test(ctx context.Context, dir string, names []string, n int) (string, error) {
	if err := os.WriteFile(filepath.Join(g.bins, "row"), []byte(strconv.Itoa(n)), 0o644); err != nil {
		return "", err
	}
	return g.run(ctx, filepath.Join(g.tree.root, dir), g.built[dir],
		"-test.count=1", "-test.failfast", "-test.timeout="+g.limit.String(), "-test.run=^("+strings.Join(names, "|")+")$")
}

// leftOpen is how long a process that a test left behind may keep the test's output open.
const leftOpen = 5 * time.Second

func (g *together) run(ctx context.Context, dir, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.WaitDelay = dir, leftOpen
	out, err := c.CombinedOutput()
	if errors.Is(err, exec.ErrWaitDelay) { // it ended well itself
		err = nil
	}
	return string(out), err
}
