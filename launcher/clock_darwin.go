package launcher

import (
	"sync"
	"time"

	"muster/board/lease"

	"golang.org/x/sys/unix"
)

// bootNow: on macOS CLOCK_MONOTONIC goes on while the machine sleeps, unlike
// the clock of Go's runtime.
func bootNow() lease.Instant {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0
	}
	return lease.Instant(ts.Nano())
}

var bootID = sync.OnceValue(func() string {
	if id, err := unix.Sysctl("kern.bootsessionuuid"); err == nil && id != "" {
		return id
	}
	return "unknown"
})

// bootTimer fires at a moment of the boot clock. Timers here stand still in
// sleep, so it looks at the clock at least every two seconds while it is armed.
type bootTimer struct {
	C    chan struct{}
	set  chan lease.Instant
	done chan struct{}
	once sync.Once
}

func newBootTimer() (*bootTimer, error) {
	t := &bootTimer{C: make(chan struct{}, 1), set: make(chan lease.Instant), done: make(chan struct{})}
	go t.run()
	return t, nil
}

func (t *bootTimer) run() {
	var at lease.Instant
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	for {
		select {
		case <-t.done:
			timer.Stop()
			return
		case at = <-t.set:
		case <-timer.C:
		}
		if at == 0 {
			timer.Stop()
			continue
		}
		left := at.Sub(bootNow())
		if left > 0 {
			timer.Reset(min(left, 2*time.Second))
			continue
		}
		at = 0
		select {
		case t.C <- struct{}{}:
		default:
		}
	}
}

// Set arms the timer for a moment; 0 disarms it.
func (t *bootTimer) Set(at lease.Instant) error {
	select {
	case t.set <- at:
	case <-t.done:
	}
	return nil
}

func (t *bootTimer) Close() error {
	t.once.Do(func() { close(t.done) })
	return nil
}
