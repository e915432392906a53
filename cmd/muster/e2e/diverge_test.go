package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"muster/board"
	"muster/raftstore/raftstoretest"
)

// Invariant 7, M-32, architecture.md §2 ("Hash"): one of three nodes' state is made
// to differ, checksums and its own hash made to fit, so that the node cannot know.
// The comparison at the next 1,000th Seq finds it and shows an alarm; the node sets
// the state aside, makes it anew from what its log says, keeps its ids and its vote,
// and all three are the same again.
func TestStateMadeToDiffer(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, 2, steady...)
	f.leader()
	victim := f.machines[2]
	if victim == f.leader() {
		victim = f.machines[1]
	}
	f.fileCards(victim, 20)
	f.sameState()
	before := victim.ids()
	victim.kill()
	if err := raftstoretest.Alter(filepath.Join(victim.data, "raft", "state.db"), board.TText); err != nil {
		t.Fatal(err)
	}
	victim.start()
	s, err := f.leader().status()
	if err != nil {
		t.Fatal(err)
	}
	f.fileCards(f.leader(), int(1000-s.Seq%1000)+20)
	f.eventually(60*time.Second, "an alarm for "+victim.name, func() (bool, string) {
		s, err := f.leader().status()
		has := slices.ContainsFunc(s.Alarms, func(a string) bool { return strings.Contains(a, "DIVERGED") && strings.Contains(a, victim.name) })
		return err == nil && has, strings.Join(s.Alarms, "; ")
	})
	f.eventually(60*time.Second, "set aside", func() (bool, string) {
		_, err := os.Stat(filepath.Join(victim.data, "raft", "state.db.aside"))
		_, lerr := victim.status()
		return err == nil && lerr == nil, victim.lastWords(5)
	})
	f.sameState()
	if after := victim.ids(); after != before {
		t.Errorf("ids were %v and are %v", before, after)
	}
	f.eventually(60*time.Second, "without an alarm, with three voters", func() (bool, string) {
		s, err := f.leader().status()
		return err == nil && s.Voters == 3 && !strings.Contains(strings.Join(s.Alarms, ""), "DIVERGED"), strings.Join(s.Alarms, "; ")
	})
	for _, m := range f.machines {
		if m != victim {
			if _, err := os.Stat(filepath.Join(m.data, "raft", "state.db.aside")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s, whose state was good, set it aside (%v)", m.name, err)
			}
		}
	}
}

// fileCards files cards that start nothing, many at a time.
func (f *fleet) fileCards(m *machine, n int) {
	f.t.Helper()
	var g errgroup.Group
	var next atomic.Int64
	for range 16 {
		g.Go(func() error {
			for next.Add(1) <= int64(n) {
				title, body := "a card", "the text of a card"
				args := board.CardAdd{Triage: true, CardFields: board.CardFields{Title: &title, Body: &body}}
				if _, err := f.try(m, board.VCardAdd, args, f.mint(m)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		f.t.Fatalf("file cards: %v", err)
	}
}

// ids are what a node is to others: its key's file, and the store it votes with.
func (m *machine) ids() string {
	m.t.Helper()
	key, err1 := os.ReadFile(filepath.Join(m.data, "node.key"))
	b, err2 := os.ReadFile(filepath.Join(m.data, "node.json"))
	var saved struct{ Store, Name string }
	if err := errors.Join(err1, err2, json.Unmarshal(b, &saved)); err != nil || saved.Store == "" {
		m.t.Fatalf("ids of %s: %v", m.name, err)
	}
	return saved.Name + " " + saved.Store + " " + string(key)
}
