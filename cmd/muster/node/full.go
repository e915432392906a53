package node

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"muster/board"
)

// A disk without any room. What could not be written has failed the store or the
// journal, and nothing that failed is written to again by this process: it stops
// acting, keeps its doors open for reading, and starts anew by itself when there
// is room. Others lead meanwhile; its sessions go on under their lease.

// fullAgain is when a node starts anew whose disk has room and which yet could not write: what is short is not bytes
// (files, a quota), and nothing tells when there is more.
const fullAgain = 10 * time.Second

// isFull tells of a failure that room on the disk would have prevented.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// noRoom is what a node without room on its disk answers to whoever wants something written.
func (n *Node) noRoom() *board.Error {
	return board.Errorf(board.Unavailable, "NOSPACE: the disk of %s is full (%s): it answers what it has, and writes nothing until there is room", n.cfg.Name, n.cfg.Data).
		WithCheck(checkSpace).WithHint("free %d MB there: it goes on by itself; or ask another node", spaceBack>>20)
}

// AwaitRoom is called after [Node.Done]. When the node stopped because its disk is full it
// answers reads until there is room, and asks to be started anew ([Node.Again]); the node's
// end is no failure then. It also returns when ctx ends or somebody tells the node to
// stop. Of a node that stopped for another reason it does nothing.
func (n *Node) AwaitRoom(ctx context.Context) {
	if !n.full.Load() {
		return
	}
	gave := n.space.release()
	n.warn("NOSPACE: the disk of %s is full (%s): it answers what it has, writes nothing, and goes on by itself when %d MB are free there; its sessions go on under their lease", n.cfg.Name, n.cfg.Data, spaceBack>>20)
	pause := spaceLook
	if free, ok := n.space.left(); ok && free >= spaceBack && !gave {
		pause = fullAgain
	}
	for lasts := false; ; { // room that whoever fills the disk takes at once is none
		select {
		case <-ctx.Done():
		case <-n.asked:
		case <-time.After(pause):
			free, ok := n.space.left()
			room := !ok || free >= spaceBack
			if !room || !lasts {
				pause, lasts = spaceLook, room
				continue
			}
			n.again.Store(true)
		}
		break
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.err = nil
}

// roomToStart waits until there is what a start needs: what is half written would be worse than what is late. A folder
// that is not a node's yet is refused at once.
func (n *Node) roomToStart(ctx context.Context) error {
	known, err := n.dir.has("node.json")
	if err != nil {
		return err
	}
	if free, ok := n.space.left(); ok && free < spaceBack {
		n.space.release()
	}
	for told := false; ; told = true {
		free, ok := n.space.left()
		if !ok || free >= spaceBack {
			return nil
		}
		text := fmt.Sprintf("NOSPACE: %d MB are left on the disk of %s; a node needs %d MB there to start", free>>20, n.cfg.Data, spaceBack>>20)
		if !known {
			return errors.New(text + ": free some, or give another folder with --data; nothing was begun")
		}
		if !told {
			n.cfg.Progress(text + ": it waits for them")
		}
		select {
		case <-ctx.Done():
			return errors.New(text)
		case <-time.After(spaceLook):
		}
	}
}
