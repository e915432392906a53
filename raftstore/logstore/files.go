package logstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// makeDir makes the folder and its name durable.
func makeDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err == nil {
		return syncDir(filepath.Dir(dir))
	} else if !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: dir, Err: syscall.ENOTDIR}
	}
	return err
}

// lockPatience is how long a lock that is taken is asked for again.
const lockPatience = 500 * time.Millisecond

// lockDir takes the folder for this process. bbolt would wait for ever for its own lock; a second daemon on a
// folder is told after [lockPatience].
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("log store %s: %w", dir, err)
	}
	// A child that a process forked a moment ago holds its descriptors until it
	// execs: a lock just given up may look taken for a moment.
	for end := time.Now().Add(lockPatience); ; time.Sleep(10 * time.Millisecond) {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(end) {
			break
		}
	}
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("log store %s: %w: a node runs on this folder; stop it first", dir, ErrLocked)
	}
	return nil, fmt.Errorf("log store %s: lock: %w", dir, err)
}

// syncAll makes all that is in the folder durable, names included.
func syncAll(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || e.Name() == lockFile {
			continue
		}
		if err := syncPath(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return syncDir(dir)
}

func syncDir(dir string) error { return syncPath(dir) }

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
