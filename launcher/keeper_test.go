package launcher

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"
)

// SUP-10, M-08: the record says the code of the session's own process, or the
// signal and no code.
func TestExitRecordSaysCodeOrSignal(t *testing.T) {
	t.Parallel()
	k := testKeepers(t)
	for _, c := range []struct {
		name, script string
		code         int64
		signal       string
	}{
		{"success", "exit 0", 0, ""},
		{"failure", "exit 1", 1, ""},
		{"rate limit", "exit 75", 75, ""},
		{"signal", "kill -KILL $$", -1, "SIGKILL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, _ := testSpec(t, sh("echo out; echo err >&2; "+c.script), nil)
			e := finish(t, start(t, k, dir), dir)
			if !e.Started || e.Signal != c.signal {
				t.Errorf("record %+v, want started, signal %q", e, c.signal)
			}
			if (e.Code == nil) != (c.code < 0) || e.Code != nil && *e.Code != c.code {
				t.Errorf("code %v, want %d (-1: none)", e.Code, c.code)
			}
			if got := logOf(t, dir); got != "out\nerr\n" {
				t.Errorf("log %q, want both streams", got)
			}
		})
	}
}

// SUP-12, M-08: a record that cannot be read is an end without a code.
func TestBrokenExitRecordHasNoCode(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "blank": "\n", "cut": `{"started":true,"co`, "nothing": "{}", "zero": "0"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, fileExit), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			e, err := ReadExit(dir)
			if err != nil || e == nil || e.Code != nil || e.Error == "" {
				t.Errorf("read %+v, %v; want a record without a code that says why", e, err)
			}
		})
	}
	if e, err := ReadExit(t.TempDir()); e != nil || err != nil {
		t.Errorf("without a record: %+v, %v; want nothing", e, err)
	}
}

// Invariant 2: one keeper per run, and a folder is used once.
func TestOneKeeperPerRun(t *testing.T) {
	t.Parallel()
	k := testKeepers(t)
	count := filepath.Join(t.TempDir(), "starts")
	dir, _ := testSpec(t, sh(`echo x >> "$1"; while :; do sleep 1; done`, count), nil)
	first := start(t, k, dir)
	wait(t, "the first start", first.Started())
	for range 3 {
		second := start(t, k, dir)
		wait(t, "the second keeper's end", second.Done())
		if second.PID() != 0 {
			t.Fatal("a second keeper executed the session")
		}
	}
	if ReadExitMust(dir) != nil {
		t.Fatal("a keeper that was turned away wrote an exit record")
	}
	eventually(t, "the session's mark", func() bool { return exists(count) })
	if err := first.Stop(0, "test"); err != nil {
		t.Fatal(err)
	}
	finish(t, first, dir)
	again := start(t, k, dir) // the folder is free now, and used
	wait(t, "the third keeper's end", again.Done())
	if b, _ := os.ReadFile(count); string(b) != "x\n" {
		t.Errorf("the session was started %d times", strings.Count(string(b), "x"))
	}
}

// Invariant 3, M-12, M-16: the keeper's last look before exec.
func TestKeeperRefusesLastThingBeforeExec(t *testing.T) {
	t.Parallel()
	k := testKeepers(t)
	for _, c := range []struct {
		name    string
		change  func(dir string, s *Spec)
		refused string
	}{
		{"void", func(dir string, s *Spec) { must(t, writeVoid(dir)) }, RefusedVoid},
		{"ESTOP", func(dir string, s *Spec) { must(t, os.WriteFile(s.Estop, nil, 0o600)) }, RefusedEstop},
		{"after its moment, as after a sleep", func(dir string, s *Spec) { s.StartBy = soon(-time.Millisecond) }, RefusedLate},
		{"moments of another boot", func(dir string, s *Spec) { s.Boot = "other" }, RefusedLate},
	} {
		t.Run(c.name, func(t *testing.T) {
			mark := filepath.Join(t.TempDir(), "ran")
			dir, spec := testSpec(t, sh(`: > "$1"`, mark), nil)
			c.change(dir, spec)
			must(t, writeJSON(dir, fileSpec, spec, false))
			e := finish(t, start(t, k, dir), dir)
			if e.Started || e.Refused != c.refused || exists(mark) {
				t.Errorf("record %+v, ran %v; want refused %q", e, exists(mark), c.refused)
			}
		})
	}
}

