package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The form of an edit: what is read, and what is refused.
func TestReadEdit(t *testing.T) {
	for s, want := range map[string]edit{
		"a/b.go: s/old/new/":     {"a/b.go", "old", "new", 0},
		"a.go: s#x / y#z#2":      {"a.go", "x / y", "z", 2},
		`a.go: s/a\/b\n\tc/\\d/`: {"a.go", "a/b\n\tc", `\d`, 0},
		`a.go: s/x(\w)/y/`:       {"a.go", `x(\w)`, "y", 0},
		"a.go: s/gone//":         {"a.go", "gone", "", 0},
	} {
		if e, ok, err := readEdit(s); err != nil || !ok || e != want {
			t.Errorf("%s: %+v %v %v, want %+v", s, e, ok, err, want)
		}
	}
	for _, s := range []string{"a.go: s/old", "a.go: s/old/new", "a.go: s//new/", "a.go: s/x/x/", "a.go: s/x/y/z", "a.go: s/x/y/0"} {
		if _, ok, err := readEdit(s); ok || err == nil {
			t.Errorf("%s is taken", s)
		}
	}
	for _, s := range []string{"a.go: fire does not return", "board/exec.go", "s/x/y/"} {
		if _, ok, err := readEdit(s); ok || err != nil {
			t.Errorf("%s is no edit: %v %v", s, ok, err)
		}
	}
}

// An edit is made where its text stands, and only when it is clear where.
func TestApply(t *testing.T) {
	for _, c := range []struct {
		e          edit
		text, want string
		says       string
	}{
		{edit{"f", "b", "X", 0}, "abc", "aXc", ""},
		{edit{"f", "b", "X", 2}, "abcb", "abcX", ""},
		{edit{"f", "b", "X", 1}, "abcb", "aXcb", ""},
		{edit{"f", "b", "X", 0}, "abcb", "", "2 times"},
		{edit{"f", "b", "X", 3}, "abcb", "", "only 2 times"},
		{edit{"f", "z", "X", 0}, "abcb", "", "any more"},
	} {
		got, err := c.e.apply(c.text)
		if got != c.want || (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v on %q: %q, %v", c.e, c.text, got, err)
		}
	}
}

func TestReadRow(t *testing.T) {
	r, ok, err := readRow("| WFL-06 | first \\| wins | board TestSelection/by, TestB | pick: `board/select.go: s/if ok \\|\\| x {/if true {/` takes all, see `pick` |")
	if err != nil || !ok || r.id != "WFL-06" || r.sentence != "first | wins" || strings.Join(r.tests, " ") != "TestSelection/by TestB" || strings.Join(r.packages, " ") != "board" {
		t.Fatalf("%+v %v %v", r, ok, err)
	}
	if len(r.edits) != 1 || r.edits[0].old != "if ok || x {" {
		t.Errorf("edits: %+v", r.edits)
	}
	for _, line := range []string{"| ID | sentence | test | breaks it |", "|---|---|---|---|", "text", "| a | b | c |"} {
		if _, ok, _ := readRow(line); ok {
			t.Errorf("%q is a row", line)
		}
	}
}

// small is a module with one rule.
func small(t *testing.T, breaks string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                "module small\n\ngo 1.24\n",
		"board/sum.go":          "package board\n\nfunc Sum(a, b int) int { return a + b }\n\nfunc Idle() int { return 1 }\n",
		"board/sum_test.go":     "package board\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif Sum(1, 2) != 3 {\n\t\tt.Error(\"no sum\")\n\t}\n}\n",
		"testdata/rules/WFL.md": "| ID | sentence | test | breaks it |\n|---|---|---|---|\n| WFL-01 | it adds | TestSum | " + breaks + " |\n| WFL-02 | prose | TestSum | Sum subtracts |\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A row is tried on a copy: a test that sees the change is shown; what no test sees, what does not compile and what
// does not fit are told, and the tree stays as it was.
func TestRun(t *testing.T) {
	for _, c := range []struct {
		breaks string
		bad    int
		says   string
	}{
		{"`board/sum.go: s/a + b/a - b/`", 0, "seen by TestSum"},
		{"`board/sum.go: s/return 1/return 2/`", 1, "no test sees it: TestSum passes"},
		{"`board/sum.go: s/a + b/a + c/`", 1, "does not compile"},
		{"`board/sum.go: s/a * b/a - b/`", 2, "any more"},
		{"`board/none.go: s/a * b/a - b/`", 2, "none.go"},
		{"`board/sum.go: s/a + b/a - c/` and `board/sum.go: s/a - c/a - b/`", 1, "no longer fit"},
	} {
		dir := small(t, c.breaks)
		before, err := os.ReadFile(filepath.Join(dir, "board/sum.go"))
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		bad, err := run(t.Context(), &out, dir, options{n: 5, limit: 1e11})
		if err != nil || bad != c.bad || !strings.Contains(out.String(), c.says) {
			t.Errorf("%s: %d bad, %v, want %d with %q\n%s", c.breaks, bad, err, c.bad, c.says, out.String())
		}
		if after, _ := os.ReadFile(filepath.Join(dir, "board/sum.go")); string(after) != string(before) {
			t.Errorf("%s: the tree was changed", c.breaks)
		}
	}
	var out strings.Builder
	if _, err := run(t.Context(), &out, small(t, "`board/sum.go: s/a + b/a - b/`"), options{list: true}); err != nil || !strings.Contains(out.String(), "testdata/rules/WFL.md:4: WFL-02: Sum subtracts\n2 rows: 1 with an edit (0 of them no longer fit), 1 without") {
		t.Errorf("list: %v\n%s", err, out.String())
	}
}
