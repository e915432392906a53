package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// MissingError says that a workspace that sessions have worked in is not there any more (M-26).
type MissingError struct {
	Card, Path string
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("workspace %s of card %s is gone from this machine: put it back, or let it go with: muster gc", e.Path, e.Card)
}

// checkFolder makes sure that a path is a folder of this user and no link to
// somewhere else: what is at a card's place must be what was made there (T27).
func checkFolder(path string) error {
	st, err := os.Lstat(path)
	switch {
	case err != nil:
		return err
	case st.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("workspace %s is a symbolic link now; nothing is started behind it", path)
	case !st.IsDir():
		return fmt.Errorf("workspace %s is no folder", path)
	case ownerOf(st) != os.Getuid():
		return fmt.Errorf("workspace %s belongs to the user with id %d, and this node runs as %d", path, ownerOf(st), os.Getuid())
	}
	return nil
}

// standing is checkFolder of a workspace that was ready before.
func standing(r *record) error {
	err := checkFolder(r.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return &MissingError{Card: r.Card, Path: r.Path}
	}
	return err
}

func (s *Store) makeScratch(w *Want) (*record, error) {
	r, err := s.load(Scratch, w.Card)
	if err != nil {
		return nil, err
	}
	if r != nil {
		if r, err = s.resume(r); err != nil {
			return nil, err
		}
	}
	if r != nil && r.State == stateReady {
		if err := standing(r); err != nil {
			return nil, err
		}
		return r, s.again(r)
	}
	if r == nil {
		r = &record{Card: w.Card, Kind: Scratch, Path: filepath.Join(s.dir(Scratch), w.Card), Spec: Scratch, State: stateMaking}
		if err := s.begin(r); err != nil {
			return nil, err
		}
	}
	if err := os.Mkdir(r.Path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	s.cfg.Failpoint("folder")
	if err := checkFolder(r.Path); err != nil {
		return nil, err
	}
	r.State = stateSetup
	return r, nil
}

// makeDir checks a folder that a person named. It stays theirs: nothing is set
// up in it and nothing is ever deleted from it.
func (s *Store) makeDir(w *Want, arg string) (*record, error) {
	path, err := s.resolveDir(arg)
	if err != nil {
		return nil, err
	}
	r, err := s.load(Dir, w.Card)
	if err != nil {
		return nil, err
	}
	if r == nil || r.Spec != w.Spec {
		r = &record{Card: w.Card, Kind: Dir, Path: path, Spec: w.Spec, State: stateReady}
	}
	if r.Path != path {
		return nil, fmt.Errorf("workspace %s led to %s when card %s first worked there, and now to %s: name the folder itself", arg, r.Path, w.Card, path)
	}
	if err := s.hold(path, w.Card); err != nil {
		return nil, err
	}
	return r, s.begin(r)
}

func (s *Store) resolveDir(arg string) (string, error) {
	if rest, ok := strings.CutPrefix(arg, "~/"); ok {
		arg = filepath.Join(envOf(s.cfg.Env, "HOME"), rest)
	}
	if !filepath.IsAbs(arg) {
		return "", fmt.Errorf("workspace %q: the path after dir: has to be absolute", "dir:"+arg)
	}
	path, err := filepath.EvalSymlinks(arg)
	if err != nil {
		return "", fmt.Errorf("workspace %s is no folder on this machine: %w", arg, err)
	}
	if st, err := os.Stat(path); err != nil || !st.IsDir() {
		return "", fmt.Errorf("workspace %s is no folder on this machine", arg)
	}
	own, err := filepath.EvalSymlinks(s.cfg.Dir)
	if err == nil && under(path, own) {
		return "", fmt.Errorf("workspace %s lies in this node's data folder, where each folder has its own card", arg)
	}
	return path, checkFolder(path)
}

// hold gives a named folder to a card, unless a session of another one is in it
// (WSP-02). It is let go of when no run of the card lives here any more.
func (s *Store) hold(path, card string) error {
	s.mu.Lock()
	holder := s.holders[path]
	s.mu.Unlock()
	if holder != "" && holder != card && s.cfg.Live(holder) {
		return fmt.Errorf("workspace %s is worked in by card %s; one card at a time has a folder", path, holder)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holders[path] != holder && s.holders[path] != card {
		return fmt.Errorf("workspace %s was just given to card %s; one card at a time has a folder", path, s.holders[path])
	}
	s.holders[path] = card
	return nil
}

// under tells whether a path is a folder or lies below it.
func under(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && (rel == "." || filepath.IsLocal(rel))
}

func envOf(env []string, key string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], key+"="); ok {
			return v
		}
	}
	return ""
}
