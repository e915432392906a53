package board

import (
	"slices"
	"strings"
	"testing"
)

// M-37, invariant 23: a machine is removed with all that is bound to it: cards go
// on elsewhere, orders are void, what stays behind is told, the key of gossip is
// marked as known to a stranger; not while a session there may be working.
func TestRemoveNode(t *testing.T) {
	w := newWorld(t, commands)
	w.node("borea", 2)
	w.edit("atlas", func(n *Node) { n.Role = RoleVoter })
	bound := w.add("bound", func(c *Card) { c.Machine, c.Assignee = "borea", "sh" })
	work := w.add("work", func(c *Card) { c.WorkNode, c.WorkLeft, c.WorkHead = "n-borea", "uncommitted", "abc" })
	free := w.add("free", func(c *Card) { c.Machine = "atlas" })
	r := w.add("r", func(c *Card) { c.Machine, c.Assignee = "borea", "sh" })
	if _, err := w.firing(r, firing{Event: "start", Actor: Platform(), Start: &startCtx{Node: "n-borea"}}); err != nil {
		t.Fatal(err)
	}
	running := w.launched(GetRun(w.v, w.card(r).Run)).ID
	refused(t, w.through(byAnn, VNodeRemove, NodeRemove{Node: "borea"}, ""), "", "not gone")
	refused(t, w.through(byAnn, VNodeRemove, NodeRemove{Node: "borea", Dead: true}, ""), "", "--why")
	refused(t, w.through(byAnn, VNodeRemove, NodeRemove{Node: "borea", Dead: true, Why: "x"}, ""), "", "is here")
	refused(t, w.through(byAnn, VNodeRemove, NodeRemove{Node: "atlas"}, ""), "", "only voter")
	w.nodes["n-borea"] = Reading{State: NodeOffline}
	res := w.ask(byAnn, VNodeRemove, NodeRemove{Node: "borea", Dead: true, Why: "fell into the sea"})
	if res.Err != nil {
		t.Fatal(res.Err)
	}
	if GetNode(w.v, "n-borea") != nil || !GetFleet(w.v).GossipStale {
		t.Error("still listed, or its key of gossip still counts")
	}
	for _, id := range []string{bound, work, GetRun(w.v, running).Card} {
		c := GetCard(w.v, id)
		if c.Machine != "" || c.WorkNode != "" || c.WorkHead != "" || c.Run != "" || !strings.Contains(string(res.Data), `"`+id+`"`) {
			t.Errorf("%s: %+v; told: %s", id, c, res.Data)
		}
	}
	if GetCard(w.v, free).Machine != "atlas" || !strings.Contains(string(res.Data), "uncommitted work") {
		t.Errorf("told: %s", res.Data)
	}
	if r := GetRun(w.v, running); r.Gone != GoneWord || GetHeld(w.v, running) != nil {
		t.Errorf("its session: %+v", r)
	}
	EachOrder(w.v, "n-borea", func(o *Order) bool { t.Errorf("order %+v stands", o); return true })
	var last *Event
	EachEvent(w.v, "", func(_ string, e *Event) bool {
		if e.Kind == "node_removed" {
			last = e
		}
		return true
	})
	if last == nil || last.Actor.Name != "ann@atlas" || !strings.Contains(string(last.Payload), "sea") {
		t.Errorf("event: %+v", last)
	}
	refused(t, w.ask(Actor{Kind: ActorNode, Node: "n-borea"}, VNodeUp, NodeUp{ID: "n-borea", Name: "borea"}).Err, "", "not in the fleet's list")
}

// M-37: a removal ends a run on the machine also where the workflow does not (here its version cannot be used): the
// card has no run any more, and says that a person has to move it on.
func TestRemoveEndsARunPastItsWorkflow(t *testing.T) {
	w := newWorld(t, commands)
	w.node("borea", 2)
	id := w.add("r", func(c *Card) { c.Machine, c.Assignee = "borea", "sh" })
	if _, err := w.firing(id, firing{Event: "start", Actor: Platform(), Start: &startCtx{Node: "n-borea"}}); err != nil {
		t.Fatal(err)
	}
	run := w.launched(GetRun(w.v, w.card(id).Run)).ID
	w.nodes["n-borea"] = Reading{State: NodeOffline}
	w.write(func(x *tx) *Error {
		b := GetBoard(x, "web")
		b.Workflow = 2
		x.put(TWorkflow, WorkflowKey("web", 2), &WorkflowDoc{Board: "web", Version: 2, Source: []byte("version: 1\nname: web\nextends: nothing\n")})
		x.putBoard(b)
		return nil
	})
	w.ok(VNodeRemove, NodeRemove{Node: "borea", Dead: true, Why: "fell into the sea"})
	c, r := w.card(id), GetRun(w.v, run)
	if c.Run != "" || c.LastOutcome != "removed" || c.Attention.Check != "stuck" || !strings.Contains(c.Attention.Text, "did not take reclaim") {
		t.Errorf("card: %+v", c)
	}
	if r.State != RunEnded || r.Verdict == "" || r.Outcome != "removed" {
		t.Errorf("run: %+v", r)
	}
}

