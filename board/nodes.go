package board

import (
	"fmt"
	"slices"
	"strings"
)

// fleetInit makes a fleet of one: the node that says it, as the voter, and the board `default`.
func fleetInit(t *tx) (any, *Error) {
	a, err := args[FleetInit](t)
	if err != nil {
		return nil, err
	}
	if GetFleet(t) != nil {
		return nil, Errorf(Conflict, "this state already holds a fleet")
	}
	if a.ID == "" || a.EraTag == "" || a.Node.ID == "" {
		return nil, Errorf(Invalid, "a fleet needs an id, an era and a node")
	}
	if err := t.checkNode(&a.Node); err != nil {
		return nil, err
	}
	t.putFleet(&Fleet{ID: a.ID, Name: a.Name, Era: 1, EraTag: a.EraTag, Format: 1, Created: t.env.Now, Gossip: a.Gossip})
	n := &Node{ID: a.Node.ID, Key: a.Node.Key, Role: RoleVoter, Local: "manager", Joined: t.env.Now}
	t.fillNode(n, &a.Node)
	n.Generation, n.StartID = 1, a.Node.Start
	t.putNode(n)
	t.event(nil, Event{Kind: "fleet_made", Payload: jsonOf(map[string]any{"node": n.Name})})
	if _, err := t.makeBoard(BoardCreate{Slug: "default", Prefix: "d", Label: "Default"}); err != nil {
		return nil, err
	}
	return nil, nil
}

// fillNode copies what a node says of itself.
func (t *tx) fillNode(n *Node, u *NodeUp) {
	n.Name, n.Addrs, n.Store, n.Journal = u.Name, u.Addrs, u.Store, u.Journal
	n.Tools, n.Harnesses, n.Slots = u.Tools, u.Harnesses, u.Slots
	n.Battery, n.OS, n.Arch, n.Version, n.MemoryMB = u.Battery, u.OS, u.Arch, u.Version, u.MemoryMB
	n.NoVote, n.Panes = n.NoVote || u.Replica, u.Panes
	n.label(u.Labels)
	n.Started, n.State, n.OfflineSince = t.env.Now, NodeOnline, 0
}

func (t *tx) checkNode(u *NodeUp) *Error {
	if err := CheckNodeName(u.Name); err != nil {
		return err
	}
	if u.Slots < 0 || u.Slots > 10_000 || len(u.Labels) > maxLabels || len(u.Addrs) > 16 {
		return Errorf(Invalid, "node %s says more of itself than is sensible", u.Name)
	}
	if err := checkLabels(u.Name, u.Labels); err != nil {
		return err
	}
	var other *Node
	EachNode(t, func(n *Node) bool {
		if n.Name == u.Name && n.ID != u.ID {
			other = n
		}
		return other == nil
	})
	if other != nil {
		return Errorf(Conflict, "the name %q is taken by another machine of this fleet (node %s)", u.Name, other.ID[:8]).WithHint("give another with --name")
	}
	return nil
}

// CheckNodeName refuses what cannot be the name of a machine.
func CheckNodeName(s string) *Error {
	if !validName(s, 63) {
		return Errorf(Invalid, "node name %q: use letters, digits, dots, dashes and underscores, at most 63, and a letter or digit first", clip(s, 70)).WithHint("give another with --name")
	}
	return nil
}

func validName(s string, most int) bool {
	if s == "" || len(s) > most {
		return false
	}
	for i, r := range s {
		ok := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || i > 0 && strings.ContainsRune(".-_", r)
		if !ok {
			return false
		}
	}
	return true
}

