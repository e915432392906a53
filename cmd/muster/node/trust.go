package node

import (
	"sync/atomic"

	"muster/board"
	"muster/mesh"
)

// trust is the committed node list as a set that may be asked from anywhere, at
// once (architecture.md §6). Until a state is here it is what the join answer said.
type trust struct {
	set atomic.Pointer[map[mesh.NodeID]bool]
}

func (t *trust) has(id mesh.NodeID) bool {
	m := t.set.Load()
	return m != nil && (*m)[id]
}

func (t *trust) replace(m map[mesh.NodeID]bool) { t.set.Store(&m) }

// readNodes takes the node list from the state: who is trusted, and where they are.
func (n *Node) readNodes() {
	m := map[mesh.NodeID]bool{n.ident.ID: true}
	var list []*board.Node
	_ = n.store.View(func(v board.View) error {
		board.EachNode(v, func(x *board.Node) bool {
			m[mesh.NodeID(x.ID)] = true
			list = append(list, x)
			return true
		})
		if f := board.GetFleet(v); f != nil && len(f.Gossip) > 0 {
			n.gossip.Store(&f.Gossip)
		}
		return nil
	})
	if len(list) == 0 {
		return // nothing replicated yet: what joining told us stands
	}
	n.trust.replace(m)
	for _, x := range list {
		if x.ID != string(n.ident.ID) && len(x.Addrs) > 0 {
			n.mesh.SetPeer(mesh.NodeID(x.ID), x.Addrs...)
		}
	}
	n.mesh.Recheck()
}
