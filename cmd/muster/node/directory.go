package node

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"muster/board"
	"muster/cmd/muster/directory"
)

// Agents are handed on to the directory of their organisation by one machine that holds
// its credentials (M-28): the leader lends it that, the state has what is to be told, and
// what came of each word is a recorded request. No transaction is open over a call. A call
// ends with the contact: who has lost the leader may have lost the lease.

const (
	handSoon   = 2 * time.Second  // the wait after a first failure; each one doubles it
	handLatest = 10 * time.Minute // the longest
	handSays   = 30 * time.Second // to record what became of a word; it is said again otherwise
	handLook   = time.Second      // how often a machine without contact looks whether it has one again
)

// handWait is how long to wait after so many failures in a row.
func handWait(failures int64) time.Duration {
	d := handLatest
	if failures < 10 {
		d = min(handSoon<<max(failures-1, 0), handLatest)
	}
	return d - rand.N(d/10+1)
}

// readOrgs takes the organisations of this machine's file, as it is at the node's start.
func (n *Node) readOrgs() error {
	o, err := n.own()
	if err != nil {
		return err
	}
	n.orgs = map[string]directory.Service{}
	for name, c := range o.Organisations {
		n.orgs[name] = directory.New(c, n.cfg.Data)
	}
	return nil
}

// directories tells the fleet what this machine holds credentials for, and delivers where it is lent that.
func (n *Node) directories(ctx context.Context) error {
	sub := n.store.Subscribe(func(t board.Table, _ string) bool { return t == board.TOrg || t == board.THand || t == board.TFleet })
	defer sub.Close()
	d := &delivery{n: n, wait: n.cfg.handWait, failures: map[string]int64{}, until: map[string]time.Time{}}
	if d.wait == nil {
		d.wait = handWait
	}
	for {
		again := n.sayOrgs(ctx)
		for _, name := range slices.Sorted(maps.Keys(n.orgs)) {
			again = sooner(again, d.pass(ctx, name))
		}
		var later <-chan time.Time
		t := (*time.Timer)(nil)
		if again > 0 {
			t = time.NewTimer(again)
			later = t.C
		}
		select {
		case <-ctx.Done():
			return nil
		case <-sub.C:
			sub.Take()
		case <-later:
		}
		if t != nil {
			t.Stop()
		}
	}
}

// sooner is the shorter of two waits, of which 0 is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// sayOrgs tells the fleet the names of the organisations of this machine's file, where the state has others.
func (n *Node) sayOrgs(ctx context.Context) (again time.Duration) {
	mine, said := slices.Sorted(maps.Keys(n.orgs)), true
	_ = n.store.View(func(v board.View) error {
		if f := board.GetFleet(v); f != nil && f.Format >= board.FormatDirectory {
			x := board.GetNode(v, string(n.ident.ID))
			said = x == nil || slices.Equal(x.Orgs, mine)
		}
		return nil
	})
	if said {
		return 0
	}
	if err := n.recorded(ctx, board.VOrgHold, board.OrgHold{Orgs: mine}, nil); err != nil {
		n.log.Warn("the fleet was not told for which organisations this machine holds credentials", "err", err)
		return handSoon
	}
	return 0
}

// recorded has a word of this machine recorded, and returns when the state here has it: what is read next is never what it
// was before, or a directory would be told again what it has just taken.
func (n *Node) recorded(ctx context.Context, verb string, word, answer any) error {
	b, err := json.Marshal(word)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, handSays)
	defer cancel()
	res := n.report(ctx, board.Request{Verb: verb, Args: b})
	if res.Err != nil {
		return res.Err
	}
	if answer != nil && len(res.Data) > 0 {
		if err := json.Unmarshal(res.Data, answer); err != nil {
			return err
		}
	}
	return n.store.WaitSeq(ctx, res.Seq)
}

// delivery is what a machine knows of its delivering beside the state.
type delivery struct {
	n        *Node
	wait     func(failures int64) time.Duration
	failures map[string]int64     // of an organisation, in a row
	until    map[string]time.Time // no pass before that
}

// word is the next thing to say, with its agent and the lease that it is said under.
type word struct {
	h     board.Hand
	a     board.Agent
	lease uint64
}

