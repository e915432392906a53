package launcher

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/board"
)

// A process born to a parent that dies of TERM is told as well: it does not
// have to be killed, also when it was told between its fork and its exec, where the signal is lost.
func TestTermReachesWhoIsBornMeanwhile(t *testing.T) {
	t.Parallel()
	k := testKeepers(t)
	const patience = 2 * time.Minute // nobody has to wait for it
	dir, _ := testSpec(t, sh(`trap 'sh -c "trap \"echo bye; exit\" TERM; echo born; while :; do sleep 0.05; done" & exit 4' TERM; echo up; while :; do sleep 0.05; done`), func(s *Spec) { s.Kill = patience })
	s := start(t, k, dir)
	eventually(t, "the session", func() bool { return exists(filepath.Join(dir, fileLog)) && strings.Contains(logOf(t, dir), "up") })
	begin := BootNow()
	must(t, s.Stop(patience, "test"))
	e := finish(t, s, dir)
	if e.At.Sub(begin) >= patience || e.Code == nil || *e.Code != 4 {
		t.Errorf("it had to be killed: %+v", e)
	}
}

// Who was told as one program and is another since has lost the signal: it is told once more, and need not be killed.
func TestTermLostBeforeExec(t *testing.T) {
	t.Parallel()
	if treeLimits() != "" {
		t.Skip(treeLimits())
	}
	k := testKeepers(t)
	const patience = 2 * time.Minute // nobody has to wait for it
	dir, _ := testSpec(t, sh(`sh -c 'trap "told=1" TERM; : >up; while [ -z "$told" ]; do sleep 0.05; done; exec sleep 1000' & until [ -e up ]; do sleep 0.02; done; exit 3`), func(s *Spec) { s.Kill = patience })
	begin := BootNow()
	if e := finish(t, start(t, k, dir), dir); e.At.Sub(begin) >= patience || e.Code == nil || *e.Code != 3 {
		t.Errorf("it had to be killed: %+v", e)
	}
}

// Architecture §4: a keeper that is stopped holds its session; it is adopted
// when it goes on.
func TestStoppedKeeperIsAdoptedLater(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	run := n.start("sh", "while [ ! -e go ]; do sleep 0.05; done")
	n.launched(run)
	p, err := ReadProc(filepath.Join(n.cfg.Dir, "runs", run))
	must(t, err)
	must(t, syscall.Kill(p.Keeper, syscall.SIGSTOP))
	defer func() { _ = syscall.Kill(p.Keeper, syscall.SIGCONT) }()
	must(t, n.Close())
	n.cfg.Runner = nil
	n.open()
	if r := n.fleet.run(run); r.Gone != "" {
		t.Fatalf("gone %q with its keeper stopped", r.Gone)
	}
	must(t, syscall.Kill(p.Keeper, syscall.SIGCONT))
	must(t, os.WriteFile(filepath.Join(n.cfg.Dir, "workspaces", board.CardOfRun(run), "go"), nil, 0o600))
	if r := n.gone(run); r.Outcome != "completed" {
		t.Errorf("outcome %q", r.Outcome)
	}
}

// RUN-09, M-12: a run that ended while it was being started is not left running.
func TestStartThatCameTooLateIsNotLeftRunning(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	n.set(func() { n.block = func(r *board.Request) bool { return r.Verb == board.VReport } })
	run := n.start("agent", "echo up; "+untilStopped)
	dir := filepath.Join(n.cfg.Dir, "runs", run)
	eventually(t, "the session", func() bool { b, _ := readAt(filepath.Join(dir, fileLog), 0, 10); return len(b) > 0 })
	must(t, n.event(board.CardOfRun(run), "cancel"))
	n.set(func() { n.block = nil })
	n.LeaderChanged()
	n.gone(run)
	if p, err := ReadProc(dir); err != nil || alive(p.PID) {
		t.Errorf("left running: %v", err)
	}
	if r := n.fleet.run(run); r.PID != 0 {
		t.Errorf("the run got a record of the late launch: pid %d", r.PID)
	}
}

