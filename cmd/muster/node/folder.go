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
	Node       string   `json:"node"` // id of the node whose folder this is: the hash of its key
	Name       string   `json:"name"`
	Store      string   `json:"store"`      // id of the raft store; a lost log or vote makes a new one (M-32)
	Generation uint64   `json:"generation"` // the last one that the fleet confirmed
	Start      string   `json:"start"`      // id of a start that is not confirmed yet
	Listen     string   `json:"listen"`
	Gossip     []byte   `json:"gossip,omitempty"`
	Peers      []peerID `json:"peers,omitempty"` // the other nodes, as last known: trusted while no state is here
	Replica    bool     `json:"replica,omitempty"`
	Refetch    string   `json:"refetch,omitempty"` // why state and log are to be set aside at the next start
	Rebuild    string   `json:"rebuild,omitempty"` // why the state alone is to be set aside, to be made anew from snapshot and log
	Odd        bool     `json:"odd,omitempty"`     // that was done once under this store id
	Stored     bool     `json:"stored,omitempty"`  // this store has held a log: a missing one is a loss (M-32)
	Place      *place   `json:"place,omitempty"`   // where it is: another place is a copy (M-32)
	Era        string   `json:"era,omitempty"`     // of its state: told to peers before the state is read
	Before     uint64   `json:"before,omitempty"`  // Generation at its last recovery: what the fleet that it was recovered from knows
	Renewed    bool     `json:"renewed,omitempty"` // a store was made anew, and is to take the place of the one in use: see renew.go
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

// setJournalAside makes the launcher begin a new journal, under a new id: an old
// one's numbers were given since, and the fleet would take its reports for ones it has.
func (f *folder) setJournalAside() error {
	path := f.path("journal.db")
	err := os.Rename(path, fmt.Sprintf("%s.aside-%d", path, time.Now().UnixNano()))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
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
		return nil, fmt.Errorf("%s is broken (%v); nothing was changed; %s", f.path("node.json"), err, f.wayBack())
	}
	return s, nil
}

// wayBack says what to do when node.json is lost.
func (f *folder) wayBack() string {
	return fmt.Sprintf("move the broken file away, make a token on another node of the fleet (muster token create), then: muster join TOKEN --data %s "+
		"(the machine comes back under its own id, and fetches the state). Or put node.json back, that file alone, if you have it from this node's last start", f.dir)
}

// intact refuses a folder that has lost one of the files that say whose it is: going
// on would make a stranger of this machine, and set aside what it holds. join says
// that the machine introduces itself anew, under the key that it has.
func (f *folder) intact(join bool) error {
	key, err := f.has("node.key")
	own, err1 := f.has("node.json")
	store, err2 := f.has("raft")
	half, err3 := f.has(newRaft)
	if err := errors.Join(err, err1, err2, err3); err != nil {
		return fmt.Errorf("data folder %s: %w", f.dir, err)
	}
	switch {
	case half && !own && !store:
		return fmt.Errorf("a restore was begun in %s and not finished: do it again (muster restore FILE --data %s), or give an empty folder", f.dir, f.dir)
	case store && !key:
		return fmt.Errorf("data folder %s holds a node's state and no node.key; nothing was changed: put node.key back, that file alone, if you have it; "+
			"else this machine can only come back as a new one: move the folder away and join with an empty one", f.dir)
	case own && !key:
		mem, err := f.load()
		if err == nil && mem.Fleet == "" {
			return nil
		}
		return fmt.Errorf("data folder %s is a node's and has no node.key; nothing was changed: put node.key back, that file alone, if you have it; "+
			"else move the folder away and join with an empty one", f.dir)
	case store && !own && !join:
		return fmt.Errorf("data folder %s holds a node's key and state and no node.json; nothing was changed; %s", f.dir, f.wayBack())
	}
	return nil
}

// belongs refuses a key that is not the one this folder's node had.
func (f *folder) belongs(mem *saved, node string) error {
	if mem.Node == "" || mem.Node == node {
		return nil
	}
	return fmt.Errorf("data folder %s is that of node %s, and node.key is the key of node %s; nothing was changed: put the right node.key back, that file alone; "+
		"to run another node on this machine give it a folder of its own with --data", f.dir, mem.Node, node)
}

func (f *folder) has(name string) (bool, error) {
	_, err := os.Lstat(f.path(name))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// save writes node.json whole or not at all.
func (f *folder) save(s *saved) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(f.path("node.json"), append(b, '\n'), 0o600); errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("NOSPACE: the disk of %s is full (%w): free %d MB there, then start the node again; sessions go on", f.dir, err, spaceLow>>20)
	} else if err != nil {
		return fmt.Errorf("node.json: %w", err)
	}
	return nil
}
