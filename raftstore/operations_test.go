package raftstore

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"muster/raftstore/logstore"
)

// Invariant 12: each named operation of the disk fails once while a store is opened after its machine went down,
// written to, copied to a snapshot and closed. An operation that is never met is an error; whatever failed, nothing
// acknowledged is lost, and the next start is whole.
func TestEachOperationOfTheDiskFails(t *testing.T) {
	t.Parallel()
	base, _, _, _ := stopped(t, nil)
	for _, op := range Operations(logstore.Default) {
		for _, how := range []error{errors.New("the disk says no"), logstore.ErrShort} {
			if how == logstore.ErrShort && op != "log-write" {
				continue
			}
			n := base.copied(t)
			writeMarker(t, n, marker{Server: n.server, Boot: "earlier", Open: true})
			var met atomic.Int32
			n.tune = func(c *Config) {
				c.Fault = func(at string) error {
					if at == op && met.Add(1) == 1 {
						return how
					}
					return nil
				}
			}
			acknowledged := 40
			if s, err := n.tryOpen(); err == nil {
				waitFor(t, "it leads, or has failed", func() bool {
					_, ok := s.LeaderTerm()
					return ok || s.Err() != nil
				})
				for range 5 {
					if s.Err() == nil && s.Do(ctx(t), toy(verbAdd, "a")).Err == nil {
						acknowledged++
					}
				}
				if s.Err() == nil {
					_ = s.Snapshot(ctx(t)) // it may fail: that is no reason to stop
				}
				n.take()
				_ = s.Close()
			}
			if met.Load() == 0 && op != "log-create" { // a segment is made when one is full
				t.Errorf("%s was never met", op)
			}
			n.tune = nil
			s := n.open()
			waitLeads(t, s)
			if a := counter(t, s, "a"); a < acknowledged {
				t.Errorf("%s (%v): %d were acknowledged, and %d are there", op, how, acknowledged, a)
			}
			n.close()
		}
	}
}

// A disk that hangs in an operation that others wait for is told within the watchdog's bound, and nobody is answered as done.
func TestEachOperationThatHangs(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"log-write", "log-sync", "state-commit"} {
		hold, armed := make(chan struct{}), atomic.Bool{}
		n, s := single(t, func(c *Config) {
			c.SlowDisk = 300 * time.Millisecond
			c.Fault = func(at string) error {
				if at == op && armed.Load() {
					<-hold
				}
				return nil
			}
		})
		must(t, s.Do(ctx(t), toy(verbAdd, "a")))
		armed.Store(true)
		res := s.Do(ctx(t), toy(verbAdd, "a"))
		if res.Err == nil {
			t.Errorf("%s: a write is acknowledged by a disk that hangs", op)
		}
		select {
		case <-s.Failed():
		case <-time.After(10 * time.Second):
			t.Errorf("%s: a disk that hangs is not noticed", op)
		}
		close(hold)
		n.take()
		_ = s.Close()
	}
}
