// The tests of this package in the files house_, imports_ and rules_test.go
// hold the whole repository to its own rules. They read source and run nothing.
// Each names all offenders at once.
package main_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// rooms are the only folders that hold Go code.
var rooms = []string{"board", "mesh", "raftstore", "scheduler", "launcher", "cmd"}

const (
	maxFileLines = 600 // 400 asks for a split
	maxFuncLines = 100 // 60 needs a reason
)

// source is one Go file of the module.
type source struct {
	path  string // slash-separated, from the module's root
	test  bool
	text  []byte
	fset  *token.FileSet
	ast   *ast.File
	lines int
}

// dir is the folder of the file, from the module's root: the package path.
func (s *source) dir() string { return pathDir(s.path) }

func (s *source) line(pos token.Pos) int { return s.fset.Position(pos).Line }

// imports lists the import paths of the file.
func (s *source) imports() []string {
	var list []string
	for _, spec := range s.ast.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err == nil {
			list = append(list, path)
		}
	}
	return list
}

func pathDir(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i]
	}
	return "."
}

// module is read once for all tests of this file.
var module = sync.OnceValues(func() ([]*source, error) { return readModule(moduleRoot) })

// moduleRoot is where go.mod stands, seen from this package.
const moduleRoot = "../.."

func readModule(root string) ([]*source, error) {
	var list []*source
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		s, err := readSource(filepath.ToSlash(rel), path)
		if err != nil {
			return err
		}
		list = append(list, s)
		return nil
	})
	return list, err
}

func readSource(name, path string) (*source, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseSource(name, text)
}

func parseSource(name string, text []byte) (*source, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &source{
		path: name, test: strings.HasSuffix(name, "_test.go"), text: text, fset: fset, ast: file,
		lines: strings.Count(string(text), "\n"),
	}, nil
}

func sources(t *testing.T) []*source {
	t.Helper()
	list, err := module()
	if err != nil {
		t.Fatalf("read the module: %v", err)
	}
	if len(list) == 0 {
		t.Fatal("the module has no Go files: the walk is broken")
	}
	return list
}

// check runs one rule over every file and reports every offence.
func check(t *testing.T, rule func(*source) []string) {
	t.Helper()
	for _, s := range sources(t) {
		for _, offence := range rule(s) {
			t.Errorf("%s: %s", s.path, offence)
		}
	}
}

func TestGoCodeStandsInARoom(t *testing.T) {
	check(t, outsideRooms)
}

func outsideRooms(s *source) []string {
	top, _, inFolder := strings.Cut(s.path, "/")
	if inFolder && slices.Contains(rooms, top) {
		return nil
	}
	return []string{"Go code outside the rooms (" + strings.Join(rooms, ", ") + ")"}
}

func TestFilesAndFunctionsAreShort(t *testing.T) {
	check(t, tooLong)
}

// tooLong: the limit of functions is for the product; a test is often a table.
func tooLong(s *source) []string {
	var list []string
	if s.lines > maxFileLines {
		list = append(list, strconv.Itoa(s.lines)+" lines; split it (400 asks for it, "+strconv.Itoa(maxFileLines)+" is a defect)")
	}
	if s.test {
		return list
	}
	for _, d := range s.ast.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if n := s.line(f.End()) - s.line(f.Pos()) + 1; n > maxFuncLines {
			list = append(list, "func "+f.Name.Name+" has "+strconv.Itoa(n)+" lines, the limit is "+strconv.Itoa(maxFuncLines))
		}
	}
	return list
}

func TestNoInitFunctions(t *testing.T) {
	check(t, initFuncs)
}

func initFuncs(s *source) []string {
	for _, d := range s.ast.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			return []string{"line " + strconv.Itoa(s.line(f.Pos())) + ": func init: wire it where it is used"}
		}
	}
	return nil
}

// unfinished matches a note to do something later. (Spelt so that this file
// does not match itself.)
var unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)

