package board

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// NodeRemove takes a machine out of the node list, which is the trust. Dead says, by a
// manager's word with Why, that its sessions are dead although nobody saw them end.
type NodeRemove struct {
	Node string `json:"node"`
	Dead bool   `json:"dead,omitempty"`
	Why  string `json:"why,omitempty"`
}

// GossipRotate gives gossip another key; At is when the one was made that it takes
// the place of, so that a request that comes twice rotates once.
type GossipRotate struct {
	Key []byte `json:"key"`
	At  int64  `json:"at"`
}

// maxBound is how many cards one removal may take off a machine.
const maxBound = 100

// nodeRemove revokes a machine's trust at its commit (architecture.md §6). What was
// bound to the machine goes on elsewhere; what stays behind on its disk is told.
func nodeRemove(t *tx) (any, *Error) {
	a, err := args[NodeRemove](t)
	if err != nil {
		return nil, err
	}
	n, err := FindNode(t, a.Node)
	if err != nil {
		return nil, err
	}
	if err := t.mayRemove(n, &a); err != nil {
		return nil, err
	}
	cards, err := t.boundTo(n)
	if err != nil {
		return nil, err
	}
	var left []string
	for _, id := range cards {
		left = append(left, t.untie(id, n, &a)...)
	}
	orders := t.dropOrders(n.ID, t.env.Seq+1)
	t.del(TNode, n.ID)
	if f := GetFleet(t); f != nil {
		f.GossipStale = true // it knows the key
		t.putFleet(f)
	}
	t.event(nil, Event{Kind: "node_removed", Payload: object("node", n.Name, "id", n.ID, "dead", a.Dead, "why", clip(a.Why, 500), "cards", cards, "left", clipList(left), "orders", orders)})
	var rest []*Node
	EachNode(t, func(o *Node) bool { rest = append(rest, o); return true })
	now, soon := votersSoon(rest)
	return map[string]any{"node": n.ID, "name": n.Name, "role": n.Role, "cards": cards, "left": clipList(left), "orders": orders, "voters": now, "voters_soon": soon}, nil
}

func clipList(list []string) []string {
	if len(list) > 20 {
		return append(slices.Clone(list[:20]), fmt.Sprintf("and %d more", len(list)-20))
	}
	return list
}

// mayRemove refuses what would lose the state, the quorum, the last who may
// manage, or a session that may be working.
func (t *tx) mayRemove(n *Node, a *NodeRemove) *Error {
	voters, here, manages := 0, 0, false
	EachNode(t, func(o *Node) bool {
		other := o.ID != n.ID
		if o.Role == RoleVoter {
			voters++
			if other && t.env.Nodes(o.ID).State == NodeOnline {
				here++
			}
		}
		manages = manages || other && o.SocketRole() == "manager"
		return true
	})
	sessions := 0
	EachHeld(t, "", func(h *Held) bool {
		if h.Node == n.ID {
			sessions++
		}
		return true
	})
	online := t.env.Nodes(n.ID).State == NodeOnline
	switch {
	case n.Role == RoleVoter && voters == 1:
		return Errorf(Refused, "%s is the only voter: the fleet's state would go with it", n.Name).WithHint("let others vote first: muster node promote N")
	case n.Role == RoleVoter && here < voters/2+1:
		return Errorf(Refused, "%s votes, and of the %d voters %d others are here: without it they would be no majority", n.Name, voters, here).
			WithHint("muster node demote %s, and see muster status until it does not vote", n.Name)
	case !manages:
		return Errorf(Refused, "%s is the only machine whose users may manage the fleet", n.Name).WithHint("let another do it first: muster node set N local=manager")
	case a.Dead && a.Why == "":
		return Errorf(Refused, "--dead is a manager's word that the machine's sessions are dead, and says --why")
	case a.Dead && online:
		return Errorf(Refused, "%s is here: it is not dead", n.Name).WithHint("muster node drain %s --wait --end-sessions, then remove it", n.Name)
	case sessions > 0 && !a.Dead:
		return Errorf(Refused, "%d session(s) on %s are not gone", sessions, n.Name).WithHint("muster node drain %s --wait --end-sessions; if the machine is lost for good: muster node remove %s --dead --why T", n.Name, n.Name)
	}
	return nil
}