// nodeJoin adds a machine to the node list, which is the trust, by a token of role node.
func nodeJoin(t *tx) (any, *Error) {
	a, err := args[NodeJoin](t)
	if err != nil {
		return nil, err
	}
	k := GetToken(t, HashSecret(a.Secret))
	switch {
	case k == nil:
		return nil, Errorf(Refused, "this token is not known here: it was revoked, used up, or is of another fleet").WithHint("make a new one on a node of the fleet: muster token create")
	case k.Expires != 0 && k.Expires < t.env.Now:
		return nil, Errorf(Refused, "this token ended").WithHint("make a new one on a node of the fleet: muster token create")
	case k.Role != "node":
		return nil, Errorf(Refused, "this token is for the role %q, not for joining", k.Role).WithHint("make one with: muster token create")
	}
	if err := t.checkNode(&a.Node); err != nil {
		return nil, err
	}
	n := GetNode(t, a.Node.ID)
	if n == nil {
		n = &Node{ID: a.Node.ID, Key: a.Node.Key, Role: RoleReplica, Local: orElse(k.Local, "manager"), Joined: t.env.Now}
	}
	gen := n.Generation
	t.fillNode(n, &a.Node)
	n.Generation = gen
	t.putNode(n)
	if k.Uses > 0 {
		if k.Uses--; k.Uses == 0 {
			t.del(TToken, k.ID)
		} else {
			t.putToken(k)
		}
	}
	t.event(nil, Event{Kind: "node_joined", Payload: jsonOf(map[string]any{"node": n.Name, "id": n.ID})})
	return map[string]any{"generation": n.Generation, "fleet": GetFleet(t).ID}, nil
}

// nodeUp commits a start of a node: its generation rises by compare-and-set, so
// that a copied or rolled back folder is found (invariant 15).
func nodeUp(t *tx) (any, *Error) {
	a, err := args[NodeUp](t)
	if err != nil {
		return nil, err
	}
	n := GetNode(t, a.ID)
	switch {
	case a.ID != t.req.Actor.Node:
		return nil, Errorf(Refused, "a node speaks for itself only")
	case n == nil:
		return nil, Errorf(Refused, "node %s is not in the fleet's list", a.ID).WithHint("join again with: muster join TOKEN")
	case n.Generation == a.Generation+1 && a.Start != "" && n.StartID == a.Start:
		return map[string]any{"generation": n.Generation}, nil // the answer of this very start was lost
	case n.Generation != a.Generation:
		return nil, Errorf(Conflict, "this data folder is at start %d of node %s, the fleet knows %d: it is an old copy, or runs twice", a.Generation, n.Name, n.Generation).
			WithCheck("generation").WithHint("use the newest folder, or join as a new machine with an empty one")
	}
	if err := t.checkNode(&a); err != nil {
		return nil, err
	}
	t.fillNode(n, &a)
	n.Generation++
	n.StartID = a.Start
	t.putNode(n)
	t.event(nil, Event{Kind: "node_up", Payload: jsonOf(map[string]any{"node": n.Name, "generation": n.Generation})})
	return map[string]any{"generation": n.Generation}, nil
}

// nodeUpdate stores a node's new addresses.
func nodeUpdate(t *tx) (any, *Error) {
	a, err := args[NodeUpdate](t)
	if err != nil {
		return nil, err
	}
	n := GetNode(t, a.ID)
	if n == nil || a.ID != t.req.Actor.Node {
		return nil, Errorf(Refused, "a node of the list speaks for itself only")
	}
	if len(a.Addrs) > 16 {
		return nil, Errorf(Invalid, "more than 16 addresses")
	}
	if slices.Equal(n.Addrs, a.Addrs) {
		return nil, nil
	}
	n.Addrs = a.Addrs
	t.putNode(n)
	return nil, nil
}

// nodeRole records what Raft's configuration says.
func nodeRole(t *tx) (any, *Error) {
	a, err := args[NodeRole](t)
	if err != nil {
		return nil, err
	}
	n := GetNode(t, a.Node)
	if n == nil {
		return nil, Errorf(NotFound, "no node %s", a.Node)
	}
	if a.Role != RoleVoter && a.Role != RoleReplica {
		return nil, Errorf(Invalid, "node role %q", a.Role)
	}
	if n.Role == a.Role {
		return nil, nil
	}
	n.Role = a.Role
	t.putNode(n)
	t.event(nil, Event{Kind: "node_role", Payload: jsonOf(map[string]any{"node": n.Name, "role": a.Role})})
	return nil, nil
}

