package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Item is a workspace, or something in its place, as gc finds it.
type Item struct {
	Card string `json:"card,omitempty"`
	Kind string `json:"kind"` // scratch, dir, worktree, clone, unknown
	Path string `json:"path"`
	Size int64  `json:"size"`          // bytes on the disk
	Gone bool   `json:"gone"`          // it went; of a dry run: it would go
	Why  string `json:"why,omitempty"` // why it stays
}

// Sweep is what a call of [Store.Gc] is to do.
type Sweep struct {
	Dry     bool                             // only say what would be done
	Scratch bool                             // the files of scratch folders may go, too
	Over    func(card string) (bool, string) // nobody needs the card's workspace any more; else why it does
}

// Gc lets every workspace go that nobody needs, and lists what stays with the
// reason. Clones stay: branches in them may be the last there are.
func (s *Store) Gc(ctx context.Context, o Sweep) ([]Item, error) {
	list, bad, err := s.all()
	if err != nil {
		return nil, err
	}
	out := []Item{}
	known := map[string]bool{}
	for _, r := range list {
		it, err := s.sweep(ctx, r, o)
		if err != nil {
			return out, err
		}
		known[r.Path], known[s.leaving(r)] = true, true
		if it != nil {
			out = append(out, *it)
		}
	}
	for _, path := range bad {
		out = append(out, Item{Kind: "unknown", Path: path, Why: "a record that cannot be read; its workspace is not touched"})
	}
	for _, dir := range []string{s.dir(Scratch), s.dir(Worktree), s.trash(), s.clones()} {
		names, err := os.ReadDir(dir)
		if err != nil {
			return out, err
		}
		for _, e := range names {
			path := filepath.Join(dir, e.Name())
			switch {
			case known[path] || !e.IsDir():
			case dir == s.clones():
				_, size := measure(path)
				out = append(out, Item{Kind: "clone", Path: path, Size: size, Why: "a copy of a repository, with the branches of cards"})
			default:
				_, size := measure(path)
				out = append(out, Item{Kind: "unknown", Path: path, Size: size, Why: "nothing says which card it was made for; look at it and remove it by hand"})
			}
		}
	}
	return out, nil
}

// sweep looks at one workspace; nil: it is not there any more.
func (s *Store) sweep(ctx context.Context, r *record, o Sweep) (*Item, error) {
	unlock, err := s.lock(ctx, r.Card)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if r, err = s.load(r.Kind, r.Card); r == nil || err != nil {
		return nil, nil
	}
	it := &Item{Card: r.Card, Kind: r.Kind, Path: r.Path}
	if r.Kind != Dir {
		_, it.Size = measure(r.Path)
	}
	_, missing := os.Lstat(r.Path)
	over, why := o.Over(r.Card)
	switch {
	case s.cfg.Live(r.Card):
		it.Why = "a session of its card works in it"
	case !over && !errors.Is(missing, fs.ErrNotExist):
		it.Why = why
	case o.Dry && missing != nil:
		it.Gone = true
	case o.Dry:
		it.Why, err = s.stays(ctx, r, o.Scratch, true)
		if err != nil {
			it.Why = "it cannot be looked at: " + err.Error()
		}
		it.Gone = it.Why == ""
	default:
		if r, err = s.resume(r); err == nil && r != nil {
			err = s.clear(ctx, r, o.Scratch)
		}
		if it.Gone = err == nil; err != nil {
			it.Why = strings.TrimPrefix(err.Error(), it.Path+" stays: ") // the path stands beside it
		}
	}
	return it, nil
}

// Measure notes how much of the disk a card's workspaces take. A start does not
// wait for it.
func (s *Store) Measure(ctx context.Context, card string) error {
	list, err := s.ofCard(card)
	if err != nil {
		return err
	}
	for _, r := range list {
		if r.Kind == Dir {
			continue
		}
		if _, size := measure(r.Path); size != r.Size {
			if err := s.note(ctx, r, size); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Store) note(ctx context.Context, was *record, size int64) error {
	unlock, err := s.lock(ctx, was.Card)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := s.load(was.Kind, was.Card)
	if err != nil || r == nil {
		return err
	}
	r.Size = size
	return s.save(r)
}

// use is what Use answered, and at which change of the records.
type use struct {
	at, n, bytes int64
	known        bool
}

// Use is how many workspaces there are, and what they take of the disk as it was
// last measured, in bytes. Folders that people named are not counted.
func (s *Store) Use() (n int, bytes int64) {
	s.useMu.Lock()
	defer s.useMu.Unlock()
	u := use{at: s.changed.Load(), known: true}
	if s.use.known && s.use.at == u.at {
		return int(s.use.n), s.use.bytes
	}
	list, _, err := s.all()
	if err != nil {
		return 0, 0
	}
	for _, r := range list {
		if r.Kind != Dir {
			u.n++
			u.bytes += r.Size
		}
	}
	s.use = u
	return int(u.n), u.bytes
}

// measure counts the files below a folder, and what they take of the disk.
func measure(dir string) (files int, bytes int64) {
	seen := map[uint64]bool{}
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // what cannot be read is not counted
		}
		st, err := d.Info()
		if err != nil {
			return nil
		}
		x, ok := st.Sys().(*syscall.Stat_t)
		if !d.IsDir() {
			files++
			if ok && x.Nlink > 1 {
				if seen[x.Ino] {
					return nil
				}
				seen[x.Ino] = true
			}
		}
		if ok {
			bytes += x.Blocks * 512
		}
		return nil
	})
	return files, bytes
}
