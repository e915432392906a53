package memory

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Sweep takes away what none of the snapshots to keep is made of, but what is
// younger than that: it may belong to one that is being taken, or told of.
func (s *Store) Sweep(keep []string, young time.Duration) error {
	held := map[string]bool{}
	for _, hash := range keep {
		if held[hash] || !s.Has(hash) {
			continue
		}
		files, err := s.Files(hash)
		if err != nil {
			return err // what it is made of is not known: nothing goes
		}
		held[hash] = true
		for _, x := range files {
			held[x.SHA256] = true
		}
	}
	before := time.Now().Add(-young)
	err := filepath.WalkDir(s.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || held[d.Name()] {
			return err
		}
		if st, err := d.Info(); err != nil || st.ModTime().After(before) {
			return nil
		}
		return os.Remove(path)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
