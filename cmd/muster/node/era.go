package node

import (
	"fmt"
	"time"

	"muster/board"
	"muster/mesh"
)

// eraWait is how long no leader may have answered a node that hears of a later era before it gives up its own: longer
// than voters take to start again one after the other.
const eraWait = 2 * time.Minute

// eraGap is how long nothing was heard of a later era before the wait for it begins anew.
const eraGap = 30 * time.Second

// eraTold is how long an alarm of a later era is not raised again.
const eraTold = 10 * time.Minute

// laterEra is what a node knows of a later era of its fleet than its own, as instants of one clock; its zero is that
// nothing was heard. A live majority is not given up for it: any machine of the list, a replica on a laptop too,
// can be recovered beside a fleet that works.
type laterEra struct {
	since, last time.Time // heard of without a leader's answer since, and last
	told        time.Time
}

// answered: a leader, whose term the voters have confirmed, has answered.
func (e *laterEra) answered() { e.since = time.Time{} }

// heard tells whether the own era is to be given up: no leader has answered for wait, in which this process ran
// and heard of the later one again and again, so that one that was frozen asks its leader first.
func (e *laterEra) heard(now time.Time, wait time.Duration) (over bool) {
	if e.since.IsZero() || now.Sub(e.last) > eraGap {
		e.since = now
	}
	e.last = now
	return now.Sub(e.since) >= wait
}

// tell tells whether people are to be told now.
func (e *laterEra) tell(now time.Time) bool {
	if !e.told.IsZero() && now.Sub(e.told) < eraTold {
		return false
	}
	e.told = now
	return true
}

// later refuses a peer of a later era; without a leader for long, its era is taken instead of the own one.
func (n *Node) later(peer mesh.NodeID, theirs, mine uint64) error {
	wait := n.cfg.eraWait
	now := time.Now() // its monotonic part stands still in sleep: a machine that wakes asks its leader first
	n.mu.Lock()
	over, tell := n.eras.heard(now, wait), n.eras.tell(now)
	n.mu.Unlock()
	if over {
		n.outdated(peer, theirs, mine)
		return fmt.Errorf("this node is of era %d, which is over: it sets its state aside and fetches that of era %d", mine, theirs)
	}
	if tell {
		name := n.nameOf(peer)
		n.warn("%s was recovered into era %d, without this fleet of era %d, and is refused: %s keeps its state while a leader answers it, and gives it up after %v without one. "+
			"One of the two must go: on machines that are wrong, muster stop, then muster recover --follow --yes", name, theirs, mine, n.cfg.Name, wait)
	}
	return fmt.Errorf("this node is of era %d, and gives it up for era %d only when no leader has answered it for %v, or by a person's word (muster recover --follow)", mine, theirs, wait)
}

// nameOf is a node's name as the state has it, else its id.
func (n *Node) nameOf(peer mesh.NodeID) string {
	name := "node " + string(peer)
	select {
	case <-n.ready:
	default:
		return name // the state may not be open yet
	}
	_ = n.store.View(func(v board.View) error {
		if x := board.GetNode(v, string(peer)); x != nil {
			name = x.Name
		}
		return nil
	})
	return name
}

// Follow makes a stopped node give up the state it has, which is kept beside it, and fetch its fleet's anew at the next
// start: a person's word that another era than its own goes on.
func Follow(data, by, why string) error {
	f, err := openFolder(data)
	if err != nil {
		return err
	}
	defer f.close()
	m, err := f.load()
	if err != nil {
		return err
	}
	if err := f.intact(false); err != nil {
		return err
	}
	switch {
	case m.Fleet == "":
		return board.Errorf(board.Refused, "%s is no node of a fleet: there is nothing to follow", data).WithHint("give the data folder of a stopped node with --data")
	case len(m.Peers) == 0:
		return board.Errorf(board.Refused, "this node knows no other of its fleet: nobody has a state that it could fetch; nothing was changed").
			WithHint("to join another fleet: muster join TOKEN --data DIR, with an empty folder")
	}
	if err := f.takeRenewed(m); err != nil {
		return err
	}
	if m.Before != 0 { // its starts since were of its own era; of another later one none is known, and any is taken
		m.Generation, m.Before, m.Start = m.Before, 0, ""
	}
	m.Refetch = fmt.Sprintf("%s said so: %s", by, why)
	return f.save(m)
}
