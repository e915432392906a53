package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// tree is a copy of the repository in which rows are tried.
type tree struct {
	root  string
	tests map[string][]string // test function to the folders that have one

	strict bool // only a failed assertion counts: no death of the process, no end of its time
}

// copyTree copies what belongs to the repository into dir.
func copyTree(from, dir string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != from && (name == ".git" || name == "bin") {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(dir, rel), 0o755)
		}
		if !d.Type().IsRegular() || d.Name() == ".git" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, rel), text, info.Mode().Perm())
	})
}

var testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)

// findTests notes where the test functions stand.
func (t *tree) findTests() error {
	t.tests = map[string][]string{}
	return filepath.WalkDir(t.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(t.root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			t.tests[m[1]] = append(t.tests[m[1]], filepath.ToSlash(dir))
		}
		return nil
	})
}

// where lists the packages of a row's tests with the tests to run in each: those the row names, else that of the
// edited file, else wherever a test of the name stands.
func (t *tree) where(r *row) map[string][]string {
	run := map[string][]string{}
	for _, test := range r.tests {
		name, _, _ := strings.Cut(test, "/")
		dirs := t.tests[name]
		for _, prefer := range [][]string{r.packages, folders(r.edits)} {
			if both := slices.DeleteFunc(slices.Clone(dirs), func(d string) bool { return !slices.Contains(prefer, d) }); len(both) > 0 {
				dirs = both
				break
			}
		}
		for _, d := range dirs {
			run[d] = append(run[d], test)
		}
	}
	return run
}

func folders(edits []edit) (dirs []string) {
	for _, e := range edits {
		dirs = append(dirs, filepath.ToSlash(filepath.Dir(e.path)))
	}
	return dirs
}

// verdict is what became of a row.
type verdict struct {
	seen   []string // tests that failed
	reason string   // why it is not as it should be; "": a test saw it
}

// try edits the copy, runs the row's tests, and puts the files back.
func (t *tree) try(ctx context.Context, r *row, limit time.Duration) (v verdict, err error) {
	before := map[string][]byte{}
	defer func() {
		for path, text := range before {
			err = errors.Join(err, os.WriteFile(filepath.Join(t.root, path), text, 0o644))
		}
	}()
	for _, e := range r.edits {
		full := filepath.Join(t.root, e.path)
		text, err := os.ReadFile(full)
		if err != nil {
			return verdict{reason: "there is no file " + e.path}, nil
		}
		if _, ok := before[e.path]; !ok {
			before[e.path] = text
		}
		changed, err := e.apply(string(text))
		if err != nil {
			return verdict{reason: err.Error()}, nil
		}
		if err := os.WriteFile(full, []byte(changed), 0o644); err != nil {
			return verdict{}, err
		}
	}
	run := t.where(r)
	if len(run) == 0 {
		return verdict{reason: fmt.Sprintf("there is no test %s", strings.Join(r.tests, ", "))}, nil
	}
	for dir, tests := range run {
		out, failed := t.goTest(ctx, dir, tests, limit)
		switch {
		case !failed:
		case strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]"):
			return verdict{reason: "the edit does not compile:\n" + clip(out)}, nil
		case t.strict && died.MatchString(out):
			return verdict{reason: "no assertion fails, the process does:\n" + clip(died.FindString(out))}, nil
		default:
			v.seen = append(v.seen, failing(out, tests)...)
		}
	}
	if len(v.seen) == 0 {
		v.reason = fmt.Sprintf("no test sees it: %s passes", strings.Join(r.tests, ", "))
	}
	return v, nil
}

// died shows that a test's process did not end in order.
var died = regexp.MustCompile(`(?m)^(panic: .*|fatal error: .*|\*\*\* Test killed.*)$`)

// goTest runs tests of a package, each named as it stands.
func (t *tree) goTest(ctx context.Context, dir string, tests []string, limit time.Duration) (out string, failed bool) {
	var names []string
	for _, test := range tests { // a sub-test runs with its function: its own name may be a pattern of several
		name, _, _ := strings.Cut(test, "/")
		names = append(names, name)
	}
	slices.Sort(names)
	c := exec.CommandContext(ctx, "go", "test", "-count=1", "-failfast", "-vet=off", "-ldflags=-w", "-timeout", limit.String(), "-run", "^("+strings.Join(slices.Compact(names), "|")+")$", "./"+dir)
	c.Dir = t.root
	b, err := c.CombinedOutput()
	return string(b), err != nil
}

var failLine = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// failing lists the failed tests of an output; a process that died or hung failed its first one.
func failing(out string, tests []string) (names []string) {
	for _, m := range failLine.FindAllStringSubmatch(out, -1) {
		names = append(names, m[1])
	}
	if len(names) == 0 && (strings.Contains(out, "panic:") || strings.Contains(out, "fatal error:") || strings.Contains(out, "FAIL")) {
		names = append(names, tests[0]+" (its process died)")
	}
	return names
}

func clip(s string) string {
	if len(s) > 600 {
		s = s[:600] + "..."
	}
	return strings.TrimSpace(s)
}
