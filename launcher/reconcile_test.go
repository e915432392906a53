package launcher

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/board"
)

// M-12, SUP-10: a claim becomes a session, and its end the workflow's verdict.
func TestOrderBecomesSessionBecomesVerdict(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	for _, c := range []struct {
		script, status, outcome string
	}{
		{"exit 0", "done", "completed"},
		{"exit 75", "ready", "rate_limited"},
		{"exit 1", "ready", "crashed"},
		{"kill -9 $$", "ready", "crashed"},
	} {
		t.Run(c.script, func(t *testing.T) {
			run := n.start("sh", c.script)
			r := n.gone(run)
			card := n.card(r.Card)
			if card.Status != c.status || r.Outcome != c.outcome || r.Gone != board.GoneReport {
				t.Errorf("card %s, run %s, gone %q; want %s, %s, report", card.Status, r.Outcome, r.Gone, c.status, c.outcome)
			}
			if got := n.reports(run); !slices.Equal(got, []string{board.ReportTaken, board.ReportLaunched, board.ReportExited}) {
				t.Errorf("reports %v, want taken, launched, exited", got)
			}
			if r.PID == 0 || len(r.SecretHash) != 32 || r.Workspace == "" {
				t.Errorf("launched told pid %d, hash of %d bytes, workspace %q", r.PID, len(r.SecretHash), r.Workspace)
			}
		})
	}
}

// M-24, M-25, WSP-05, HLS-09: what a session finds, and what it does not.
func TestSessionEnvironment(t *testing.T) {
	t.Parallel()
	n := newNode(t, func(c *Config) {
		c.Env = []string{"PATH=/usr/bin:/bin", "HOME=/somewhere", "MUSTER_TOKEN=of-the-node", "AWS_SECRET=of-the-user", "LC_ALL=C"}
	})
	run := n.start("named", `env | sort; pwd; cat "$MUSTER_BODY" | head -c 3; ls -l "$MUSTER_SECRET_FILE" | cut -c1-10; cat "$MUSTER_SECRET_FILE"`)
	r := n.gone(run)
	log, _, eof, err := n.ReadLog(context.Background(), run, 0, 1<<16, false)
	must(t, err)
	if !eof {
		t.Error("the log of an ended run does not end")
	}
	got := string(log)
	for _, want := range []string{
		"MUSTER_CARD=" + r.Card, "MUSTER_RUN=" + run, "MUSTER_BOARD=web", "MUSTER_NODE=atlas", "MUSTER_ROLE=implementer", "MUSTER_SLOT=" + r.Slot,
		"MUSTER_SOCKET=" + filepath.Join(n.cfg.Dir, "session.sock"), "MUSTER_WORKSPACE=" + r.Workspace, "HOME=/somewhere", "LC_ALL=C",
		"OTHER_NAME=" + run + "\n", "PRICE=$5\n",
		"\n" + r.Workspace + "\n", "env-rw-------",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the session does not see %q in\n%s", want, got)
		}
	}
	for _, not := range []string{"of-the-node", "of-the-user"} {
		if strings.Contains(got, not) {
			t.Errorf("the session sees %q", not)
		}
	}
	s, err := ReadSecret(filepath.Join(n.cfg.Dir, "runs", run))
	must(t, err)
	if hash := sha256.Sum256([]byte(s.Secret)); string(hash[:]) != string(r.SecretHash) || !strings.Contains(got, s.Secret) {
		t.Error("the fleet's hash is not that of the session's secret")
	}
}

// RUN-09, M-12: a program that is not there is the card's failure; ESTOP is not (M-16).
func TestStartsThatDoNotHappen(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	r := n.gone(n.start("missing", "x"))
	if c := n.card(r.Card); r.Gone != board.GoneVoid || c.Failures != 1 || !strings.Contains(r.Error, "not installed") {
		t.Errorf("run gone by %q, error %q, failures %d; want void, not installed, 1", r.Gone, r.Error, c.Failures)
	}
	must(t, os.WriteFile(filepath.Join(n.cfg.Dir, "ESTOP"), nil, 0o600))
	r = n.gone(n.start("sh", ": > ran"))
	if c := n.card(r.Card); r.Gone != board.GoneRefused || c.Failures != 0 || !strings.Contains(r.Error, "ESTOP") {
		t.Errorf("run gone by %q, error %q, failures %d; want refused, ESTOP, 0", r.Gone, r.Error, c.Failures)
	}
	if exists(filepath.Join(n.cfg.Dir, "workspaces", r.Card)) {
		t.Error("a workspace was made in spite of ESTOP")
	}
}

