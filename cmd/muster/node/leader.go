package node

import (
	"context"
	"time"
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
	return n.leadership().Done()
}

// leadership ends at the next change of leader or of its readiness. What waits
// for an answer of who leads now is ended with it, without a goroutine of its own.
func (n *Node) leadership() context.Context {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.under
}

// under is ctx that ends with a leadership, too.
func under(ctx, lead context.Context, d time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithTimeout(ctx, d)
	stop := context.AfterFunc(lead, cancel)
	return ctx, func() { stop(); cancel() }
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
		end := n.underEnd
		n.under, n.underEnd = context.WithCancel(context.Background())
		n.mu.Unlock()
		end()
		n.launch.LeaderChanged()
	}
}
