package raftstore

import (
	"sync/atomic"
	"time"
)

// TimeBounds are the upper bounds of [Times.Under]: from a write to memory up to a disk that is in trouble.
var TimeBounds = [...]time.Duration{time.Millisecond / 2, time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond,
	25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second}

// Times is how long something took, so far: Under[i] of Count took at most TimeBounds[i].
type Times struct {
	Count uint64
	Sum   time.Duration
	Under [len(TimeBounds)]uint64
}

// times counts durations; it may be used from many goroutines, and the three
// figures of one reading may be of moments next to each other.
type times struct {
	sum   atomic.Int64
	count atomic.Uint64
	in    [len(TimeBounds)]atomic.Uint64 // each in the first bound that holds it
}

func (t *times) add(d time.Duration) {
	for i, bound := range TimeBounds {
		if d <= bound {
			t.in[i].Add(1)
			break
		}
	}
	t.sum.Add(int64(d))
	t.count.Add(1)
}

func (t *times) read() Times {
	x := Times{Count: t.count.Load(), Sum: time.Duration(t.sum.Load())}
	total := uint64(0)
	for i := range t.in {
		total += t.in[i].Load()
		x.Under[i] = min(total, x.Count)
	}
	return x
}
