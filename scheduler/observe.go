package scheduler

import (
	"context"
	"slices"
	"time"

	"muster/board"
)

// offerEvery is how often an observation that lasts is offered to the workflow
// again when it derives no moment of its own (architecture.md §8).
const offerEvery = 30_000

// holdAfter is how long due times and leases wait after the executor did not take
// them, in ms: they stay due, and would be asked again without a pause.
const holdAfter = 1_000

// observe turns what the leader sees into requests: nodes that came or went, due
// times, machines that stay away, leases that have passed. Without a reading
// there is no verdict (INV-01); what no transition takes writes nothing (WFL-09).
func (l *Loop) observe(ctx context.Context, r *Round) {
	l.nodes(ctx, r)
	l.due(ctx, r)
	l.offerAway(ctx, r)
	l.leases(ctx, r)
}

// nodes records changes of what the contact table says (M-10), and which nodes
// are away: only when something of it may have changed.
func (l *Loop) nodes(ctx context.Context, r *Round) {
	if !l.news && (l.nextAt == 0 || l.nextAt > r.Time) {
		return
	}
	l.news, l.nextAt = false, 0
	var changed []board.NodeState
	ids := make([]string, 0, len(l.fleet))
	for _, n := range l.fleet {
		ids = append(ids, n.ID)
		x := l.cfg.Contacts.State(n.ID)
		if x.State != n.State && (x.State == board.NodeOnline || x.State == board.NodeOffline) && n.State != board.NodeLeft {
			changed = append(changed, board.NodeState{Node: n.ID, State: x.State, Ago: max(x.AgeMS, 0)})
		}
		l.isAway(n.ID, n.State == board.NodeOffline && x.State == board.NodeOffline, r.Time)
	}
	if d, ok := l.cfg.Contacts.Next(ids); ok {
		l.nextAt = r.Time + max(d.Milliseconds(), 0) + 1
	}
	for i, res := range l.askAll(ctx, len(changed), func(i int) (string, any) { return board.VNodeState, changed[i] }) {
		if res.Err == nil {
			l.free = true
			r.note(changed[i].Node, "node_"+changed[i].State)
		} else {
			l.nextAt = earliest(l.nextAt, r.Time+holdAfter)
		}
	}
}

// isAway begins and ends the offers of machine_offline for all that runs on a node.
func (l *Loop) isAway(node string, away bool, now int64) {
	if away == l.away[node] {
		return
	}
	l.room.EachOn(node, func(h *board.Held) {
		if away && !h.Ended {
			l.offers.set(h.Run, now)
		} else {
			l.offers.remove(h.Run)
		}
	})
	if delete(l.away, node); away {
		l.away[node] = true
	}
}

// due hands due times that have come to the executor.
func (l *Loop) due(ctx context.Context, r *Round) {
	for ctx.Err() == nil {
		var keys []string
		now := l.cfg.Now()
		if now < l.hold {
			return
		}
		_ = l.cfg.Store.View(func(v board.View) error {
			board.EachDue(v, now, func(key string, d *board.Due) bool {
				keys = append(keys, key)
				r.note(d.Key, "due_"+d.Kind)
				return len(keys) < 16*dueKeys
			})
			return nil
		})
		if len(keys) == 0 {
			return
		}
		parts := slices.Collect(slices.Chunk(keys, dueKeys))
		for _, res := range l.askAll(ctx, len(parts), func(i int) (string, any) { return board.VDue, board.DueArgs{Keys: parts[i]} }) {
			if res.Err != nil {
				l.cfg.Logger.Warn("due times not taken", "err", res.Err)
				l.hold = now + holdAfter
				return
			}
		}
	}
}

// dueKeys is how many due times one request names.
const dueKeys = 64

