package board

import (
	"slices"
	"strings"
)

// nodeVote is a person's word about who votes; it overrides the rule of batteries
// (M-36), never the count. The answer says what it comes to.
func nodeVote(t *tx) (any, *Error) {
	a, err := args[NodeVote](t)
	if err != nil {
		return nil, err
	}
	n, err := FindNode(t, a.Node)
	if err != nil {
		return nil, err
	}
	var all []*Node
	EachNode(t, func(o *Node) bool { all = append(all, o); return true })
	others := slices.ContainsFunc(all, func(o *Node) bool { return o.ID != n.ID && o.Role == RoleVoter })
	if !a.Vote && n.Role == RoleVoter && !others {
		return nil, Errorf(Refused, "%s is the only voter; the fleet would lose its state", n.Name).WithHint("promote another first: muster node promote N")
	}
	n.Vote, n.NoVote = a.Vote, !a.Vote
	t.putNode(n)
	t.event(nil, Event{Kind: "node_vote", Payload: jsonOf(map[string]any{"node": n.Name, "vote": a.Vote})})
	for i, o := range all {
		if o.ID == n.ID {
			all[i] = n
		}
	}
	now, soon := votersSoon(all)
	return map[string]any{"node": n.ID, "role": n.Role, "voters": now, "voters_soon": soon}, nil
}

// votersSoon is how many nodes vote, and how many will once the leader has done
// what the node list wants (architecture.md §6): 1, 3 or 5, as far as there are
// machines that may. A node that is offline is not counted on.
func votersSoon(nodes []*Node) (now, soon int) {
	ready, byHand := 0, 0
	for _, n := range nodes {
		switch {
		case n.Role == RoleVoter:
			now++
			if !n.NoVote {
				soon++
			}
		case n.State == NodeOnline && !n.NoVote && (!n.Battery || n.Vote):
			ready++
			if n.Vote {
				byHand++
			}
		}
	}
	switch {
	case soon <= 2 && soon+ready >= 3:
		soon, byHand = 3, byHand-(3-soon)
	case soon <= 2:
		return now, 1
	}
	if soon == 3 && byHand >= 2 || soon == 4 && ready >= 1 {
		return now, 5
	}
	return now, soon
}

// nodeSet changes what a node's list entry says of it: what users of its own socket may do.
func nodeSet(t *tx) (any, *Error) {
	a, err := args[NodeSet](t)
	if err != nil {
		return nil, err
	}
	n, err := FindNode(t, a.Node)
	if err != nil {
		return nil, err
	}
	roles := []string{"manager", "member", "viewer", "none"}
	if !slices.Contains(roles, a.Local) {
		return nil, Errorf(Invalid, "local=%s: users of a node's socket are %s", clip(a.Local, 40), strings.Join(roles, ", "))
	}
	manages := a.Local == "manager"
	EachNode(t, func(o *Node) bool {
		manages = manages || o.ID != n.ID && o.State != NodeLeft && o.SocketRole() == "manager"
		return !manages
	})
	if !manages {
		return nil, Errorf(Refused, "%s is the only machine whose users may manage the fleet", n.Name).WithHint("let another do it first: muster node set N local=manager")
	}
	n.Local = a.Local
	t.putNode(n)
	t.event(nil, Event{Kind: "node_set", Payload: jsonOf(map[string]any{"node": n.Name, "local": n.Local})})
	return map[string]any{"node": n.ID}, nil
}
