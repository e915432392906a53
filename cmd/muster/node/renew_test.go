package node

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/board"
)

// architecture.md §6: of three voters one is left that had applied less than the two that are lost. It is recovered
// and leads alone, paused, in the next era; the two come back with more than it has, set that aside, and are the same.
func TestRecoverAndTheOldEraComesBack(t *testing.T) {
	nodes := threeVoters(t)
	a, b, c := nodes[0], nodes[1], nodes[2]
	card := a.testAdd(t, "before", "true")
	a.waitStatus(t, card, "done")
	c.waitStatus(t, card, "done")
	c.Close()
	var lost string
	for range 20 {
		lost = a.testAdd(t, "only in what is lost", "true")
	}
	a.waitStatus(t, lost, "done")
	b.waitStatus(t, lost, "done")
	a.Close()
	b.Close()

	list, err := Survey([]string{a.cfg.Data, b.cfg.Data, c.cfg.Data})
	if err != nil || len(list) != 3 {
		t.Fatalf("survey: %+v, %v", list, err)
	}
	if list[2].Best || !list[0].Best && !list[1].Best || list[0].Seq <= list[2].Seq || list[2].Era != 1 || len(list[2].Faults) != 0 {
		t.Errorf("survey: %+v", list)
	}
	r, err := Recover(t.Context(), RecoverOptions{Data: c.cfg.Data, By: "ann", Why: "two machines burnt"})
	if err != nil {
		t.Fatal(err)
	}
	if r.After.Era != 2 || r.After.Seq < r.Before.Seq+board.SkippedSeqs {
		t.Errorf("%+v", r)
	}
	c = reopen(t, c)
	_ = c.store.View(func(v board.View) error {
		if f := board.GetFleet(v); f.Era != 2 || f.PausedAt == 0 || !strings.Contains(f.PausedWhy, "two machines burnt") {
			t.Errorf("fleet: %+v", f)
		}
		if board.GetCard(v, card) == nil || board.GetCard(v, lost) != nil {
			t.Error("the recovered state is not what the survivor had")
		}
		return nil
	})
	c.testDo(t, board.VResume, board.Pause{})
	after := c.testAdd(t, "after", "true")
	if after == lost {
		t.Errorf("card %s was given twice", after)
	}
	for _, old := range []*Node{a, b} {
		cfg := old.cfg
		cfg.eraWait = 3 * time.Second // what the person of the recovery said, or two minutes
		n, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		_ = n.Open(t.Context()) // it may be told while it opens
		select {
		case <-n.Done():
		case <-time.After(patience):
			t.Fatalf("%s goes on in the era before", old.cfg.Name)
		}
		if n.Close(); !n.Again() {
			t.Fatalf("%s does not begin anew: %v", old.cfg.Name, n.Err())
		}
		n = reopen(t, n)
		n.waitStatus(t, after, "done")
		if kept, _ := filepath.Glob(filepath.Join(old.cfg.Data, "raft.aside*")); len(kept) == 0 {
			t.Errorf("what %s had is not kept", old.cfg.Name)
		}
		_ = n.store.View(func(v board.View) error {
			if board.GetCard(v, lost) != nil {
				t.Errorf("%s serves what the fleet does not have", old.cfg.Name)
			}
			return nil
		})
	}
}

// reopen is a stopped node again.
func reopen(t *testing.T, old *Node) *Node {
	t.Helper()
	cfg := old.cfg
	cfg.Token, cfg.Listen = "", ""
	return open(t, cfg)
}

// Whatever write of recover is the last, the node is what it was, or the fleet is recovered; the next try, or the next start, goes on.
func TestRecoverBreaksOffAtEveryStep(t *testing.T) {
	for _, step := range []string{"renew-clear", "renew-change", "renew-done", "renew-commit", "renew-place"} {
		t.Run(step, func(t *testing.T) {
			a := open(t, testConfig(t, "atlas"))
			a.testDo(t, board.VBoardApply, board.BoardApply{Board: "default", YAML: shell})
			card := a.testAdd(t, "one", "true")
			a.Close()
			broke := errors.New("it died here")
			o := RecoverOptions{Data: a.cfg.Data, By: "ann", Why: "a test", fault: func(op string) error {
				if op == step {
					return broke
				}
				return nil
			}}
			if _, err := Recover(t.Context(), o); !errors.Is(err, broke) {
				t.Fatalf("it failed with %v", err)
			}
			a = reopen(t, a)
			era := uint64(0)
			_ = a.store.View(func(v board.View) error {
				era = board.GetFleet(v).Era
				if board.GetCard(v, card) == nil {
					t.Error("the card is gone")
				}
				return nil
			})
			if want := map[bool]uint64{true: 2, false: 1}[step == "renew-place"]; era != want {
				t.Errorf("era %d, want %d", era, want)
			}
			a.Close()
			o.fault = nil
			if _, err := Recover(t.Context(), o); err != nil {
				t.Fatalf("the next try: %v", err)
			}
			a = reopen(t, a)
			a.testAdd(t, "after", "true")
		})
	}
}