func TestNothingIsLeftForLater(t *testing.T) {
	check(t, func(s *source) []string { return notes(string(s.text)) })
	for _, pattern := range []string{"*.md", "*/*.md", "*/*/*.md", "Makefile", ".ci/*"} {
		paths, err := filepath.Glob(filepath.Join(moduleRoot, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range notes(string(text)) {
				t.Errorf("%s: %s", path, n)
			}
		}
	}
}

func notes(text string) []string {
	var list []string
	for i, line := range strings.Split(text, "\n") {
		if m := unfinished.FindString(line); m != "" {
			list = append(list, "line "+strconv.Itoa(i+1)+": "+m+": do it, or file an issue")
		}
	}
	return list
}

// Every package says what it is for, once, where one looks for it.
func TestEachPackageHasOnePackageComment(t *testing.T) {
	for _, offence := range packageComments(sources(t)) {
		t.Error(offence)
	}
}

func packageComments(list []*source) []string {
	docs := map[string][]string{}
	for _, s := range list {
		if s.test {
			continue
		}
		if _, known := docs[s.dir()]; !known {
			docs[s.dir()] = nil
		}
		if s.ast.Doc != nil && strings.TrimSpace(s.ast.Doc.Text()) != "" {
			docs[s.dir()] = append(docs[s.dir()], s.path)
		}
	}
	var offences []string
	for dir, files := range docs {
		want := dir + "/doc.go"
		switch {
		case len(files) == 0:
			offences = append(offences, dir+": no package comment; write "+want)
		case len(files) > 1:
			slices.Sort(files)
			offences = append(offences, dir+": package comments in "+strings.Join(files, ", ")+"; keep the one in doc.go")
		case files[0] != want:
			offences = append(offences, dir+": the package comment stands in "+files[0]+", move it to doc.go")
		}
	}
	slices.Sort(offences)
	return offences
}

// pure tells the files that are values in, values out (DESIGN.md of the rooms):
// all of board, and the deciding half of scheduler and launcher.
func pure(s *source) bool {
	if s.test {
		return false
	}
	dir, name := s.dir(), s.path[strings.LastIndexByte(s.path, '/')+1:]
	switch {
	case dir == "board" || strings.HasPrefix(dir, "board/"):
		return true
	case dir == "scheduler":
		return strings.HasPrefix(name, "plan") || strings.HasPrefix(name, "place") || strings.HasPrefix(name, "order")
	case dir == "launcher":
		return strings.HasPrefix(name, "diff")
	}
	return false
}

// What comes after the log must decide the same on every machine and at every
// replay: no clock, no chance, no environment, no disk.
func TestPureCodeReadsNoClockNoChanceNoDisk(t *testing.T) {
	check(t, impurities)
}

var (
	clockCalls   = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}
	impureImport = []string{"os", "os/exec", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand", "log", "log/slog", "syscall", "testing"}
)

func impurities(s *source) []string {
	if !pure(s) {
		return nil
	}
	var list []string
	for _, path := range s.imports() {
		if slices.Contains(impureImport, path) {
			list = append(list, "pure code imports "+path)
		}
	}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if call, ok := n.(*ast.SelectorExpr); ok && isName(call.X, "time") && slices.Contains(clockCalls, call.Sel.Name) {
			list = append(list, "line "+strconv.Itoa(s.line(call.Pos()))+": pure code calls time."+call.Sel.Name+"; take the time as a parameter")
		}
		return true
	})
	return list
}

