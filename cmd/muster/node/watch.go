package node

import (
	"context"
	"slices"
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
// applied state, and follows the leases of this node's sessions.
func (n *Node) watchOrders(ctx context.Context) error {
	mine := string(n.ident.ID) + "/"
	sub := n.store.Subscribe(func(t board.Table, key string) bool {
		return t == board.THeld || t == board.TOrder && len(key) > len(mine) && key[:len(mine)] == mine
	})
	defer sub.Close()
	leases := leaseTable{}
	keys, all := []raftstore.Key(nil), true
	for {
		if all || slices.ContainsFunc(keys, func(k raftstore.Key) bool { return k.Table == board.TOrder }) {
			n.launch.Wake()
		}
		n.setShortest(leases, keys, all)
		select {
		case <-ctx.Done():
			return nil
		case <-sub.C:
			keys, all = sub.Take()
		}
	}
}

// leaseTable are the leases of this node's sessions, by run.
type leaseTable map[string]time.Duration

// setShortest takes changed sessions into the table and notes the shortest lease:
// contacts come three times as often.
func (n *Node) setShortest(leases leaseTable, changed []raftstore.Key, all bool) {
	set := func(run string, h *board.Held) {
		if h == nil || h.Node != string(n.ident.ID) || h.Lease <= 0 {
			delete(leases, run)
			return
		}
		leases[run] = time.Duration(h.Lease) * time.Millisecond
	}
	_ = n.store.View(func(v board.View) error {
		if all {
			clear(leases)
			board.EachHeld(v, "", func(h *board.Held) bool { set(h.Run, h); return true })
		}
		for _, k := range changed {
			if k.Table == board.THeld {
				set(k.Key, board.GetHeld(v, k.Key))
			}
		}
		return nil
	})
	var shortest time.Duration
	for _, d := range leases {
		if shortest == 0 || d < shortest {
			shortest = d
		}
	}
	n.mu.Lock()
	less := shortest > 0 && (n.shortest == 0 || shortest < n.shortest)
	n.shortest = shortest
	n.mu.Unlock()
	if less {
		n.pokeContact()
	}
}

func (n *Node) sleeps(ctx context.Context) <-chan mesh.Gap {
	if n.cfg.Seams.Awake != nil {
		return mesh.WatchSleepBy(ctx, n.cfg.Boot, n.cfg.Seams.Awake)
	}
	return mesh.WatchSleep(ctx)
}

// watchSleep makes contact and rejoins before anything else after the machine slept.
func (n *Node) watchSleep(ctx context.Context) error {
	for g := range n.sleeps(ctx) {
		n.log.Info("woke", "slept", g.Slept, "stalled", g.Stalled)
		n.mesh.Kick()
		n.pokeContact()
	}
	return nil
}
