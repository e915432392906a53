package launcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"muster/board"
	"muster/launcher/memory"
)

// An agent's folder is in `agents`, under its id; its snapshots are in `memory`.
// Beside the folder, ID.base names the snapshot that it was last the same as, or
// went on from: by that a folder that is ahead of its snapshot (this machine was
// killed before it took the next) is told from one that another machine went past.

const (
	fetchTime   = 5 * time.Minute  // to bring a snapshot here
	memoryEvery = 5 * time.Minute  // between two snapshots of a session that lives
	memoryPiece = 256 << 10        // bytes of one question for an object
	memoryYoung = 24 * time.Hour   // an object that nothing names stays as long: its report may be on its way
	endTime     = 2 * time.Minute  // for the snapshot at a session's end
	wordTime    = 20 * time.Second // and for that before its word
)

func (r *Reconciler) snapshots() *memory.Store {
	return &memory.Store{Dir: filepath.Join(r.cfg.Dir, "memory")}
}

// home is the folder of an agent for a run: its own, or of who only reads it, a copy.
func (r *Reconciler) home(a *board.SpecAgent, run string) string {
	name := a.ID
	if a.Reads {
		name += "." + run
	}
	return filepath.Join(r.cfg.Dir, "agents", name)
}

func baseOf(home string) string {
	b, err := os.ReadFile(home + ".base")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func setBase(home, hash string) error {
	return writeAtomic(filepath.Dir(home), filepath.Base(home)+".base", []byte(hash), true)
}

// readyMemory makes an agent's folder what its session is to begin with. note is
// what the session must know of it: a snapshot that could not be had.
func (r *Reconciler) readyMemory(ctx context.Context, a *board.SpecAgent, run string, kept bool) (home, note string, err error) {
	if !board.IsAgentID(a.ID) {
		return "", "", fmt.Errorf("its order names an agent %q, which is no id", a.ID)
	}
	home = r.home(a, run)
	_, gone := os.Lstat(home) // a folder that went, or was half put back, is not what its base says
	if err := os.MkdirAll(home, 0o700); err != nil {
		return "", "", err
	}
	if kept || a.Hash == "" || gone == nil && a.Hash == baseOf(home) { // a session works in it, or it is as it is or ahead of that: nobody else wrote since
		return home, "", nil
	}
	s := r.snapshots()
	if err := r.fetchSnapshot(ctx, s, a); err != nil {
		r.log.Warn("the memory of an agent cannot be had", "agent", a.ID, "run", run, "snapshot", a.Hash, "err", err)
		return home, fmt.Sprintf(" Your newest memory (%s) could not be brought to this machine: %v. What is in your folder now is older, or nothing; the snapshot is not lost: muster agent memory %s log.", a.About, err, a.ID), nil
	}
	if _, err := s.Take(ctx, home); err != nil { // what is here was never told of: it stays as a snapshot, or else as a folder
		aside := home + asideMark + run
		r.log.Warn("no snapshot of what an agent's folder held before: the folder is set aside", "agent", a.ID, "folder", aside, "err", err)
		if err := os.Rename(home, aside); err != nil {
			return "", "", fmt.Errorf("what the agent's folder holds cannot be set aside: %w", err)
		}
	}
	if err := s.Restore(ctx, a.Hash, home); err != nil {
		return "", "", fmt.Errorf("the agent's memory cannot be laid out: %w", err)
	}
	return home, "", setBase(home, a.Hash)
}

// fetchSnapshot brings the objects of a snapshot here that are missing.
func (r *Reconciler) fetchSnapshot(ctx context.Context, s *memory.Store, a *board.SpecAgent) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	for first := true; ; first = false { // its list, then what that names
		missing, err := s.Missing(a.Hash)
		switch {
		case err != nil || len(missing) == 0:
			return err
		case r.cfg.Memory == nil:
			return memory.ErrMissing
		case !first && missing[0] == a.Hash:
			return memory.ErrMissing
		}
		for _, hash := range missing {
			if err := s.Put(hash, &remoteObject{ctx: ctx, ask: r.cfg.Memory, node: a.Node, hash: hash}); err != nil {
				return err
			}
		}
		if !first {
			return nil
		}
	}
}

