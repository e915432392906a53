package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// dropHalves takes away what a git that was killed inside of `worktree add` has begun in a clone: an entry that says not
// yet where its folder is, what it shares, or what it is at. git refuses every later fetch while one stands, and its own
// prune passes by what is locked, as these are. The caller holds the clone's lock, which git holds too: nobody is at work
// on one. An entry with an index has been checked out, and stays whatever it lacks.
func dropHalves(clone string) error {
	dir := filepath.Join(clone, "worktrees")
	names, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range names {
		entry := filepath.Join(dir, e.Name())
		if !e.IsDir() || !half(entry) {
			continue
		}
		if err := os.RemoveAll(entry); err != nil {
			return fmt.Errorf("half a worktree that git left in %s: %w", entry, err)
		}
	}
	return nil
}

func half(entry string) bool {
	if _, err := os.Lstat(filepath.Join(entry, "index")); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	for _, name := range []string{"gitdir", "commondir", "HEAD"} {
		if empty(filepath.Join(entry, name)) {
			return true
		}
	}
	return false
}

// empty tells that a file is not there, or that nothing is in it.
func empty(path string) bool {
	st, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && st.Mode().IsRegular() && st.Size() == 0
}

// emptyShell tells a folder that git had just made for a worktree: nothing is in it, or only the file .git without a word.
func emptyShell(path string) bool {
	names, err := os.ReadDir(path)
	return err == nil && (len(names) == 0 || len(names) == 1 && names[0].Name() == ".git" && empty(filepath.Join(path, ".git")))
}
