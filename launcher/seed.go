package launcher

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"muster/board"
)

// A program in a pane asks a person its first questions (is this folder trusted?), and a prompt waits for the answer.
// Those that a preset answers (`seed`) are set in the program's own settings before its pane is opened: only where
// nothing stands yet, so that what a person said there holds.

// seedTries bounds how often settings are read again that somebody wrote meanwhile.
const seedTries = 5

// seed answers a program's first questions for the folders that are muster's own. A folder of a person's (dir:) is not
// muster's to trust: there the program asks.
func (r *Reconciler) seed(x *board.SpecExtra, s *Spec) error {
	folders := []string{filepath.Join(r.cfg.Dir, "workspaces"), filepath.Join(r.cfg.Dir, "worktrees")}
	var errs []error
	for _, one := range x.Seed {
		var want map[string]any
		if err := decodeJSON([]byte(one.JSON), &want); err != nil {
			errs = append(errs, fmt.Errorf("seed: %w", err))
			continue
		}
		for _, file := range one.Files {
			if path, ok := pathIn(file, s.Env); ok {
				errs = append(errs, seedFile(path, named(want, folders)))
				break
			}
		}
	}
	return errors.Join(errs...)
}

// pathIn is a path that begins with a variable of an environment; false when that is not set there.
func pathIn(path string, env []string) (string, bool) {
	name, rest, ok := strings.Cut(strings.TrimPrefix(path, "$"), "/")
	value := envOf(env, name)
	return filepath.Join(value, rest), ok && filepath.IsAbs(value)
}

// named puts muster's own folders, each as it is written and as it is found, in the place of their name among members.
func named(want map[string]any, folders []string) map[string]any {
	out := map[string]any{}
	for k, v := range want {
		if m, ok := v.(map[string]any); ok {
			v = named(m, folders)
		}
		if k != board.SeedFolders {
			out[k] = v
			continue
		}
		for _, dir := range folders {
			out[dir] = v
			if real, err := filepath.EvalSymlinks(filepath.Dir(dir)); err == nil {
				out[filepath.Join(real, filepath.Base(dir))] = v
			}
		}
	}
	return out
}

// seedFile fills a file of JSON settings: the whole new file or the old one, whatever dies. The program may write it
// at the same time: what changed since it was read is read again.
func seedFile(path string, want map[string]any) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // settings may be kept elsewhere, and linked
	}
	for range seedTries {
		was, err := os.Stat(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		have := map[string]any{}
		if was != nil {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if err := decodeJSON(b, &have); err != nil {
				return fmt.Errorf("%s is not touched: %w", path, err)
			}
		}
		if !fill(have, want) {
			return nil
		}
		if err := replaceSettings(path, was, have); !errors.Is(err, errChanged) {
			return err
		}
	}
	return fmt.Errorf("%s: %w", path, errChanged)
}

var errChanged = errors.New("its program writes it all the while")

// replaceSettings writes settings in the place of those that were read, unless those have changed.
func replaceSettings(path string, was fs.FileInfo, have map[string]any) error {
	b, err := json.MarshalIndent(have, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".muster-seed-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // of no effect after the rename
	_, err = tmp.Write(append(b, '\n'))
	if err == nil && was != nil {
		err = tmp.Chmod(was.Mode().Perm())
	}
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	switch now, err := os.Stat(path); {
	case was == nil && errors.Is(err, fs.ErrNotExist):
	case was != nil && err == nil && os.SameFile(was, now) && was.ModTime().Equal(now.ModTime()) && was.Size() == now.Size():
	default:
		return errChanged
	}
	return os.Rename(tmp.Name(), path)
}

// fill sets what is not there; whatever stands, stands. It tells whether anything was set.
func fill(have, want map[string]any) (changed bool) {
	for k, v := range want {
		old, there := have[k]
		if !there {
			have[k], changed = v, true
			continue
		}
		o, ok1 := old.(map[string]any)
		w, ok2 := v.(map[string]any)
		if ok1 && ok2 && fill(o, w) {
			changed = true
		}
	}
	return changed
}

// decodeJSON reads one JSON object as it stands: numbers keep their digits.
func decodeJSON(b []byte, v *map[string]any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("it is no JSON object: %w", err)
	}
	if *v == nil {
		return errors.New("it is no JSON object")
	}
	return nil
}
