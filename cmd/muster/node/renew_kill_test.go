package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"muster/board"
)

// renewKilledVerb has the test binary recover a folder, or restore a backup into it, and die of KILL at a step.
const renewKilledVerb = "renew-killed"

// renewKilled is that process: step, folder, and the file of a backup.
func renewKilled(args []string) error {
	fault := func(op string) error {
		if op != args[0] {
			return nil
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	if len(args) == 2 {
		_, err := Recover(context.Background(), RecoverOptions{Data: args[1], By: "ann", Why: "a test", fault: fault})
		return errors.Join(err, fmt.Errorf("it was over before %s", args[0]))
	}
	b, err := os.ReadFile(args[2])
	if err != nil {
		return err
	}
	_, err = Restore(context.Background(), RestoreOptions{Data: args[1], Name: "phoenix", Backup: bytes.NewReader(b), By: "ann", Why: "a drill", fault: fault})
	return errors.Join(err, fmt.Errorf("it was over before %s", args[0]))
}

func killedAt(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.Command(os.Args[0], append([]string{renewKilledVerb}, args...)...).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("it was not killed at %s: %v\n%s", args[0], err, out)
	}
}

// A process that recovers is killed at each of its steps: the node comes up as what it was, or recovered, and the next try goes on.
func TestRecoverIsKilledAtEveryStep(t *testing.T) {
	a := open(t, testConfig(t, "atlas"))
	a.testDo(t, board.VBoardApply, board.BoardApply{Board: "default", YAML: shell})
	card := a.testAdd(t, "one", "true")
	want := uint64(1)
	for _, step := range []string{"renew-clear", "renew-change", "renew-done", "renew-commit", "renew-place"} {
		a.Close()
		killedAt(t, step, a.cfg.Data)
		if step == "renew-place" { // past the point of no return
			want++
		}
		a = reopen(t, a)
		_ = a.store.View(func(v board.View) error {
			if f := board.GetFleet(v); f.Era != want || board.GetCard(v, card) == nil {
				t.Errorf("%s: era %d, want %d", step, f.Era, want)
			}
			return nil
		})
		a.Close()
		if _, err := Recover(t.Context(), RecoverOptions{Data: a.cfg.Data, By: "ann", Why: "a test"}); err != nil {
			t.Fatalf("%s: the next try: %v", step, err)
		}
		want++
		a = reopen(t, a)
		a.testAdd(t, "after "+step, "true")
	}
}

// A process that restores is killed at each of its steps: nothing comes up before a restore was finished, and the next try finishes it.
func TestRestoreIsKilledAtEveryStep(t *testing.T) {
	a := open(t, testConfig(t, "atlas"))
	a.testDo(t, board.VBoardApply, board.BoardApply{Board: "default", YAML: shell})
	card := a.testAdd(t, "one", "true")
	a.waitStatus(t, card, "done")
	f, err := os.Create(filepath.Join(t.TempDir(), "backup"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := (backend{a}).Backup(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	a.Close()
	for _, step := range []string{"renew-copy", "renew-snapshot", "renew-commit", "renew-place"} {
		cfg := testConfig(t, "phoenix")
		killedAt(t, step, cfg.Data, f.Name())
		if step != "renew-place" {
			if n, err := New(cfg); err != nil {
				t.Fatal(err)
			} else if err := n.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "not finished") {
				t.Errorf("%s: a restore that was not finished starts: %v", step, err)
			}
			if _, err := f.Seek(0, 0); err != nil {
				t.Fatal(err)
			}
			if _, err := Restore(t.Context(), RestoreOptions{Data: cfg.Data, Name: "phoenix", Backup: f, By: "ann", Why: "a drill"}); err != nil {
				t.Fatalf("%s: the next try: %v", step, err)
			}
		}
		n := open(t, cfg)
		_ = n.store.View(func(v board.View) error {
			if c := board.GetCard(v, card); c == nil || c.Status != "done" || board.GetFleet(v).PausedAt == 0 {
				t.Errorf("%s: card %+v", step, c)
			}
			return nil
		})
		n.testAdd(t, "after "+step, "true")
		n.Close()
	}
}