// What exec would say inside the session is said before there is one (spawn_failed).
func TestProgramThatCannotStartIsSaidSo(t *testing.T) {
	t.Parallel()
	k := testKeepers(t)
	script := filepath.Join(t.TempDir(), "script")
	must(t, os.WriteFile(script, []byte("#!/no/such/interpreter\n"), 0o755))
	for name, c := range map[string]struct {
		argv []string
		dir  string
		say  string
	}{
		"not installed":  {[]string{"no-such-program-here"}, "", "not installed"},
		"no command":     {[]string{""}, "", "empty"},
		"no interpreter": {[]string{script}, "", "/no/such/interpreter"},
		"a folder":       {[]string{"/tmp/"}, "", "folder"},
		"no workspace":   {[]string{"sh", "-c", ":"}, "/no/such/folder", "/no/such/folder"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := testSpec(t, c.argv, func(s *Spec) {
				if c.dir != "" {
					s.Dir = c.dir
				}
			})
			e := finish(t, start(t, k, dir), dir)
			if e.Started || !strings.Contains(e.Error, c.say) {
				t.Errorf("record %+v, want not started and %q", e, c.say)
			}
		})
	}
}

// Architecture §5: TERM at deadline - kill, KILL of what ignores it at the deadline.
func TestLeaseEndsTheSession(t *testing.T) {
	t.Parallel()
	k := testKeepers(t)
	dir, _ := testSpec(t, sh(`trap 'echo term' TERM; echo up; while :; do sleep 0.05; done`), func(s *Spec) {
		s.Kill = 500 * time.Millisecond
		s.Deadline = soon(2500 * time.Millisecond)
		s.StartBy = s.Deadline
	})
	spec, _ := ReadSpec(dir)
	e := finish(t, start(t, k, dir), dir)
	if e.Signal != "SIGKILL" || e.Code != nil || !e.Lapsed || !strings.Contains(e.Error, "lease") {
		t.Errorf("record %+v, want killed by the lease", e)
	}
	if e.At < spec.Deadline || e.At > spec.Deadline.Add(5*time.Second) {
		t.Errorf("ended %s after the deadline", e.At.Sub(spec.Deadline))
	}
	if got := logOf(t, dir); !strings.HasPrefix(got, "up\n") || !strings.HasSuffix(got, "term\n") {
		t.Errorf("log %q: TERM must come first", got)
	}
}

// A contact moves the deadline forward, and an old one does not move it back.
func TestExtendMovesTheDeadlineForwardOnly(t *testing.T) {
	t.Parallel()
	k := testKeepers(t)
	dir, _ := testSpec(t, sh(`while :; do sleep 0.05; done`), func(s *Spec) {
		s.Kill = 50 * time.Millisecond
		s.Deadline = soon(2 * time.Second)
		s.StartBy = s.Deadline
	})
	s := start(t, k, dir)
	wait(t, "the start", s.Started())
	late := soon(3 * time.Second)
	must(t, s.Extend(late))
	must(t, s.Extend(soon(0)))
	e := finish(t, s, dir)
	if e.At < late.Add(-100*time.Millisecond) {
		t.Errorf("ended %s before the deadline it was given", late.Sub(e.At))
	}
}

// Invariant 18: stop takes the whole tree, also a child of a session of its own
// that has cleared its environment and ignores TERM.
func TestStopTakesTheWholeTree(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"stay", "leave"} {
		t.Run(how, func(t *testing.T) {
			k := testKeepers(t)
			file := filepath.Join(t.TempDir(), "pid")
			dir, _ := testSpec(t, []string{testBinary(t), "program", "daemon", how, file}, func(s *Spec) { s.Kill = 200 * time.Millisecond })
			s := start(t, k, dir)
			pid := pidIn(t, file)
			if how == "stay" {
				if !alive(pid) {
					t.Fatal("the grandchild is not there")
				}
				must(t, s.Stop(200*time.Millisecond, "test"))
			}
			e := finish(t, s, dir)
			if alive(pid) {
				t.Errorf("the grandchild %d outlived its session", pid)
			}
			if how == "leave" && (e.Code == nil || *e.Code != 0) {
				t.Errorf("record %+v, want code 0 of the session's own process", e)
			}
		})
	}
}

// A stopped process takes no TERM: it is continued, and killed if need be.
func TestStopEndsAStoppedSession(t *testing.T) {
	t.Parallel()
	k := testKeepers(t)
	dir, _ := testSpec(t, sh(`trap 'echo bye; exit 3' TERM; echo up; kill -STOP $$; while :; do sleep 0.05; done`), nil)
	s := start(t, k, dir)
	eventually(t, "the session", func() bool { return exists(filepath.Join(dir, fileLog)) && strings.Contains(logOf(t, dir), "up") })
	must(t, s.Stop(slow, "test"))
	if e := finish(t, s, dir); e.Code == nil || *e.Code != 3 {
		t.Errorf("record %+v, want the code of its own end", e)
	}
}