// boundTo are the cards that are not finished and bound to a machine: by name, by
// a session that would be taken up there, or by work that is there.
func (t *tx) boundTo(n *Node) (ids []string, err *Error) {
	seen := map[string]bool{}
	add := func(id string) bool {
		if c := GetCard(t, id); c != nil && !seen[id] && !Finished(c.Stored) {
			seen[id] = true
			ids = append(ids, id)
		}
		return len(ids) <= maxBound
	}
	EachCard(t, nil, func(c *Card) bool {
		if c.Machine == n.Name || c.Machine == n.ID || c.WorkNode == n.ID {
			return add(c.ID)
		}
		return true
	})
	scan(t, TSlot, "", "", func(_ string, s *SlotRec) bool {
		if s.Node == n.ID && s.SessionID != "" && s.Forgotten == 0 {
			return add(s.Card)
		}
		return true
	})
	EachHeld(t, "", func(h *Held) bool {
		if h.Node == n.ID {
			return add(h.Card)
		}
		return true
	})
	if len(ids) > maxBound {
		return nil, Errorf(Exhausted, "more than %d cards are bound to %s", maxBound, n.Name).WithHint("move some first: muster card list --machine %s, muster move CARD --machine any", n.Name)
	}
	slices.Sort(ids)
	return ids, nil
}

// untie lets a card go on without a machine: its run there is taken away, its
// sessions are let go. It says what stays behind.
func (t *tx) untie(id string, n *Node, a *NodeRemove) (left []string) {
	c := GetCard(t, id)
	if r := GetRun(t, c.Run); r != nil && r.Node == n.ID {
		f := t.fork()
		p, why := map[string]any{"why": n.Name + " was removed from the fleet"}, "it does not end the run"
		if _, err := f.fire(GetBoard(t, c.Board), GetCard(f, id), firing{Event: "reclaim", Actor: t.req.Actor, Payload: p, Run: GetRun(f, r.ID)}); err == nil {
			t.join(f)
		} else {
			why = err.Message
		}
		if c = GetCard(t, id); c.Run == r.ID {
			t.part(c, GetRun(t, r.ID), "removed", "removed")
			c.stuck(t, fmt.Sprintf("%s was removed from the fleet with its run %s, and the workflow did not take reclaim: %s", n.Name, r.ID, why))
			t.putCard(c)
		}
	}
	for _, s := range t.letGo(GetCard(t, id), "", "node_removed") {
		left = append(left, id+": "+s)
	}
	if a.Dead {
		t.forceGone(id, a.Why)
	}
	c = GetCard(t, id)
	if c.WorkNode == n.ID {
		if c.WorkLeft != "" {
			left = append(left, id+": "+c.WorkLeft+" work in its workspace")
		}
		c.WorkNode, c.WorkLeft, c.WorkHead = "", "", ""
	}
	if c.Machine == n.Name || c.Machine == n.ID {
		c.Machine, c.Waits = "", Reason{}
	}
	t.event(c, Event{Kind: "moved", Actor: Platform(), Payload: object("from", n.Name, "machine", "", "why", n.Name+" was removed from the fleet")})
	t.putCard(c)
	return left
}

// DueOrders is the next slice of the orders of a machine that was removed.
const DueOrders = "orders"

// dropOrders takes the orders of a machine, of before a Seq, out of the state: nobody will answer them. What does
// not fit beside the rest of this transaction is due at once. It returns how many are gone.
func (t *tx) dropOrders(node string, before uint64) (n int) {
	var all []*Order // gathered first: what is written moves under a scan
	EachOrder(t, node, func(o *Order) bool {
		if o.Seq < before {
			all = append(all, o)
		}
		return len(all) < carryPerStep
	})
	more := len(all) == carryPerStep
	for _, o := range all {
		if t.much() {
			more = true
			break
		}
		t.delOrder(o)
		n++
	}
	if more {
		t.putDue(t.env.Now+1, DueOrders, fmt.Sprintf("%s/%d", node, before))
	}
	return n
}

// dueOrders is the next slice; what the machine was ordered since, when it came back, stands.
func (t *tx) dueOrders(key string) {
	node, text, _ := strings.Cut(key, "/")
	if before, err := strconv.ParseUint(text, 10, 64); err == nil {
		t.dropOrders(node, before)
	}
}

// gossipRotate gives gossip another key. The one before still counts, so that who has not
// heard yet is heard; but not when a machine that was removed knows it.
func gossipRotate(t *tx) (any, *Error) {
	a, err := args[GossipRotate](t)
	if err != nil {
		return nil, err
	}
	f := GetFleet(t)
	switch {
	case f == nil || len(a.Key) != 32:
		return nil, Errorf(Invalid, "a key of gossip has 32 bytes")
	case a.At != f.GossipAt:
		return nil, nil
	}
	f.GossipOld = f.Gossip
	if f.GossipStale {
		f.GossipOld = nil
	}
	f.Gossip, f.GossipAt, f.GossipStale = a.Key, t.env.Now, false
	t.putFleet(f)
	t.event(nil, Event{Kind: "gossip_rotated"})
	return nil, nil
}
