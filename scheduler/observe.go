package scheduler

import (
	"context"
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
	l.away(ctx, r)
	l.leases(ctx, r)
}

// nodes records changes of what the contact table says (M-10).
func (l *Loop) nodes(ctx context.Context, r *Round) {
	var changed []board.NodeState
	_ = l.cfg.Store.View(func(v board.View) error {
		board.EachNode(v, func(n *board.Node) bool {
			x := l.cfg.Contacts.State(n.ID)
			if x.State != n.State && (x.State == board.NodeOnline || x.State == board.NodeOffline) && n.State != board.NodeLeft {
				changed = append(changed, board.NodeState{Node: n.ID, State: x.State, Ago: max(x.AgeMS, 0)})
			}
			return true
		})
		return nil
	})
	for _, c := range changed {
		if res := l.ask(ctx, board.VNodeState, c); res.Err == nil {
			l.room = true
			r.note(c.Node, "node_"+c.State)
		}
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
				return len(keys) < 64
			})
			return nil
		})
		if len(keys) == 0 {
			return
		}
		if res := l.ask(ctx, board.VDue, board.DueArgs{Keys: keys}); res.Err != nil {
			l.cfg.Logger.Warn("due times not taken", "err", res.Err)
			l.hold = now + holdAfter
			return
		}
	}
}

type offer struct {
	run     string
	machine string
	seconds float64
	next    int64
}

// away offers machine_offline for each run on a machine that is away: at once,
// at the moments its workflow's guards name, else every 30 s (SUP-16, M-10, M-11).
func (l *Loop) away(ctx context.Context, r *Round) {
	var due []offer
	live := map[string]bool{}
	_ = l.cfg.Store.View(func(v board.View) error {
		names := map[string]*board.Node{}
		board.EachNode(v, func(n *board.Node) bool {
			if n.State == board.NodeOffline && l.cfg.Contacts.State(n.ID).State == board.NodeOffline {
				names[n.ID] = n
			}
			return true
		})
		if len(names) == 0 {
			return nil
		}
		board.EachHeld(v, "", func(h *board.Held) bool {
			n := names[h.Node]
			if n == nil || h.Ended {
				return true
			}
			live[h.Run] = true
			if at, ok := l.offers[h.Run]; ok && at > r.Time {
				return true
			}
			secs := float64(max(r.Time-n.OfflineSince, 0)) / 1000
			due = append(due, offer{h.Run, n.Name, secs, l.nextOffer(v, h, n, r.Time)})
			return true
		})
		return nil
	})
	for run := range l.offers {
		if !live[run] {
			delete(l.offers, run)
		}
	}
	for _, o := range due {
		l.offers[o.run] = o.next
		res := l.ask(ctx, board.VObserve, board.Observe{Run: o.run, Event: "machine_offline",
			Payload: map[string]any{"machine": o.machine, "seconds": o.seconds}})
		if res.Err == nil {
			r.note(o.run, "machine_offline")
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

// leases marks sessions gone whose lease and margin have passed (architecture.md §5).
func (l *Loop) leases(ctx context.Context, r *Round) {
	var over []board.Held
	if r.Time < l.hold {
		return
	}
	_ = l.cfg.Store.View(func(v board.View) error {
		board.EachHeld(v, "", func(h *board.Held) bool {
			d, ok := l.cfg.Contacts.GoneIn(h.Node, time.Duration(h.Lease)*time.Millisecond)
			if ok && h.Lease > 0 && d <= 0 {
				over = append(over, *h)
			}
			return true
		})
		return nil
	})
	for _, h := range over {
		if !l.cfg.Contacts.Condemn(h.Node, time.Duration(h.Lease)*time.Millisecond) {
			continue
		}
		res := l.ask(ctx, board.VGone, board.Gone{Run: h.Run, By: board.GoneLease})
		l.cfg.Contacts.Acquit(h.Node)
		if res.Err == nil {
			r.note(h.Run, "gone_by_lease")
		} else {
			l.cfg.Logger.Warn("a session is not counted gone", "run", h.Run, "err", res.Err)
			l.hold = r.Time + holdAfter
		}
	}
}
