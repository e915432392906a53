package node

import (
	"context"
	"errors"
	"slices"
	"strings"

	"muster/board"
	"muster/cmd/muster/api"
	snapshots "muster/launcher/memory"
)

// snapshot finds a snapshot that the state names, by an agent and its hash or the beginning of one; "" is the newest.
func (n *Node) snapshot(ref, hash string) (agent string, m board.MemoryRef, err error) {
	err = n.store.View(func(v board.View) error {
		a, err := board.FindAgent(v, ref)
		if err != nil {
			return err
		}
		agent = a.ID
		list := board.MemoriesOf(v, a)
		i := slices.IndexFunc(list, func(m board.MemoryRef) bool { return strings.HasPrefix(m.Hash, hash) })
		if i < 0 {
			return board.Errorf(board.NotFound, "agent %s has no snapshot %s", a.ID, hash).WithHint("see: muster agent memory %s log", a.ID)
		}
		m = list[i]
		return nil
	})
	return agent, m, err
}

func (n *Node) lacks(agent string, m board.MemoryRef, err error) error {
	if err == nil {
		return nil
	}
	where := m.Node
	_ = n.store.View(func(v board.View) error { where = nodeName(v, m.Node); return nil })
	return board.Errorf(board.Unavailable, "snapshot %s of agent %s could not be brought here: %v", m.Hash[:12], agent, err).WithHint("it was taken on %s; see: muster status", where)
}

// MemoryFiles lists a snapshot, whose list is brought here from whatever machine has it.
func (b backend) MemoryFiles(ctx context.Context, ref, hash string) (api.MemoryFiles, error) {
	agent, m, err := b.n.snapshot(ref, hash)
	if err != nil {
		return api.MemoryFiles{}, err
	}
	files, err := b.n.launch.MemoryFiles(ctx, m.Node, m.Hash)
	if err != nil {
		return api.MemoryFiles{}, b.n.lacks(agent, m, err)
	}
	x := api.MemoryFiles{Agent: agent, Hash: m.Hash, Files: []api.MemoryFile{}}
	for _, f := range files {
		x.Files = append(x.Files, api.MemoryFile{Path: f.Path, Size: f.Size, SHA256: f.SHA256, Exec: f.Exec})
	}
	return x, nil
}

// MemoryChunk reads a file of a snapshot, which is brought here first.
func (b backend) MemoryChunk(ctx context.Context, ref, hash, path string, from int64) (api.MemoryChunk, error) {
	agent, m, err := b.n.snapshot(ref, hash)
	if err != nil {
		return api.MemoryChunk{}, err
	}
	files, err := b.n.launch.MemoryFiles(ctx, m.Node, m.Hash)
	if err != nil {
		return api.MemoryChunk{}, b.n.lacks(agent, m, err)
	}
	i := slices.IndexFunc(files, func(f snapshots.File) bool { return f.Path == path })
	if i < 0 {
		return api.MemoryChunk{}, board.Errorf(board.NotFound, "snapshot %s of agent %s has no file %q", m.Hash[:12], agent, path)
	}
	if err := b.n.launch.BringMemory(ctx, m.Node, files[i].SHA256); err != nil {
		return api.MemoryChunk{}, b.n.lacks(agent, m, err)
	}
	chunk, size, err := b.n.launch.MemoryObject(files[i].SHA256, from)
	if errors.Is(err, snapshots.ErrMissing) {
		return api.MemoryChunk{}, b.n.lacks(agent, m, err)
	}
	next := from + int64(len(chunk))
	return api.MemoryChunk{Chunk: chunk, Next: next, EOF: next >= size || len(chunk) == 0}, err
}
