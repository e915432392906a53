package node

import (
	"context"
	"fmt"
	"time"

	"muster/board"
	"muster/mesh"
)

// rejoinTime bounds the introduction of a folder that knows its fleet: it can go on without.
const rejoinTime = 10 * time.Second

// rejoin introduces a folder of this fleet anew (architecture.md §6): when nobody that it
// knew is left where it knew them, the token says where to ask. Who is still in the node list
// needs no more than its key; who was removed is let in by the token, and fetches the state.
func (n *Node) rejoin(ctx context.Context) error {
	tok, err := ParseToken(n.cfg.Token)
	switch {
	case board.CodeOf(err) == board.Refused: // it has ended; a unit file may name it for ever
		n.cfg.Progress("this folder belongs to a fleet already; the token has ended and is not needed")
		return nil
	case err != nil:
		return err
	case tok.Role != "node":
		return board.Errorf(board.Invalid, "this token is for the role %q, not for joining", tok.Role).WithHint("make one with: muster token create")
	case tok.Fleet != n.mem.Fleet:
		return board.Errorf(board.Refused, "data folder %s is of fleet %s, and the token of fleet %s; nothing was changed", n.cfg.Data, short(n.mem.Fleet), short(tok.Fleet)).
			WithHint("to join that fleet as a new machine give an empty folder: --data DIR")
	}
	ctx, cancel := context.WithTimeout(ctx, rejoinTime)
	defer cancel()
	up, err := n.about()
	if err != nil {
		return err
	}
	up.Addrs = []string{orElse(n.cfg.Advertise, n.cfg.Listen)}
	ans, err := n.askIn(ctx, tok, joinMsg{Secret: tok.Secret, Node: up, Again: true})
	switch {
	case board.CodeOf(err) == board.Refused, board.CodeOf(err) == board.Conflict:
		return err
	case err != nil:
		n.cfg.Progress(fmt.Sprintf("no node that the token names answers (%v); going on with those this folder knows", err))
		return nil
	}
	n.mem.Gossip, n.mem.Peers = ans.Gossip, ans.Nodes
	n.named.Store(&ans.Nodes)
	if ans.Listed {
		n.cfg.Progress("this machine is in the fleet's list: it comes back as it was")
		return n.dir.save(n.mem)
	}
	n.cfg.Progress("this machine had been removed: it comes back under its own id")
	n.mem.Generation, n.mem.Start = ans.Generation, random(9)
	n.mem.Refetch = "it was out of the fleet" // what it held may be of before its removal
	return n.dir.save(n.mem)
}

func short(id string) string { return id[:min(len(id), 8)] }

// trustNamed adds the nodes that a rejoin has named to those of the state, until this node
// has caught up with it: a folder's own state may be months old, and know none of them.
func (n *Node) trustNamed(set map[mesh.NodeID]bool) (catching bool) {
	named := n.named.Load()
	if named == nil {
		return false
	}
	for _, p := range *named {
		set[mesh.NodeID(p.ID)] = true
		if p.ID != string(n.ident.ID) {
			n.mesh.Learn(mesh.NodeID(p.ID), p.Addrs...)
		}
	}
	return true
}

// caughtUp ends what a rejoin has said: from now on the node list of the state is all there is.
func (n *Node) caughtUp() {
	if n.named.Swap(nil) != nil {
		n.readNodes()
	}
}
