package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// events of a run as go test -json prints them: two passes (one of them a
// parent), a skip, a failing subtest, a package that does not build.
const recorded = `
{"Action":"start","Package":"m/a"}
{"Action":"run","Package":"m/a","Test":"TestParent"}
{"Action":"run","Package":"m/a","Test":"TestParent/one"}
{"Action":"output","Package":"m/a","Test":"TestParent/one","Output":"quiet words\n"}
{"Action":"pass","Package":"m/a","Test":"TestParent/one"}
{"Action":"pass","Package":"m/a","Test":"TestParent"}
{"Action":"run","Package":"m/a","Test":"TestFuse"}
{"Action":"output","Package":"m/a","Test":"TestFuse","Output":"=== RUN   TestFuse\n"}
{"Action":"output","Package":"m/a","Test":"TestFuse","Output":"    a_test.go:12: needs /dev/fuse: the power-cut test mounts a folder\n"}
{"Action":"output","Package":"m/a","Test":"TestFuse","Output":"--- SKIP: TestFuse (0.00s)\n"}
{"Action":"skip","Package":"m/a","Test":"TestFuse"}
{"Action":"output","Package":"m/a","Output":"PASS\n"}
{"Action":"output","Package":"m/a","Output":"ok  \tm/a\t0.1s\n"}
{"Action":"pass","Package":"m/a"}
{"Action":"run","Package":"m/b","Test":"TestBad"}
{"Action":"run","Package":"m/b","Test":"TestBad/sub"}
{"Action":"output","Package":"m/b","Test":"TestBad/sub","Output":"    b_test.go:3: got 1, want 2\n"}
{"Action":"fail","Package":"m/b","Test":"TestBad/sub"}
{"Action":"fail","Package":"m/b","Test":"TestBad"}
{"Action":"output","Package":"m/b","Output":"FAIL\tm/b\t0.1s\n"}
{"Action":"fail","Package":"m/b"}
{"ImportPath":"m/c","Action":"build-output","Output":"c.go:1:1: undefined: x\n"}
{"ImportPath":"m/c","Action":"build-fail"}
{"Action":"output","Package":"m/c","Output":"FAIL\tm/c [build failed]\n"}
{"Action":"fail","Package":"m/c"}
`

func readRecorded(t *testing.T) (*report, *bytes.Buffer) {
	t.Helper()
	out := &bytes.Buffer{}
	r := newReport(out, false)
	if err := r.read(strings.NewReader(recorded)); err != nil {
		t.Fatal(err)
	}
	return r, out
}

func TestReportCountsLeavesAndShowsOnlyWhatFailed(t *testing.T) {
	r, out := readRecorded(t)
	if r.close(out, nil) {
		t.Error("a run with failures was called good")
	}
	text := out.String()
	for _, want := range []string{
		"ok  \tm/a\t0.1s\n", "FAIL\tm/b\t0.1s\n", "got 1, want 2", "undefined: x",
		"skipped: m/a.TestFuse: needs /dev/fuse: the power-cut test mounts a folder\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the output lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "quiet words") {
		t.Errorf("a passing test was heard:\n%s", text)
	}
	if !strings.HasSuffix(text, "\n1 passed, 2 failed, 1 skipped\n") {
		t.Errorf("the last line is wrong:\n%s", text)
	}
}

