package node

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"time"

	"muster/board"
)

// gossipLife is how old a key of gossip gets before the leader makes another.
const gossipLife = 30 * 24 * time.Hour

// rotateGossip gives gossip another key when its time has come, or at once when a
// machine that was removed knows it; it says when to look again. A machine that was
// away finds the key in the state: Raft and the greetings do not need it.
func (l *leading) rotateGossip(ctx context.Context) (time.Duration, error) {
	var f *board.Fleet
	listed := map[string]bool{}
	if err := l.n.store.View(func(v board.View) error {
		f = board.GetFleet(v)
		board.EachNode(v, func(n *board.Node) bool { listed[n.ID] = true; return true })
		return nil
	}); err != nil || f == nil || len(f.Gossip) == 0 {
		return gossipLife, err
	}
	age := time.Duration(l.n.store.BoardTime()-max(f.GossipAt, f.Created)) * time.Millisecond
	if !f.GossipStale && age < gossipLife {
		return gossipLife - age, nil
	}
	for _, s := range l.n.store.Servers() {
		if !listed[nodeOf(s.ID)] { // Raft would bring it the key
			return lookAgain, nil
		}
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	args, err := json.Marshal(board.GossipRotate{Key: key, At: f.GossipAt})
	if err != nil {
		return gossipLife, err
	}
	if res := l.n.lead(ctx, board.Request{Actor: board.Platform(), Verb: board.VGossip, Args: args}); res.Err != nil {
		return gossipLife, res.Err
	}
	l.n.log.Info("gossip has another key", "removed", f.GossipStale, "age", age)
	return gossipLife, nil
}

// gossipKeys are those that count, the one to encrypt with first.
func (n *Node) gossipKeys() [][]byte {
	var keys [][]byte
	if k := n.gossip.Load(); k != nil {
		keys = append(keys, *k)
	}
	if k := n.gossipOld.Load(); k != nil && len(*k) > 0 && len(keys) > 0 {
		keys = append(keys, *k)
	}
	return keys
}

// readGossip takes the keys of the state; a change is told to the mesh at once.
func (n *Node) readGossip(f *board.Fleet) {
	if len(f.Gossip) == 0 {
		return
	}
	n.gossipOld.Store(&f.GossipOld)
	if k := n.gossip.Swap(&f.Gossip); k == nil || string(*k) != string(f.Gossip) {
		n.mesh.Kick()
	}
}
