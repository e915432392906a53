package board

import (
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
	if a.Node.Local != "" && a.Node.Local != "manager" {
		return nil, Errorf(Refused, "the first machine of a fleet is where it is managed: its users cannot be limited to %q", a.Node.Local).WithHint("limit it when another machine has joined: muster node set N local=%s", a.Node.Local)
	}
	t.putFleet(&Fleet{ID: a.ID, Name: a.Name, Era: 1, EraTag: a.EraTag, Format: Format, Created: t.env.Now, Gossip: a.Gossip})
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
	n.NoVote, n.Panes, n.Format = n.NoVote || u.Replica, u.Panes, u.Format
	n.Boards, n.LocalMost = u.Boards, u.Local
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
	if err := checkOwn(u); err != nil {
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

// checkOwn refuses limits that a node cannot mean.
func checkOwn(u *NodeUp) *Error {
	switch u.Local {
	case "", "manager", "member", "viewer", "none":
	default:
		return Errorf(Invalid, "node %s: local %q: use manager, member, viewer or none", u.Name, clip(u.Local, 40))
	}
	if len(u.Boards) > 1000 || slices.ContainsFunc(u.Boards, func(s string) bool { return s == "" || len(s) > 100 }) {
		return Errorf(Invalid, "node %s: it names more boards than is sensible, or one without a name", u.Name)
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
// Who was let in and has not started yet may ask again, with its key: the token is used once.
func nodeJoin(t *tx) (any, *Error) {
	a, err := args[NodeJoin](t)
	if err != nil {
		return nil, err
	}
	n := GetNode(t, a.Node.ID)
	if n != nil && n.Generation == 0 && a.Node.ID == t.req.Actor.Node { // let in, and never started: the answer was lost on its way
		return map[string]any{"generation": n.Generation, "fleet": GetFleet(t).ID}, nil
	}
	k := GetToken(t, HashSecret(a.Secret))
	if err := k.usable(t.env.Now, "node"); err != nil {
		return nil, err
	}
	if err := t.checkNode(&a.Node); err != nil {
		return nil, err
	}
	if n == nil {
		n = &Node{ID: a.Node.ID, Key: a.Node.Key, Role: RoleReplica, Local: orElse(k.Local, "manager"), Joined: t.env.Now}
	}
	gen := n.Generation
	t.fillNode(n, &a.Node)
	n.Generation = gen
	t.putNode(n)
	t.useToken(k)
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
	case n.Generation != a.Generation && (n.Store != "" || GetFleet(t).Era == 1): // of who comes into a later era, its starts are not known
		return nil, Errorf(Conflict, "this data folder is at start %d of node %s, the fleet knows %d: it is an old copy, or runs twice", a.Generation, n.Name, n.Generation).
			WithCheck("generation").WithHint("use the newest folder, or join as a new machine with an empty one")
	}
	if err := t.checkNode(&a); err != nil {
		return nil, err
	}
	n.Generation = a.Generation + 1
	t.fillNode(n, &a)
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
