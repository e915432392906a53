package launcher

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"muster/board"
	"muster/launcher/memory"
)

// asideMark stands in the name of a folder that was set aside, before the run that came.
const asideMark = ".aside-"

// BringMemory brings an object of agents' memory here, if it is not.
func (r *Reconciler) BringMemory(ctx context.Context, node, hash string) error {
	s := r.snapshots()
	switch {
	case s.Has(hash):
		return nil
	case r.cfg.Memory == nil:
		return memory.ErrMissing
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	return s.Put(hash, &remoteObject{ctx: ctx, ask: r.cfg.Memory, node: node, hash: hash})
}

// MemoryFiles are the files of a snapshot, whose list is brought here.
func (r *Reconciler) MemoryFiles(ctx context.Context, node, hash string) ([]memory.File, error) {
	if err := r.BringMemory(ctx, node, hash); err != nil {
		return nil, err
	}
	return r.snapshots().Files(hash)
}

// gcMemory lets snapshots go that neither an agent nor a run of the state names, and
// folders of agents that have left it.
func (r *Reconciler) gcMemory() error {
	var keep []string
	known := map[string]bool{}
	err := r.cfg.View(func(v board.View) error {
		board.EachAgent(v, func(a *board.Agent) bool {
			known[a.ID] = true
			for _, m := range board.MemoriesOf(v, a) {
				keep = append(keep, m.Hash)
			}
			return true
		})
		return nil
	})
	if err != nil {
		return err
	}
	if len(known) > 0 { // without one this node's state is not there yet: it comes whole
		err = r.dropFolders(known, r.homes(), time.Now().Add(-memoryYoung))
	}
	bases, gerr := filepath.Glob(filepath.Join(r.cfg.Dir, "agents", "*.base"))
	for _, b := range bases {
		keep = append(keep, baseOf(strings.TrimSuffix(b, ".base")))
	}
	return errors.Join(err, gerr, r.snapshots().Sweep(keep, memoryYoung))
}

// homes are the folders of agents that runs of this machine have.
func (r *Reconciler) homes() map[string]bool {
	used := map[string]bool{}
	r.ask(func() {
		for _, n := range r.runs {
			if n.spec != nil && n.spec.AgentHome != "" {
				used[filepath.Base(n.spec.AgentHome)] = true
			}
		}
	})
	return used
}

// dropFolders takes away folders of agents that are not known, that no run has and that nobody has changed since: an order may
// name an agent that this machine's state does not have yet. What was set aside, since no snapshot can hold it, is a person's to
// take away.
func (r *Reconciler) dropFolders(known, used map[string]bool, before time.Time) error {
	list, err := os.ReadDir(filepath.Join(r.cfg.Dir, "agents"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, d := range list {
		name := strings.TrimSuffix(d.Name(), ".base")
		id, _, _ := strings.Cut(name, ".")
		if !board.IsAgentID(id) || known[id] || used[name] || strings.Contains(name, asideMark) {
			continue
		}
		path := filepath.Join(r.cfg.Dir, "agents", d.Name())
		if newest(path).After(before) {
			continue
		}
		err = errors.Join(err, os.RemoveAll(path))
	}
	return err
}

// newest is when something in a folder was changed last.
func newest(path string) (at time.Time) {
	_ = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if st, err := d.Info(); err == nil && st.ModTime().After(at) {
			at = st.ModTime()
		}
		return nil
	})
	return at
}
