package node

import (
	"context"
	"os"
	"time"

	"muster/board"
	"muster/raftstore"
)

// Backup writes the whole state to a file, as one moment of what this node has, which needs no leader. It returns the
// Seq and hash of the state that was read.
func (b backend) Backup(ctx context.Context, f *os.File) (string, error) {
	n := b.n
	about, err := n.store.Backup(ctx, f, raftstore.About{Node: n.cfg.Name, Version: n.cfg.Version, Taken: time.Now().UTC().Format(time.RFC3339)}, board.ForBackup)
	return about.Hash, err
}
