package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Bounds of what is brought along.
const (
	maxBrought     = 1000
	maxBroughtSize = 256 << 20
)

// bring copies files that git does not have (.env and such) from the
// repository's own folder into the worktree. What is there already stays, what
// is not there is not missed; no path leads out of either folder.
func (s *Store) bring(r *record, c *clone, patterns []string) error {
	if len(patterns) == 0 || r.State == stateReady {
		return nil
	}
	if c.folder == "" {
		s.cfg.Logger.Warn("files can be brought only from a repository that is a folder here", "card", r.Card, "repo", password.ReplaceAllString(c.url, "://"))
		return nil
	}
	from, err := os.OpenRoot(c.folder)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenRoot(r.Path)
	if err != nil {
		return err
	}
	defer to.Close()
	if r.Brought == nil {
		r.Brought = map[string]string{}
	}
	left := int64(maxBroughtSize)
	for _, p := range patterns {
		if !fs.ValidPath(p) || p == "." || p == ".git" || strings.HasPrefix(p, ".git/") {
			return fmt.Errorf("bring: %q is no path inside of the repository", p)
		}
		names, err := fs.Glob(from.FS(), p)
		if err != nil {
			return fmt.Errorf("bring: pattern %q: %w", p, err)
		}
		for _, name := range names {
			if err := bringAll(from, to, name, r.Brought, &left); err != nil {
				return fmt.Errorf("bring %s from %s: %w", name, c.folder, err)
			}
		}
	}
	return nil
}

func bringAll(from, to *os.Root, name string, brought map[string]string, left *int64) error {
	return fs.WalkDir(from.FS(), name, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == ".git":
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil // a folder is made for its files; a link could lead anywhere
		case len(brought) >= maxBrought:
			return fmt.Errorf("more than %d files", maxBrought)
		}
		sum, err := copyFile(from, to, p, left)
		if err == nil {
			brought[p] = sum
		} else if errors.Is(err, fs.ErrExist) {
			err = nil
		}
		return err
	})
}

func copyFile(from, to *os.Root, name string, left *int64) (sum string, err error) {
	in, err := from.Open(name)
	if err != nil {
		return "", err
	}
	defer in.Close()
	st, err := in.Stat()
	if err != nil {
		return "", err
	}
	if *left -= st.Size(); *left < 0 {
		return "", fmt.Errorf("more than %d MB", maxBroughtSize>>20)
	}
	if err := to.MkdirAll(path.Dir(name), 0o755); err != nil {
		return "", err
	}
	out, err := to.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, st.Mode().Perm())
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, h), in)
	return hex.EncodeToString(h.Sum(nil)), errors.Join(err, out.Close())
}

// changed names a brought file that is not any more what was copied, "" if none.
func changed(dir string, brought map[string]string) string {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return dir
	}
	defer root.Close()
	for name, want := range brought {
		f, err := root.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return name
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		f.Close()
		if err != nil || hex.EncodeToString(h.Sum(nil)) != want {
			return name
		}
	}
	return ""
}
