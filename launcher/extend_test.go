package launcher

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"muster/board/lease"
)

// deadlines is a session that notes the deadlines that its keeper is told.
type deadlines struct {
	Session
	done chan struct{}
	mu   sync.Mutex
	told []lease.Instant
}

func (d *deadlines) Done() <-chan struct{} { return d.done }

func (d *deadlines) Extend(at lease.Instant) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told = append(d.told, at)
	return nil
}

// P12, M-10: contacts come several times a second, and a keeper is woken by few of them: when its deadline moves by an
// eighth of the lease. What it knows is never later than the contact allows, and never more than that part earlier.
func TestFewContactsWakeAKeeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, every = 10 * time.Minute, 200 * time.Millisecond
		start := time.Now()
		now := func() lease.Instant { return lease.Instant(time.Second + time.Since(start)) }
		var mu sync.Mutex
		clock := lease.NewClock(lease.Config{Fresh: time.Minute})
		r := &Reconciler{stop: make(chan struct{})}
		r.cfg.Clock = func() lease.Clock {
			mu.Lock()
			defer mu.Unlock()
			return clock
		}
		s := &deadlines{done: make(chan struct{})}
		l := held{Session: s, lease: limit, extend: make(chan struct{}, 1)}
		r.wg.Add(1)
		go r.extender(l)
		for range int(time.Hour / every) {
			mu.Lock()
			clock = clock.Answered(clock.Sent(now()), 1, 1, now())
			allowed, _ := clock.Deadline(limit)
			mu.Unlock()
			notify(l.extend)
			synctest.Wait()
			if d := allowed.Sub(s.told[len(s.told)-1]); d < 0 || d >= limit/extendBy {
				t.Fatalf("the keeper's deadline is %v before what the contact allows", d)
			}
			time.Sleep(every)
		}
		if n := len(s.told); n > int(time.Hour/(limit/extendBy))+1 {
			t.Errorf("in an hour of contacts it was told %d times", n)
		}
		close(s.done)
		r.wg.Wait()
	})
}
