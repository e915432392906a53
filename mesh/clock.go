package mesh

import (
	"context"
	"time"
)

// Gap is a piece of time in which this process did not run.
type Gap struct {
	Slept   time.Duration // the machine was asleep
	Stalled time.Duration // the machine ran but this process did not (stopped, starved)
}

// GapDetector finds gaps by comparing two clocks at a steady rhythm. It is pure:
// the caller reads the clocks.
type GapDetector struct {
	Every    time.Duration // rhythm of Observe
	MinSleep time.Duration // shorter sleeps are not told
	MinStall time.Duration // shorter stalls are not told

	boot, awake time.Duration
	started     bool
}

// Observe takes a reading of BootClock and AwakeClock, made at one moment, and
// reports a gap since the last one.
func (d *GapDetector) Observe(boot, awake time.Duration) (Gap, bool) {
	byBoot, byAwake := boot-d.boot, awake-d.awake
	first := !d.started
	d.boot, d.awake, d.started = boot, awake, true
	if first {
		return Gap{}, false
	}
	g := Gap{Slept: max(byBoot-byAwake, 0), Stalled: max(byAwake-d.Every, 0)}
	return g, g.Slept >= d.MinSleep || g.Stalled >= d.MinStall
}

// WatchSleep tells of each wake of the machine, and of each long stop of this
// process, within half a second of it. The channel has one slot (a slow reader
// finds the newest gap it had room for) and is closed when ctx ends.
func WatchSleep(ctx context.Context) <-chan Gap { return WatchSleepBy(ctx, BootClock, AwakeClock) }

// WatchSleepBy is WatchSleep with other clocks than the machine's: one that counts sleep, and one that does not.
func WatchSleepBy(ctx context.Context, boot, awake func() time.Duration) <-chan Gap {
	ch := make(chan Gap, 1)
	go func() {
		defer close(ch)
		d := GapDetector{Every: 500 * time.Millisecond, MinSleep: 500 * time.Millisecond, MinStall: 3 * time.Second}
		tick := time.NewTicker(d.Every)
		defer tick.Stop()
		for {
			if gap, ok := d.Observe(boot(), awake()); ok {
				select {
				case ch <- gap:
				default:
				}
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return ch
}