// remoteObject reads an object of another machine, piece by piece.
type remoteObject struct {
	ctx        context.Context
	ask        func(ctx context.Context, node, hash string, from int64) ([]byte, int64, error)
	node, hash string
	have       []byte
	at, size   int64
	begun      bool
}

func (o *remoteObject) Read(p []byte) (int, error) {
	if len(o.have) == 0 {
		if o.begun && o.at >= o.size {
			return 0, io.EOF
		}
		b, size, err := o.ask(o.ctx, o.node, o.hash, o.at)
		if err != nil {
			return 0, err
		}
		if len(b) == 0 && o.at < size {
			return 0, io.ErrUnexpectedEOF
		}
		o.have, o.size, o.begun = b, size, true
		if o.at += int64(len(b)); len(b) == 0 {
			return 0, io.EOF
		}
	}
	n := copy(p, o.have)
	o.have = o.have[n:]
	return n, nil
}

// MemoryObject is a piece of an object that this machine has, and how large it is.
func (r *Reconciler) MemoryObject(hash string, from int64) ([]byte, int64, error) {
	f, err := r.snapshots().Open(hash)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	b := make([]byte, memoryPiece)
	n, err := f.ReadAt(b, max(from, 0))
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:n], st.Size(), err
}

// takeMemory makes a snapshot of a session's agent's folder; nil when it has none.
func (r *Reconciler) takeMemory(ctx context.Context, s *Spec, limit time.Duration) *board.MemoryReport {
	if s == nil || s.AgentHome == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	at(atMemory)
	ref, err := r.snapshots().Take(ctx, s.AgentHome)
	if err == nil {
		err = setBase(s.AgentHome, ref.Hash)
	}
	at(atTaken)
	if err != nil {
		r.log.Warn("no snapshot of an agent's memory", "run", s.Run, "folder", s.AgentHome, "err", err)
		return &board.MemoryReport{Error: r.cfg.Name + ": " + err.Error()}
	}
	return &board.MemoryReport{Hash: ref.Hash, Bytes: ref.Bytes, Files: ref.Files}
}

// saveMemory tells of a snapshot before a session's word is asked, or while it
// lives: what cannot be told now is told with its end.
func (r *Reconciler) saveMemory(ctx context.Context, s *Spec, limit time.Duration) {
	m := r.takeMemory(ctx, s, limit)
	if m == nil || m.Hash == "" {
		return
	}
	args, err := json.Marshal(&board.Report{Kind: board.ReportMemory, Run: s.Run, Memory: m})
	if err != nil { // texts and numbers only
		return
	}
	r.forward(ctx, &board.Request{Verb: board.VReport, Args: args, Actor: board.Actor{Kind: board.ActorNode, Role: "node", Name: r.cfg.Name, Node: r.cfg.Node}})
}

// keepMemories takes a snapshot now and then of sessions that live, where something changed.
func (r *Reconciler) keepMemories() {
	defer r.wg.Done()
	told := map[string]string{} // run to what its folder looked like
	for {
		select {
		case <-r.stop:
			return
		case <-time.After(memoryEvery):
		}
		live := map[string]*Spec{}
		r.ask(func() {
			for _, n := range r.runs {
				if n.link != nil && n.spec != nil && n.spec.AgentHome != "" {
					live[n.id] = n.spec
				}
			}
		})
		for id := range told {
			if live[id] == nil {
				delete(told, id)
			}
		}
		for id, s := range live {
			if look := looksLike(s.AgentHome); look != told[id] {
				told[id] = look
				r.saveMemory(r.ctx, s, endTime)
			}
		}
	}
}

// looksLike tells folders with other files, sizes or times apart, without reading them.
func looksLike(dir string) string {
	files, bytes, newest := 0, int64(0), time.Time{}
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if st, err := d.Info(); err == nil {
			files++
			bytes += st.Size()
			if st.ModTime().After(newest) {
				newest = st.ModTime()
			}
		}
		return nil
	})
	return fmt.Sprint(files, bytes, newest.UnixNano())
}

// dropCopy takes away the folder of a run that only read its agent's.
func (r *Reconciler) dropCopy(s *Spec) {
	if s == nil || s.AgentHome == "" || !strings.HasSuffix(s.AgentHome, "."+s.Run) {
		return
	}
	_ = os.RemoveAll(s.AgentHome)
	_ = os.Remove(s.AgentHome + ".base")
}
