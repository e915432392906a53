package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// DefaultBranch is the branch of a card that names none.
func DefaultBranch(card string) string { return "muster/" + card }

// makeWorktree finds or makes a card's worktree, on its branch.
func (s *Store) makeWorktree(ctx context.Context, w *Want, arg string) (*record, error) {
	c, err := s.repo(arg)
	if err != nil {
		return nil, err
	}
	if w.Branch == "" {
		w.Branch = DefaultBranch(w.Card)
	}
	if strings.HasPrefix(w.Branch, "-") {
		return nil, fmt.Errorf("branch %q: a branch does not begin with a dash", w.Branch)
	}
	r, err := s.load(Worktree, w.Card)
	if err != nil {
		return nil, err
	}
	if r != nil {
		if r, err = s.resume(r); err != nil {
			return nil, err
		}
	}
	if r != nil && r.URL != c.url {
		if why := s.clear(ctx, r, false); why != nil {
			return nil, fmt.Errorf("card %s worked in another repository, and its workspace %s stays: %w", w.Card, r.Path, why)
		}
		r = nil
	}
	lock, err := s.lockClone(ctx, c.dir)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if r != nil && (r.State == stateReady || r.State == stateSetup && standing(r) == nil) {
		if err := s.reuse(ctx, r, w, lock); err != nil {
			return nil, err
		}
		return r, s.bring(r, c, w.Bring)
	}
	if r == nil {
		r = &record{Card: w.Card, Kind: Worktree, Path: filepath.Join(s.dir(Worktree), w.Card), Spec: w.Spec, Clone: c.dir, URL: c.url, Branch: w.Branch, State: stateMaking}
		if _, err := os.Lstat(r.Path); !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("something is at %s that was not made for card %s: move it away", r.Path, w.Card)
		}
		if err := s.begin(r); err != nil {
			return nil, err
		}
	} else if err := s.scrap(r); err != nil {
		return nil, err
	}
	r.State, r.Branch = stateMaking, w.Branch
	err = s.update(ctx, c, lock)
	if err == nil {
		err = s.add(ctx, r, c, w, lock)
	}
	if err != nil {
		return nil, errors.Join(err, s.giveUp(r))
	}
	s.cfg.Failpoint("added")
	r.State = stateSetup
	return r, s.bring(r, c, w.Bring)
}

// giveUp leaves nothing of a folder that could not be made.
func (s *Store) giveUp(r *record) error {
	if err := s.scrap(r); err != nil {
		return err
	}
	return s.drop(r)
}

// reuse makes sure that a worktree is the one that was made, on the branch that
// is asked for, and has what the card's work was last seen at.
func (s *Store) reuse(ctx context.Context, r *record, w *Want, lock *os.File) error {
	if err := standing(r); err != nil {
		return err
	}
	if _, err := adminOf(r, r.Path); err != nil {
		return err
	}
	if r.Branch != w.Branch {
		return fmt.Errorf("workspace %s of card %s is on branch %s, and the card names %s: save what is in it, then let it go with: muster gc", r.Path, r.Card, r.Branch, w.Branch)
	}
	at := call{dir: r.Path, lock: lock}
	if w.Head == "" || s.has(ctx, r.Path, "HEAD", w.Head) {
		return nil
	}
	if err := s.fetch(ctx, r.Clone, lock); err != nil {
		return err
	}
	if on, _ := s.line(ctx, at, "symbolic-ref", "--quiet", "--short", "HEAD"); on == r.Branch && s.commit(ctx, r.Path, "refs/remotes/origin/"+r.Branch) != "" {
		if _, err := s.git(ctx, at, "merge", "--quiet", "--ff-only", "refs/remotes/origin/"+r.Branch); err != nil {
			return fmt.Errorf("workspace %s cannot follow what was pushed to branch %s meanwhile: %w", r.Path, r.Branch, err)
		}
	}
	if !s.has(ctx, r.Path, "HEAD", w.Head) {
		return missing(r, w.Head)
	}
	return nil
}

func missing(r *record, head string) error {
	return fmt.Errorf("commit %s, where the work of card %s was last seen, is not on branch %s of %s: push it there, or leave it behind with: muster move %s --machine M|any",
		short(head), r.Card, r.Branch, password.ReplaceAllString(r.URL, "://"), r.Card)
}

func short(commit string) string { return commit[:min(len(commit), 12)] }

// has tells whether a revision contains a commit.
func (s *Store) has(ctx context.Context, dir, rev, commit string) bool {
	if strings.HasPrefix(commit, "-") || s.commit(ctx, dir, commit) == "" {
		return false
	}
	_, err := s.git(ctx, call{dir: dir}, "merge-base", "--is-ancestor", commit, rev)
	return err == nil
}

