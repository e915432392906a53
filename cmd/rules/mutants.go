package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// A mutant is a fault of a line or two, planted on purpose where it matters, kept as a patch:
//
//	What it breaks, in a sentence.
//	test: FOLDER TestOne, TestTwo
//	--- a/board/ids.go
//	+++ b/board/ids.go
//	@@ ...
//
// Lines may have moved since; the text of a hunk must stand there exactly once.

// mutants reads the patches of a folder below root.
func mutants(root, dir string) (rows []row, err error) {
	files, err := filepath.Glob(filepath.Join(root, dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		r, err := readMutant(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		r.file, r.line, r.id = filepath.ToSlash(filepath.Join(dir, filepath.Base(f))), 1, strings.TrimSuffix(filepath.Base(f), ".patch")
		rows = append(rows, r)
	}
	return rows, nil
}

// readMutant reads one patch.
func readMutant(text string) (r row, err error) {
	var path string
	var hunk *edit
	flush := func() {
		if hunk != nil {
			r.edits = append(r.edits, *hunk)
			hunk = nil
		}
	}
	for _, line := range strings.SplitAfter(text, "\n") {
		said := strings.TrimSuffix(line, "\n")
		switch tests, isTests := strings.CutPrefix(said, "test:"); {
		case isTests && hunk == nil:
			r.tests, r.packages = testName.FindAllString(tests, -1), folder.FindAllString(tests, -1)
		case strings.HasPrefix(said, "--- "):
			flush()
		case strings.HasPrefix(said, "+++ "):
			_, path, _ = strings.Cut(said, "/")
		case strings.HasPrefix(said, "@@"):
			flush()
			hunk = &edit{path: path}
		case hunk == nil:
			r.sentence = strings.TrimSpace(r.sentence + " " + said)
		case line == "":
		case line[0] == ' ':
			hunk.old, hunk.new = hunk.old+line[1:], hunk.new+line[1:]
		case line[0] == '-':
			hunk.old += line[1:]
		case line[0] == '+':
			hunk.new += line[1:]
		default:
			return r, fmt.Errorf("%q is no line of a hunk", said)
		}
	}
	flush()
	switch {
	case len(r.edits) == 0 || path == "":
		return r, errors.New("it changes nothing")
	case len(r.tests) == 0 || len(r.packages) == 0:
		return r, errors.New("it names no test: test: FOLDER TestName")
	case r.sentence == "":
		return r, errors.New("it does not say what it breaks")
	}
	return r, nil
}

// seedOf finds the seeds in the names of tests that failed.
var seedOf = regexp.MustCompile(`seed\d+`)

// plant tries mutants, one at a time: each must be caught by an assertion of a test it names.
func plant(ctx context.Context, w io.Writer, root string, rows []row, limit time.Duration) (bad int, err error) {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if err := copyTree(root, dir); err != nil {
		return 0, fmt.Errorf("copy the tree: %w", err)
	}
	t := &tree{root: dir, strict: true}
	if err := t.findTests(); err != nil {
		return 0, fmt.Errorf("find the tests: %w", err)
	}
	for i := range rows {
		if ctx.Err() != nil {
			return bad, ctx.Err()
		}
		at := time.Now()
		v, err := t.try(ctx, &rows[i], limit)
		if err != nil {
			return bad, err
		}
		took := time.Since(at).Seconds()
		if v.reason != "" {
			bad++
			fmt.Fprintf(w, "SURVIVES %-34s %5.1f s  %s\n         %s\n", rows[i].id, took, rows[i].sentence, v.reason)
			continue
		}
		fmt.Fprintf(w, "caught   %-34s %5.1f s  %s", rows[i].id, took, strings.Join(rows[i].tests, ", "))
		if s := seedOf.FindString(strings.Join(v.seen, " ")); s != "" {
			fmt.Fprintf(w, " (%s)", s)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%d mutants, %d caught\n", len(rows), len(rows)-bad)
	return bad, nil
}
