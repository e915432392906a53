package node

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"muster/board"
	"muster/raftstore"
)

// The quota of the disk (architecture.md §2 "Bounds", §7): it is looked at before a
// request is executed, so that a disk is never filled by what was acknowledged.
// What ends or frees passes: reports, verdicts, acknowledgements, deletes. See
// ballast.go for what they are written on, full.go for a disk without any room.
const (
	spaceLow  = 64 << 20        // bytes free below which nothing new is taken
	spaceOut  = 8 << 20         // below which the ballast is given back
	spaceBack = 24 << 20        // what a start needs: a file of the log (16 MiB), some of the state and the journal
	spaceLook = 1 * time.Second // how long one look at the disk holds
)

// checkSpace is the check of a refusal for want of room on a disk.
const checkSpace = "nospace"

// grows are the verbs that make the state larger. What ends a run may carry a text as
// well, but frees more than it takes.
var grows = []string{board.VBoardCreate, board.VBoardApply, board.VBoardSet, board.VCardAdd, board.VCardEdit, board.VCardPut, board.VCardLink,
	board.VStart, board.VAdopt, board.VMove, board.VNodeJoin, board.VTokenCreate, board.VImportBegin, board.VImportSlice, board.VSend}

// growing tells whether a request only makes the state larger. Of an event that is
// a comment; what is turned off by a verb that also turns on frees.
func growing(req *board.Request) bool {
	var a struct {
		Event string `json:"event"`
		Off   bool   `json:"off"`
	}
	switch req.Verb {
	case board.VEvent:
		return json.Unmarshal(req.Args, &a) == nil && a.Event == "comment"
	case board.VSubscribe, board.VWebhook:
		return json.Unmarshal(req.Args, &a) == nil && !a.Off
	}
	return slices.Contains(grows, req.Verb)
}

// space remembers the last look at a disk. Safe for concurrent use.
type space struct {
	dir     string
	look    func() (free int64, err error) // nil: the disk's own word
	ballast ballast

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

// left is what is free on the disk, in bytes; false when nobody can tell. When it is
// nearly nothing, the ballast is given back first.
func (s *space) left() (int64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.at) >= spaceLook {
		s.see()
		if s.err == nil && s.free < spaceOut && s.ballast.drop() {
			s.see()
		}
	}
	return s.free, s.err == nil
}

// see looks at the disk; the caller holds the lock.
func (s *space) see() {
	look := s.look
	if look == nil {
		look = func() (int64, error) { return diskFree(s.dir) }
	}
	s.free, s.err = look()
	s.at = time.Now()
}

// release gives the ballast back now; false when there was none.
func (s *space) release() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.see()
	return s.ballast.drop()
}

// room says no, in the name of this node, to what only makes the state larger while space is low here,
// or on so many voters that no majority could store it.
func (n *Node) room(req *board.Request) *board.Error {
	free, ok := n.space.left() // also for what passes: it gives the ballast back
	here, short := ok && free < spaceLow, n.lease.short(n.store.Servers)
	switch { // what a request asks for is read only when it matters
	case !here && short == "" || !growing(req):
		return nil
	case here:
		return noSpace(fmt.Sprintf("%d MB are left on the leader's disk (%s, %s)", free>>20, n.cfg.Name, n.space.dir))
	}
	return noSpace("no majority of the voters has room to store it: " + short)
}

func noSpace(what string) *board.Error {
	return board.Errorf(board.Exhausted, "NOSPACE: %s: nothing new is taken, running work goes on", what).
		WithCheck(checkSpace).WithHint("free %d MB there, then ask again", spaceLow>>20)
}

// short names the voters whose disks are nearly full, by what they last said, when
// the others are no majority; "" when they are.
func (l *leading) short(servers func() []raftstore.Server) string {
	l.mu.Lock()
	var full map[string]int64 // most often nobody
	for id, r := range l.last {
		if r.NoSpace {
			if full == nil {
				full = map[string]int64{}
			}
			full[id] = r.DiskMB
		}
	}
	l.mu.Unlock()
	if len(full) == 0 {
		return ""
	}
	var ids []string
	voters := 0
	for _, s := range servers() {
		if !s.Voter {
			continue
		}
		voters++
		if _, ok := full[s.Node]; ok {
			ids = append(ids, s.Node)
		}
	}
	if voters-len(ids) > voters/2 {
		return ""
	}
	var said []string
	_ = l.n.store.View(func(v board.View) error {
		for _, id := range ids {
			name := id
			if n := board.GetNode(v, id); n != nil {
				name = n.Name
			}
			said = append(said, fmt.Sprintf("%d MB are left on %s", full[id], name))
		}
		return nil
	})
	slices.Sort(said)
	return strings.Join(said, ", ")
}