// add makes the worktree: on what was pushed of its branch, else on what an
// earlier workspace left of it here, else on a new branch.
func (s *Store) add(ctx context.Context, r *record, c *clone, w *Want, lock *os.File) error {
	at := call{dir: c.dir, lock: lock, limit: limitFetch}
	if _, err := s.git(ctx, at, "check-ref-format", "--branch", w.Branch); err != nil {
		return fmt.Errorf("branch %q is no name for a branch", w.Branch)
	}
	ref, base, err := s.base(ctx, c, w.Base, lock)
	if err != nil {
		return err
	}
	if other := s.holderOf(c.dir, w.Branch); other != "" {
		return fmt.Errorf("branch %s is checked out in %s: a branch has one workspace", w.Branch, other)
	}
	head, origin := "refs/heads/"+w.Branch, "refs/remotes/origin/"+w.Branch
	local, remote := s.commit(ctx, c.dir, head), s.commit(ctx, c.dir, origin)
	start := base
	switch {
	case local != "" && remote != "" && !s.has(ctx, c.dir, local, remote):
		if !s.has(ctx, c.dir, remote, local) {
			return fmt.Errorf("branch %s has commits here (%s) and others at %s (%s): bring them together, in %s or there", w.Branch, short(local), password.ReplaceAllString(c.url, "://"), short(remote), c.dir)
		}
		if _, err := s.git(ctx, at, "update-ref", head, remote, local); err != nil {
			return err
		}
		start = remote
	case local != "":
		start = local
	case remote != "":
		start = remote
	case w.Head != "":
		if start = s.commit(ctx, c.dir, w.Head); start == "" {
			return missing(r, w.Head)
		}
	}
	if w.Head != "" && !s.has(ctx, c.dir, start, w.Head) {
		return missing(r, w.Head)
	}
	args := []string{"worktree", "add", "--quiet", "--lock", "--no-track", "-b", w.Branch, "--", r.Path, start}
	if local != "" {
		args = []string{"worktree", "add", "--quiet", "--lock", "--", r.Path, w.Branch}
	}
	r.BaseRef, r.Base = ref, base
	if both, err := s.line(ctx, at, "merge-base", start, base); err == nil && both != "" {
		r.Base = both
	}
	if _, err := s.git(ctx, at, args...); err != nil {
		return err
	}
	return checkFolder(r.Path)
}

// admins lists what a clone knows of its worktrees: folder -> administrative folder.
func admins(clone string) map[string]string {
	out := map[string]string{}
	names, _ := os.ReadDir(filepath.Join(clone, "worktrees"))
	for _, e := range names {
		dir := filepath.Join(clone, "worktrees", e.Name())
		if b, err := os.ReadFile(filepath.Join(dir, "gitdir")); err == nil {
			out[strings.TrimSuffix(strings.TrimSpace(string(b)), "/.git")] = dir
		}
	}
	return out
}

// holderOf is the folder in which a branch of a clone is checked out, "" when it is nowhere.
func (s *Store) holderOf(clone, branch string) string {
	for path, dir := range admins(clone) {
		if b, err := os.ReadFile(filepath.Join(dir, "HEAD")); err == nil && strings.TrimSpace(string(b)) == "ref: refs/heads/"+branch {
			return path
		}
	}
	return ""
}

// adminOf is the administrative folder of a worktree that stands at path, as its
// own file says. One that leads anywhere else was not left by us.
func adminOf(r *record, path string) (string, error) {
	b, err := os.ReadFile(filepath.Join(path, ".git"))
	if err == nil {
		dir, ok := strings.CutPrefix(strings.TrimSpace(string(b)), "gitdir: ")
		if ok && sameFolder(filepath.Dir(dir), filepath.Join(r.Clone, "worktrees")) {
			return dir, nil
		}
		err = errors.New("it leads elsewhere")
	}
	return "", fmt.Errorf("workspace %s is not the worktree any more that was made there (.git: %w)", r.Path, err)
}

func sameFolder(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// scrap takes away what is left of a folder that was never handed to a session.
// The caller holds the clone's lock.
func (s *Store) scrap(r *record) error {
	err := checkFolder(r.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if _, err := adminOf(r, r.Path); err == nil || emptyShell(r.Path) { // git makes the folder before it is a worktree
			if err := os.RemoveAll(r.Path); err != nil {
				return err
			}
		} else {
			return fmt.Errorf("something is at %s that was not made for card %s: move it away", r.Path, r.Card)
		}
	}
	for path, dir := range admins(r.Clone) {
		if path == r.Path {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		}
	}
	return nil
}
