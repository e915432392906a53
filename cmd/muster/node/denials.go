package node

import (
	"maps"
	"sync"
	"time"

	"muster/board"
)

// denials counts who was refused for who they are, by kind, and logs it: one line
// a minute for each kind and sender, of a bounded number of senders.
type denials struct {
	mu     sync.Mutex
	counts map[string]uint64
	said   map[string]time.Time
	silent uint64 // not logged since the last line
}

const (
	deniedEvery   = time.Minute
	deniedSenders = 64
)

// add counts a denial; log says whether it is worth a line, and how many were kept back before it.
func (d *denials) add(kind, who string, now time.Time) (log bool, silent uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.counts == nil {
		d.counts, d.said = map[string]uint64{}, map[string]time.Time{}
	}
	d.counts[kind]++
	key := kind + " " + who
	if at, ok := d.said[key]; ok && now.Sub(at) < deniedEvery {
		d.silent++
		return false, 0
	}
	maps.DeleteFunc(d.said, func(_ string, at time.Time) bool { return now.Sub(at) >= deniedEvery })
	if len(d.said) >= deniedSenders {
		d.silent++
		return false, 0
	}
	d.said[key] = now
	silent, d.silent = d.silent, 0
	return true, silent
}

func (d *denials) copy() map[string]uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.counts)
}

// deny counts and logs a denial; an error that is none is passed over.
func (n *Node) deny(who string, err *board.Error) {
	if kind := board.Denial(err); kind != "" {
		n.denied(kind, who, err.Message)
	}
}

func (n *Node) denied(kind, who, why string) {
	if log, silent := n.denials.add(kind, who, time.Now()); log {
		n.log.Warn("denied", "kind", kind, "who", who, "why", why, "silent", silent)
	}
}

// Denied implements api.Denier.
func (b backend) Denied(kind, who, why string) { b.n.denied(kind, who, why) }
