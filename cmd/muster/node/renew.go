package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"muster/board"
	"muster/mesh"
	"muster/raftstore"
	"muster/raftstore/logstore"
)

// A renewal makes the store of a new era or of a new fleet beside the old one
// (newRaft) and touches nothing else. What counts is one write of node.json,
// which says that it is whole (saved.Renewed): before that the folder is what it
// was, after it the next start, or the next try, puts the new store in place.
const newRaft = "raft.new"

// RecoverOptions say what is to be recovered, and why.
type RecoverOptions struct {
	Data       string
	From       string // a store in the data folder; "" is the one in use
	WithoutLog bool
	By, Why    string
	LogKind    string
	Progress   func(string)
	Logger     *slog.Logger

	fault func(op string) error // tests: breaks one named operation
}

// RestoreOptions say of what a fleet is to be made, and where.
type RestoreOptions struct {
	Data, Name, Listen string
	Backup             io.Reader
	By, Why            string
	Version            string
	LogKind            string
	Progress           func(string)
	Logger             *slog.Logger

	fault func(op string) error
}

// Survivor is what a stopped node's store, or one that was set aside, has (for `recover --list`).
type Survivor struct {
	Folder   string   `json:"folder"`
	Store    string   `json:"store"` // in it: raft, or raft.asideN
	Node     string   `json:"node,omitempty"`
	Name     string   `json:"name,omitempty"`
	Fleet    string   `json:"fleet,omitempty"`
	Era      uint64   `json:"era"`
	LastTerm uint64   `json:"last_term"`  // of its log
	Last     uint64   `json:"last_index"` // of its log, or of its newest snapshot
	Applied  uint64   `json:"applied"`
	Seq      uint64   `json:"seq"`
	Hash     string   `json:"hash,omitempty"`
	Best     bool     `json:"best"` // nobody listed has more
	Faults   []string `json:"faults,omitempty"`
}

// Survey looks at stopped nodes' folders and says who has most: by era, then by
// the term of the last entry, then by its index, as Raft would choose a leader.
func Survey(folders []string) ([]Survivor, error) {
	var list []Survivor
	for _, dir := range folders {
		if !IsFolder(dir) {
			return nil, board.Errorf(board.NotFound, "%s is not the data folder of a node", dir).WithHint("give the data folders of stopped nodes, or copies of them")
		}
		there, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		stores := []string{"raft"}
		for _, e := range there {
			if strings.HasPrefix(e.Name(), "raft.aside") {
				stores = append(stores, e.Name())
			}
		}
		for _, store := range stores {
			s, err := survey(dir, filepath.Join(dir, store))
			if err != nil {
				return nil, err
			}
			list = append(list, s)
		}
	}
	if err := oneFleet(list); err != nil {
		return nil, err
	}
	best := 0
	for i := range list {
		if list[best].less(&list[i]) {
			best = i
		}
	}
	for i := range list {
		list[i].Best = list[i].Seq > 0 && !list[i].less(&list[best])
	}
	return list, nil
}

// oneFleet refuses folders of several fleets: who has more of another fleet has nothing of this one.
func oneFleet(list []Survivor) error {
	var of *Survivor
	for i := range list {
		switch s := &list[i]; {
		case s.Fleet == "":
		case of == nil:
			of = s
		case s.Fleet != of.Fleet:
			return board.Errorf(board.Invalid, "%s is of fleet %s and %s of fleet %s: they cannot be compared", of.Folder, short(of.Fleet), s.Folder, short(s.Fleet)).
				WithHint("give folders of one fleet: muster recover --list FOLDER...")
		}
	}
	return nil
}

func survey(dir, store string) (Survivor, error) {
	s := Survivor{Folder: dir, Store: filepath.Base(store)}
	r, err := raftstore.Check(store)
	missing := errors.Is(err, os.ErrNotExist) || errors.Is(err, raftstore.ErrNoStore)
	if errors.Is(err, logstore.ErrLocked) || errors.Is(err, raftstore.ErrLocked) {
		return s, board.Errorf(board.Conflict, "a node runs on %s", dir).WithHint("stop it first: muster stop --data %s", dir)
	}
	if err != nil && !missing {
		return s, fmt.Errorf("%s: %w", store, err)
	}
	var f *FolderReport
	if s.Store == "raft" && !missing {
		f = CheckFolder(dir, r)
	} else {
		f = CheckFolder(dir, nil)
		f.Faults = nil
	}
	s.Node, s.Name, s.Fleet = f.Node, f.Name, f.Fleet
	if missing {
		s.Faults = append(f.Faults, "there is no store here")
		return s, nil
	}
	s.Faults = append(f.Faults, r.Faults...)
	take := func(st *raftstore.StateReport, index uint64) {
		if st.Era > s.Era || st.Era == s.Era && st.Applied >= s.Applied {
			s.Era, s.Applied, s.Seq, s.Hash = st.Era, st.Applied, st.Seq, fmt.Sprintf("%x@%d", st.Hash, st.Seq)
			s.Last, s.LastTerm = max(s.Last, index), max(s.LastTerm, st.Term)
		}
	}
	for i := range r.Snapshots {
		take(&r.Snapshots[i].StateReport, r.Snapshots[i].Index)
	}
	if r.State != nil {
		take(r.State, r.State.Applied)
	}
	if l := r.Log; l != nil {
		s.Last, s.LastTerm = max(s.Last, l.Last), max(s.LastTerm, l.LastTerm)
	}
	return s, nil
}

func (s *Survivor) less(o *Survivor) bool {
	switch {
	case s.Era != o.Era:
		return s.Era < o.Era
	case s.LastTerm != o.LastTerm:
		return s.LastTerm < o.LastTerm
	case s.Last != o.Last:
		return s.Last < o.Last
	}
	return s.Seq < o.Seq
}