// M-35, invariant 18: what is stopped from outside is gone when its tree is dead.
func TestStopOrderEndsTheTree(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	pidFile := filepath.Join(t.TempDir(), "pid")
	run := n.start("agent", "sh -c 'echo $$ > "+pidFile+"; while :; do sleep 0.1; done' & wait")
	n.launched(run)
	pid := pidIn(t, pidFile)
	must(t, n.event(n.fleet.run(run).Card, "cancel"))
	r := n.gone(run)
	if alive(pid) || r.Gone != board.GoneReport || r.Verdict != board.ByOutside {
		t.Errorf("alive %v, gone %q, verdict %q", alive(pid), r.Gone, r.Verdict)
	}
	eventually(t, "the stop order to leave", func() bool { return n.fleet.run(run).Stop == "" })
}

// Architecture §4: reports go in order, one on its way, each until it has an
// outcome; a lost answer is asked again under the same number.
func TestOutboxKeepsOrderThroughLossAndLeaderlessness(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	lost := map[uint64]bool{}
	n.set(func() {
		n.lose = func(r *board.Request) bool {
			if r.Verb != board.VReport || lost[r.Number] {
				return false
			}
			lost[r.Number] = true
			return true
		}
	})
	run := n.start("sh", "exit 0")
	n.set(func() { n.down = true })
	eventually(t, "a try without a leader", func() bool { return len(n.reports(run)) > 0 })
	n.set(func() { n.down = false })
	n.LeaderChanged()
	r := n.gone(run)
	if r.Outcome != "completed" {
		t.Errorf("outcome %q", r.Outcome)
	}
	if got := slices.Compact(n.reports(run)); !slices.Equal(got, []string{board.ReportTaken, board.ReportLaunched, board.ReportExited}) {
		t.Errorf("reports %v: out of order", got)
	}
	last := uint64(0)
	n.set(func() {
		for _, q := range n.seen {
			if q.Verb == board.VReport && q.Number < last {
				t.Errorf("number %d after %d", q.Number, last)
			}
			last = max(last, q.Number)
		}
	})
	if last != 3 {
		t.Errorf("the last number is %d, want 3: a repetition has the same", last)
	}
	n.set(func() {
		if got := slices.Compact(n.done); !slices.Equal(got, []uint64{1, 2, 3}) {
			t.Errorf("the leader took the numbers %v, want 1, 2, 3", got)
		}
	})
}

// Invariant 22: a report that the leader refuses has its outcome; the next goes.
func TestRefusedReportHoldsUpNothing(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	n.set(func() {
		n.block = func(r *board.Request) bool { return strings.Contains(string(r.Args), `"launched"`) }
	})
	run := n.start("agent", "while :; do sleep 0.1; done")
	eventually(t, "a try to report the launch", func() bool { return slices.Contains(n.reports(run), board.ReportLaunched) })
	must(t, n.event(board.CardOfRun(run), "cancel"))
	n.set(func() { n.block = nil })
	n.LeaderChanged()
	if r := n.gone(run); r.Launched == 0 && r.State == board.RunRunning {
		t.Errorf("a run that was cancelled before its launch was told is %q", r.State)
	}
	if got := slices.Compact(n.reports(run)); !slices.Equal(got, []string{board.ReportTaken, board.ReportLaunched, board.ReportExited}) {
		t.Errorf("reports %v", got)
	}
	if next := n.gone(n.start("sh", "exit 0")); next.Outcome != "completed" {
		t.Errorf("outcome %q of the next run", next.Outcome)
	}
	eventually(t, "an empty outbox", func() bool { return n.box.waiting() == 0 })
}

// Architecture §5: the keeper's deadline follows the contacts, and an old
// contact ends the session with the node alive.
func TestDeadlineFollowsTheContact(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	run := n.start("agent", "while :; do sleep 0.1; done")
	n.launched(run)
	dir := filepath.Join(n.cfg.Dir, "runs", run)
	spec, err := ReadSpec(dir)
	must(t, err)
	if spec.Lease != 600*time.Second || spec.Deadline == 0 || spec.StartBy != spec.Deadline {
		t.Fatalf("lease %s, deadline %d, start by %d", spec.Lease, spec.Deadline, spec.StartBy)
	}
	n.Contact()
	eventually(t, "a later deadline", func() bool {
		c, err := dialFolder(dir, fileSocket)
		if err != nil {
			return false
		}
		defer c.Close()
		if writeMessage(c, message{Op: opStatus}) != nil {
			return false
		}
		var m message
		return json.NewDecoder(c).Decode(&m) == nil && m.Deadline > spec.Deadline
	})
}

