package launcher

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"muster/board"
)

// Invariant 18: after kill -9 of the node its sessions go on, and are adopted
// with their logs and exit codes; what ended meanwhile is told as well.
func TestSessionsOutliveTheNode(t *testing.T) {
	t.Parallel()
	p := newProcess(t)
	dir := t.TempDir()
	long := p.mustAsk(order{Op: "file", Profile: "sh", Script: "echo begin; while [ ! -e " + dir + "/go ]; do sleep 0.02; done; echo end; exit 75"}).Run
	short := p.mustAsk(order{Op: "file", Profile: "sh", Script: "echo begin; while [ ! -e " + dir + "/gone ]; do sleep 0.02; done; exit 1"}).Run
	p.until("both starts", func(a answer) bool { return len(a.Runs) == 2 && a.Runs[0].Launched != 0 && a.Runs[1].Launched != 0 })
	journal := p.mustAsk(order{Op: "runs"}).Journal
	p.kill()
	must(t, os.WriteFile(dir+"/gone", nil, 0o600))
	eventually(t, "the end of a session without its node", func() bool { return ReadExitMust(filepath.Join(p.dir, "runs", short)) != nil })
	if ReadExitMust(filepath.Join(p.dir, "runs", long)) != nil {
		t.Fatal("a session ended with its node")
	}
	p.run()
	a := p.until("the report of what ended meanwhile", func(a answer) bool { return a.Runs[1].Gone != "" })
	if a.Journal != journal {
		t.Errorf("journal %s became %s", journal, a.Journal)
	}
	if c := a.Runs[1].ExitCode; c == nil || *c != 1 {
		t.Errorf("exit code %v, want 1", c)
	}
	must(t, os.WriteFile(dir+"/go", nil, 0o600))
	a = p.until("the end of the adopted session", allGone)
	if c := a.Runs[0].ExitCode; c == nil || *c != 75 || a.Runs[0].Outcome != "rate_limited" {
		t.Errorf("exit code %v, outcome %q; want 75, rate_limited", c, a.Runs[0].Outcome)
	}
	if got := logOf(t, filepath.Join(p.dir, "runs", long)); got != "begin\nend\n" {
		t.Errorf("log %q, want it complete and once", got)
	}
	if a.Runs[0].N != 1 || len(a.Runs) != 2 {
		t.Errorf("%d runs", len(a.Runs))
	}
}

// Architecture §4: a journal that cannot be read is replaced by one with a new
// id; sessions are adopted from their folders, and nothing is started again.
func TestBrokenJournalStartsNothingAgain(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"missing": os.Remove,
		"garbage": func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte("x"), 8192), 0o600) },
		"cut":     func(path string) error { return os.Truncate(path, 5000) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProcess(t)
			dir := t.TempDir()
			run := p.mustAsk(order{Op: "file", Profile: "sh", Script: "echo x >> " + dir + "/marks; while [ ! -e " + dir + "/go ]; do sleep 0.02; done"}).Run
			a := p.until("the start", func(a answer) bool { return a.Runs[0].Launched != 0 })
			p.kill()
			must(t, damage(filepath.Join(p.dir, journalFile)))
			p.run()
			b := p.mustAsk(order{Op: "runs"})
			if b.Journal == a.Journal || b.Runs[0].Gone != "" {
				t.Errorf("journal id new: %v, run gone %q", b.Journal != a.Journal, b.Runs[0].Gone)
			}
			must(t, os.WriteFile(dir+"/go", nil, 0o600))
			a = p.until("the end", allGone)
			if a.Runs[0].Outcome != "completed" {
				t.Errorf("outcome %q", a.Runs[0].Outcome)
			}
			if b, _ := os.ReadFile(dir + "/marks"); string(b) != "x\n" {
				t.Errorf("started %d times", bytes.Count(b, []byte("x")))
			}
			log, _ := os.ReadFile(p.world + ".log")
			if said := string(log); !strings.Contains(said, "journal of before is lost") || !strings.Contains(said, "alive=1") || (name != "missing") != strings.Contains(said, "set aside") {
				t.Errorf("the log does not say it:\n%s", said)
			}
			_ = run
		})
	}
}

// M-02, M-08, SUP-18: after a reboot nothing of before lives, and nobody saw a code: the session is lost, which is no
// failure of its card.
func TestRebootIsAnEndWithoutCode(t *testing.T) {
	t.Parallel()
	p := newProcess(t)
	run := p.mustAsk(order{Op: "file", Profile: "agent", Script: "while :; do sleep 0.05; done"}).Run
	p.until("the start", func(a answer) bool { return a.Runs[0].Launched != 0 })
	p.kill()
	dir := filepath.Join(p.dir, "runs", run)
	proc, err := ReadProc(dir)
	must(t, err)
	s, err := (&Keepers{Log: testLog(t)}).Adopt(t.Context(), dir)
	must(t, err)
	must(t, s.Stop(0, "as a reboot does"))
	wait(t, "the end of the session", s.Done())
	must(t, os.Remove(filepath.Join(dir, fileExit)))
	proc.Boot = "the boot before"
	must(t, WriteProc(dir, proc))
	p.run()
	a := p.until("the end", allGone)
	if r := a.Runs[0]; r.ExitCode != nil || !strings.Contains(r.Error, "rebooted") {
		t.Errorf("code %v, error %q; want none, rebooted", r.ExitCode, r.Error)
	}
	if r := a.Runs[0]; r.Outcome != "reclaimed" { // a crash would be called one
		t.Errorf("outcome %q, want reclaimed", r.Outcome)
	}
}

