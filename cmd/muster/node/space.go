package node

import (
	"fmt"
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
var grows = []string{board.VCardAdd, board.VCardEdit, board.VBoardCreate, board.VBoardApply, board.VStart, board.VNodeJoin, board.VTokenCreate}

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

// alarm is NOSPACE in words, "" while there is room (or nobody can tell).
func (s *space) alarm() string {
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
	if s.err != nil || s.free >= spaceLow {
		return ""
	}
	return fmt.Sprintf("NOSPACE: %d MB are left where %s is: nothing new is taken, running work goes on", s.free>>20, s.dir)
}

// refuse says no to what would only make the state larger while space is low.
func (s *space) refuse(verb string) *board.Error {
	if !slices.Contains(grows, verb) {
		return nil
	}
	if why := s.alarm(); why != "" {
		return board.Errorf(board.Exhausted, "%s", why).WithCheck("nospace").WithHint("free space on the leader's disk; then ask again")
	}
	return nil
}
