package board

import "testing"

// What a machine's owner limits holds at the leader, too: its boards, its harnesses,
// and what the users of its socket may be.
func TestOwnersLimits(t *testing.T) {
	w := newWorld(t, commands)
	id := w.add("x", func(c *Card) { c.Assignee = "sh" })
	w.edit("atlas", func(n *Node) { n.Boards = []string{"docs"} })
	refused(t, w.start(id), "boards", "does not take board web")
	w.edit("atlas", func(n *Node) { n.Boards, n.Harnesses = []string{"web"}, []string{"codex"} })
	refused(t, w.start(id), "harness", "no plain commands")
	w.edit("atlas", func(n *Node) { n.Harnesses, n.LocalMost = []string{"command"}, "viewer" })
	if err := w.start(id); err != nil {
		t.Error(err)
	}
	refused(t, w.through(byAnn, VPause, Pause{Why: "x"}, ""), CheckRole, "viewer")
	for _, c := range [][3]string{{"", "", "manager"}, {"member", "", "member"}, {"", "none", "none"}, {"viewer", "manager", "viewer"}, {"manager", "member", "member"}} {
		if got := (&Node{Local: c[0], LocalMost: c[1]}).SocketRole(); got != c[2] {
			t.Errorf("%v: %s", c, got)
		}
	}
	up := NodeUp{ID: "n-x", Name: "x", Local: "king"}
	refused(t, w.ask(Actor{Kind: ActorNode, Node: "n-atlas"}, VNodeUp, NodeUp{ID: "n-atlas", Name: "atlas", Local: up.Local}).Err, "", "king")
	first := FleetInit{ID: "f", EraTag: "t", Node: NodeUp{ID: "n", Name: "n", Local: "viewer"}}
	_, res := Exec(NewMemView(), &Request{Actor: Platform(), Verb: VFleetInit, Args: jsonOf(first)}, w.env())
	refused(t, res.Err, "", "first machine")
}
