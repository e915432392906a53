package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dustin/go-humanize"
)

// Clear lets a card's workspaces on this machine go, and answers nil when none
// is left. An error says what stays and why: nothing that is nowhere else is
// deleted (M-26), and a folder that a person named is only forgotten.
func (s *Store) Clear(ctx context.Context, card string) error {
	if err := checkCard(card); err != nil {
		return err
	}
	unlock, err := s.lock(ctx, card)
	if err != nil {
		return err
	}
	defer unlock()
	if s.cfg.Live(card) {
		return fmt.Errorf("a session of card %s works in it", card)
	}
	list, err := s.ofCard(card)
	if err != nil {
		return err
	}
	var kept []error
	for _, r := range list {
		if r, err := s.resume(r); err != nil {
			kept = append(kept, err)
		} else if r != nil {
			kept = append(kept, s.clear(ctx, r, false))
		}
	}
	return errors.Join(kept...)
}

// place in the trash of a workspace that is leaving.
func (s *Store) leaving(r *record) string { return filepath.Join(s.trash(), r.Kind+"-"+r.Card) }

// resume takes up what an earlier life had begun with a workspace that was to
// go: it stands again, or is gone (nil).
func (s *Store) resume(r *record) (*record, error) {
	switch r.State {
	case stateLeaving:
		if _, err := os.Lstat(r.Path); errors.Is(err, fs.ErrNotExist) {
			if err := os.Rename(s.leaving(r), r.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
		r.State, r.Was = cmp.Or(r.Was, stateReady), ""
		return r, s.save(r)
	case stateRemoving:
		return nil, s.remove(r)
	}
	return r, nil
}

// clear lets one workspace go, or says why it stays. The caller has the card's lock.
func (s *Store) clear(ctx context.Context, r *record, scratch bool) error {
	if _, err := os.Lstat(r.Path); errors.Is(err, fs.ErrNotExist) && r.Kind != Dir {
		return s.letGo(ctx, r) // somebody took it away
	}
	if why, err := s.stays(ctx, r, scratch, true); err != nil || why != "" {
		return orWhy(r, why, err)
	}
	if r.Kind == Dir {
		return s.drop(r)
	}
	if r.Teardown != "" && r.State == stateReady {
		if err := s.script(ctx, r, "teardown", r.Teardown, s.env(&Want{Card: r.Card}, r)); err != nil {
			return orWhy(r, "its tear-down failed: "+err.Error(), nil)
		}
	}
	r.State, r.Was = stateLeaving, r.State
	if err := s.save(r); err != nil {
		return err
	}
	if err := os.Rename(r.Path, s.leaving(r)); err != nil {
		return err
	}
	s.cfg.Failpoint("in the trash")
	why, err := s.staysIn(ctx, r, s.leaving(r), scratch) // nobody finds it here any more: what it holds now, it holds
	if err != nil || why != "" {
		_, back := s.resume(r)
		return errors.Join(orWhy(r, why, err), back)
	}
	return s.letGo(ctx, r)
}

func orWhy(r *record, why string, err error) error {
	if err != nil {
		why = "it cannot be looked at: " + err.Error()
	}
	return fmt.Errorf("%s stays: %s", r.Path, why)
}

// stays says why a workspace must not go, "" when it may. With ask its remote is
// asked what it has now.
func (s *Store) stays(ctx context.Context, r *record, scratch, ask bool) (string, error) {
	why, err := s.staysIn(ctx, r, r.Path, scratch)
	if why != "" || err != nil || r.Kind != Worktree || !ask {
		return why, err
	}
	lock, err := s.lockClone(ctx, r.Clone)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := s.fetch(ctx, r.Clone, lock); err != nil {
		return "its remote cannot be asked whether it has everything: " + err.Error(), nil
	}
	return s.staysIn(ctx, r, r.Path, scratch)
}

func (s *Store) staysIn(ctx context.Context, r *record, dir string, scratch bool) (string, error) {
	switch r.Kind {
	case Dir:
		return "", nil
	case Scratch:
		return s.scratchStays(ctx, dir, scratch)
	}
	if r.State == stateMaking {
		return "", nil // no session has seen it
	}
	l, err := s.look(ctx, r, dir)
	if err != nil || l.Work == Saved {
		return "", err
	}
	return l.Work + " work: " + l.Why, nil
}

// scratchStays: the files of a scratch folder are nowhere else. They go when a
// person says so, and then without what git calls unsaved.
func (s *Store) scratchStays(ctx context.Context, dir string, asked bool) (string, error) {
	n, size := measure(dir)
	if n == 0 {
		return "", nil
	}
	l, err := s.nested(ctx, dir, "")
	switch {
	case err != nil:
		return "", err
	case l.Work != "":
		return l.Work + " work in " + l.Why, nil
	}
	if l, err = s.lookRoot(ctx, dir); err != nil || l.Work != "" {
		return l.Work + " work: " + l.Why, err
	}
	if !asked {
		return fmt.Sprintf("%d files (%s) of a scratch folder are nowhere else; to delete them: muster gc --scratch", n, humanize.Bytes(uint64(size))), nil
	}
	return "", nil
}

// lookRoot looks at a folder that is a repository itself.
func (s *Store) lookRoot(ctx context.Context, dir string) (Left, error) {
	if _, err := os.Lstat(filepath.Join(dir, ".git")); errors.Is(err, fs.ErrNotExist) {
		return Left{}, nil
	}
	return s.lookNested(ctx, dir)
}

// letGo deletes a workspace that nobody misses: it is in the trash, or not there at all.
func (s *Store) letGo(ctx context.Context, r *record) error {
	if r.Kind == Worktree {
		if err := s.keepHead(ctx, r); err != nil {
			return orWhy(r, "", err)
		}
	}
	r.State = stateRemoving
	if err := s.save(r); err != nil {
		return err
	}
	return s.remove(r)
}

// keepHead gives a name to what was checked out in a worktree and is on no
// branch: the clone keeps it.
func (s *Store) keepHead(ctx context.Context, r *record) error {
	dir := admins(r.Clone)[r.Path]
	if dir == "" {
		return nil
	}
	head, err := s.line(ctx, call{dir: dir}, "--git-dir="+dir, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err != nil || head == "" {
		return nil // an empty branch
	}
	n, err := s.line(ctx, call{dir: r.Clone}, "rev-list", "--count", head, "--not", "--branches", "--remotes", "--tags")
	if err != nil || n == "0" {
		return err
	}
	lock, err := s.lockClone(ctx, r.Clone)
	if err != nil {
		return err
	}
	defer lock.Close()
	_, err = s.git(ctx, call{dir: r.Clone, lock: lock}, "update-ref", "refs/muster/left/"+r.Card+"/"+short(head), head)
	return err
}

// remove deletes what is left of a workspace whose record says that it goes.
func (s *Store) remove(r *record) error {
	s.cfg.Failpoint("removing")
	if err := os.RemoveAll(s.leaving(r)); err != nil {
		return err
	}
	if r.Kind == Worktree {
		if dir := admins(r.Clone)[r.Path]; dir != "" {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		}
	}
	s.cfg.Failpoint("removed")
	return s.drop(r)
}
