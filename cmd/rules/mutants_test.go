package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const subtracts = `It subtracts.
test: board TestSum
--- a/board/sum.go
+++ b/board/sum.go
@@ -1,3 +1,3 @@
 package board
 
-func Sum(a, b int) int { return a + b }
+func Sum(a, b int) int { return a - b }
`

// A patch is read with its sentence and tests; what is none is refused.
func TestReadMutant(t *testing.T) {
	r, err := readMutant(subtracts)
	if err != nil || r.sentence != "It subtracts." || strings.Join(r.tests, " ") != "TestSum" || strings.Join(r.packages, " ") != "board" {
		t.Fatalf("%+v %v", r, err)
	}
	want := edit{"board/sum.go", "package board\n\nfunc Sum(a, b int) int { return a + b }\n", "package board\n\nfunc Sum(a, b int) int { return a - b }\n", 0}
	if len(r.edits) != 1 || r.edits[0] != want {
		t.Errorf("edits %+v", r.edits)
	}
	for _, bad := range []string{"", "It subtracts.\ntest: board TestSum\n", strings.Replace(subtracts, "test:", "tests", 1), strings.Replace(subtracts, "It subtracts.\n", "", 1),
		strings.Replace(subtracts, "-func", "?func", 1)} {
		if _, err := readMutant(bad); err == nil {
			t.Errorf("taken: %q", bad)
		}
	}
}

// Caught is what an assertion catches: not what no test sees, what does not compile, what ends the process, or what
// does not fit any more.
func TestMutantsAreCaughtByAssertions(t *testing.T) {
	for _, c := range []struct {
		patch string
		bad   int
		says  string
	}{
		{subtracts, 0, "caught   m "},
		{strings.Replace(subtracts, "a - b", "b + a", 1), 1, "no test sees it"},
		{strings.Replace(subtracts, "a - b", "a - c", 1), 1, "does not compile"},
		{strings.Replace(subtracts, "return a - b", "panic(a)", 1), 1, "no assertion fails, the process does"},
		{strings.Replace(subtracts, "return a + b", "return a * b", 1), 1, "1 of them no longer fit"},
	} {
		dir := small(t, "prose")
		path := filepath.Join(dir, "testdata/mutants/m.patch")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(c.patch), 0o600); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		bad, err := run(t.Context(), &out, dir, options{mutants: "testdata/mutants", limit: 1e11})
		if err != nil || bad != c.bad || !strings.Contains(out.String(), c.says) {
			t.Errorf("%d bad, %v, want %d with %q\n%s", bad, err, c.bad, c.says, out.String())
		}
	}
}

// Every mutant of this repository fits the tree, and there are as many as promised.
func TestMutantsFit(t *testing.T) {
	rows, err := mutants("../..", "testdata/mutants")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range stales("../..", rows) {
		t.Error(s)
	}
	tr := &tree{root: "../.."}
	if err := tr.findTests(); err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if len(tr.where(&rows[i])) == 0 {
			t.Errorf("%s: there is no test %v", rows[i].file, rows[i].tests)
		}
	}
	if len(rows) < 40 {
		t.Errorf("%d mutants, want 40 at least", len(rows))
	}
}
