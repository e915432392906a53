package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// row is one row of a table.
type row struct {
	file     string // of the table
	line     int
	id       string
	sentence string
	tests    []string // names of test functions, with /sub where given
	packages []string // folders that the cell names
	edits    []edit
	prose    string // the cell as it stands
}

func (r *row) at() string { return fmt.Sprintf("%s:%d", r.file, r.line) }

// edit is one change of one file.
type edit struct {
	path, old, new string
	nth            int // 0: the only one
}

func (e edit) String() string { return fmt.Sprintf("%s: %q becomes %q", e.path, e.old, e.new) }

var (
	testName = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z0-9_]\w*(?:/[\w./+=-]+)?`)
	folder   = regexp.MustCompile(`\b(?:board|mesh|raftstore|scheduler|launcher|cmd)(?:/\w+)*\b`)
	quoted   = regexp.MustCompile("`([^`]+)`")
	editForm = regexp.MustCompile(`^([\w./-]+): s(.)`)
)

// tables reads all rows below root.
func tables(root string) (rows []row, err error) {
	files, err := filepath.Glob(filepath.Join(root, "testdata/rules/*.md"))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		name, err := filepath.Rel(root, f)
		if err != nil {
			return nil, err
		}
		for i, line := range strings.Split(string(text), "\n") {
			r, ok, err := readRow(line)
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", name, i+1, err)
			}
			if ok {
				r.file, r.line = name, i+1
				rows = append(rows, r)
			}
		}
	}
	return rows, nil
}

// readRow splits a line of a table; headers, rulers and text are none.
func readRow(line string) (r row, ok bool, err error) {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "|") {
		return row{}, false, nil
	}
	const bar = "\x00"
	cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(strings.ReplaceAll(line, `\|`, bar), "|"), "|"), "|")
	for i, c := range cells {
		cells[i] = strings.TrimSpace(strings.ReplaceAll(c, bar, "|"))
	}
	if len(cells) != 4 || cells[0] == "ID" || strings.Trim(cells[0], ":- ") == "" {
		return row{}, false, nil
	}
	r = row{id: cells[0], sentence: cells[1], tests: testName.FindAllString(cells[2], -1), packages: folder.FindAllString(cells[2], -1), prose: cells[3]}
	for _, q := range quoted.FindAllStringSubmatch(cells[3], -1) {
		e, ok, err := readEdit(q[1])
		if err != nil {
			return row{}, false, fmt.Errorf("%s: %w", r.id, err)
		}
		if ok {
			r.edits = append(r.edits, e)
		}
	}
	return r, true, nil
}

// readEdit reads `file: s/old/new/`; other text is no edit, and a broken one is an error.
func readEdit(s string) (e edit, ok bool, err error) {
	m := editForm.FindStringSubmatch(s)
	if m == nil {
		return edit{}, false, nil
	}
	sign, rest := m[2][0], s[len(m[0]):]
	var parts []string
	var b strings.Builder
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '\\' && i+1 < len(rest):
			i++
			switch n := rest[i]; n {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			case sign, '\\':
				b.WriteByte(n)
			default:
				b.WriteByte('\\')
				b.WriteByte(n)
			}
		case c == sign && len(parts) < 2:
			parts = append(parts, b.String())
			b.Reset()
		default:
			b.WriteByte(c)
		}
	}
	if len(parts) != 2 || parts[0] == "" || parts[0] == parts[1] {
		return edit{}, false, fmt.Errorf("the edit %q is not of the form file: s/old/new/", s)
	}
	e = edit{path: m[1], old: parts[0], new: parts[1]}
	if tail := b.String(); tail != "" {
		if e.nth, err = strconv.Atoi(tail); err != nil || e.nth < 1 {
			return edit{}, false, fmt.Errorf("the edit %q ends in %q: a number says which of several", s, tail)
		}
	}
	return e, true, nil
}

// apply makes the edit in a text.
func (e edit) apply(text string) (string, error) {
	n := strings.Count(text, e.old)
	switch {
	case n == 0:
		return "", fmt.Errorf("%s has no %q any more", e.path, e.old)
	case e.nth == 0 && n > 1:
		return "", fmt.Errorf("%s has %q %d times: say which", e.path, e.old, n)
	case e.nth > n:
		return "", fmt.Errorf("%s has %q only %d times", e.path, e.old, n)
	}
	at := 0
	for i := 1; ; i++ {
		at += strings.Index(text[at:], e.old)
		if i >= e.nth {
			return text[:at] + e.new + text[at+len(e.old):], nil
		}
		at += len(e.old)
	}
}