// offerAway offers machine_offline for each run on a machine that is away: at
// once, at the moments its workflow's guards name, else every 30 s (SUP-16, M-10,
// M-11).
func (l *Loop) offerAway(ctx context.Context, r *Round) {
	runs := l.offers.due(r.Time)
	if len(runs) == 0 {
		return
	}
	var list []board.Observe
	_ = l.cfg.Store.View(func(v board.View) error {
		for _, run := range runs {
			h := l.room.Row(run)
			if h == nil || h.Ended {
				continue
			}
			n := board.GetNode(v, h.Node)
			if n == nil || !l.away[n.ID] {
				continue
			}
			secs := float64(max(r.Time-n.OfflineSince, 0)) / 1000
			list = append(list, board.Observe{Run: run, Event: "machine_offline", Payload: map[string]any{"machine": n.Name, "seconds": secs}})
			l.offers.set(run, l.nextOffer(v, h, n, r.Time))
		}
		return nil
	})
	for i, res := range l.askAll(ctx, len(list), func(i int) (string, any) { return board.VObserve, list[i] }) {
		if res.Err == nil {
			r.note(list[i].Run, "machine_offline")
		}
	}
}

// nextOffer is when the guards on machine_offline may say otherwise than now.
func (l *Loop) nextOffer(v board.View, h *board.Held, n *board.Node, now int64) int64 {
	next := now + offerEvery
	c, b := board.GetCard(v, h.Card), board.GetBoard(v, h.Board)
	if c == nil || b == nil {
		return next
	}
	s, err := board.NewScope(v, l.cfg.Workflows, b, c, now, l.cfg.Contacts.State)
	if err != nil {
		return next
	}
	for _, tr := range s.Workflow().Transitions(c.Status, "machine_offline") {
		for _, th := range s.Thresholds(tr.Guard) {
			if th.Of != "payload.seconds" {
				continue
			}
			if at := n.OfflineSince + int64(th.Value*1000) + 1; at > now && at < next {
				next = at
			}
		}
	}
	return next
}

// leases marks sessions gone whose lease and margin have passed (architecture.md
// §5). They are looked through when the earliest of them may have passed, and a
// contact since then has put it off.
func (l *Loop) leases(ctx context.Context, r *Round) {
	if l.leaseAt == 0 || l.leaseAt > r.Time || r.Time < l.hold {
		return
	}
	over := l.overdue(r.Time)
	longest := map[string]int64{} // of each node: a node is kept without an answer once, for all of its sessions
	for _, h := range over {
		longest[h.Node] = max(longest[h.Node], h.Lease)
	}
	for node, lease := range longest {
		if l.cfg.Contacts.Condemn(node, time.Duration(lease)*time.Millisecond) {
			defer l.cfg.Contacts.Acquit(node)
		} else {
			delete(longest, node)
			l.leaseAt = earliest(l.leaseAt, r.Time+1)
		}
	}
	over = slices.DeleteFunc(over, func(h *board.Held) bool { return longest[h.Node] == 0 })
	for i, res := range l.askAll(ctx, len(over), func(i int) (string, any) { return board.VGone, board.Gone{Run: over[i].Run, By: board.GoneLease} }) {
		if res.Err == nil {
			r.note(over[i].Run, "gone_by_lease")
			continue
		}
		l.cfg.Logger.Warn("a session is not counted gone", "run", over[i].Run, "err", res.Err)
		l.hold = r.Time + holdAfter
		l.leaseAt = earliest(l.leaseAt, l.hold)
	}
}

// overdue are the sessions whose lease and margin have passed; leaseAt becomes
// the moment at which the next may have.
func (l *Loop) overdue(now int64) (over []*board.Held) {
	type lease struct {
		node string
		ms   int64
	}
	left := map[lease]int64{} // until it may be counted gone; asked once for many sessions
	l.leaseAt = 0
	for _, n := range l.fleet {
		l.room.EachOn(n.ID, func(h *board.Held) {
			if h.Lease <= 0 {
				return
			}
			key := lease{h.Node, h.Lease}
			d, asked := left[key]
			if !asked {
				gone, ok := l.cfg.Contacts.GoneIn(h.Node, time.Duration(h.Lease)*time.Millisecond)
				if d = max(gone.Milliseconds(), 0) + 1; !ok {
					d = -1
				} else if gone <= 0 {
					d = 0
				}
				left[key] = d
			}
			switch {
			case d == 0:
				over = append(over, h)
			case d > 0:
				l.leaseAt = earliest(l.leaseAt, now+d)
			}
		})
	}
	return over
}
