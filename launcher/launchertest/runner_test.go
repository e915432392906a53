package launchertest

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/board/lease"
	"muster/launcher"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == launcher.KeepVerb {
		if err := launcher.Keep(os.Args[2:]); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// script reads a shell command of these tests as a plan.
func script(s *launcher.Spec) Plan {
	var code int64
	cmd := s.Argv[len(s.Argv)-1]
	switch n, _ := fmt.Sscanf(cmd, "exit %d", &code); {
	case n == 1:
		return Plan{Code: code}
	case s.Argv[0] == "no-such-program":
		return Plan{Fails: "no-such-program is not installed on this machine"}
	}
	return Plan{After: -1, Output: "up\n", Stubborn: strings.Contains(cmd, "trap")}
}

// The twin and the real keepers do the same, as far as a reconciler sees it.
func TestTwinDoesWhatKeepersDo(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	keepers := &launcher.Keepers{Binary: exe, Log: slog.New(slog.DiscardHandler)}
	defer keepers.Close()
	runners := map[string]launcher.Runner{"twin": &Runner{Script: script, Now: launcher.BootNow}, "keepers": keepers}
	soon := func(d time.Duration) lease.Instant { return launcher.BootNow().Add(d) }
	const forever = "echo up; while :; do sleep 0.05; done"
	for _, c := range []struct {
		name   string
		argv   []string
		change func(dir string, s *launcher.Spec)
		act    func(t *testing.T, s launcher.Session)
		want   string // the record, without moments
	}{
		{"success", []string{"sh", "-c", "exit 0"}, nil, nil, `started, code 0`},
		{"rate limit", []string{"sh", "-c", "exit 75"}, nil, nil, `started, code 75`},
		{"not installed", []string{"no-such-program", "x"}, nil, nil, `not started: not installed`},
		{"void", []string{"sh", "-c", "exit 0"}, func(dir string, s *launcher.Spec) { write(t, filepath.Join(dir, "void")) }, nil, `not started: void`},
		{"ESTOP", []string{"sh", "-c", "exit 0"}, func(dir string, s *launcher.Spec) { write(t, s.Estop) }, nil, `not started: estop`},
		{"late", []string{"sh", "-c", "exit 0"}, func(dir string, s *launcher.Spec) { s.StartBy = soon(-1) }, nil, `not started: late`},
		{"stop", []string{"sh", "-c", forever}, nil, func(t *testing.T, s launcher.Session) { stop(t, s, 5*time.Second) }, `started, SIGTERM: stopped`},
		{"stop of a stubborn one", []string{"sh", "-c", "trap '' TERM; " + forever}, nil, func(t *testing.T, s launcher.Session) { stop(t, s, 300*time.Millisecond) }, `started, SIGKILL: stopped`},
		{"lease", []string{"sh", "-c", "trap '' TERM; " + forever}, func(_ string, s *launcher.Spec) {
			s.Kill, s.Deadline = 300*time.Millisecond, soon(2*time.Second)
		}, nil, `started, SIGKILL: lease`},
		{"extended", []string{"sh", "-c", forever}, func(_ string, s *launcher.Spec) {
			s.Kill, s.Deadline = 50*time.Millisecond, soon(2*time.Second)
		}, func(t *testing.T, s launcher.Session) {
			if err := s.Extend(soon(time.Hour)); err != nil {
				t.Error(err)
			}
			select {
			case <-s.Done():
				t.Error("it ended at its old deadline")
			case <-time.After(2200 * time.Millisecond):
			}
			stop(t, s, time.Second)
		}, `started, SIGTERM: stopped`},
	} {
		for name, r := range runners {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				spec := &launcher.Spec{Run: "web-1.1", Nonce: fmt.Sprint(time.Now().UnixNano()), Argv: c.argv, Env: []string{"PATH=/usr/bin:/bin"}, Dir: t.TempDir(),
					Boot: launcher.BootID(), StartBy: soon(time.Minute), Kill: time.Second, Estop: filepath.Join(t.TempDir(), "ESTOP")}
				if c.change != nil {
					c.change(dir, spec)
				}
				b, err := json.Marshal(spec)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, "spec.json"), b, 0o600); err != nil {
					t.Fatal(err)
				}
				if got := play(t, r, dir, c.act); !same(got, c.want) {
					t.Errorf("record %q, want %q", got, c.want)
				}
				again, err := r.Start(dir)
				if err != nil {
					t.Fatal(err)
				}
				<-again.Done()
				if again.PID() != 0 {
					t.Error("a used folder was started again")
				}
			})
		}
	}
}

// play starts a folder's session, finds it again, acts, and tells its record.
func play(t *testing.T, r launcher.Runner, dir string, act func(*testing.T, launcher.Session)) string {
	t.Helper()
	s, err := r.Start(dir)
	if err != nil {
		t.Fatal(err)
	}
	if act != nil {
		<-s.Started()
		said(t, dir)
		s.Close() // as a node that restarts
		if s, err = r.Adopt(t.Context(), dir); err != nil || s == nil || s.PID() == 0 {
			t.Fatalf("adopted %v, %v", s, err)
		}
		act(t, s)
	}
	select {
	case <-s.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("it does not end")
	}
	if s, err := r.Adopt(t.Context(), dir); s != nil || err != nil {
		t.Errorf("after its end it is adopted: %v, %v", s, err)
	}
	e, err := launcher.ReadExit(dir)
	if err != nil || e == nil {
		t.Fatalf("record %v, %v", e, err)
	}
	switch {
	case !e.Started:
		return "not started: " + e.Refused + " " + e.Error
	case e.Code != nil:
		return fmt.Sprintf("started, code %d", *e.Code)
	}
	return "started, " + e.Signal + ": " + e.Error
}

// said waits until the session has said that it is up.
func said(t *testing.T, dir string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(20 * time.Second); ; {
		if b, _ := os.ReadFile(filepath.Join(dir, launcher.LogFile)); len(b) > 0 {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatal("the session says nothing")
		}
	}
}

// same compares the first words, and the word that matters of the reason.
func same(got, want string) bool {
	head, reason, _ := strings.Cut(want, ": ")
	return strings.HasPrefix(got, head) && strings.Contains(got, reason)
}

func stop(t *testing.T, s launcher.Session, kill time.Duration) {
	t.Helper()
	if err := s.Stop(kill, "test"); err != nil {
		t.Error(err)
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A killed keeper of the twin leaves no record; End makes one without a code.
func TestKilledTwin(t *testing.T) {
	r := &Runner{Script: script, Now: launcher.BootNow}
	dir := t.TempDir()
	b, _ := json.Marshal(&launcher.Spec{Run: "web-1.1", Nonce: "n", Argv: []string{"sh", "-c", "sleep"}, Boot: launcher.BootID(), StartBy: launcher.BootNow().Add(time.Minute)})
	if err := os.WriteFile(filepath.Join(dir, "spec.json"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	s, _ := r.Start(dir)
	<-s.Started()
	if !r.KillKeeper(dir) || r.Running() != 0 {
		t.Error("not killed")
	}
	<-s.Done()
	if e, _ := launcher.ReadExit(dir); e != nil {
		t.Errorf("a killed keeper wrote %+v", e)
	}
	if err := r.End(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if e, _ := launcher.ReadExit(dir); e == nil || !e.Started || e.Code != nil {
		t.Errorf("record %+v", e)
	}
}
