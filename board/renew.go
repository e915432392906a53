package board

import (
	"fmt"

	"muster/board/lease"
)

// Renewal makes the state of a new era, or of a new fleet, out of one that no
// node runs any more (architecture.md §6): after `muster recover`, when the
// quorum was lost for good, and after `muster restore`. It is decided off line,
// transaction by transaction, before any node serves the state.
//
// What was acknowledged after the state was written is not known to it. So all
// that could be given away twice begins anew beyond it: numbers of cards and
// runs, and request ids; the caller moves the Seq. Nothing that ran goes on: a
// run without a verdict is lost (or `restored`), and the fleet comes up paused.
type Renewal struct {
	Restored bool   // a new fleet, of a backup; else a new era of the same fleet
	Fleet    string // id of the new fleet; "" for a recovery
	Gossip   []byte // its key; nil for a recovery
	EraTag   string // the random half of the new era
	Node     Node   // the only node that votes: of a recovery ID, Store and Generation, of a restore all that it says of itself
	By, Why  string // who renews, and why: told by the pause

	step int
	from string
}

// How far beyond what it knows a recovered state counts on. The gap in the Seq
// is the caller's.
const (
	skippedCards = 1000 // numbers of a board's cards
	skippedRuns  = 100  // numbers of a card's runs
	// SkippedSeqs is how far the Seq of a recovered state lies beyond that of the old one: ids of
	// events and orders, and cursors, of what was lost mean nothing later.
	SkippedSeqs = 1 << 20
)

// renewSlice is how many records one transaction of a renewal changes, about.
const renewSlice = 500

// renewSteps in their order: the fleet first, so that all else stands in the new era.
var renewSteps = []func(*Renewal, *tx) bool{(*Renewal).fleet, (*Renewal).requests, (*Renewal).sessions, (*Renewal).orders, (*Renewal).cards, (*Renewal).boards, (*Renewal).rest}

// Next is the next transaction; an empty one says that all is done.
func (r *Renewal) Next(v View, env *Env) Txn {
	for r.step < len(renewSteps) {
		t := newTx(v, &Request{Actor: Platform(), Verb: "renew"}, env)
		if renewSteps[r.step](r, t) {
			r.step, r.from = r.step+1, ""
		}
		if len(t.out) > 0 {
			return t.txn()
		}
	}
	return Txn{}
}

// Check says what is wrong with a renewal of a state.
func (r *Renewal) Check(v View) *Error {
	switch f := GetFleet(v); {
	case f == nil:
		return Errorf(Refused, "this state holds no fleet: there is nothing to go on with")
	case r.EraTag == "" || r.Node.ID == "" || r.Node.Store == "" || r.Restored == (r.Fleet == ""):
		return Errorf(Internal, "a renewal needs an era, a node with a store, and a fleet's id only when it is restored")
	case !r.Restored && GetNode(v, r.Node.ID) == nil:
		return Errorf(Refused, "node %s is not in the fleet's list of this state", r.Node.ID)
	}
	return nil
}

// word is what became of runs that had no verdict.
func (r *Renewal) word() string {
	if r.Restored {
		return "restored"
	}
	return "lost"
}

func (r *Renewal) happened() string {
	if r.Restored {
		return "the fleet was restored from a backup"
	}
	return "the fleet was recovered"
}

