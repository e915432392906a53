package node

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
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
	own := false
	_ = n.store.View(func(v board.View) error {
		board.EachNode(v, func(x *board.Node) bool {
			m[mesh.NodeID(x.ID)] = true
			own = own || x.ID == string(n.ident.ID)
			list = append(list, x)
			return true
		})
		if f := board.GetFleet(v); f != nil {
			n.readFormat(v)
			era := f.EraText()
			n.era.Store(&era)
			n.readGossip(f)
		}
		return nil
	})
	if len(list) == 0 {
		return // nothing replicated yet: what joining told us stands
	}
	catching := n.trustNamed(m)
	n.trust.replace(m)
	if was := n.listed.Swap(own); was && !own { // it may catch up with a state in which it is listed again
		n.unlisted.Store(true)
		n.log.Warn("this machine was removed from the fleet's list: nobody speaks to it any more; to come back: muster join TOKEN", "node", n.cfg.Name)
	}
	for _, x := range list {
		if x.ID != string(n.ident.ID) && len(x.Addrs) > 0 {
			n.mesh.SetPeer(mesh.NodeID(x.ID), x.Addrs...)
		}
	}
	n.mesh.Recheck()
	if catching {
		return
	}
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
	same := n.mem.Era == n.greeting() && slices.EqualFunc(peers, n.mem.Peers, func(a, b peerID) bool { return a.ID == b.ID && slices.Equal(a.Addrs, b.Addrs) }) && bytes.Equal(key, n.mem.Gossip)
	n.memMu.Unlock()
	if same {
		return
	}
	if err := n.remember(func(m *saved) { m.Peers, m.Gossip, m.Era = peers, key, n.greeting() }); err != nil {
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

// checkGreeting refuses a peer of another era (architecture.md §6). One of a later
// era says that the fleet was recovered without this node: when no leader has answered
// for long, what it has is set aside and fetched anew, whatever it had applied. Equal numbers with different halves are
// two recoveries, and neither may speak for the fleet: both are told.
func (n *Node) checkGreeting(peer mesh.NodeID, text string) error {
	own := n.greeting()
	if own == "" || text == "" || own == text {
		return nil
	}
	mine, _, _ := strings.Cut(own, "-")
	theirs, _, _ := strings.Cut(text, "-")
	a, err1 := strconv.ParseUint(mine, 10, 64)
	b, err2 := strconv.ParseUint(theirs, 10, 64)
	switch {
	case err1 != nil || err2 != nil || len(text) > 100:
		return fmt.Errorf("node %s says that its era is %q", peer, clipText(text, 40))
	case b > a:
		return n.later(peer, b, a)
	case b < a:
		return fmt.Errorf("node %s is of era %d, which is over: the fleet was recovered (era %d), and that node takes this era when no leader answers it any more", peer, b, a)
	}
	err := fmt.Errorf("node %s is of another era %s of this fleet (this one is of %s): it was recovered twice", peer, text, own)
	if _, told := n.otherEra.LoadOrStore(text, true); !told {
		n.warn("%v; one of the two must go: stop it, move its data folder away, and join it to the other with a token", err)
	}
	return err
}

func clipText(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}

// outdated ends this process once, and the next begins without what the fleet
// was recovered from; it is kept beside it.
func (n *Node) outdated(peer mesh.NodeID, theirs, mine uint64) {
	if !n.over.CompareAndSwap(false, true) {
		return
	}
	n.log.Error("the fleet was recovered without this node: fetching the state anew", "peer", peer, "era", theirs, "own", mine)
	n.spawn(func() {
		n.anew(func(m *saved) {
			m.Refetch = fmt.Sprintf("the fleet was recovered without it (era %d; this was of era %d)", theirs, mine)
		})
	})
}
