package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Rows that edit functions share one build, each of them alone in force; the others, and those that no test sees there,
// are tried in a build of their own, and what does not compile is named and holds up nobody else.
func TestTogether(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module small\n\ngo 1.24\n",
		"board/sum.go": `package board

import "strings"

const One = 1

type Box struct{ n int }

func (Box) Name(_ int, words ...string) string { return strings.Join(words, " ") }

func (b *Box) Put(n int) {
	b.n += n
}

func Sum(a, b int) (sum int) {
	if a == 0 {
		return b
	}
	return a + b
}

func Idle() int { return 1 }
`,
		"board/alone.go": "package board\n\nfunc Alone(n int) int {\n\tm := n\n\treturn m\n}\n",
		"board/sum_test.go": `package board

import "testing"

func TestSum(t *testing.T) {
	if Sum(One, 2) != 3 || Sum(0, 2) != 2 {
		t.Error("no sum")
	}
}

func TestBox(t *testing.T) {
	var b Box
	if b.Put(2); b.n != 2 || b.Name(1, "a", "b") != "a b" {
		t.Error("no box")
	}
}

func TestFails(t *testing.T) { t.Error("always") }
`,
		"testdata/rules/A.md": `| ID | sentence | test | breaks it |
|---|---|---|---|
| A-01 | it adds | TestSum | ` + "`board/sum.go: s/a + b/a - b/`" + ` |
| A-02 | nothing and two | TestSum | ` + "`board/sum.go: s/a == 0/a < 0/` and `board/sum.go: s/return b\\n/return a - b\\n/`" + ` |
| A-03 | words | TestBox | ` + "`board/sum.go: s/Join(words, \" \")/Join(words, \"\")/`" + ` |
| A-04 | it keeps | TestBox | ` + "`board/sum.go: s/b.n += n/b.n -= n/`" + ` |
| A-05 | one is one | TestSum | ` + "`board/sum.go: s/One = 1/One = 2/`" + ` |
| A-06 | idle | TestSum | ` + "`board/sum.go: s/return 1/return 2/`" + ` |
| A-07 | it adds | TestSum | ` + "`board/sum.go: s/a + b/a + c/`" + ` |
| A-08 | words | TestBox | ` + "`board/sum.go: s/strings.Join(words, \" \")/\"\"/`" + ` |
| A-10 | alone in its file | TestSum | ` + "`board/alone.go: s/return m/return n/`" + ` |
| A-09 | it fails anyway | TestFails | ` + "`board/sum.go: s/a + b/a - b/`" + ` |
`,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	bad, err := run(t.Context(), &out, dir, options{all: true, together: true, limit: 1e11})
	if err != nil {
		t.Fatal(err)
	}
	said := out.String()
	for _, want := range []string{"6 rows share their builds, 2 do not, 2 do not compile\n", "ok   A-01", "ok   A-03", "ok   A-04",
		"later A-02 (testdata/rules/A.md:4): no test sees it in the shared build\n", "later A-05 (testdata/rules/A.md:7): it edits more than the inside of functions\n", "ok   A-05",
		"later A-06", "BAD  A-06", "the edit does not compile: undefined: c\n", "the edit does not compile: declared and not used: m\n", "later A-08 (testdata/rules/A.md:10): it leaves the import strings without use\n", "BAD  A-08", "later A-09 (testdata/rules/A.md:12): TestFails does not pass in the shared build\n"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if bad != 5 {
		t.Errorf("%d are bad, want 5", bad)
	}
	if t.Failed() {
		t.Log(said)
	}
}