// pass delivers for an organisation until nothing is left or something fails; again is when to look again, 0: when something changes.
func (d *delivery) pass(ctx context.Context, org string) (again time.Duration) {
	for ctx.Err() == nil {
		w, at := d.next(org)
		switch {
		case w == nil && at == 0:
			return 0
		case w == nil:
			return max(time.Duration(at-d.n.store.BoardTime())*time.Millisecond, time.Millisecond)
		}
		if rest := time.Until(d.until[org]); rest > 0 {
			return rest
		}
		if !d.n.Clock().Fresh(d.n.now()) {
			return handLook
		}
		if err := d.say(ctx, w); err != nil {
			d.failures[org]++
			rest := d.wait(d.failures[org])
			d.until[org] = time.Now().Add(rest)
			d.n.log.Warn("an organisation's directory was not told", "org", org, "kind", w.h.Kind, "agent", w.a.ID, "failures", d.failures[org], "err", err)
			return rest
		}
		delete(d.failures, org)
	}
	return 0
}

// next reads what is to be said next, if it is this machine that says it.
func (d *delivery) next(org string) (w *word, at int64) {
	_ = d.n.store.View(func(v board.View) error {
		o := board.GetOrg(v, org)
		if o == nil || o.Node != string(d.n.ident.ID) {
			return nil
		}
		var h *board.Hand
		if h, at = board.Handable(v, org, d.n.store.BoardTime()); h != nil {
			w = &word{h: *h, a: *board.GetAgent(v, h.Agent), lease: o.Lease}
		}
		return nil
	})
	return w, at
}

// say says one word, and records what became of it.
func (d *delivery) say(ctx context.Context, w *word) error {
	n := d.n
	tell := func(what, forgot, why string, wait int64, answer any) error {
		return n.recorded(ctx, board.VOrgWord, board.OrgWord{Org: w.h.Org, Lease: w.lease, Agent: w.a.ID, Kind: w.h.Kind, What: what, Forgot: forgot, Error: why, Wait: wait}, answer)
	}
	if w.h.Kind == board.HandEnd { // from here on it is not taken back
		var may struct{ Go bool }
		if err := tell(board.HandBegin, "", "", 0, &may); err != nil || !may.Go {
			return err
		}
	}
	call, cancel := n.inContact(ctx)
	err := d.call(call, w)
	cancel()
	var unknown *directory.Unknown
	var refused *directory.Refused
	switch {
	case err == nil:
		return tell(board.HandDone, "", "", 0, nil)
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &unknown) && w.h.Failures == 0:
		return tell(board.HandForgot, unknown.Agent, err.Error(), 0, nil)
	case errors.As(err, &refused), w.h.Failures+1 >= 3:
		return errors.Join(err, tell(board.HandFailed, "", n.cfg.Name+": "+err.Error(), 2*d.wait(w.h.Failures+1).Milliseconds(), nil))
	}
	return errors.Join(err, tell(board.HandFailed, "", n.cfg.Name+": "+err.Error(), 0, nil))
}

func (d *delivery) call(ctx context.Context, w *word) error {
	s := d.n.orgs[w.h.Org]
	if w.h.Kind == board.HandDeclare {
		return s.Declare(ctx, directory.DeclarationOf(&w.a))
	}
	return s.End(ctx, directory.EndOf(&w.a))
}

// inContact ends with this machine's contact with the leader.
func (n *Node) inContact(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if !n.spawn(func() {
		for {
			rest := n.Clock().StartBy(0).Sub(n.now())
			if rest <= 0 {
				cancel(errors.New("this machine has lost the leader"))
				return
			}
			t := time.NewTimer(rest)
			select {
			case <-ctx.Done():
				t.Stop()
				return
			case <-t.C:
			}
		}
	}) {
		cancel(errClosed)
	}
	return ctx, func() { cancel(nil) }
}

// lend decides who delivers for each organisation; again is when a machine that went may be taken for dead.
func (l *leading) lend(ctx context.Context, nodes []board.Node) (again time.Duration, err error) {
	var orgs []*board.Org
	_ = l.n.store.View(func(v board.View) error {
		board.EachOrg(v, func(o *board.Org) bool { orgs = append(orgs, o); return true })
		return nil
	})
	online := func(id string) bool { return l.State(id).State == board.NodeOnline }
	dead := func(id string) bool {
		rest, ok := l.GoneIn(id, l.n.cfg.Lease.Fresh)
		if ok && rest > 0 {
			again = sooner(again, rest)
		}
		return ok && rest <= 0
	}
	for _, o := range orgs {
		id, change := board.NextHolder(o, nodes, online, dead)
		if !change {
			continue
		}
		b, err := json.Marshal(board.OrgLend{Org: o.Name, Node: id, Was: o.Lease})
		if err != nil {
			return 0, err
		}
		call, cancel := context.WithTimeout(ctx, 15*time.Second)
		res := l.n.lead(call, board.Request{Actor: board.Platform(), Verb: board.VOrgLend, Args: b})
		cancel()
		if res.Err != nil {
			return 0, res.Err
		}
		l.n.log.Info("who delivers for an organisation", "org", o.Name, "node", id)
	}
	return again, nil
}