func TestReportOfAPanicCountsTheTestThatRan(t *testing.T) {
	out := &bytes.Buffer{}
	r := newReport(out, false)
	events := `{"Action":"run","Package":"m/a","Test":"TestOther"}
{"Action":"fail","Package":"m/a","Test":"TestOther"}
{"Action":"run","Package":"m/a","Test":"TestHang"}
{"Action":"output","Package":"m/a","Test":"TestHang","Output":"its last words\n"}
{"Action":"output","Package":"m/a","Output":"panic: test timed out after 1s\n"}
{"Action":"output","Package":"m/a","Output":"FAIL\tm/a\t1.0s\n"}
{"Action":"fail","Package":"m/a"}
`
	if err := r.read(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	if r.close(out, nil) {
		t.Error("a panic was called good")
	}
	if text := out.String(); !strings.Contains(text, "timed out") || !strings.Contains(text, "its last words") || !strings.HasSuffix(text, "0 passed, 2 failed, 0 skipped\n") {
		t.Errorf("got:\n%s", text)
	}
}

func TestJudgeSkip(t *testing.T) {
	machine := func(name string) (bool, error) {
		switch name {
		case "root", "tmux":
			return true, nil
		case "/dev/fuse", "darwin":
			return false, nil
		}
		return false, errors.New("unknown need")
	}
	for _, c := range []struct {
		name, reason string
		ok           bool
	}{
		{"the need is absent", "needs darwin: reads mach_continuous_time", true},
		{"the machine has it", "needs tmux: drives a pane", false},
		{"one of two is absent", "needs root and /dev/fuse: mounts", true},
		{"both are there", "needs root and tmux: both", false},
		{"a flag is asked for", "needs -model.long: takes minutes", true},
		{"not in the table", "needs luck: sometimes", false},
		{"no reason", "(no reason given)", false},
		{"another form", "flaky on Tuesdays", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := judgeSkip(c.reason, machine); (err == nil) != c.ok {
				t.Errorf("judgeSkip(%q) = %v, want ok = %v", c.reason, err, c.ok)
			}
		})
	}
}

// With -ci a run is bad for a skip alone; without it the skip is only listed.
func TestCloseFailsOnASkipTheMachineCouldRun(t *testing.T) {
	events := `{"Action":"run","Package":"m/a","Test":"TestT"}
{"Action":"output","Package":"m/a","Test":"TestT","Output":"    a_test.go:1: needs tmux: drives a pane\n"}
{"Action":"skip","Package":"m/a","Test":"TestT"}
{"Action":"pass","Package":"m/a"}
`
	hasAll := func(string) (bool, error) { return true, nil }
	for _, ci := range []bool{false, true} {
		out := &bytes.Buffer{}
		r := newReport(out, false)
		if err := r.read(strings.NewReader(events)); err != nil {
			t.Fatal(err)
		}
		var judge func(string) error
		if ci {
			judge = func(reason string) error { return judgeSkip(reason, hasAll) }
		}
		if good := r.close(out, judge); good == ci {
			t.Errorf("ci=%v: good=%v:\n%s", ci, good, out)
		}
	}
}

// The real go test on a real module: the exit code and the last line.
func TestRunOnAModule(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module m\n\ngo 1.26\n")
	write("m_test.go", "package m\nimport \"testing\"\nfunc TestA(t *testing.T) {}\nfunc TestB(t *testing.T) { t.Skip(\"needs etcd: why\") }\n")
	t.Chdir(dir)
	t.Setenv("GOFLAGS", "")
	var out, errs bytes.Buffer
	if code := run([]string{"--", "./..."}, &out, &errs); code != 0 {
		t.Fatalf("exit %d\n%s%s", code, &out, &errs)
	}
	if text := out.String(); !strings.Contains(text, "ok  \tm\t") || !strings.HasSuffix(text, "skipped: m.TestB: needs etcd: why\n  to run it: apt-get install etcd-server (benches only)\n1 passed, 0 failed, 1 skipped\n") {
		t.Errorf("got:\n%s", text)
	}
	write("m_test.go", "package m\nimport \"testing\"\nfunc TestA(t *testing.T) { t.Error(\"no\") }\n")
	out.Reset()
	if code := run([]string{"--", "./..."}, &out, &errs); code != 1 || !strings.HasSuffix(out.String(), "0 passed, 1 failed, 0 skipped\n") {
		t.Errorf("exit %d:\n%s", code, &out)
	}
	if code := run(nil, &out, &errs); code != 2 {
		t.Errorf("no packages: exit %d, want 2", code)
	}
}
