package node

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"muster/board"
)

// marks are the hashes that nodes remember of one Seq (every 1,000th), by node
// (architecture.md §2, "Hash"). Equal bytes have equal hashes (invariant 7).
type marks struct {
	at     uint64
	hashes map[string]string
}

// judge holds the hashes of one Seq against each other. odd are the nodes whose
// state is not the majority's of all nodes; split says that everybody was heard
// and no majority agrees.
func (m marks) judge(nodes int) (odd []string, split bool) {
	nodes = max(nodes, len(m.hashes)) // a node that was removed may still be among them
	count := map[string]int{}
	for _, h := range m.hashes {
		count[h]++
	}
	for h, n := range count {
		if n*2 <= nodes {
			continue
		}
		for node, x := range m.hashes {
			if x != h {
				odd = append(odd, node)
			}
		}
		return odd, false
	}
	return nil, len(count) > 1 && len(m.hashes) == nodes
}

// ownMark is what this node's state says to the mark of a contact: its own hash of
// that Seq ("" without one), and how many nodes there are. It reads the state, and
// a reading may wait for a state that grows, which waits for those who read it:
// never under the lock that State takes inside of readings.
type ownMark struct {
	hash  string
	nodes int
	peer  string // name of the node whose contact it is
}

func (l *leading) ownMark(peer string, msg contactMsg) (m ownMark) {
	if _, seq := l.n.store.Applied(); msg.MarkAt == 0 || msg.MarkAt > seq { // of a Seq that is not here there is nothing to compare
		return m
	}
	if at, h, ok := l.n.store.Mark(msg.MarkAt); ok && at == msg.MarkAt {
		m.hash = hex.EncodeToString(h[:])
	}
	_ = l.n.store.View(func(v board.View) error {
		board.EachNode(v, func(x *board.Node) bool {
			if m.nodes++; x.ID == peer {
				m.peer = x.Name
			}
			return true
		})
		return nil
	})
	return m
}

// compare takes the mark of a contact and says whether its node must fetch anew.
// The caller holds the lock.
func (l *leading) compare(peer string, msg contactMsg, own ownMark) bool {
	if msg.MarkAt == 0 || own.nodes == 0 {
		return false
	}
	if msg.MarkAt > l.marks.at {
		l.marks = marks{at: msg.MarkAt, hashes: map[string]string{}}
		if own.hash != "" {
			l.marks.hashes[string(l.n.ident.ID)] = own.hash
		}
	}
	if msg.MarkAt != l.marks.at {
		return false
	}
	l.marks.hashes[peer] = msg.Mark
	odd, split := l.marks.judge(own.nodes)
	l.alarm = ""
	delete(l.odd, peer)
	if split {
		l.alarm = fmt.Sprintf("DIVERGED: the nodes do not agree on the state at Seq %d, and no majority does: nothing is written", l.marks.at)
		l.n.log.Error(l.alarm, "hashes", l.marks.hashes)
	}
	for _, id := range odd {
		if id == peer {
			l.odd[peer] = fmt.Sprintf("DIVERGED: the state of %s was not the majority's at Seq %d: it makes it anew", orElse(own.peer, peer), l.marks.at)
			l.n.log.Error(l.odd[peer])
			return true
		}
		if id == string(l.n.ident.ID) {
			l.n.spawn(l.n.odd)
		}
	}
	return false
}

func (l *leading) alarmed() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.alarm
}

// diverged are the alarms of nodes whose state was odd and is not known to be good again.
func (l *leading) diverged() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Values(l.odd))
}

// theirs are the alarms that nodes have raised of themselves.
func (l *leading) theirs() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(func(yield func(string) bool) {
		for _, list := range l.told {
			for _, a := range list {
				if !yield(a) {
					return
				}
			}
		}
	})
}

// odd stops serving and starts anew with the state set aside; who leads hands
// that over first. Sessions go on. Log and vote are good, so its ids stay; if that
// was done before and the state is odd again, this node's own snapshot holds what
// is wrong, and nothing of the store is used any more (M-32).
func (n *Node) odd() {
	n.log.Error("this node's state is not the fleet's: fetching it anew")
	if n.leads() {
		ctx, cancel := context.WithTimeout(n.ctx, 5*time.Second)
		_ = n.store.Transfer(ctx) // whether it worked or not, this node serves no more
		cancel()
	}
	n.anew(func(m *saved) {
		if why := "its state differed from the majority's"; m.Odd {
			m.Refetch = why + ", and so did what was made of its own snapshot and log"
		} else {
			m.Rebuild = why
		}
	})
}

// diverged stops serving a state that has applied what the leader's log does not
// have: somebody's lost vote made a leader that has lost what was acknowledged. State
// and log are set aside, where what was lost can still be found; nothing of them is used.
func (n *Node) diverged(cause error) {
	n.log.Error("this node's state is not the fleet's: fetching it anew", "err", cause)
	n.anew(func(m *saved) { m.Refetch = "DIVERGED: " + cause.Error() })
}

// anew ends this process, and the next does first what fn notes.
func (n *Node) anew(fn func(*saved)) {
	if err := n.remember(fn); err != nil {
		n.fail(err)
		return
	}
	n.again.Store(true)
	n.cancel(errClosed)
}
