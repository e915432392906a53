package sim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"muster/board"
	"muster/cmd/muster/node"
	"muster/raftstore"
)

// month is how far every clock is set on after a history: longer than boards keep what is over, and than ids are kept.
const month = 40 * 24 * time.Hour

// monthLater looks at the fleet after a long time in which nobody did anything: what is old leaves the state, in slices, and
// all else holds. Nobody waits for it: all clocks are set on, and the next term takes its time from them.
func (f *Fleet) monthLater(ctx context.Context) {
	f.note("a month later")
	for _, m := range f.machines {
		m.with(func() { m.wall += month })
	}
	was := f.boardTime()
	for _, m := range f.machines {
		p := m.up()
		if p == nil || !p.ready.Load() {
			continue
		}
		if _, leads := p.node.Store().LeaderTerm(); leads {
			m.halt()
			m.start("", nil)
			break
		}
	}
	u := f.user(9, &cards{})
	u.must(board.VResume, board.Pause{Board: "web"})
	if now := f.boardTime(); time.Duration(now-was)*time.Millisecond < month/2 {
		f.bug("board time went from %d to %d when every clock was set on by %v", was, now, month)
	}
	_ = pass(ctx, 20*time.Second)
	for _, a := range f.someAsked(20) { // known still, or told as too old to know: never done again
		u.again(&a)
	}
	f.compare()
	u.look(func(v board.View) {
		for _, text := range CheckState(v, nil) {
			f.bug("a month later: %s", text)
		}
	})
	f.count("a month later")
}

func (f *Fleet) someAsked(n int) []asked {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []asked
	for _, a := range f.asked {
		if a.code == "" && !a.none && len(list) < n {
			list = append(list, a)
		}
	}
	return list
}

// backupFile is where a history leaves a backup of its fleet.
const backupFile = "backup"

func (f *Fleet) backup(ctx context.Context) {
	doors := f.doors()
	if len(doors) == 0 {
		return
	}
	w, err := os.Create(filepath.Join(f.cfg.Dir, backupFile))
	if err == nil {
		_, err = doors[0].Backup(ctx, w)
		err = errors.Join(err, w.Close())
	}
	if err != nil {
		f.bug("no backup can be taken: %v", err)
	}
}

// Aftermath holds what a history left on its disks against what is promised of it, outside of the bubble: every store is
// whole, its backup can be read, and a fleet goes on from either: from a survivor alone, and as a new one.
func Aftermath(cfg Config) (wrong []string) {
	bad := func(what string, err error, faults []string) {
		if err != nil || len(faults) > 0 {
			wrong = append(wrong, fmt.Sprintf("%s: %v %q", what, err, faults))
		}
	}
	check := func(what, path string) *raftstore.Report {
		r, err := raftstore.Check(path)
		if r == nil {
			r = &raftstore.Report{}
		}
		bad(what, err, r.Faults)
		return r
	}
	for i := range cfg.Nodes {
		name := fmt.Sprint("m", i+1)
		check("store of "+name, filepath.Join(cfg.Dir, name, "raft"))
	}
	file := filepath.Join(cfg.Dir, backupFile)
	if b := check("backup", file); b.Backup == nil || b.Backup.Records == 0 {
		bad("backup", errors.New("there is nothing in it"), nil)
	}
	ctx := context.Background()
	survivor := filepath.Join(cfg.Dir, "m1")
	got, err := node.Recover(ctx, node.RecoverOptions{Data: survivor, WithoutLog: true, By: "sim", Why: "the others are lost"})
	bad("recover", err, nil)
	if err == nil && got.After.Era <= got.Before.Era {
		bad("recover", fmt.Errorf("era %d after era %d", got.After.Era, got.Before.Era), nil)
	}
	check("store of the survivor", filepath.Join(survivor, "raft"))
	in, err := os.Open(file)
	if err != nil {
		return append(wrong, err.Error())
	}
	defer in.Close()
	again := filepath.Join(cfg.Dir, "again")
	_, err = node.Restore(ctx, node.RestoreOptions{Data: again, Name: "m1", Backup: in, By: "sim", Why: "a new fleet"})
	bad("restore", err, nil)
	check("store of the new fleet", filepath.Join(again, "raft"))
	return wrong
}
