package node

import (
	"context"
	"os"
	"time"

	"muster/board"
	"muster/raftstore"
)

// Backup writes the whole state to a file, as one moment of it that holds all that
// was acknowledged before it was asked for; local takes what this node has, which
// needs no leader. It returns the Seq and hash of the state that was read.
func (b backend) Backup(ctx context.Context, f *os.File, local bool) (string, error) {
	n := b.n
	if !local {
		if _, err := b.Read(ctx, true, func(board.View) error { return nil }); err != nil {
			return "", err
		}
	}
	about, err := n.store.Backup(ctx, f, raftstore.About{Node: n.cfg.Name, Version: n.cfg.Version, Taken: time.Now().UTC().Format(time.RFC3339)}, board.ForBackup)
	return about.Hash, err
}