// fleet writes the era, the pause and the node list.
func (r *Renewal) fleet(t *tx) bool {
	f := GetFleet(t)
	ev := Event{Kind: "fleet_recovered"}
	if f.EraTag = r.EraTag; r.Restored {
		f.ID, f.Era, f.Gossip, f.Created, ev.Kind = r.Fleet, 1, r.Gossip, t.env.Now, "fleet_restored"
		f.GossipOld, f.GossipAt, f.GossipStale = nil, t.env.Now, false
	} else {
		f.Era++
	}
	f.PausedBy, f.PausedAt = orElse(r.By, "somebody"), max(t.env.Now, 1)
	f.PausedWhy = clip(fmt.Sprintf("%s: %s. Look at its cards, then: muster resume", r.happened(), orElse(r.Why, "no reason given")), 500)
	t.putFleet(f)
	var nodes []*Node
	EachNode(t, func(n *Node) bool { nodes = append(nodes, n); return true })
	for _, n := range nodes {
		switch {
		case r.Restored:
			t.del(TNode, n.ID)
		case n.ID == r.Node.ID:
			n.Store, n.Generation, n.StartID, n.Role, n.NoVote, n.Vote = r.Node.Store, r.Node.Generation, "", RoleVoter, false, true
			t.putNode(n)
		default: // it comes in anew, under a store id that it tells, and at whatever start it is
			n.Store, n.StartID, n.Role = "", "", RoleReplica
			t.putNode(n)
		}
	}
	if r.Restored {
		n := r.Node
		n.Role, n.Local, n.State, n.Joined, n.Started = RoleVoter, "manager", NodeOnline, t.env.Now, t.env.Now
		t.putNode(&n)
	}
	t.put(TFleet, IDsKey, &IDTable{Horizon: t.env.Seq, Walked: t.env.Seq})
	ev.Payload = jsonOf(map[string]any{"era": f.Era, "by": f.PausedBy, "why": r.Why})
	t.event(nil, ev)
	return true
}

// requests drops what tells a second copy of a request: no id of before is taken (architecture.md §2).
func (r *Renewal) requests(t *tx) bool { return t.clear(TRequest) && t.clear(TReqLog) }

// clear takes records out of a table, a slice at a time; true: none is left.
func (t *tx) clear(tab Table) bool {
	var keys []string
	t.Scan(tab, "", "", func(k string, _ []byte) bool {
		keys = append(keys, k)
		return len(keys) <= renewSlice
	})
	for _, k := range keys {
		t.del(tab, k)
	}
	return len(keys) <= renewSlice
}

// sessions ends one run at a time: of a recovery its node is told to stop what may
// still live, of a restore nothing of it is here.
func (r *Renewal) sessions(t *tx) bool {
	var h *Held
	scan(t, THeld, "", r.from, func(_ string, x *Held) bool { h = x; return false })
	if h == nil {
		return true
	}
	r.from = h.Run + "\x00"
	run := GetRun(t, h.Run)
	if run == nil {
		t.del(THeld, h.Run)
		return false
	}
	why := r.happened()
	if had := run.Verdict != ""; !had {
		r.end(t, run, why)
	} else if !r.Restored && run.Stop == "" {
		t.closeSession(run, why)
	}
	if run = GetRun(t, h.Run); r.Restored && run != nil && run.Gone == "" {
		t.act(run, lease.ActManager, why)
	}
	if run = GetRun(t, h.Run); r.Restored && run != nil && run.Stop != "" {
		t.del(TOrder, OrderKey(run.Node, run.Stop))
		run.Stop = ""
		t.putRun(run)
	}
	return false
}

// end gives a run its verdict as the workflow wants it for a lost session; when it
// does not take that, the card waits for a person.
func (r *Renewal) end(t *tx, run *Run, why string) {
	p := map[string]any{"machine": t.nodeName(run.Node), "session_id": run.SessionID, "mode": run.Mode, "seen": true, "never_came_up": false, "losses": 1, "error": why}
	c := GetCard(t, run.Card)
	current := c != nil && c.Run == run.ID
	if current {
		_ = t.platformFire(c, run, "session_lost", p) // refused: it is still the card's run
	}
	if run = GetRun(t, run.ID); run.Verdict == "" {
		t.verdict(run, false, false, why)
	}
	run = GetRun(t, run.ID)
	run.Outcome, run.Error, run.SecretHash = r.word(), why, nil
	t.putRun(run)
	if c = GetCard(t, run.Card); !current || c == nil {
		return
	}
	c.LastOutcome = r.word()
	if c.Run == run.ID {
		t.part(c, run, r.word(), why)
		c.stuck(t, fmt.Sprintf("its run %s ended when %s, and the workflow says nothing of that: move it on by hand", run.ID, why))
	}
	ev := Event{Kind: "run_lost", Run: run.ID, Payload: jsonOf(map[string]any{"why": why, "machine": t.nodeName(run.Node)})}
	if r.Restored {
		ev.Kind = "run_restored"
	}
	t.event(c, ev)
	t.putCard(c)
}

