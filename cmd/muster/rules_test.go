package main_test

import (
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The files testdata/rules/AREA.md say which test proves which behaviour:
//
//	| ID | sentence | test | breaks it |
//
// "test" names one or more test functions (TestX, TestX/sub, or a .txtar
// script); "breaks it" is the one-line change that makes exactly it fail.
var (
	areas    = []string{"T", "BRD", "WFL", "EXP", "RUN", "SUP", "DSP", "TCK", "CAP", "MEM", "NOT", "M", "INV", "SES", "IDL", "RSP", "TRI", "SUB", "ERR", "CLI", "PAN", "WSP", "LCK", "HST", "LAU", "HLS", "AGT"}
	ruleID   = regexp.MustCompile(`^([A-Z]+)-(\d{2})[a-z]?$`)
	testName = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark|Example)[A-Z0-9_]\w*|[\w./-]+\.txtar\b`)
)

func TestRulesNameTestsThatExist(t *testing.T) {
	known := testNames(t)
	files, err := filepath.Glob(filepath.Join(moduleRoot, "testdata/rules/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		area := strings.TrimSuffix(filepath.Base(path), ".md")
		rows, offences := ruleRows(area, string(text), known)
		for _, o := range offences {
			t.Errorf("testdata/rules/%s.md: %s", area, o)
		}
		t.Logf("%s: %d rows", area, rows)
	}
}

// ruleRows checks one file and counts its rows.
func ruleRows(area, text string, known map[string]bool) (rows int, offences []string) {
	add := func(line int, format string, args ...any) {
		offences = append(offences, fmt.Sprintf("line %d: ", line+1)+fmt.Sprintf(format, args...))
	}
	if !slices.Contains(areas, area) {
		add(0, "no such area; areas are %s", strings.Join(areas, ", "))
	}
	seen := map[string]int{}
	for i, line := range strings.Split(text, "\n") {
		cells, ok := tableRow(line)
		if !ok {
			continue
		}
		rows++
		if len(cells) != 4 {
			add(i, "%d columns, want 4: ID, sentence, test, breaks it (write a bar inside a cell as \\|)", len(cells))
			continue
		}
		id, sentence, test, breaks := cells[0], cells[1], cells[2], cells[3]
		if m := ruleID.FindStringSubmatch(id); m == nil || m[1] != area {
			add(i, "ID %q: want %s-NN", id, area)
		}
		if sentence == "" || breaks == "" {
			add(i, "%s: an empty cell", id)
		}
		names := testName.FindAllString(test, -1)
		if len(names) == 0 {
			add(i, "%s: no test named in %q", id, test)
		}
		for _, name := range names {
			if !known[filepath.Base(name)] {
				add(i, "%s: no test %s", id, name)
			}
		}
		key := id + " " + sentence
		if first, twice := seen[key]; twice {
			add(i, "%s: the same sentence as line %d", id, first)
		}
		seen[key] = i + 1
	}
	return rows, offences
}

// tableRow splits a row of a Markdown table; headers and rulers are none.
func tableRow(line string) ([]string, bool) {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "|") {
		return nil, false
	}
	const bar = "\x00"
	line = strings.ReplaceAll(strings.Trim(line, "|"), `\|`, bar)
	cells := strings.Split(line, "|")
	for i, c := range cells {
		cells[i] = strings.Trim(strings.ReplaceAll(strings.TrimSpace(c), bar, "|"), "`*")
	}
	if cells[0] == "ID" || strings.Trim(cells[0], ":- ") == "" {
		return nil, false
	}
	return cells, true
}

// testNames gathers the test functions of the module and the names of its
// testscript files.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	known := map[string]bool{}
	for _, s := range sources(t) {
		if !s.test {
			continue
		}
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				known[f.Name.Name] = true
			}
		}
	}
	scripts := []string{"testdata/*.txtar", "testdata/*/*.txtar", "cmd/muster/*/testdata/*.txtar", "cmd/muster/*/testdata/*/*.txtar"}
	for _, pattern := range scripts {
		paths, err := filepath.Glob(filepath.Join(moduleRoot, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range paths {
			known[filepath.Base(p)] = true
		}
	}
	return known
}

func TestTheRulesTableCanFail(t *testing.T) {
	known := map[string]bool{"TestA": true, "kill.txtar": true}
	for _, c := range []struct {
		name, area, text string
		want             int
	}{
		{"a good row", "M", "| ID | sentence | test | breaks it |\n|---|---|---|---|\n| M-12 | a void beats its start | `TestA/late` | drop the void |", 0},
		{"a script", "M", "| M-12 | s | cmd/muster/cli/testdata/kill.txtar | x |", 0},
		{"a bar in a cell", "M", `| M-12 | s | TestA | a \|\| b |`, 0},
		{"an unknown test", "M", "| M-12 | s | TestB | x |", 1},
		{"one of two is unknown", "M", "| M-12 | s | TestA, TestB | x |", 1},
		{"no test", "M", "| M-12 | s | later | x |", 1},
		{"another area", "M", "| SUP-12 | s | TestA | x |", 1},
		{"one digit", "M", "| M-1 | s | TestA | x |", 1},
		{"no break", "M", "| M-12 | s | TestA | |", 1},
		{"three columns", "M", "| M-12 | s | TestA |", 1},
		{"twice", "M", "| M-12 | s | TestA | x |\n| M-12 | s | TestA | y |", 1},
		{"two sentences of one rule", "M", "| M-12 | s | TestA | x |\n| M-12 | other | TestA | y |", 0},
		{"no such area", "XYZ", "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, got := ruleRows(c.area, c.text, known); len(got) != c.want {
				t.Errorf("%d offences, want %d: %q", len(got), c.want, got)
			}
		})
	}
}
