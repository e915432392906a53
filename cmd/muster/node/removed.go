package node

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"muster/board"
	"muster/mesh"
)

// A machine that was removed is spoken to by nobody any more (architecture.md §6), so that
// its own state never says why. Who is refused by a peer asks at that peer's door.

// listedAns is what a door says of the key that was shown to it. Live: it follows a leader, so
// that its list is not an old one.
type listedAns struct {
	Fleet  string `json:"fleet"`
	Node   string `json:"node"`
	Listed bool   `json:"listed"`
	Live   bool   `json:"live"`
}

// serveListed tells a machine whether its own key is in the list, and nothing of others.
func (n *Node) serveListed(w http.ResponseWriter, r *http.Request) {
	peer, shown := r.Context().Value(peerKey{}).(mesh.NodeID)
	if !shown {
		http.Error(w, "a machine asks by showing its own key", http.StatusForbidden)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"v": 1, "data": listedAns{Fleet: n.mem.Fleet, Node: n.cfg.Name, Listed: n.trust.has(peer), Live: n.leaderNode() != "" && n.removed.Load() == nil}})
}

// askListed asks a peer that refused this node whether it was removed. A node whose own
// state has never listed it has just come, and asks nobody.
func (n *Node) askListed(ctx context.Context, peer mesh.NodeID) {
	if !n.listed.Load() && !n.unlisted.Load() {
		return
	}
	n.memMu.Lock()
	known := slices.Clone(n.mem.Peers)
	n.memMu.Unlock()
	var addrs []string
	for _, p := range known {
		if p.ID == string(peer) {
			addrs = p.Addrs
		}
	}
	for _, addr := range addrs {
		conn, err := n.dialDoor(ctx, addr, func(got mesh.NodeID) error {
			if got != peer {
				return board.Errorf(board.Refused, "another node answers at %s", addr)
			}
			return nil
		})
		if err != nil {
			continue
		}
		var ans listedAns
		err = postDoor(ctx, conn, "listed", struct{}{}, &ans)
		conn.Close()
		if err == nil && ans.Fleet == n.mem.Fleet && ans.Live {
			n.wasRemoved(!ans.Listed, ans.Node)
			return
		}
	}
}

// wasRemoved notes, or takes back, that this machine is out of the fleet; by is who said so.
func (n *Node) wasRemoved(out bool, by string) {
	if !out {
		n.removed.Store(nil)
		return
	}
	text := "this machine was removed from the fleet (" + by + " says so): nobody speaks to it any more, and what it shows is old; to come back: muster stop, then muster join - with a token of the fleet"
	if n.removed.Swap(&text) == nil {
		n.log.Error(text)
	}
}

// unlessRemoved refuses the calls of tokens on a machine that is out: what it knows of tokens is old.
func (n *Node) unlessRemoved(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := n.removed.Load()
		if text == nil {
			h.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(map[string]any{"v": 1, "error": board.Errorf(board.Refused, "%s", *text).WithHint("call another node of the fleet")})
	})
}