// orders takes back what would run something again: a hook may have run in what was lost.
func (r *Renewal) orders(t *tx) bool {
	var drop []string
	last := slice(r, t, TOrder, func(k string, o *Order) {
		if r.Restored || o.Kind == OrderHook || o.Kind == OrderStart || o.Kind == OrderDeliver {
			drop = append(drop, k)
		}
	})
	for _, k := range drop {
		t.del(TOrder, k)
	}
	return last
}

// slice reads the next records of a table and says whether they were the last. fn writes nothing.
func slice[T any, P interface {
	*T
	record
}](r *Renewal, t *tx, tab Table, fn func(key string, x *T)) (last bool) {
	n := 0
	scan[T, P](t, tab, "", r.from, func(k string, x *T) bool {
		fn(k, x)
		r.from = k + "\x00"
		n++
		return n < renewSlice
	})
	return n < renewSlice
}

// cards goes through all cards: numbers of runs that what was lost may have given
// are not given again, and who waited for a hook waits for a person.
func (r *Renewal) cards(t *tx) bool {
	var changed []*Card
	last := slice(r, t, TCard, func(_ string, c *Card) {
		put := !r.Restored
		if !r.Restored {
			c.Runs, c.Skipped = c.Runs+skippedRuns, c.Skipped+skippedRuns
		}
		if c.Hook != "" {
			c.Hook, put = "", true
			c.stuck(t, "a hook of its workflow was on its way when "+r.happened()+"; whether it ran is not known: look, then move the card on by hand")
		}
		if r.Restored && c.WorkNode != "" && c.WorkNode != r.Node.ID {
			c.WorkNode, c.WorkLeft, put = "", "", true
		}
		if put {
			changed = append(changed, c)
		}
	})
	for _, c := range changed {
		t.put(TCard, c.ID, c)
	}
	return last
}

func (r *Renewal) boards(t *tx) bool {
	if r.Restored {
		return true
	}
	var list []*Board
	EachBoard(t, func(b *Board) bool { list = append(list, b); return true })
	for _, b := range list {
		b.NextCard += skippedCards
		t.putBoard(b)
	}
	return true
}

// rest drops what belongs to the machines and to the people of the old fleet.
func (r *Renewal) rest(t *tx) bool {
	if !r.Restored {
		return true
	}
	for _, tab := range []Table{TToken, TOutbox, TSlot, TStart, TCool, TImport} {
		if !t.clear(tab) {
			return false
		}
	}
	var orgs []*Org
	EachOrg(t, func(o *Org) bool { orgs = append(orgs, o); return true })
	for _, o := range orgs { // no machine of the new fleet was lent to
		o.Node, o.Lease = "", o.Lease+1
		t.put(TOrg, o.Name, o)
	}
	var hooks []*Webhook
	EachWebhook(t, func(h *Webhook) bool { hooks = append(hooks, h); return true })
	for _, h := range hooks { // what happened in the other fleet was told by it
		h.Cursor, h.Since, h.Failures, h.Error = EventKey(t.env.Seq, 0), 0, 0, ""
		t.put(TWebhook, WebhookKey(h.Board, h.ID), h)
	}
	return true
}

// ForBackup is a record as it stands in a backup, nil when it does not: no key, no
// secret's hash, nothing that counts in this fleet alone (threats.md). One that may
// hold such and cannot be read is an error, which names it.
func ForBackup(tab Table, key string, val []byte) ([]byte, error) {
	clean := func(r record, strip func()) ([]byte, error) {
		if err := unmarshal(val, r); err != nil {
			return nil, Errorf(Internal, "the record %s %q cannot be read (%v), so its secrets cannot be kept out of a backup", tab, key, err).
				WithHint("muster check DATA, with the node stopped, says what is wrong; a muster that wrote the record can back it up")
		}
		strip()
		return marshal(r), nil
	}
	switch tab {
	case TToken, TRequest, TReqLog, TOutbox:
		return nil, nil
	case TFleet:
		if key != FleetKey {
			return nil, nil
		}
		f := new(Fleet)
		return clean(f, func() { f.Gossip, f.GossipOld = nil, nil })
	case TRun:
		r := new(Run)
		return clean(r, func() { r.SecretHash = nil })
	case TOrder:
		o := new(Order)
		return clean(o, func() { o.Spec = nil })
	}
	return val, nil
}