func isName(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

// sleepers are the tests that may sleep outside a synctest bubble, as
// path:function, each with its reason.
var sleepers = map[string]string{
	"scheduler/loop_random_test.go:randomStep": "called inside the bubble of TestLoopMissesNothing",
	"scheduler/capsteps_test.go:step":          "called inside the bubbles of TestCapsHold and TestDryRunIsTheNextRound",
	"raftstore/honest_test.go:told":            "called inside the bubble of TestCommitsOfAStreamAreToldInGroups",
}

func TestNoTestSleepsOnTheRealClock(t *testing.T) {
	used := map[string]bool{}
	for _, s := range sources(t) {
		for _, call := range realSleeps(s) {
			if _, allowed := sleepers[call.where]; allowed {
				used[call.where] = true
				continue
			}
			t.Errorf("%s: line %d: time.Sleep outside a synctest bubble: wait for a condition, or give a reason in sleepers", call.where, call.line)
		}
	}
	for where := range sleepers {
		if !used[where] {
			t.Errorf("sleepers names %s, which does not sleep", where)
		}
	}
}

type sleep struct {
	where string // path:function
	line  int
}

// realSleeps finds time.Sleep in a test file, except inside a function given
// to synctest.Test.
func realSleeps(s *source) []sleep {
	if !s.test {
		return nil
	}
	var list []sleep
	for _, d := range s.ast.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if isName(call.Fun, "inBubble") { // a test's own wrapper around synctest.Test
				return false
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if isName(sel.X, "synctest") && sel.Sel.Name == "Test" {
				return false
			}
			if isName(sel.X, "time") && sel.Sel.Name == "Sleep" {
				list = append(list, sleep{s.path + ":" + f.Name.Name, s.line(call.Pos())})
			}
			return true
		})
	}
	return list
}

// Each rule above finds what it is there to find.
func TestTheHouseRulesCanFail(t *testing.T) {
	long := "package p\n" + strings.Repeat("\n", maxFileLines) + "func f() {" + strings.Repeat("\n", maxFuncLines) + "}\n"
	sleeps := func(s *source) []string {
		var list []string
		for _, c := range realSleeps(s) {
			list = append(list, c.where)
		}
		return list
	}
	comments := func(s *source) []string { return packageComments([]*source{s}) }
	for _, c := range []struct {
		name, path, text string
		rule             func(*source) []string
		want             int
	}{
		{"outside", "tools/x.go", "package p", outsideRooms, 1},
		{"at the root", "x.go", "package p", outsideRooms, 1},
		{"in a room", "board/x.go", "package p", outsideRooms, 0},
		{"long", "board/x.go", long, tooLong, 2},
		{"long test", "board/x_test.go", long, tooLong, 1},
		{"init", "board/x.go", "package p\nfunc init() {}", initFuncs, 1},
		{"init method", "board/x.go", "package p\ntype t int\nfunc (t) init() {}", initFuncs, 0},
		{"comment missing", "board/x.go", "package p", comments, 1},
		{"comment elsewhere", "board/x.go", "// Package p is.\npackage p", comments, 1},
		{"comment in place", "board/doc.go", "// Package p is.\npackage p", comments, 0},
		{"clock in board", "board/rule/x.go", "package p\nimport \"time\"\nvar f = time.Now", impurities, 1},
		{"clock in the loop", "scheduler/loop.go", "package p\nimport \"time\"\nvar f = time.Now", impurities, 0},
		{"clock in the plan", "scheduler/plan.go", "package p\nimport \"time\"\nvar f = time.Now", impurities, 1},
		{"disk in board", "board/x.go", "package p\nimport _ \"os\"", impurities, 1},
		{"sleep", "mesh/x_test.go", "package p\nfunc f() { time.Sleep(1) }", sleeps, 1},
		{"sleep in a bubble", "mesh/x_test.go", "package p\nfunc f() { synctest.Test(t, func() { time.Sleep(1) }) }", sleeps, 0},
		{"note", "mesh/x.go", "package p\n// TO" + "DO later", func(s *source) []string { return notes(string(s.text)) }, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := parseSource(c.path, []byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if got := c.rule(s); len(got) != c.want {
				t.Errorf("%d offences, want %d: %q", len(got), c.want, got)
			}
		})
	}
}