// nodeState records that the leader saw a node come or go: only changes are
// written (M-10), and offline_since is set once and kept (SUP-15).
func nodeState(t *tx) (any, *Error) {
	a, err := args[NodeState](t)
	if err != nil {
		return nil, err
	}
	n := GetNode(t, a.Node)
	if n == nil {
		return nil, Errorf(NotFound, "no node %s", a.Node)
	}
	if a.State != NodeOnline && a.State != NodeOffline {
		return nil, Errorf(Invalid, "node state %q", a.State)
	}
	if n.State == a.State {
		return nil, nil
	}
	if a.State == NodeOnline {
		t.backOnline(n)
	}
	n.State, n.OfflineSince = a.State, 0
	if a.State == NodeOffline {
		n.OfflineSince = t.env.Now - max(a.Ago, 0)
	}
	t.putNode(n)
	t.event(nil, Event{Kind: "node_" + a.State, Payload: jsonOf(map[string]any{"node": n.Name, "ago_s": a.Ago / 1000})})
	return nil, nil
}

// tokenCreate stores a token by the hash of its secret: the secret itself never enters the state.
func tokenCreate(t *tx) (any, *Error) {
	a, err := args[TokenCreate](t)
	if err != nil {
		return nil, err
	}
	switch {
	case len(a.ID) != 64 || strings.Trim(a.ID, "0123456789abcdef") != "":
		return nil, Errorf(Invalid, "a token's id is the SHA-256 of its secret, in hex")
	case !slices.Contains([]string{"node", "manager", "member", "viewer"}, a.Role):
		return nil, Errorf(Invalid, "token role %q: use node, manager, member or viewer", clip(a.Role, 40))
	case !slices.Contains([]string{"", "manager", "member", "viewer", "none"}, a.Local):
		return nil, Errorf(Invalid, "--local %q: use manager, member, viewer or none", clip(a.Local, 40))
	case a.TTL < 0 || a.TTL > 366*24*3600 || a.Uses < 0 || a.Uses > 1_000_000:
		return nil, Errorf(Invalid, "a token lives at most a year and is used at most a million times")
	case GetToken(t, a.ID) != nil:
		return nil, Errorf(Conflict, "that token exists")
	}
	k := &Token{ID: a.ID, Role: a.Role, Local: a.Local, Made: t.env.Now, Uses: a.Uses, By: t.req.Actor}
	if a.TTL > 0 {
		k.Expires = t.env.Now + a.TTL*1000
		t.putDue(k.Expires, DueExpire, k.ID)
	}
	t.putToken(k)
	t.event(nil, Event{Kind: "token_made", Payload: jsonOf(map[string]any{"id": k.ID[:8], "role": k.Role})})
	return map[string]any{"id": k.ID[:8], "expires": k.Expires}, nil
}

// tokenRevoke ends a token by its id or the first characters of it.
func tokenRevoke(t *tx) (any, *Error) {
	a, err := args[TokenRevoke](t)
	if err != nil {
		return nil, err
	}
	var found []*Token
	EachToken(t, func(k *Token) bool {
		if len(a.ID) >= 4 && strings.HasPrefix(k.ID, a.ID) {
			found = append(found, k)
		}
		return true
	})
	if len(found) != 1 {
		return nil, Errorf(NotFound, "%d tokens begin with %q", len(found), clip(a.ID, 64)).WithHint("see: muster token list")
	}
	t.delDue(found[0].Expires, DueExpire, found[0].ID)
	t.del(TToken, found[0].ID)
	t.event(nil, Event{Kind: "token_revoked", Payload: jsonOf(map[string]any{"id": found[0].ID[:8]})})
	return map[string]any{"id": fmt.Sprint(found[0].ID[:8])}, nil
}