// Architecture §4: a keeper killed with -9 takes the session's process with it,
// and the node ends the rest of the tree.
func TestKilledKeeperLeavesNothing(t *testing.T) {
	t.Parallel()
	k := testKeepers(t)
	file := filepath.Join(t.TempDir(), "pid")
	dir, _ := testSpec(t, []string{testBinary(t), "program", "daemon", "marked", file}, nil)
	s := start(t, k, dir)
	pid := pidIn(t, file)
	p, err := ReadProc(dir)
	must(t, err)
	must(t, syscall.Kill(p.Keeper, syscall.SIGKILL))
	wait(t, "the keeper's death to be seen", s.Done())
	must(t, k.End(context.Background(), dir))
	if alive(p.PID) || alive(pid) {
		t.Errorf("session alive %v, its grandchild alive %v", alive(p.PID), alive(pid))
	}
	e := ReadExitMust(dir)
	if e == nil || !e.Started || e.Code != nil || !strings.Contains(e.Error, "keeper died") {
		t.Errorf("record %+v, want an end without a code", e)
	}
	must(t, k.End(context.Background(), dir))
	if again := ReadExitMust(dir); !reflect.DeepEqual(again, e) {
		t.Errorf("the record changed from %+v to %+v", e, again)
	}
}

// Invariant 18: no signal to a process that is not verified.
func TestEndTreeSparesAStranger(t *testing.T) {
	k := testKeepers(t)
	dir, spec := testSpec(t, sh(`:`), nil)
	other, _ := testSpec(t, sh(`while :; do sleep 1; done`), nil)
	s := start(t, k, other)
	wait(t, "the stranger", s.Started())
	stranger, err := ReadProc(other)
	must(t, err)
	for name, p := range map[string]Proc{
		"the pid was used again": {PID: stranger.PID, Start: stranger.Start - 1, Boot: BootID(), Nonce: spec.Nonce},
		"another boot":           {PID: stranger.PID, Start: stranger.Start, Boot: "before", Nonce: spec.Nonce},
		"a leaf of another run":  {PID: 1 << 22, Boot: BootID(), Nonce: spec.Nonce, Cgroup: stranger.Cgroup},
	} {
		must(t, WriteProc(dir, &p))
		must(t, k.End(context.Background(), dir))
		if !alive(stranger.PID) {
			t.Fatalf("%s: a stranger was killed", name)
		}
		must(t, os.Remove(filepath.Join(dir, fileExit)))
	}
}

// Architecture §4: nothing is executed that is not recorded.
func TestTheRecordIsThereBeforeTheProgram(t *testing.T) {
	k := testKeepers(t)
	dir, _ := testSpec(t, nil, func(s *Spec) { s.Argv = sh(`cat "$1"; echo "$$"`, "proc") })
	spec, _ := ReadSpec(dir)
	spec.Argv[len(spec.Argv)-1] = filepath.Join(dir, fileProc)
	must(t, writeJSON(dir, fileSpec, spec, false))
	finish(t, start(t, k, dir), dir)
	p, err := ReadProc(dir)
	must(t, err)
	if got := logOf(t, dir); !strings.Contains(got, fmt.Sprintf("\"pid\":%d,", p.PID)) || !strings.HasSuffix(got, fmt.Sprintf("\n%d\n", p.PID)) {
		t.Errorf("the session saw %q, want its own record with pid %d", got, p.PID)
	}
}

// A spare keeper serves a run, and ends with the node that made it.
func TestSpareKeeper(t *testing.T) {
	t.Parallel()
	k := testKeepers(t)
	ready := func() (pid int) {
		eventually(t, "a spare keeper", func() bool {
			k.mu.Lock()
			defer k.mu.Unlock()
			if k.spare != nil {
				pid = k.spare.cmd.Process.Pid
			}
			return pid != 0
		})
		return pid
	}
	k.Warm()
	spare := ready()
	dir, _ := testSpec(t, sh("exit 7"), nil)
	s := start(t, k, dir)
	if s.Keeper() != spare {
		t.Errorf("keeper %d, want the spare %d", s.Keeper(), spare)
	}
	if e := finish(t, s, dir); e.Code == nil || *e.Code != 7 {
		t.Errorf("record %+v, want code 7", e)
	}
	next := ready()
	k.Close()
	k.wg.Wait()
	if alive(next) {
		t.Error("the spare keeper outlived its node")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
