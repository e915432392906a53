package logstore

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A write that does not come back is told after the time given, once; one that
// comes back in time never.
func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hung atomic.Int64
		stop := Watchdog(8*time.Second, func() { hung.Add(1) })
		time.Sleep(7 * time.Second)
		synctest.Wait()
		if hung.Load() != 0 {
			t.Fatal("told too soon")
		}
		stop()
		time.Sleep(time.Minute)
		synctest.Wait()
		if hung.Load() != 0 {
			t.Fatal("told of a write that came back")
		}
		Watchdog(8*time.Second, func() { hung.Add(1) })
		time.Sleep(time.Minute)
		synctest.Wait()
		if hung.Load() != 1 {
			t.Fatalf("told %d times", hung.Load())
		}
	})
}
