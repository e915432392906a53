package workspace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"
)

// The states of a workspace, in order. What is there in a state before ready
// was never handed to a session.
const (
	stateMaking   = "making"   // the folder is being made: it is made anew if that was cut off
	stateSetup    = "setup"    // made; its set-up has not ended well yet
	stateReady    = "ready"    // sessions work in it
	stateLeaving  = "leaving"  // being looked at before it goes: it may stand in the trash, and is put back
	stateRemoving = "removing" // nothing in it is unsaved: it is being deleted
)

// record is what the store knows of a card's folder of one kind. It is on disk
// before what it says is done.
type record struct {
	Card  string `json:"card"`
	Kind  string `json:"kind"`
	State string `json:"state"`
	Was   string `json:"was,omitempty"` // while leaving: the state that it goes back to when it stays
	Path  string `json:"path"`
	Spec  string `json:"spec"` // as it was asked for
	Port  int    `json:"port"`

	Clone   string            `json:"clone,omitempty"` // the repository's folder here
	URL     string            `json:"url,omitempty"`
	Branch  string            `json:"branch,omitempty"`
	Base    string            `json:"base,omitempty"`     // commit that the branch began at
	BaseRef string            `json:"base_ref,omitempty"` // what that was called, in the clone
	Brought map[string]string `json:"brought,omitempty"`  // file -> SHA-256 of what was copied

	Push     string        `json:"push,omitempty"`
	Teardown string        `json:"teardown,omitempty"`
	Limit    time.Duration `json:"limit,omitempty"`
	At       time.Time     `json:"at"`             // last start
	Size     int64         `json:"size,omitempty"` // bytes, when it was last measured
}

func (s *Store) recordPath(kind, card string) string {
	return filepath.Join(s.records(), kind+"-"+card+".json")
}

// load reads a record; nil when there is none.
func (s *Store) load(kind, card string) (*record, error) {
	b, err := os.ReadFile(s.recordPath(kind, card))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	r := new(record)
	if err == nil {
		err = json.Unmarshal(b, r)
	}
	if err == nil && (r.Card != card || r.Kind != kind || r.Path == "") {
		err = errors.New("it is another's")
	}
	if err != nil {
		return nil, fmt.Errorf("record of the workspace of card %s (%s): %w; nothing of it is touched", card, s.recordPath(kind, card), err)
	}
	return r, nil
}

// save writes a record, synced: there is the old one or the new one, whole.
func (s *Store) save(r *record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(s.records(), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), s.recordPath(r.Kind, r.Card))
	}
	if err != nil {
		os.Remove(f.Name())
		return err
	}
	s.changed.Add(1)
	s.cfg.Failpoint("recorded " + r.State)
	return syncDir(s.records())
}

// drop forgets a workspace that is not there any more.
func (s *Store) drop(r *record) error {
	if err := os.Remove(s.recordPath(r.Kind, r.Card)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.changed.Add(1)
	if rest, err := s.ofCard(r.Card); err == nil && len(rest) == 0 {
		s.freePort(r)
	}
	return syncDir(s.records())
}

// all lists every record that can be read, in order of cards; bad are the files
// that cannot.
func (s *Store) all() (list []*record, bad []string, err error) {
	names, err := os.ReadDir(s.records())
	if err != nil {
		return nil, nil, err
	}
	for _, e := range names {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		kind, card, ok2 := strings.Cut(name, "-")
		if !ok || !ok2 {
			continue
		}
		r, err := s.load(kind, card)
		if err != nil || r == nil {
			bad = append(bad, filepath.Join(s.records(), e.Name()))
			continue
		}
		list = append(list, r)
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].Card < list[j].Card })
	return list, bad, nil
}

// ofCard are the records of one card.
func (s *Store) ofCard(card string) (list []*record, err error) {
	for _, kind := range []string{Scratch, Dir, Worktree} {
		r, err := s.load(kind, card)
		if err != nil {
			return nil, err
		}
		if r != nil {
			list = append(list, r)
		}
	}
	return list, nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
