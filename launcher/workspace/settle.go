package workspace

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Settle is the end of a run in a workspace: its branch is pushed, if that is
// wanted, and what it holds that is nowhere else is found out. The error is that
// of the push; what is left is answered all the same.
func (s *Store) Settle(ctx context.Context, card, path string, push bool) (Left, error) {
	if checkCard(card) != nil {
		return Left{}, nil
	}
	unlock, err := s.lock(ctx, card)
	if err != nil {
		return Left{}, err
	}
	defer unlock()
	r, err := s.load(Worktree, card)
	if err != nil || r == nil || r.Path != path {
		return Left{}, err
	}
	if err := standing(r); err != nil {
		return Left{}, err
	}
	var perr error
	if push && r.Push != "" {
		if perr = s.push(ctx, r); perr != nil {
			perr = fmt.Errorf("branch %s was not pushed to %s: %w", r.Branch, password.ReplaceAllString(r.Push, "://"), perr)
		}
	}
	l, err := s.look(ctx, r, r.Path)
	return l, errors.Join(perr, err)
}

// push brings the card's branch to where its profile says, if it has anything
// that no remote has. It never overwrites what is there.
func (s *Store) push(ctx context.Context, r *record) error {
	if _, err := adminOf(r, r.Path); err != nil {
		return err
	}
	ref := "refs/heads/" + r.Branch
	if s.commit(ctx, r.Clone, ref) == "" {
		return nil
	}
	if n, err := s.line(ctx, call{dir: r.Clone}, "rev-list", "--count", ref, "--not", "--remotes"); err != nil || n == "0" {
		return err
	}
	lock, err := s.lockClone(ctx, r.Clone)
	if err != nil {
		return err
	}
	defer lock.Close()
	var args []string
	remote := r.Push
	if remote != "origin" {
		to, err := s.repo(remote)
		if err != nil {
			return err
		}
		remote = "muster-push"
		args = []string{"-c", "remote.muster-push.url=" + to.url, "-c", "remote.muster-push.fetch=+refs/heads/*:refs/remotes/muster-push/*"}
	}
	s.cfg.Failpoint("push")
	out, err := s.git(ctx, call{dir: r.Clone, lock: lock, limit: limitPush}, append(args, "push", "--porcelain", "--no-verify", "--recurse-submodules=no", remote, ref+":"+ref)...)
	s.cfg.Failpoint("pushed")
	if err != nil {
		for line := range strings.Lines(string(out)) {
			if line[0] == '!' {
				return errors.Join(err, errors.New(strings.TrimSpace(strings.TrimLeft(line, "! \t"))))
			}
		}
	}
	return err
}
