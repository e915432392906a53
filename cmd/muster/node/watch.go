package node

import (
	"context"
	"time"

	"muster/board"
	"muster/mesh"
	"muster/raftstore"
)

func (n *Node) watchNodes(ctx context.Context) error {
	sub := n.store.Subscribe(func(t board.Table, _ string) bool { return t == board.TNode || t == board.TFleet })
	defer sub.Close()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-sub.C:
			if keys, all := sub.Take(); all || touches(keys, board.TNode, board.FleetKey) {
				n.readNodes()
			}
		}
	}
}

// touches tells whether keys hold one of a table, or a certain key of the fleet's.
func touches(keys []raftstore.Key, t board.Table, fleetKey string) bool {
	for _, k := range keys {
		if k.Table == t || k.Table == board.TFleet && k.Key == fleetKey {
			return true
		}
	}
	return false
}

// watchOrders wakes the launcher when an order of this node has changed in the
// applied state.
func (n *Node) watchOrders(ctx context.Context) error {
	mine := string(n.ident.ID) + "/"
	sub := n.store.Subscribe(func(t board.Table, key string) bool {
		return t == board.TOrder && len(key) > len(mine) && key[:len(mine)] == mine
	})
	defer sub.Close()
	for {
		n.launch.Wake()
		n.setShortest()
		select {
		case <-ctx.Done():
			return nil
		case <-sub.C:
			sub.Take()
		}
	}
}

// setShortest looks up the shortest lease of this node's runs: contacts come
// three times as often.
func (n *Node) setShortest() {
	var shortest time.Duration
	_ = n.store.View(func(v board.View) error {
		board.EachHeld(v, "", func(h *board.Held) bool {
			if d := time.Duration(h.Lease) * time.Millisecond; h.Node == string(n.ident.ID) && d > 0 && (shortest == 0 || d < shortest) {
				shortest = d
			}
			return true
		})
		return nil
	})
	n.mu.Lock()
	less := shortest > 0 && (n.shortest == 0 || shortest < n.shortest)
	n.shortest = shortest
	n.mu.Unlock()
	if less {
		n.pokeContact()
	}
}

// watchSleep makes contact and rejoins before anything else after the machine slept.
func (n *Node) watchSleep(ctx context.Context) error {
	for g := range mesh.WatchSleep(ctx) {
		n.log.Info("woke", "slept", g.Slept, "stalled", g.Stalled)
		n.mesh.Kick()
		n.pokeContact()
	}
	return nil
}
