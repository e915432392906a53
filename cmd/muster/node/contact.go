package node

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"muster/board"
	"muster/board/lease"
	"muster/mesh"
	"muster/raftstore"
)

// contactMsg is what a node tells the leader with each contact (architecture.md §5).
type contactMsg struct {
	Reading board.Reading `json:"reading"`
	Applied uint64        `json:"applied"`
	Seq     uint64        `json:"seq"`
	MarkAt  uint64        `json:"mark_at,omitempty"` // newest remembered hash: at which Seq
	Mark    string        `json:"mark,omitempty"`
	Addrs   []string      `json:"addrs"`

	Generation uint64   `json:"generation"`      // of this process's start
	Start      string   `json:"start,omitempty"` // id of a start that this process has no answer to yet
	Alarms     []string `json:"alarms,omitempty"`
}

// contactAns is the leader's answer, given only after the voters have confirmed its term.
type contactAns struct {
	Term   uint64 `json:"term"`
	Commit uint64 `json:"commit"`
	Seq    uint64 `json:"seq"`
	Time   int64  `json:"time"`
	Odd    bool   `json:"odd,omitempty"`   // this node's state is not the majority's: it fetches anew
	Ahead  uint64 `json:"ahead,omitempty"` // the leader's log ends here, before what this node has applied: it fetches anew
	Older  bool   `json:"older,omitempty"` // another process came up as this node since: this one ends
}

// contacts keeps this node's contact with the leader: a request every few
// seconds, at once after a start, a wake, a change of leader or of address.
func (n *Node) contacts(ctx context.Context) error {
	asked := time.Now() // by appear
	for {
		n.keepBallast()
		lead := n.leadership()
		ok := n.contactOnce(ctx, lead)
		if server, _ := n.store.Leader(); !ok && server == "" && time.Since(asked) > time.Second {
			asked = time.Now()
			n.hello() // no leader speaks to a store that it does not know yet: the peers know who leads now
		}
		n.mu.Lock()
		every := n.cfg.Lease.Interval(n.shortest)
		n.mu.Unlock()
		if !ok {
			every = min(every, 500*time.Millisecond)
		}
		t := time.NewTimer(every)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-n.contactNow:
		case <-lead.Done():
		case <-t.C:
		}
		t.Stop()
	}
}

// pokeContact asks for a contact now.
func (n *Node) pokeContact() {
	select {
	case n.contactNow <- struct{}{}:
	default:
	}
}

// contactOnce is one contact; it is given up when the leader changes.
func (n *Node) contactOnce(ctx, lead context.Context) bool {
	peer := n.leaderNode()
	if peer == "" {
		return false
	}
	index, seq := n.store.Applied()
	msg := contactMsg{Reading: n.reading(), Applied: index, Seq: seq, Addrs: n.mesh.Advertised(), Alarms: n.ownAlarms()}
	n.memMu.Lock()
	msg.Generation, msg.Start = n.mem.Generation, n.mem.Start
	n.memMu.Unlock()
	if at, h, ok := n.store.Mark(0); ok {
		msg.MarkAt, msg.Mark = at, hex.EncodeToString(h[:])
	}
	ctx, cancel := under(ctx, lead, callTimeout)
	defer cancel()
	n.mu.Lock()
	tok := n.clock.Sent(n.now())
	n.mu.Unlock()
	sent := n.cfg.Wall()
	var ans contactAns
	if peer == string(n.ident.ID) {
		a, err := n.lease.contact(ctx, peer, msg)
		if err != nil {
			return false
		}
		ans = a
	} else if err := n.call(ctx, peer, "contact", msg, &ans); err != nil {
		n.log.Debug("contact failed", "leader", peer, "err", err)
		return false
	}
	switch {
	case ans.Odd:
		n.odd()
		return false
	case ans.Older:
		n.superseded()
		return false
	case ans.Ahead != 0:
		n.diverged(fmt.Errorf("%w: that log ends at entry %d, and %d is applied here", raftstore.ErrDiverged, ans.Ahead, index))
		return false
	}
	n.mu.Lock()
	n.clock = n.clock.Answered(tok, ans.Term, ans.Commit, n.now())
	n.heardTime = ans.Time
	n.heardCommit.Store(ans.Commit)
	n.removed.Store(nil)
	n.eras.answered()
	if off, ok := clockOff(sent, n.cfg.Wall(), ans.Time); ok {
		n.clockOff = off
	}
	n.mu.Unlock()
	if index >= ans.Commit {
		n.caughtUp()
	}
	n.launch.Contact()
	return true
}

// byeTimeout is how long a node that stops tries to say so; who is not told finds out by its silence.
const byeTimeout = time.Second

// bye tells the leader that this node stops, so that nothing is given to it any more: a start that it will not take would
// keep its card waiting until the claim expires. No verdict follows from it.
func (n *Node) bye() {
	peer := n.leaderNode()
	if peer == "" || peer == string(n.ident.ID) {
		return // who led has no contact table any more, and the next leader hears nothing of this node
	}
	ctx, cancel := context.WithTimeout(context.Background(), byeTimeout)
	defer cancel()
	if err := n.call(ctx, peer, "bye", nil, nil); err != nil {
		n.log.Debug("the leader could not be told that this node stops", "leader", peer, "err", err)
	}
}

// call asks a peer with JSON both ways.
func (n *Node) call(ctx context.Context, peer, method string, in, out any) error {
	b, err := json.Marshal(in)
	if err != nil {
		return err
	}
	ans, err := n.mesh.Call(ctx, mesh.NodeID(peer), method, b)
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(ans, out)
}

// Clock is the node's lease clock as it stands (what the launcher decides by).
func (n *Node) Clock() lease.Clock {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.clock
}

// now is this machine's clock that counts sleep.
func (n *Node) now() lease.Instant { return lease.Instant(n.cfg.Boot()) }
