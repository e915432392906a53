package logstore

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Stats are counts since Open.
type Stats struct {
	Appends     uint64 // calls of StoreLogs that wrote
	Entries     uint64
	Bytes       uint64 // encoded entries
	Stable      uint64 // stable values written
	Truncations uint64
	Syncs       uint64 // fsync and fdatasync of files and folders; for bbolt two a commit, which misses file growth

	// Of all writes, from getting the turn to the disk's answer; within 7 %.
	P50, P99, Max time.Duration
}

type counters struct {
	appends, entries, bytes, stable, truncations atomic.Uint64
	took                                         histogram
}

// Stats returns the counts so far.
func (l *Log) Stats() Stats {
	c := &l.count
	return Stats{
		Appends: c.appends.Load(), Entries: c.entries.Load(), Bytes: c.bytes.Load(), Stable: c.stable.Load(),
		Truncations: c.truncations.Load(), Syncs: l.in.syncs(),
		P50: c.took.quantile(0.50), P99: c.took.quantile(0.99), Max: time.Duration(c.took.max.Load()),
	}
}

// histogram of durations with eight steps to a power of two.
type histogram struct {
	bucket [64 * 8]atomic.Uint64
	max    atomic.Int64
}

func (h *histogram) add(d time.Duration) {
	h.bucket[bucketOf(uint64(max(d, 1)))].Add(1)
	for {
		old := h.max.Load()
		if int64(d) <= old || h.max.CompareAndSwap(old, int64(d)) {
			return
		}
	}
}

func bucketOf(n uint64) int {
	if n < 8 {
		return int(n)
	}
	top := bits.Len64(n) - 1
	return top*8 + int(n>>(top-3)&7)
}

// quantile is the middle of the bucket in which the q-th part of all values lies; 0 without values.
func (h *histogram) quantile(q float64) time.Duration {
	total := uint64(0)
	for i := range h.bucket {
		total += h.bucket[i].Load()
	}
	want, seen := uint64(float64(total)*q), uint64(0)
	for i := range h.bucket {
		seen += h.bucket[i].Load()
		if seen > want {
			if i < 8 {
				return time.Duration(i)
			}
			top := i / 8
			return time.Duration(uint64(8+i%8)<<(top-3) + uint64(1)<<(top-3)/2)
		}
	}
	return 0
}
