package raftstore

import (
	"context"
	"sync"
	"time"

	"muster/raftstore/logstore"
)

// lateFactor is after how many election timeouts without an answer from the disk a leader holds its messages back. More
// than a busy disk takes, and soon enough for the others to go on within the promise for a disk that hangs.
const lateFactor = 3

// yield holds back what a leader sends while a write of its disk is late. Raft leads on with a disk that hangs: its
// heartbeats need none, so nobody else is elected, and nothing is ever committed again. Held back, the others elect
// one whose disk works, at once and not only when the watchdog gives the process up; a disk that answers after all
// lets the messages go, and the node is a follower like any other. Nothing that was acknowledged depends on it.
type yield struct {
	after time.Duration // 0 is never

	mu   sync.Mutex
	late int           // writes that are late now
	open chan struct{} // closed when there is none any more; nil while there is none
}

// watch looks at one write; stop must be called when it has returned.
func (y *yield) watch() (stop func()) {
	if y.after <= 0 {
		return func() {}
	}
	var mu sync.Mutex
	counted, over := false, false
	unwatch := logstore.Watchdog(y.after, func() {
		mu.Lock()
		defer mu.Unlock()
		if !over {
			counted = true
			y.add(1)
		}
	})
	return func() {
		unwatch()
		mu.Lock()
		defer mu.Unlock()
		over = true
		if counted {
			y.add(-1)
		}
	}
}

func (y *yield) add(n int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.late += n
	switch {
	case y.late > 0 && y.open == nil:
		y.open = make(chan struct{})
	case y.late == 0 && y.open != nil:
		close(y.open)
		y.open = nil
	}
}

// wait returns when no write is late, or with ctx's cause.
func (y *yield) wait(ctx context.Context) error {
	y.mu.Lock()
	open := y.open
	y.mu.Unlock()
	if open == nil {
		return nil
	}
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