// However many orders stand for a machine, its removal passes and they leave the state, in slices; one of a machine that
// came back meanwhile stands.
func TestRemoveNodeWithManyOrders(t *testing.T) {
	w := newWorld(t, "")
	w.node("borea", 2)
	for range 3 {
		w.write(func(x *tx) *Error {
			for range 900 {
				x.putOrder(&Order{ID: x.orderID(), Node: "n-borea", Kind: OrderCleanup, State: OrderPending, Seq: x.env.Seq})
			}
			return nil
		})
	}
	if res := w.ask(byAnn, VNodeRemove, NodeRemove{Node: "borea"}); res.Err != nil {
		t.Fatal(res.Err)
	}
	w.node("borea", 2)
	w.write(func(x *tx) *Error {
		x.putOrder(&Order{ID: "new", Node: "n-borea", Kind: OrderCleanup, State: OrderPending, Seq: x.env.Seq})
		return nil
	})
	for n := 0; len(w.dues(DueOrders)) > 0; n++ {
		if n > 20 {
			t.Fatal("it does not come to an end")
		}
		w.after(1)
		d := w.dues(DueOrders)[0]
		if res := w.ask(Platform(), VDue, DueArgs{Keys: []string{DueKey(d.At, d.Kind, d.Key)}}); res.Err != nil {
			t.Fatal(res.Err)
		}
	}
	EachOrder(w.v, "n-borea", func(o *Order) bool {
		if o.ID != "new" {
			t.Errorf("order %s stands", o.ID)
		}
		return true
	})
	if GetOrder(w.v, "n-borea", "new") == nil {
		t.Error("the order of the machine that came back is gone")
	}
}

func TestRemoveKeepsTheQuorum(t *testing.T) {
	w := newWorld(t, "")
	for _, name := range []string{"borea", "cleo"} {
		w.node(name, 2)
	}
	for _, name := range []string{"atlas", "borea", "cleo"} {
		w.edit(name, func(n *Node) { n.Role = RoleVoter })
	}
	w.nodes["n-cleo"] = Reading{State: NodeOffline}
	refused(t, w.through(byAnn, VNodeRemove, NodeRemove{Node: "borea"}, ""), "", "no majority")
	w.ok(VNodeRemove, NodeRemove{Node: "cleo"})
	refused(t, w.through(byAnn, VNodeRemove, NodeRemove{Node: "borea"}, ""), "", "no majority")
	w.edit("borea", func(n *Node) { n.Role = RoleReplica })
	w.edit("borea", func(n *Node) { n.Local = "viewer" })
	w.edit("atlas", func(n *Node) { n.Role = RoleReplica })
	refused(t, w.through(byAnn, VNodeRemove, NodeRemove{Node: "atlas"}, ""), "", "may manage")
}

// The key of gossip: the one before still counts, unless a removed machine knows it;
// a request that comes twice rotates once.
func TestGossipKeys(t *testing.T) {
	w := newWorld(t, "")
	key := func(b byte) []byte { return slices.Repeat([]byte{b}, 32) }
	rotate := func(b byte) *Error {
		return w.ask(Platform(), VGossip, GossipRotate{Key: key(b), At: GetFleet(w.v).GossipAt}).Err
	}
	w.write(func(x *tx) *Error { f := GetFleet(x); f.Gossip = key(1); x.putFleet(f); return nil })
	refused(t, w.ask(Platform(), VGossip, GossipRotate{Key: []byte("short")}).Err, "", "32 bytes")
	refused(t, w.through(byAnn, VGossip, GossipRotate{Key: key(9)}, ""), CheckSpeaker, "fleet itself")
	if err := rotate(2); err != nil {
		t.Fatal(err)
	}
	if f := GetFleet(w.v); f.Gossip[0] != 2 || f.GossipOld[0] != 1 || f.GossipAt != w.now {
		t.Errorf("%+v", f)
	}
	if err := w.ask(Platform(), VGossip, GossipRotate{Key: key(7), At: 0}).Err; err != nil || GetFleet(w.v).Gossip[0] != 2 {
		t.Errorf("rotated twice: %v", err)
	}
	w.after(1)
	w.write(func(x *tx) *Error { f := GetFleet(x); f.GossipStale = true; x.putFleet(f); return nil })
	if err := rotate(3); err != nil {
		t.Fatal(err)
	}
	if f := GetFleet(w.v); f.Gossip[0] != 3 || f.GossipOld != nil || f.GossipStale {
		t.Errorf("a removed machine's key counts: %+v", f)
	}
}
