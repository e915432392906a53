package node

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"muster/board"
)

// members makes Raft's configuration what the node list wants (architecture.md
// §6): every node a replica at least, and voters by the simple rule 1 -> 3. It
// wakes when the node list changes or a node comes into contact, never on a tick;
// what failed is tried again after a while.
func (l *leading) members(ctx context.Context) {
	sub := l.n.store.Subscribe(func(t board.Table, _ string) bool { return t == board.TNode || t == board.TFleet || t == board.TOrg })
	defer sub.Close()
	for {
		again, err := l.membersRound(ctx, l.membersOnce)
		if err != nil && ctx.Err() == nil {
			l.n.log.Warn("membership step failed", "err", err)
			again = 2 * time.Second
		}
		var later <-chan time.Time
		if again > 0 {
			later = time.After(again)
		}
		select {
		case <-ctx.Done():
			return
		case <-sub.C:
			sub.Take()
		case <-l.news:
		case <-later:
		}
	}
}

// membersRound is one round of it, with the key of gossip: a step that fails keeps no valid key with a removed machine.
func (l *leading) membersRound(ctx context.Context, once func(context.Context) (time.Duration, error)) (time.Duration, error) {
	again, err := once(ctx)
	rotate, rerr := l.rotateGossip(ctx)
	if again == 0 || rotate < again {
		again = rotate
	}
	return again, errors.Join(err, rerr)
}

// step is one change of Raft's configuration, one at a time.
type step struct {
	what   string // add, remove, promote, demote, hand over, record
	server string
	node   string
	role   string
}

func (l *leading) membersOnce(ctx context.Context) (again time.Duration, err error) {
	for ctx.Err() == nil {
		servers := map[string]bool{}
		for _, s := range l.n.store.Servers() {
			servers[s.ID] = s.Voter
		}
		var nodes []board.Node
		young := false
		err := l.n.store.View(func(v board.View) error {
			board.EachNode(v, func(n *board.Node) bool { nodes = append(nodes, *n); return true })
			if f := board.GetFleet(v); f != nil {
				young = l.n.store.BoardTime()-f.Created < time.Hour.Milliseconds()
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
		l.forget(nodes)
		now := l.n.store.BoardTime()
		if err := l.raise(ctx, nodes, now); err != nil {
			return 0, err
		}
		s, wait := nextStep(membersIn{Servers: servers, Nodes: nodes, Self: string(l.n.ident.ID), Now: now, Young: young,
			Online: func(id string) bool { return l.State(id).State == board.NodeOnline }, Behind: l.behind})
		if s == nil {
			lent, err := l.lend(ctx, nodes)
			return sooner(wait, lent), err
		}
		if err := l.apply(ctx, s); err != nil {
			return 0, err
		}
		l.n.log.Info("membership", "step", s.what, "server", s.server, "node", s.node, "role", s.role)
	}
	return 0, ctx.Err()
}

// forget drops what is known of nodes that were in the list and are not any
// more. One that is not yet there is kept: the founder is in contact before its
// own entry is committed, and would wait three seconds for the next one.
func (l *leading) forget(nodes []board.Node) {
	l.mu.Lock()
	defer l.mu.Unlock()
	here := make(map[string]bool, len(nodes))
	for _, n := range nodes {
		here[n.ID] = true
	}
	for id := range l.listed {
		if !here[id] {
			l.table.Forget(id)
			delete(l.last, id)
			delete(l.applied, id)
			delete(l.told, id)
			delete(l.marks.hashes, id)
		}
	}
	l.listed = here
}

func (l *leading) apply(ctx context.Context, s *step) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	if err := broken(l.n.cfg.step, s.what); err != nil {
		return err
	}
	switch s.what {
	case "add":
		return l.n.store.AddNonvoter(ctx, s.server)
	case "remove":
		return l.n.store.RemoveServer(ctx, s.server)
	case "promote":
		return l.n.store.AddVoter(ctx, s.server)
	case "demote":
		return l.n.store.Demote(ctx, s.server)
	case "hand over":
		return l.n.store.Transfer(ctx)
	}
	b, err := json.Marshal(board.NodeRole{Node: s.node, Role: s.role})
	if err != nil {
		return err
	}
	if res := l.n.lead(ctx, board.Request{Actor: board.Platform(), Verb: board.VNodeRole, Args: b}); res.Err != nil {
		return res.Err
	}
	return nil
}
