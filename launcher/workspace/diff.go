package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Diff is what a card has changed in its worktree.
type Diff struct {
	Card   string `json:"card"`
	Path   string `json:"path"`
	Branch string `json:"branch"`
	Base   string `json:"base"` // commit it is compared with
	Text   string `json:"text"`
	Cut    bool   `json:"cut"` // there is more
}

// MaxDiff bounds the text of a diff, in bytes.
const MaxDiff = 512 << 10

// Diff compares a card's worktree as it stands, with what is in no commit and
// what git does not have yet, with what its branch began at. The worktree is not
// touched.
func (s *Store) Diff(ctx context.Context, card string, stat bool) (*Diff, error) {
	if err := checkCard(card); err != nil {
		return nil, err
	}
	r, err := s.load(Worktree, card)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, fmt.Errorf("card %s has no worktree on this machine", card)
	}
	if err := standing(r); err != nil {
		return nil, err
	}
	admin, err := adminOf(r, r.Path)
	if err != nil {
		return nil, err
	}
	index, err := copyIndex(admin)
	if err != nil {
		return nil, err
	}
	defer os.Remove(index)
	at := call{dir: r.Path, env: []string{"GIT_INDEX_FILE=" + index}}
	tree := []string{"--git-dir=" + admin, "--work-tree=" + r.Path}
	_, _ = s.git(ctx, at, append(tree[:2:2], "add", "--intent-to-add", "--", ".")...) // fails only where there is nothing to add
	d := &Diff{Card: card, Path: r.Path, Branch: r.Branch, Base: r.Base}
	if r.BaseRef != "" {
		if id, err := s.line(ctx, at, append(tree[:2:2], "merge-base", "HEAD", r.BaseRef)...); err == nil && id != "" {
			d.Base = id
		}
	}
	args := append(tree[:2:2], "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/")
	if stat {
		args = append(args, "--stat=100")
	}
	at.most = MaxDiff
	out, err := s.git(ctx, at, append(args, d.Base, "--")...)
	if d.Cut = errors.Is(err, errCut); d.Cut {
		err = nil
	}
	d.Text = string(out)
	return d, err
}

// copyIndex copies a worktree's index: what is looked at in the copy is not staged.
func copyIndex(admin string) (string, error) {
	out, err := os.CreateTemp("", "muster-index-*")
	if err != nil {
		return "", err
	}
	in, err := os.Open(filepath.Join(admin, "index"))
	if err == nil {
		_, err = io.Copy(out, in)
		in.Close()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		os.Remove(out.Name())
		return "", err
	}
	return out.Name(), nil
}
