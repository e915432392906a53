package node

import (
	"context"
)

// leaderNode is the node id of who leads, "" when nobody is known to.
func (n *Node) leaderNode() string {
	if server, _ := n.store.Leader(); server != "" {
		return nodeOf(server)
	}
	if h := n.hint.Load(); h != nil { // a node that Raft does not know yet learns it from its peers
		return *h
	}
	return ""
}

// leads tells whether Raft says that this node leads; its executor may not be ready yet.
func (n *Node) leads() bool { return n.leaderNode() == string(n.ident.ID) }

func nodeOf(server string) string {
	for i := range server {
		if server[i] == '/' {
			return server[:i]
		}
	}
	return server
}

// leaderChanged is closed at the next change of leader or of its readiness.
func (n *Node) leaderChanged() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.leadCh
}

// watchLeader turns the store's one signal into one for everybody.
func (n *Node) watchLeader(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-n.store.LeaderChanged():
		}
		n.mu.Lock()
		close(n.leadCh)
		n.leadCh = make(chan struct{})
		n.mu.Unlock()
		n.launch.LeaderChanged()
	}
}
