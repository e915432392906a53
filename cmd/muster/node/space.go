package node

import (
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"muster/board"
)

// The quota of the disk (architecture.md §2 "Bounds", §7): it is looked at before a
// request is executed, so that a disk is never filled by what was acknowledged.
// What ends things passes: reports, verdicts, acknowledgements, events.
const (
	spaceLow  = 64 << 20        // bytes free below which nothing new is taken
	spaceLook = 1 * time.Second // how long one look at the disk holds
)

// grows are the verbs that only make the state larger.
var grows = []string{board.VCardAdd, board.VCardEdit, board.VBoardCreate, board.VBoardApply, board.VStart, board.VNodeJoin, board.VTokenCreate,
	board.VImportBegin, board.VImportSlice}

// space remembers the last look at a disk. Safe for concurrent use.
type space struct {
	dir  string
	look func(dir string) (free int64, err error) // nil: the disk's own word

	mu   sync.Mutex
	at   time.Time
	free int64
	err  error
}

// diskFree is what a user may still write where dir is, in bytes.
func diskFree(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}

// left is what is free on the disk, in bytes; false when nobody can tell.
func (s *space) left() (int64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.at) >= spaceLook {
		look := s.look
		if look == nil {
			look = diskFree
		}
		s.free, s.err = look(s.dir)
		s.at = time.Now()
	}
	return s.free, s.err == nil
}

// refuse says no, in the name of this node, to what would only make the state larger while space is low.
func (s *space) refuse(name, verb string) *board.Error {
	if !slices.Contains(grows, verb) {
		return nil
	}
	if free, ok := s.left(); ok && free < spaceLow {
		return board.Errorf(board.Exhausted, "NOSPACE: %d MB are left on the leader's disk (%s, %s): nothing new is taken, running work goes on", free>>20, name, s.dir).
			WithCheck("nospace").WithHint("free space there, then ask again")
	}
	return nil
}
