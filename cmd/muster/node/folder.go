package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/renameio/v2"
)

// saved is what a node remembers of itself between starts, in node.json.
type saved struct {
	Fleet      string   `json:"fleet"`
	Name       string   `json:"name"`
	Store      string   `json:"store"`      // id of the raft store; a lost log or vote makes a new one (M-32)
	Generation uint64   `json:"generation"` // the last one that the fleet confirmed
	Start      string   `json:"start"`      // id of a start that is not confirmed yet
	Listen     string   `json:"listen"`
	Gossip     []byte   `json:"gossip,omitempty"`
	Peers      []peerID `json:"peers,omitempty"` // the node list as told when joining: trusted until the state is here
	Replica    bool     `json:"replica,omitempty"`
	Refetch    string   `json:"refetch,omitempty"` // why state and log are to be set aside at the next start
	Rebuild    string   `json:"rebuild,omitempty"` // why the state alone is to be set aside, to be made anew from snapshot and log
	Odd        bool     `json:"odd,omitempty"`     // that was done once under this store id
	Stored     bool     `json:"stored,omitempty"`  // this store has held a log: a missing one is a loss (M-32)
}

type peerID struct {
	ID    string   `json:"id"`
	Addrs []string `json:"addrs"`
}

// folder is a locked data folder: one daemon at a time.
type folder struct {
	dir  string
	lock *os.File
}

// openFolder makes the folder if need be (0700) and takes its lock.
func openFolder(dir string) (*folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data folder %s: %w", dir, err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data folder %s: %w", dir, err)
	}
	// A keeper that a node killed just now had forked holds the lock until it execs.
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	for end := time.Now().Add(500 * time.Millisecond); err != nil && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("data folder %s is in use by another muster node; stop it first (muster stop --data %s), or give another folder with --data", dir, dir)
	}
	return &folder{dir: dir, lock: f}, nil
}

func (f *folder) path(name string) string { return filepath.Join(f.dir, name) }

// setAside moves state and log out of the way, so that this node fetches all of
// it anew; nothing is deleted.
func (f *folder) setAside() (string, error) {
	for i := 1; i < 1000; i++ {
		to := fmt.Sprintf("%s.aside%d", f.path("raft"), i)
		if _, err := os.Lstat(to); err == nil {
			continue
		}
		err := os.Rename(f.path("raft"), to)
		if errors.Is(err, os.ErrNotExist) {
			return "", nil
		}
		return to, err
	}
	return "", fmt.Errorf("%s: a thousand states were set aside already; remove some", f.dir)
}

func (f *folder) close() { f.lock.Close() }

func (f *folder) load() (*saved, error) {
	b, err := os.ReadFile(f.path("node.json"))
	if errors.Is(err, os.ErrNotExist) {
		return &saved{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	s := &saved{}
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("%s is broken (%v): restore it from a copy, or start with an empty folder and join again", f.path("node.json"), err)
	}
	return s, nil
}

// save writes node.json whole or not at all.
func (f *folder) save(s *saved) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(f.path("node.json"), append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("node.json: %w", err)
	}
	return nil
}