// Recover makes a stopped node the only voter of a new era of its fleet, out of
// what it has (architecture.md §6): for when the quorum is lost for good.
func Recover(ctx context.Context, o RecoverOptions) (*raftstore.Renewed, error) {
	f, err := openFolder(o.Data)
	if err != nil {
		return nil, err
	}
	defer f.close()
	m, err := f.load()
	if err != nil {
		return nil, err
	}
	if m.Fleet == "" {
		return nil, board.Errorf(board.Refused, "%s is no node of a fleet: there is nothing to recover", o.Data).WithHint("give the data folder of the survivor with --data")
	}
	if err := f.intact(false); err != nil {
		return nil, err
	}
	if err := f.takeRenewed(m); err != nil {
		return nil, err
	}
	id, err := mesh.LoadIdentity(o.Data)
	if err != nil {
		return nil, err
	}
	if err := f.belongs(m, string(id.ID)); err != nil {
		return nil, err
	}
	store, from := random(6), o.From
	if from == "" {
		from = "raft"
	}
	if from != filepath.Base(from) || from != "raft" && !strings.HasPrefix(from, "raft.aside") {
		return nil, board.Errorf(board.Invalid, "--from %q is no store of this folder", from).WithHint("see: muster recover --list")
	}
	renewal := &board.Renewal{EraTag: random(6), Node: board.Node{ID: string(id.ID), Store: store, Generation: m.Generation}, By: o.By, Why: o.Why}
	r, err := raftstore.Renew(ctx, raftstore.RenewConfig{
		From: f.path(from), WithoutLog: o.WithoutLog, To: f.path(newRaft), Server: string(id.ID) + "/" + store, LogKind: logstore.Kind(o.LogKind),
		Check: checkRenewal(renewal), Next: renewal.Next, Skip: board.SkippedSeqs, Progress: o.Progress, Logger: o.Logger, Fault: o.fault,
	})
	if err != nil {
		return nil, fmt.Errorf("recover: %w; nothing was changed", err)
	}
	if err := broken(o.fault, "renew-commit"); err != nil {
		return nil, err
	}
	m.Store, m.Renewed, m.Stored, m.Place, m.Refetch, m.Rebuild, m.Odd, m.Start, m.Era = store, true, true, nil, "", "", false, "", ""
	m.Before = m.Generation
	if err := f.save(m); err != nil {
		return nil, err
	}
	if err := broken(o.fault, "renew-place"); err != nil {
		return nil, err
	}
	return r, f.takeRenewed(m)
}

func broken(fault func(string) error, op string) error {
	if fault == nil {
		return nil
	}
	return fault(op)
}

func checkRenewal(r *board.Renewal) func(board.View) error {
	return func(v board.View) error {
		if err := r.Check(v); err != nil {
			return err
		}
		if f := board.GetFleet(v); f.Format > board.Format {
			return board.Errorf(board.Refused, "its state has format %d, and this muster reads up to %d", f.Format, board.Format).WithHint("use the muster that wrote it, or a newer one")
		}
		return nil
	}
}

// Restore makes the first node of a new fleet in an empty data folder, out of a backup.
func Restore(ctx context.Context, o RestoreOptions) (*raftstore.Renewed, error) {
	cfg := Config{Data: o.Data, Name: o.Name, Listen: o.Listen, Logger: o.Logger, Progress: o.Progress}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	f, err := openFolder(o.Data)
	if err != nil {
		return nil, err
	}
	defer f.close()
	own, err1 := f.has("node.json")
	raft, err2 := f.has("raft")
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if own || raft {
		return nil, board.Errorf(board.Refused, "%s is a node's folder: a backup is restored into an empty one, as a new fleet", o.Data).
			WithHint("give another with --data; to go on with what a survivor has: muster recover")
	}
	id, err := mesh.LoadOrCreateIdentity(o.Data)
	if err != nil {
		return nil, err
	}
	m := &saved{Fleet: random(12), Node: string(id.ID), Name: cfg.Name, Store: random(6), Listen: cfg.Listen, Stored: true, Renewed: true}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	renewal := &board.Renewal{Restored: true, Fleet: m.Fleet, Gossip: key, EraTag: random(6), By: o.By, Why: o.Why,
		Node: board.Node{ID: m.Node, Name: m.Name, Key: id.PublicKey(), Store: m.Store, OS: runtime.GOOS, Arch: runtime.GOARCH, Version: o.Version}}
	r, err := raftstore.Renew(ctx, raftstore.RenewConfig{
		Backup: o.Backup, To: f.path(newRaft), Server: m.Node + "/" + m.Store, LogKind: logstore.Kind(o.LogKind),
		Check: checkRenewal(renewal), Next: renewal.Next, Progress: cfg.Progress, Logger: cfg.Logger, Fault: o.fault,
	})
	if err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	if err := broken(o.fault, "renew-commit"); err != nil {
		return nil, err
	}
	if err := f.save(m); err != nil {
		return nil, err
	}
	if err := broken(o.fault, "renew-place"); err != nil {
		return nil, err
	}
	return r, f.takeRenewed(m)
}

// takeRenewed puts a store that was made anew in the place of the old one, which is kept.
func (f *folder) takeRenewed(m *saved) error {
	if !m.Renewed {
		return nil
	}
	if there, err := f.has(newRaft); err != nil {
		return err
	} else if there {
		if _, err := f.setAside(); err != nil {
			return fmt.Errorf("set the old store aside: %w", err)
		}
		if err := os.Rename(f.path(newRaft), f.path("raft")); err != nil {
			return fmt.Errorf("put the new store in place: %w", err)
		}
		if err := syncFolder(f.dir); err != nil {
			return err
		}
	}
	m.Renewed = false
	return f.save(m)
}