// M-35: a session whose run ended by its own word is stopped after `leave`.
func TestSessionThatDoesNotLeaveIsStopped(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	run := n.start("agent", "while :; do sleep 0.1; done")
	n.launched(run)
	s, err := ReadSecret(filepath.Join(n.cfg.Dir, "runs", run))
	must(t, err)
	n.ask(func() { n.runs[run].spec.Leave = 300 * time.Millisecond })
	res := n.SessionSay(context.Background(), run, s.Secret, say(n.fleet, run, "request_review"))
	if res.Err != nil {
		t.Fatal(res.Err)
	}
	r := n.gone(run)
	if r.Verdict != board.ByOwn || r.Outcome == "" {
		t.Errorf("verdict %q, outcome %q", r.Verdict, r.Outcome)
	}
	e := ReadExitMust(filepath.Join(n.cfg.Dir, "runs", run))
	if e == nil || !strings.Contains(e.Error, "did not leave") {
		t.Errorf("exit %+v, want stopped because it did not leave", e)
	}
}

// Invariant 18: the death of a keeper is seen at once; no code is made up.
func TestKeeperKilledIsACrashWithoutCode(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	run := n.start("agent", "while :; do sleep 0.1; done")
	n.launched(run)
	p, err := ReadProc(filepath.Join(n.cfg.Dir, "runs", run))
	must(t, err)
	must(t, syscall.Kill(p.Keeper, syscall.SIGKILL))
	r := n.gone(run)
	if alive(p.PID) || r.ExitCode != nil || r.Outcome != "crashed" {
		t.Errorf("alive %v, code %v, outcome %q; want dead, none, crashed", alive(p.PID), r.ExitCode, r.Outcome)
	}
}

// The user's own socket refuses what a session started.
func TestInKeeperTree(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	file := filepath.Join(t.TempDir(), "pid")
	run := n.start("agent", "sh -c 'echo $$ > "+file+"; sleep 100' & wait")
	n.launched(run)
	if pid := pidIn(t, file); !n.InKeeperTree(pid) || n.InKeeperTree(os.Getpid()) {
		t.Errorf("session's child in the tree: %v, this process: %v", n.InKeeperTree(pid), n.InKeeperTree(os.Getpid()))
	}
}

// A log is followed without polling, to its end.
func TestLogIsFollowed(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	gate := filepath.Join(t.TempDir(), "gate")
	must(t, syscall.Mkfifo(gate, 0o600))
	run := n.start("sh", "echo one; cat "+gate+"; echo two")
	n.launched(run)
	ctx, cancel := context.WithTimeout(context.Background(), slow)
	defer cancel()
	text, next := "", int64(0)
	opened := false
	for {
		b, to, eof, err := n.ReadLog(ctx, run, next, 5, true)
		must(t, err)
		if ctx.Err() != nil {
			t.Fatal("the log did not end")
		}
		text, next = text+string(b), to
		if text == "one\n" && !opened {
			opened = true
			go func() { _ = os.WriteFile(gate, []byte("mid\n"), 0o600) }()
		}
		if eof {
			break
		}
	}
	if text != "one\nmid\ntwo\n" {
		t.Errorf("log %q", text)
	}
	if _, _, _, err := n.ReadLog(ctx, "web-99.1", 0, 10, false); board.CodeOf(err) != board.NotFound {
		t.Errorf("log of an unknown run: %v", err)
	}
	if _, _, _, err := n.ReadLog(ctx, "../../x.1", 0, 10, false); board.CodeOf(err) != board.NotFound {
		t.Errorf("log of a path: %v", err)
	}
}

// say is a request of a session, with an id as a door mints it.
func say(f *fleet, run, event string) board.Request {
	r := request(board.Actor{}, board.VEvent, board.FireEvent{Card: board.CardOfRun(run), Event: event, Payload: map[string]any{"summary": "s", "text": "t"}})
	_ = f.view(func(v board.View) error {
		r.ID = board.ReqID(board.GetFleet(v), v.Seq(), randomHex(8))
		return nil
	})
	return r
}
