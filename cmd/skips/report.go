package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sort"
	"strings"
)

// event is one line of "go test -json" (cmd/test2json, and the build events of
// cmd/go).
type event struct {
	Action     string
	Package    string
	ImportPath string // of build events
	Test       string
	Output     string
}

// result is what became of one test.
type result struct {
	action string // pass, fail, skip
	said   []string
}

type pkg struct {
	tests  map[string]*result
	said   []string // output that belongs to no test
	failed bool
}

// report gathers the events of one run of go test.
type report struct {
	out     io.Writer
	verbose bool
	pkgs    map[string]*pkg
	stray   []string // lines that are no event
}

func newReport(out io.Writer, verbose bool) *report {
	return &report{out: out, verbose: verbose, pkgs: map[string]*pkg{}}
}

// read follows the events to their end.
func (r *report) read(events io.Reader) error {
	in := bufio.NewReader(events)
	for {
		line, err := in.ReadString('\n')
		if strings.TrimSpace(line) != "" {
			r.line(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) line(line string) {
	var e event
	if err := json.Unmarshal([]byte(line), &e); err != nil || e.Action == "" {
		r.stray = append(r.stray, line)
		fmt.Fprint(r.out, line)
		return
	}
	r.take(e)
}

func (r *report) take(e event) {
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
		return
	case "build-fail":
		return // the package's own "fail" follows and is counted
	}
	p := r.pkgs[e.Package]
	if p == nil {
		p = &pkg{tests: map[string]*result{}}
		r.pkgs[e.Package] = p
	}
	if e.Test != "" {
		r.takeTest(p, e)
		return
	}
	switch e.Action {
	case "output":
		if isClosing(e.Output) || r.verbose {
			fmt.Fprint(r.out, e.Output)
		} else {
			p.said = append(p.said, e.Output)
		}
	case "fail":
		p.failed = true
		r.last(e.Package, p)
	}
}

// last shows what a failed package said that no failed test has shown: of the
// tests that were running when its process died, and outside of all tests (a
// panic, a time-out, a build, the runtime's last words).
func (r *report) last(name string, p *pkg) {
	if r.verbose {
		return // shown as it came
	}
	var running []string
	for test, t := range p.tests {
		if t.action == "" {
			running = append(running, test)
		}
	}
	sort.Strings(running)
	for _, test := range running {
		fmt.Fprintf(r.out, "%s: %s was running and has no outcome\n", name, test)
		fmt.Fprint(r.out, strings.Join(p.tests[test].said, ""))
	}
	fmt.Fprint(r.out, strings.Join(p.said, ""))
}

func (r *report) takeTest(p *pkg, e event) {
	t := p.tests[e.Test]
	if t == nil {
		t = &result{}
		p.tests[e.Test] = t
	}
	switch e.Action {
	case "output":
		if r.verbose {
			fmt.Fprint(r.out, e.Output)
		}
		t.said = append(t.said, e.Output)
	case "fail":
		t.action = e.Action
		if !r.verbose {
			fmt.Fprint(r.out, strings.Join(t.said, ""))
		}
		t.said = nil
	case "pass":
		t.action, t.said = e.Action, nil
	case "skip":
		t.action = e.Action
	}
}

// isClosing tells the last line of a package from what its tests print.
func isClosing(line string) bool {
	for _, p := range []string{"ok  \t", "FAIL\t", "?   \t", "\t"} {
		if strings.HasPrefix(line, p) {
			return true
		}
	}
	return false
}

func (r *report) anyFailed() bool {
	_, failed, _ := r.count()
	return failed > 0
}

// skipped is one skipped test and why.
type skipped struct{ name, reason string }

// count counts leaves: a test with subtests stands for them, unless it failed
// by itself. A package that failed without a failed test counts as one.
func (r *report) count() (passed, failed int, skips []skipped) {
	for path, p := range r.pkgs {
		failedHere := 0
		for name, t := range p.tests {
			subs, subFailed := p.subtests(name)
			switch {
			case t.action == "skip":
				skips = append(skips, skipped{path + "." + name, reasonOf(t.said)})
			case t.action == "fail" && !subFailed, t.action == "" && p.failed && !subFailed && subs == 0:
				failedHere++ // no outcome in a failed package: it was running when the package died
			case t.action == "pass" && subs == 0:
				passed++
			}
		}
		if p.failed && failedHere == 0 {
			failedHere = 1
		}
		failed += failedHere
	}
	sort.Slice(skips, func(i, j int) bool { return skips[i].name < skips[j].name })
	return passed, failed, skips
}

func (p *pkg) subtests(name string) (n int, failed bool) {
	for other, t := range p.tests {
		if strings.HasPrefix(other, name+"/") {
			n++
			failed = failed || t.action == "fail"
		}
	}
	return n, failed
}

// reasonOf takes the words of t.Skip out of a test's output: what is not
// framing, without the file and line in front.
func reasonOf(said []string) string {
	var words []string
	for _, line := range strings.Split(strings.Join(said, ""), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- ") {
			continue
		}
		if _, after, ok := strings.Cut(line, ".go:"); ok {
			if _, text, ok := strings.Cut(after, ": "); ok {
				line = text
			}
		}
		words = append(words, line)
	}
	if len(words) == 0 {
		return "(no reason given)"
	}
	return strings.Join(words, " ")
}

// close prints the skipped tests and the last line. It reports whether the run
// is good; judge (nil outside CI) says which skips are not.
func (r *report) close(out io.Writer, judge func(string) error) bool {
	passed, failed, skips := r.count()
	good := failed == 0
	fmt.Fprintln(out)
	for _, s := range skips {
		fmt.Fprintf(out, "skipped: %s: %s\n", s.name, s.reason)
		if how := remedy(s.reason); how != "" {
			fmt.Fprintf(out, "  to run it: %s\n", how)
		}
		if judge == nil {
			continue
		}
		if err := judge(s.reason); err != nil {
			good = false
			fmt.Fprintf(out, "  this skip is a failure: %v\n", err)
		}
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", passed, failed, len(skips))
	return good
}
