package logstore

import (
	"sync"
	"time"
)

// patience is in how many parts a watchdog waits.
const patience = 8

// Watchdog calls hung, once, in a goroutine of its own, unless stop is called
// within slow. It waits in parts: a process that was stopped, starved or asleep
// finds one part over when it goes on, not all of them, for its disk had no
// chance to answer either.
func Watchdog(slow time.Duration, hung func()) (stop func()) {
	var mu sync.Mutex
	left, stopped := patience, false
	part := max(slow/patience, 1)
	var t *time.Timer
	mu.Lock()
	defer mu.Unlock()
	t = time.AfterFunc(part, func() {
		mu.Lock()
		left--
		over := left == 0 && !stopped
		if left > 0 && !stopped {
			t.Reset(part)
		}
		mu.Unlock()
		if over {
			hung()
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		t.Stop()
	}
}
