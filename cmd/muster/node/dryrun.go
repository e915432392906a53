package node

import (
	"context"
	"encoding/json"

	"muster/board"
	"muster/scheduler"
)

// DryRun is answered by the leader, as Why is; without one from this node's state (M-31).
func (b backend) DryRun(ctx context.Context, slug string) (any, error) {
	n := b.n
	if leader := n.leaderNode(); leader != "" && leader != string(n.ident.ID) {
		var ans json.RawMessage
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		err := n.call(ctx, leader, "dryrun", slug, &ans)
		if err == nil {
			return ans, nil
		}
		if e := remote(err); e != nil {
			return nil, e
		}
	}
	return n.dryRun(slug)
}

// dryRun plans as the loop does, with the nodes that it passes by, and asks for nothing.
func (n *Node) dryRun(slug string) (*scheduler.DryAnswer, error) {
	_, live := n.store.LeaderTerm()
	var a *scheduler.DryAnswer
	err := n.store.View(func(v board.View) error {
		a = scheduler.DryRun(n.planInput(v), slug, live)
		return nil
	})
	return a, err
}

// planInput is what a plan from outside of the loop is made from: with what the
// loop remembers, when this node leads.
func (n *Node) planInput(v board.View) scheduler.Input {
	in := scheduler.Input{View: v, Workflows: n.flows, Nodes: n.lease.State, Now: max(v.Time(), n.boardNow())}
	if loop := n.lease.loop(); loop != nil {
		in.Aside, in.Later, in.Rank = loop.Aside, loop.Later, loop.Rank
	}
	return in
}