// M-02: an age, by the clock that counts sleep; across a boot by the wall's difference.
func TestAgeOfAnExit(t *testing.T) {
	now, wall := soon(0), time.Now()
	for name, c := range map[string]struct {
		e    Exit
		want time.Duration
	}{
		"same boot, wall moved": {Exit{Boot: BootID(), At: now.Add(-time.Minute), Wall: wall.Add(-9 * time.Hour).UnixMilli()}, time.Minute},
		"another boot":          {Exit{Boot: "before", At: now.Add(time.Hour), Wall: wall.Add(-time.Hour).UnixMilli()}, time.Hour},
		"never negative":        {Exit{Boot: BootID(), At: now.Add(time.Minute)}, 0},
		"wall set back":         {Exit{Boot: "before", Wall: wall.Add(time.Hour).UnixMilli()}, 0},
	} {
		if got := c.e.ago(BootID(), now, wall); (got - c.want).Abs() > time.Second {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// M-24, M-26: what the executing node resolves, and what it refuses.
func TestPreparation(t *testing.T) {
	t.Parallel()
	n := newNode(t, func(c *Config) { c.Env = []string{"PATH=/usr/bin:/bin", "MY_KEY=k", "NODE_OPTIONS=x", "LANG=C"} })
	here := t.TempDir()
	prepare := func(w board.StartSpec) (*Spec, string) {
		t.Helper()
		w.Run, w.Card = "web-7.1", "web-7"
		if w.Argv == nil {
			w.Argv = []string{"sh"}
		}
		s, err := n.prepareRun(context.Background(), prepJob{dir: filepath.Join(n.cfg.Dir, "runs", w.Run), order: &board.Order{ID: "o"}, want: &w})
		if err != nil {
			return nil, err.Error()
		}
		return s, ""
	}
	extra := func(x board.SpecExtra) []byte { b, _ := json.Marshal(x); return b }

	s, why := prepare(board.StartSpec{Workspace: "dir:" + here, EnvFrom: map[string]string{"API": "MY_KEY"}, Env: map[string]string{"MUSTER_RUN": "another", "PATH": "/bin"}})
	if s == nil || s.Dir != here || !slices.Contains(s.Env, "API=k") || !slices.Contains(s.Env, "MUSTER_RUN=web-7.1") || slices.Contains(s.Env, "MUSTER_RUN=another") || !slices.Contains(s.Env, "PATH=/bin") {
		t.Errorf("%+v, %s", s, why)
	}
	if s, why = prepare(board.StartSpec{}); s == nil || s.Dir != filepath.Join(n.cfg.Dir, "workspaces", "web-7") {
		t.Errorf("%+v, %s", s, why)
	}
	brief := filepath.Join(n.cfg.Dir, "runs", "web-7.1", fileBrief)
	s, _ = prepare(board.StartSpec{Harness: "codex", Argv: []string{"codex", "--file=" + board.BriefPath}, Prompt: "do it", Extra: extra(board.SpecExtra{Prompt: "stdin", Scrub: []string{"LANG"}})})
	if s == nil || s.Argv[1] != "--file="+brief || s.Stdin != brief || slices.Contains(s.Env, "LANG=C") {
		t.Errorf("%+v", s)
	}
	if b, _ := os.ReadFile(brief); string(b) != "do it" {
		t.Errorf("brief %q", b)
	}
	if s, _ = prepare(board.StartSpec{Harness: "command", Argv: []string{"sh", "-c", "cat " + board.BriefPath, board.BriefPath}}); s == nil || s.Argv[2] != "cat "+board.BriefPath || s.Argv[3] != brief {
		t.Errorf("%+v", s)
	}
	for say, w := range map[string]board.StartSpec{
		"no folder":      {Workspace: "dir:/no/such"},
		"absolute":       {Workspace: "dir:../up"},
		"--repo app=":    {Workspace: "worktree:app"},
		"not set":        {EnvFrom: map[string]string{"API": "NOT_THERE"}},
		"zero byte":      {Env: map[string]string{"A": "a\x00b"}},
		"what to start":  {Argv: []string{}},
		"cannot be read": {Extra: []byte(`[1]`)},
	} {
		if s, why := prepare(w); s != nil || !strings.Contains(why, say) {
			t.Errorf("%+v: %q, want %q", w, why, say)
		}
	}
	for _, bad := range []string{"../x-1.1", "a/b-1.1", ".x-1.1", "x", "", "x-1.", "-1.1/.."} {
		if dir := n.runDir(bad); dir != "" && filepath.Dir(dir) != filepath.Join(n.cfg.Dir, "runs") {
			t.Errorf("run id %q is the folder %s", bad, dir)
		}
	}
}

// A prompt that the harness reads from its input is there, and nothing else is.
func TestStdinIsTheBriefOrNothing(t *testing.T) {
	t.Parallel()
	k := testKeepers(t)
	brief := filepath.Join(t.TempDir(), "brief")
	must(t, os.WriteFile(brief, []byte("the prompt"), 0o600))
	for want, file := range map[string]string{"[the prompt]": brief, "[]": ""} {
		dir, _ := testSpec(t, sh(`printf '[%s]' "$(cat)"`), func(s *Spec) { s.Stdin = file })
		finish(t, start(t, k, dir), dir)
		if got := logOf(t, dir); got != want {
			t.Errorf("stdin %q, want %q", got, want)
		}
	}
}

// Old run folders go, the newest stay, and one that is in use is not touched.
func TestOldRunFoldersAreRemoved(t *testing.T) {
	t.Parallel()
	n := newNode(t, func(c *Config) { c.KeepRuns = 3 })
	must(t, n.Close())
	runs := filepath.Join(n.cfg.Dir, "runs")
	for i := range 6 {
		dir := filepath.Join(runs, fmt.Sprintf("old-%d.1", i))
		must(t, os.Mkdir(dir, 0o700))
		must(t, WriteExit(dir, &Exit{Boot: "b"}))
		at := time.Now().Add(time.Duration(i-10) * time.Hour)
		must(t, os.Chtimes(filepath.Join(dir, fileExit), at, at))
	}
	bare := filepath.Join(runs, "bare-1.1") // whose record somebody has deleted
	must(t, os.Mkdir(bare, 0o700))
	must(t, os.Chtimes(bare, time.Now().Add(-20*time.Hour), time.Now().Add(-20*time.Hour)))
	held := filepath.Join(runs, "old-0.1")
	lock, err := Hold(held)
	must(t, err)
	defer lock.Close()
	n.cfg.Runner = nil
	n.open()
	for i, want := range []bool{true, false, false, true, true, true} {
		if got := exists(filepath.Join(runs, fmt.Sprintf("old-%d.1", i))); got != want {
			t.Errorf("folder %d is there: %v, want %v", i, got, want)
		}
	}
	if exists(bare) {
		t.Error("a folder without a record stays for ever")
	}
}

// A journal that cannot be written stops everything, and says so once.
func TestFailedJournalStopsTheLauncher(t *testing.T) {
	t.Parallel()
	failed := make(chan error, 2)
	n := newNode(t, func(c *Config) { c.OnFail = func(err error) { failed <- err } })
	n.ask(func() { _ = n.journal.db.Close() })
	run := n.start("sh", ": > ran")
	select {
	case err := <-failed:
		if n.Err() == nil || !strings.Contains(err.Error(), "journal") {
			t.Errorf("failed with %v, %v", err, n.Err())
		}
	case <-time.After(slow):
		t.Fatal("nobody was told")
	}
	n.Contact()
	n.ask(func() {})
	if exists(filepath.Join(n.cfg.Dir, "runs", run)) || len(failed) != 0 {
		t.Error("it goes on after its journal has failed")
	}
}

// M-12: what happened to the node or to the moment is no failure of the card;
// a program or a workspace that is not there is.
func TestWhoseFaultAStartIs(t *testing.T) {
	for _, c := range []struct {
		n    run
		kind string
	}{
		{run{}, board.ReportRefused},
		{run{exit: &Exit{Refused: RefusedEstop, Error: "ESTOP"}}, board.ReportRefused},
		{run{exit: &Exit{Refused: RefusedLate, Error: "late"}}, board.ReportRefused},
		{run{exit: &Exit{Error: "not installed"}}, board.ReportFailed},
		{run{failed: "no such workspace"}, board.ReportFailed},
	} {
		if kind, text := c.n.whyNot("its launch left nothing behind"); kind != c.kind || text == "" {
			t.Errorf("%+v: %s (%q), want %s", c.n.exit, kind, text, c.kind)
		}
	}
}

// Architecture §5: a run without a lease has no deadline; only its own end or
// an order ends it.
func TestWithoutALeaseThereIsNoDeadline(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	up := request(board.Actor{Kind: board.ActorNode, Name: "atlas", Node: testNode}, board.VNodeUp,
		board.NodeUp{ID: testNode, Name: "atlas", Slots: 8, OS: "linux", Arch: "amd64", Harnesses: []string{"command"}, Battery: true, Generation: 1})
	if res := n.do(t.Context(), &up); res.Err != nil {
		t.Fatal(res.Err)
	}
	run := n.start("sh", "exit 0")
	r := n.gone(run)
	spec, err := ReadSpec(filepath.Join(n.cfg.Dir, "runs", run))
	must(t, err)
	if r.Lease != 0 || spec.Deadline != 0 || r.Outcome != "completed" {
		t.Errorf("lease %d, deadline %d, outcome %q (%s)", r.Lease, spec.Deadline, r.Outcome, r.Error)
	}
	if left := spec.StartBy.Sub(BootNow()); left > 10*time.Second {
		t.Errorf("it may start for another %s; a contact is fresh for 10 s", left)
	}
}
