package node

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// place tells a store's folder from a copy of it: the birth of its mark, a symbolic
// link beside the log, and of the log's own file. A copy, a restore by cp, tar or
// rsync is made of new files, so it always differs, and a move on one file system
// never does. What is in the files says nothing: a copy has all of it. The number of
// the device is left out: it may change when a machine boots, and the disk is the same.
//
// The mark is a link because cp and tar make a link anew even where they write into
// files that are there.
type place struct {
	Mark born `json:"mark"`
	Log  born `json:"log"`
}

// born is when and where a file was made, as far as its file system tells; zero where it tells nothing that lasts.
type born struct {
	Inode uint64 `json:"inode,omitempty"`
	At    int64  `json:"at,omitempty"` // ns
}

// same tells whether two looks were at one file; what either does not know says nothing.
func (b born) same(o born) bool {
	return (b.Inode == 0 || o.Inode == 0 || b.Inode == o.Inode) && (b.At == 0 || o.At == 0 || b.At == o.At)
}

const placeMark = "mark"

// logFiles are the files that the kinds of log keep from their first day on.
var logFiles = []string{filepath.Join("log", "wal-meta.db"), filepath.Join("log", "log.db")}

// settle notes where the store in dir is, and makes its mark if it has none.
func settle(dir, store string) (*place, error) {
	if err := os.Symlink(store, filepath.Join(dir, placeMark)); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	p, err := look(dir)
	if err != nil {
		return nil, err
	}
	return p, syncFolder(dir)
}

// look is where the store in dir is now.
func look(dir string) (*place, error) {
	mark, err := bornOf(filepath.Join(dir, placeMark))
	if err != nil {
		return nil, err
	}
	p := &place{Mark: mark}
	for _, name := range logFiles {
		if p.Log, err = bornOf(filepath.Join(dir, name)); err == nil {
			return p, nil
		}
	}
	return p, nil
}

// copied says why the store in dir is not the one that was there at the last start; "" if it is, or nobody can know.
func (p *place) copied(dir string) string {
	if p == nil {
		return ""
	}
	now, err := look(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "its mark is missing"
	case err != nil:
		return "" // the log, which is in the same folder, tells what is wrong with it
	case !p.Mark.same(now.Mark), !p.Log.same(now.Log):
		return "its files are not those that this node made"
	}
	return ""
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