// M-25, architecture §4: a terminal word is in the run's folder before it is
// asked; it leaves the node before the exit, also after the node's death.
func TestWordLeavesBeforeTheExit(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed=%v", killed), func(t *testing.T) {
			t.Parallel()
			p := newProcess(t)
			dir := t.TempDir()
			run := p.mustAsk(order{Op: "file", Profile: "agent", Script: "while [ ! -e " + dir + "/go ]; do sleep 0.02; done"}).Run
			p.until("the start", func(a answer) bool { return a.Runs[0].Launched != 0 })
			p.mustAsk(order{Op: "down", Down: true})
			a, _ := p.ask(order{Op: "say", Run: run, Event: "request_review", Wait: 200 * time.Millisecond})
			if a.Code != board.UnknownOutcome {
				t.Fatalf("a word that cannot be asked is answered %q (%s), want unknown_outcome", a.Code, a.Err)
			}
			must(t, os.WriteFile(dir+"/go", nil, 0o600))
			eventually(t, "the exit", func() bool { return ReadExitMust(filepath.Join(p.dir, "runs", run)) != nil })
			if killed {
				p.restart()
			} else {
				p.mustAsk(order{Op: "down"})
			}
			a = p.until("word and exit", allGone)
			if r := a.Runs[0]; r.Verdict != board.ByOwn || r.ExitCode == nil {
				t.Errorf("verdict %q, exit code %v; want its own word, and its code", r.Verdict, r.ExitCode)
			}
			if s := a.Cards["web-1"]; s == "running" || s == "ready" {
				t.Errorf("the card is %s", s)
			}
		})
	}
}

// Architecture §5: a node killed and restarted with its boot clock hours ahead,
// its keeper outside: the session is adopted, verified, and its deadline is not
// moved by hours.
func TestNodeInAnotherTimeNamespace(t *testing.T) {
	t.Parallel()
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip("needs unshare: the node is restarted in a time namespace")
	}
	wrap := []string{unshare, "--time", "--boottime", "7200", "--fork", "--kill-child"}
	if err := exec.Command(wrap[0], append(wrap[1:], "true")...).Run(); err != nil {
		t.Skip("needs a time namespace: the node is restarted with its boot clock ahead")
	}
	p := newProcess(t)
	run := p.mustAsk(order{Op: "file", Profile: "agent", Script: "while :; do sleep 0.05; done"}).Run
	p.until("the start", func(a answer) bool { return a.Runs[0].Launched != 0 })
	p.wrap = wrap
	p.restart()
	dir := filepath.Join(p.dir, "runs", run)
	a := p.mustAsk(order{Op: "runs"})
	if a.Runs[0].Gone != "" || ReadExitMust(dir) != nil {
		t.Fatal("the session did not outlive its node")
	}
	s, err := (&Keepers{Log: testLog(t)}).Adopt(t.Context(), dir)
	must(t, err)
	defer s.Close()
	proc, err := ReadProc(dir)
	must(t, err)
	c, err := dialFolder(dir, fileSocket)
	must(t, err)
	defer c.Close()
	must(t, writeMessage(c, message{Op: opStatus}))
	m, err := readMessage(bufioReader(c))
	must(t, err)
	if left := m.Deadline.Sub(m.Now); left <= 0 || left > 600*time.Second+time.Second {
		t.Errorf("%s are left of a lease of 600 s", left)
	}
	p.mustAsk(order{Op: "event", Card: "web-1", Event: "cancel"})
	p.until("the stop", allGone)
	if alive(proc.PID) {
		t.Error("the session was not ended")
	}
	// And one whose keeper is dead: verified and ended across the namespaces.
	p.wrap = nil
	p.restart()
	run = p.mustAsk(order{Op: "file", Profile: "agent", Script: "while :; do sleep 0.05; done"}).Run
	p.until("the second start", func(a answer) bool { return len(a.Runs) == 2 && a.Runs[1].Launched != 0 })
	p.kill()
	dir = filepath.Join(p.dir, "runs", run)
	proc, err = ReadProc(dir)
	must(t, err)
	file := filepath.Join(t.TempDir(), "keeper")
	must(t, os.WriteFile(file, []byte(strconv.Itoa(proc.Keeper)), 0o600))
	killTree(t, proc.Keeper)
	p.wrap = wrap
	p.run()
	a = p.until("the second end", allGone)
	if r := a.Runs[1]; alive(proc.PID) || r.ExitCode != nil {
		t.Errorf("alive %v, code %v", alive(proc.PID), r.ExitCode)
	}
}

// M-16 beside invariant 2: two processes on one journal.
func TestSecondNodeOnTheFolderIsRefused(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	r, err := New(n.cfg)
	must(t, err)
	err = r.Open(t.Context())
	if err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("a second launcher on the folder: %v", err)
	}
	if _, err := os.Stat(filepath.Join(n.cfg.Dir, journalFile)); err != nil {
		t.Errorf("the journal in use was set aside: %v", err)
	}
}
