package node

import (
	"context"
	"errors"
	"slices"

	"muster/board"
	snapshots "muster/launcher/memory"
)

// memoryMsg asks for a piece of an object of agents' memory.
type memoryMsg struct {
	Hash string `json:"hash"`
	From int64  `json:"from"`
}

type memoryAns struct {
	Chunk []byte `json:"chunk"`
	Size  int64  `json:"size"`
}

func (n *Node) memoryPiece(m memoryMsg) (*memoryAns, error) {
	b, size, err := n.launch.MemoryObject(m.Hash, m.From)
	if errors.Is(err, snapshots.ErrMissing) {
		return nil, board.Errorf(board.NotFound, "%s does not have it", n.cfg.Name)
	}
	return &memoryAns{Chunk: b, Size: size}, err
}

// askMemory asks the machine that took a snapshot, then every other: who began a
// session with it has it too. The first failure is told, that of the one that must have it.
func (n *Node) askMemory(ctx context.Context, from, hash string, at int64) ([]byte, int64, error) {
	ask := []string{from}
	for _, p := range n.nodeList() {
		if p.ID != from && p.ID != string(n.ident.ID) {
			ask = append(ask, p.ID)
		}
	}
	ask = slices.DeleteFunc(ask, func(id string) bool { return id == "" || id == string(n.ident.ID) })
	var first error
	for _, id := range ask {
		var ans memoryAns
		try, cancel := context.WithTimeout(ctx, callTimeout)
		err := n.call(try, id, "memory", memoryMsg{Hash: hash, From: at}, &ans)
		cancel()
		if err == nil {
			return ans.Chunk, ans.Size, nil
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	if first == nil {
		first = snapshots.ErrMissing
	}
	return nil, 0, first
}