// A backup is taken while the fleet works, and makes a new fleet, paused, in which nothing runs again.
func TestBackupAndRestore(t *testing.T) {
	a := open(t, testConfig(t, "atlas"))
	a.testDo(t, board.VBoardApply, board.BoardApply{Board: "default", YAML: shell})
	done := a.testAdd(t, "done before", "true")
	a.waitStatus(t, done, "done")
	runs := a.testAdd(t, "runs meanwhile", "sleep 300")
	a.waitStatus(t, runs, "running")
	f, err := os.Create(filepath.Join(t.TempDir(), "backup"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := (backend{a}).Backup(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	if g := a.gossip.Load(); g == nil || bytes.Contains(b, *g) {
		t.Error("the fleet's key is in the backup")
	}
	for _, step := range []string{"renew-copy", "renew-snapshot", "renew-commit", "renew-place", ""} {
		dir := t.TempDir()
		broke := errors.New("it died here")
		o := RestoreOptions{Data: dir, Name: "phoenix", Backup: bytes.NewReader(b), By: "ann", Why: "a drill", fault: func(op string) error {
			if op == step {
				return broke
			}
			return nil
		}}
		_, err := Restore(t.Context(), o)
		if step != "" && !errors.Is(err, broke) {
			t.Fatalf("%s: it failed with %v", step, err)
		}
		cfg := testConfig(t, "phoenix")
		cfg.Data = dir
		if step != "" && step != "renew-place" {
			if n, err := New(cfg); err != nil {
				t.Fatal(err)
			} else if err := n.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "not finished") {
				t.Errorf("%s: a restore that was not finished starts: %v", step, err)
			}
			o.fault, o.Backup = nil, bytes.NewReader(b)
			if _, err := Restore(t.Context(), o); err != nil {
				t.Fatalf("%s: the next try: %v", step, err)
			}
		}
		n := open(t, cfg)
		_ = n.store.View(func(v board.View) error {
			fl, c := board.GetFleet(v), board.GetCard(v, runs)
			if fl.ID == a.mem.Fleet || fl.PausedAt == 0 {
				t.Errorf("fleet: %+v", fl)
			}
			if r := board.LastRun(v, c); c.Run != "" || r.Outcome != "restored" || r.Gone == "" {
				t.Errorf("card %+v run %+v", c, r)
			}
			if board.GetCard(v, done).Status != "done" {
				t.Error("what was done is not done")
			}
			return nil
		})
		if _, err := (backend{n}).ReadLog(t.Context(), done+".1", 0, 100, false); board.CodeOf(err) != board.NotFound || !strings.Contains(err.Error(), "not in the fleet's list") {
			t.Errorf("the log of a run of the old fleet: %v", err)
		}
		n.testDo(t, board.VResume, board.Pause{})
		after := n.testAdd(t, "after", "true")
		n.waitStatus(t, after, "done")
		n.Close()
	}
	if _, err := Restore(t.Context(), RestoreOptions{Data: a.cfg.Data, Backup: bytes.NewReader(b)}); err == nil {
		t.Error("a backup was restored over a fleet")
	}
	a.testDo(t, board.VEvent, board.FireEvent{Card: runs, Event: "cancel"})
}

// The folder's name is no pattern, and folders of two fleets are not compared.
func TestSurvey(t *testing.T) {
	cfg := testConfig(t, "atlas")
	a := open(t, cfg)
	a.testDo(t, board.VBoardApply, board.BoardApply{Board: "default", YAML: shell})
	a.Close()
	if _, err := Recover(t.Context(), RecoverOptions{Data: cfg.Data, By: "ann", Why: "a test"}); err != nil {
		t.Fatal(err)
	}
	list, err := Survey([]string{cfg.Data})
	if err != nil || len(list) != 2 || list[0].Store != "raft" || list[1].Store != "raft.aside1" || list[1].Seq == 0 || !list[0].Best {
		t.Errorf("%+v, %v", list, err)
	}
	b := open(t, testConfig(t, "borea"))
	b.Close()
	if _, err := Survey([]string{cfg.Data, b.cfg.Data}); board.CodeOf(err) != board.Invalid || !strings.Contains(err.Error(), b.cfg.Data) {
		t.Errorf("two fleets: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "[a")
	if err := os.Rename(cfg.Data, dir); err != nil {
		t.Fatal(err)
	}
	if list, err := Survey([]string{dir}); err != nil || len(list) != 2 || list[0].Last == 0 {
		t.Errorf("stores are not seen: %+v, %v", list, err)
	}
	cfg.Data = dir
	open(t, cfg).testAdd(t, "in a folder whose name is half a pattern", "true")
}
