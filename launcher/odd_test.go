package launcher

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// oddSession is a row of testdata/odd.md, as the fleet gets to know it.
type oddSession struct {
	name, profile, script string
	stop                  bool   // it is cancelled when it has said "up"
	code                  int64  // -1: none
	signal, means         string // means: of the run
	outcome, status       string
	log                   string // "": any
}

var oddSessions = []oddSession{
	{name: "exits 0", profile: "sh", script: "exit 0", means: "completed", outcome: "completed", status: "done"},
	{name: "exits 0 without a word", profile: "agent", script: "exit 0", means: "no_verdict", outcome: "crashed", status: "blocked"},
	{name: "exits 1", profile: "sh", script: "exit 1", code: 1, means: "crash", outcome: "crashed", status: "ready"},
	{name: "exits 75", profile: "sh", script: "exit 75", code: 75, means: "rate_limit", outcome: "rate_limited", status: "ready"},
	{name: "exits 137", profile: "sh", script: "exit 137", code: 137, means: "crash", outcome: "crashed", status: "ready"},
	{name: "ends by a signal of its own", profile: "direct", script: "kill -USR1 $$; sleep 60", code: -1, signal: "SIGUSR1", means: "crash", outcome: "crashed", status: "ready"},
	{name: "ends by a fault", profile: "direct", script: "ulimit -c 0; kill -SEGV $$; sleep 60", code: -1, signal: "SIGSEGV", means: "crash", outcome: "crashed", status: "ready"},
	{name: "never reads its stdin", profile: "asks", script: "exit 3", code: 3, means: "crash", outcome: "crashed", status: "ready"},
	{name: "prints control codes and no UTF-8", profile: "sh", script: `printf '\033[2J\007\377\376{\r\000"\n'; exit 4`, code: 4, means: "crash", outcome: "crashed", status: "ready",
		log: "\x1b[2J\a\xff\xfe{\r\x00\"\n"},
	{name: "closes its output", profile: "sh", script: "echo first; exec >&- 2>&-; echo lost; sleep 0.2; exit 5", code: 5, means: "crash", outcome: "crashed", status: "ready", log: "first\n"},
	{name: "ignores TERM", profile: "direct", script: `trap "" TERM; echo up; while :; do sleep 0.05; done`, stop: true, code: -1, signal: "SIGKILL", means: "stopped", outcome: "cancelled", status: "cancelled", log: "up\n"},
}

// HLS-08, SUP-10: each odd end has one result, as testdata/odd.md says.
func TestOddSessions(t *testing.T) {
	t.Parallel()
	for _, c := range oddSessions {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, nil)
			run := n.start(c.profile, c.script)
			dir := filepath.Join(n.cfg.Dir, "runs", run)
			if c.stop {
				eventually(t, "its first word", func() bool { return exists(filepath.Join(dir, fileLog)) && logOf(t, dir) == "up\n" })
				n.launched(run)
				must(t, n.event("web-1", "cancel"))
			}
			r := n.gone(run)
			if (r.ExitCode == nil) != (c.code < 0) || r.ExitCode != nil && *r.ExitCode != c.code || r.Signal != c.signal {
				t.Errorf("code %v, signal %q; want %d (-1: none), %q", r.ExitCode, r.Signal, c.code, c.signal)
			}
			if card := n.card("web-1"); r.Means != c.means || r.Outcome != c.outcome || card.Status != c.status {
				t.Errorf("means %q, outcome %q, card %s; want %q, %q, %s", r.Means, r.Outcome, card.Status, c.means, c.outcome, c.status)
			}
			if got := logOf(t, dir); c.log != "" && got != c.log {
				t.Errorf("log %q, want %q", got, c.log)
			}
		})
	}
}

// The table names tests that are there, and every odd session has its row.
func TestOddTable(t *testing.T) {
	table, err := os.ReadFile("testdata/odd.md")
	must(t, err)
	var source []byte
	names, err := filepath.Glob("*_test.go")
	must(t, err)
	for _, name := range names {
		b, err := os.ReadFile(name)
		must(t, err)
		source = append(source, b...)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(table)) {
		if f := strings.Split(line, "|"); len(f) == 5 && !strings.HasPrefix(line, "|---") && !strings.HasPrefix(line, "| session") {
			rows[strings.TrimSpace(f[1])] = f[3]
		}
	}
	if len(rows) < 20 {
		t.Fatalf("%d rows", len(rows))
	}
	for row, tests := range rows {
		for _, test := range regexp.MustCompile(`Test\w+`).FindAllString(tests, -1) {
			if !bytes.Contains(source, []byte("func "+test+"(")) {
				t.Errorf("%s: no test %s", row, test)
			}
		}
	}
	for _, c := range oddSessions {
		if !strings.Contains(rows[c.name], "TestOddSessions") {
			t.Errorf("%q has no row", c.name)
		}
	}
}
