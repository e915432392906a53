package main

import (
	"testing"
	"time"
)

// P1, P8: a busy node may leave garbage lying, never more than its room; a quiet one, or one whose heap is large, keeps to Go's rule.
func TestGarbageRoom(t *testing.T) {
	for _, c := range []struct {
		what    string
		live    uint64
		since   time.Duration
		percent int
		want    int
	}{
		{"a quiet node", 8 << 20, time.Minute, goPercent, goPercent},
		{"a busy one", 8 << 20, 50 * time.Millisecond, goPercent, mostPercent},
		{"it stays busy though it collects less often", 8 << 20, 4 * busyInterval, mostPercent, mostPercent},
		{"it is quiet again", 8 << 20, 5 * busyInterval, mostPercent, goPercent},
		{"half the room is in use", 16 << 20, 50 * time.Millisecond, goPercent, 200},
		{"a large heap", 100 << 20, 50 * time.Millisecond, goPercent, goPercent},
		{"nothing lives", 0, 0, goPercent, mostPercent},
	} {
		if got := gcPercent(c.live, c.since, c.percent); got != c.want {
			t.Errorf("%s: %d %%, want %d", c.what, got, c.want)
		}
	}
}
