package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"muster/board"
)

// scan reads everything once, when leadership begins or the feed has lost count.
func (l *Loop) scan() {
	l.news, l.free, l.nextAt, l.leaseAt = true, true, 0, 0
	l.queue.clear()
	_ = l.cfg.Store.View(func(v board.View) error {
		l.room = board.NewRoom(v, l.cfg.Workflows)
		l.room.Index(v)
		l.fleet = nodesOf(v)
		l.boards = map[string]boardSig{}
		starts := l.startable(v)
		board.EachBoard(v, func(b *board.Board) bool { l.boards[b.Slug] = decides(b); return true })
		board.EachGlance(v, nil, func(c *board.Glance) bool {
			if c.Current || board.Finished(c.Stored) {
				return true
			}
			if starts(c.Board, c.Status) || c.Waits != "" { // of many cards at rest nothing is kept in memory (goal P8)
				l.dirty[c.ID] = true
			}
			return true
		})
		for _, n := range l.fleet {
			l.room.EachOn(n.ID, func(h *board.Held) { l.lease(h) })
		}
		return nil
	})
	l.offers, l.away = newTimers(), map[string]bool{} // who is away is told anew, with all its runs
}

func nodesOf(v board.View) (list []*board.Node) {
	board.EachNode(v, func(n *board.Node) bool { list = append(list, n); return true })
	return list
}

// boardSig is what of a board decides about its cards besides the cards themselves.
type boardSig struct {
	words  string
	paused bool
}

func decides(b *board.Board) boardSig {
	return boardSig{fmt.Sprint(b.Workflow, b.Archived, "\x00", string(b.Params), "\x00", b.Home, "\x00", b.Zone, "\x00", b.Label), b.PausedAt != 0}
}

// startable tells whether a status of a board starts anything; also when it cannot
// be told, so that its cards are looked at and say why.
func (l *Loop) startable(v board.View) func(slug, status string) bool {
	known := map[[2]string]bool{}
	return func(slug, status string) bool {
		at := [2]string{slug, status}
		if ok, there := known[at]; there {
			return ok
		}
		b := board.GetBoard(v, slug)
		if b == nil {
			return false
		}
		wf, err := l.cfg.Workflows.Of(v, b)
		known[at] = err != nil || wf.Startable(status)
		return known[at]
	}
}

// take turns changed keys into cards to look at, and into room that may have come
// free. The keys are taken before the state is read: what comes later is told again.
func (l *Loop) take() {
	keys, all := l.cfg.Feed.Take()
	if all {
		l.scan()
		return
	}
	_ = l.cfg.Store.View(func(v board.View) error {
		changed := map[string]bool{}
		for _, k := range keys {
			l.follow(v, k, changed)
		}
		if len(changed) > 0 {
			l.scanBoards(v, changed)
		}
		return nil
	})
}

// follow takes one changed key into the index; changed collects the boards whose
// cards are all to be looked at.
func (l *Loop) follow(v board.View, k Key, changed map[string]bool) {
	was, kept := l.room.Row(k.Key), l.room.Waits(k.Key)
	l.room.Change(v, k.Table, k.Key)
	switch k.Table {
	case board.TCard:
		l.dirty[k.Key] = true
		l.free = l.free || kept
	case board.THeld:
		l.followHeld(v, k.Key, was)
	case board.TLink:
		if child, _, ok := strings.Cut(k.Key, "/"); ok {
			l.dirty[child] = true
			l.free = l.free || l.room.Waits(child)
		}
	case board.TNode:
		l.free, l.news = true, true
		l.followNode(v, k.Key)
	case board.TFleet, board.TCool:
		l.free = true
	case board.TBoard:
		b := board.GetBoard(v, k.Key)
		if b == nil {
			return
		}
		was, now := l.boards[k.Key], decides(b)
		l.boards[k.Key] = now
		if was.words != now.words { // not with every card that is filed there
			changed[k.Key] = true
		}
		l.free = l.free || was.paused != now.paused
	case board.TWorkflow:
		l.free = true
		for slug := range l.boards { // others may extend it
			changed[slug] = true
		}
	}
}

func (l *Loop) followHeld(v board.View, run string, was *board.Held) {
	l.free = true
	if card := board.CardOfRun(run); card != "" {
		l.dirty[card] = true
	}
	h := l.room.Row(run)
	switch {
	case h == nil:
		l.offers.remove(run)
		if was != nil {
			l.asides.ended(v, l.room, board.GetRun(v, run), l.cfg.Contacts.State(was.Node))
		}
	case h.Ended:
		l.offers.remove(run)
		l.lease(h)
	default:
		if l.away[h.Node] && l.offers.at[run] == 0 {
			l.offers.set(run, l.cfg.Now())
		}
		l.lease(h)
	}
}

// lease notes when the lease of a session may have passed.
func (l *Loop) lease(h *board.Held) {
	if h.Lease <= 0 {
		return
	}
	if d, ok := l.cfg.Contacts.GoneIn(h.Node, time.Duration(h.Lease)*time.Millisecond); ok {
		l.leaseAt = earliest(l.leaseAt, l.cfg.Now()+max(d.Milliseconds(), 0)+1)
	}
}

func (l *Loop) followNode(v board.View, id string) {
	n := board.GetNode(v, id)
	i, found := slices.BinarySearchFunc(l.fleet, id, func(n *board.Node, id string) int { return strings.Compare(n.ID, id) })
	l.fleet = slices.Clone(l.fleet) // a plan may hold the one before
	switch {
	case n == nil && found:
		l.fleet = slices.Delete(l.fleet, i, i+1)
	case n == nil:
	case found:
		l.fleet[i] = n
	default:
		l.fleet = slices.Insert(l.fleet, i, n)
	}
}

// scanBoards looks at boards anew after their workflow or their values have changed.
func (l *Loop) scanBoards(v board.View, changed map[string]bool) {
	l.free = true
	board.EachBoard(v, func(b *board.Board) bool {
		if !changed[b.Slug] {
			return true
		}
		starts := l.startable(v)
		board.EachGlance(v, b, func(c *board.Glance) bool {
			if !c.Current && (starts(c.Board, c.Status) || c.Waits != "" || l.queue.has(c.ID)) {
				l.dirty[c.ID] = true
			}
			return true
		})
		return true
	})
}
