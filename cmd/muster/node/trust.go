package node

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
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
		if f := board.GetFleet(v); f != nil {
			era := f.EraText()
			n.era.Store(&era)
			if len(f.Gossip) > 0 {
				n.gossip.Store(&f.Gossip)
			}
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
	n.keepPeers(list)
}

// keepPeers notes the node list and the gossip key beside the state: a node that has lost
// its state still knows whom to trust, and where they are (M-32).
func (n *Node) keepPeers(list []*board.Node) {
	var peers []peerID
	for _, x := range list {
		if x.ID != string(n.ident.ID) {
			peers = append(peers, peerID{ID: x.ID, Addrs: x.Addrs})
		}
	}
	var key []byte
	if k := n.gossip.Load(); k != nil {
		key = *k
	}
	n.memMu.Lock()
	same := slices.EqualFunc(peers, n.mem.Peers, func(a, b peerID) bool { return a.ID == b.ID && slices.Equal(a.Addrs, b.Addrs) }) && bytes.Equal(key, n.mem.Gossip)
	n.memMu.Unlock()
	if same {
		return
	}
	if err := n.remember(func(m *saved) { m.Peers, m.Gossip = peers, key }); err != nil {
		n.log.Warn("the node list could not be kept beside the state", "err", err)
	}
}

// greeting tells a peer the era of this node's state; a node without one says nothing.
func (n *Node) greeting() string {
	if e := n.era.Load(); e != nil {
		return *e
	}
	return ""
}

// checkGreeting refuses a peer of another era with the same number: two
// recoveries took place, and neither may speak for the fleet (architecture.md §6).
func (n *Node) checkGreeting(peer mesh.NodeID, text string) error {
	mine, _, _ := strings.Cut(n.greeting(), "-")
	theirs, _, _ := strings.Cut(text, "-")
	if n.greeting() == "" || text == "" || mine != theirs || n.greeting() == text {
		return nil
	}
	return fmt.Errorf("node %s is of another era %s of this fleet: it was recovered twice", peer, theirs)
}
