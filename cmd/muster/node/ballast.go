package node

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
)

// ballastBytes is what a node keeps for the day on which its disk is full: two files of
// the log. What ends things is written on it, and a start that puts the state right.
const ballastBytes = 32 << 20

// ballast is a file that holds room on the disk and nothing else. It is taken while there
// is plenty, and dropped when there is nearly nothing.
type ballast struct {
	dir    string
	taking atomic.Bool // one at a time
}

func (b *ballast) path() string { return filepath.Join(b.dir, "ballast") }

// held tells that the room is kept.
func (b *ballast) held() bool {
	s, err := os.Stat(b.path())
	return err == nil && s.Size() == ballastBytes
}

// take makes the file, whole or not at all.
func (b *ballast) take() error {
	half := b.path() + ".new"
	f, err := os.OpenFile(half, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("ballast: %w", err)
	}
	if err = reserve(f, ballastBytes); errors.Is(err, errors.ErrUnsupported) {
		_, err = io.CopyN(f, rand.Reader, ballastBytes) // zeros would take no room where a file system packs them
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(half, b.path())
	}
	if err != nil {
		_ = os.Remove(half) // it holds room that somebody lacks
		return fmt.Errorf("ballast: %w", err)
	}
	return nil
}

// drop gives the room back; false when there was none.
func (b *ballast) drop() bool { return os.Remove(b.path()) == nil }

// keepBallast takes the ballast, beside whoever asks, once there is room for it and for
// twice as much as is called little; it is not taken and dropped in turns.
func (n *Node) keepBallast() {
	free, ok := n.space.left()
	b := &n.space.ballast
	if !ok || free < 2*spaceLow || b.held() || !b.taking.CompareAndSwap(false, true) {
		return
	}
	if !n.spawn(func() {
		defer b.taking.Store(false)
		if err := b.take(); err != nil {
			n.log.Warn("no room is kept for a full disk", "err", err)
		}
	}) {
		b.taking.Store(false)
	}
}
