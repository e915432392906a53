package raftstore

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"muster/board"
)

// idleExecutor is an executor without Raft, for what it waits for and how long.
func idleExecutor(t *testing.T) (*executor, context.CancelFunc) {
	t.Helper()
	s := &Store{cfg: DefaultConfig()}
	ctx, cancel := context.WithCancelCause(context.Background())
	s.ctx, s.stop = ctx, cancel
	return newExecutor(s), func() { cancel(ErrClosed) }
}

// took is how long fn took, in the time of the bubble.
func took(fn func()) time.Duration {
	from := time.Now()
	fn()
	return time.Since(from)
}

func (x *executor) file(n int) {
	for range n {
		x.queue.push(&call{req: toy(verbAdd, "a"), size: 1, done: make(chan board.Result, 1)})
	}
}

// §2 "One entry in flight": after large batches the next one waits for as many as four fifths of the two before held, but no longer
// than half of what a batch took, and never longer than Linger; after small ones it waits for nobody.
func TestBatchWaits(t *testing.T) {
	for name, c := range map[string]struct {
		before  [2]int
		took    time.Duration
		now     int // requests that are there
		later   int // that come a millisecond later
		n       int // taken
		waits   time.Duration
		stopped bool
	}{
		"after small batches, not":     {before: [2]int{4, 4}, took: 12 * time.Millisecond, now: 1, later: 9, n: 1},
		"until enough are there":       {before: [2]int{20, 20}, took: 12 * time.Millisecond, now: 1, later: 31, n: 32, waits: time.Millisecond},
		"enough are there":             {before: [2]int{20, 20}, took: 12 * time.Millisecond, now: 32, later: 1, n: 32},
		"half as long as a batch took": {before: [2]int{20, 20}, took: 6 * time.Millisecond, now: 1, later: 30, n: 31, waits: 3 * time.Millisecond},
		"no longer than Linger":        {before: [2]int{20, 20}, took: time.Second, now: 1, later: 30, n: 31, waits: DefaultConfig().Linger},
		"not when the store stops":     {before: [2]int{20, 20}, took: time.Second, now: 1, n: 1, stopped: true},
		"no more than a batch may":     {before: [2]int{900, 900}, took: 12 * time.Millisecond, now: 200, later: 100, n: batchRequests, waits: time.Millisecond},
		"nothing is there: no waiting": {before: [2]int{20, 20}, took: 12 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, stop := idleExecutor(t)
				defer stop()
				x.sizes, x.took = c.before, c.took
				x.file(c.now)
				go func() {
					time.Sleep(time.Millisecond)
					x.file(c.later)
				}()
				if c.stopped {
					stop()
				}
				var calls []*call
				if d := took(func() { calls = x.take() }); d != c.waits || len(calls) != c.n {
					t.Errorf("%d requests after %v, want %d after %v", len(calls), d, c.n, c.waits)
				}
				if c.now > 0 && x.sizes != [2]int{c.before[1], c.n} {
					t.Errorf("remembered are batches of %v", x.sizes)
				}
				time.Sleep(time.Second)
			})
		})
	}
	t.Run("switched off", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			x, stop := idleExecutor(t)
			defer stop()
			x.s.cfg.Linger, x.sizes, x.took = 0, [2]int{20, 20}, time.Second
			x.file(1)
			if d := took(func() { x.take() }); d != 0 {
				t.Errorf("it waited for %v", d)
			}
		})
	})
}

// News of leadership wakes an executor that does not lead, and one whose term could not begin, at once; a request and a
// question to hand over do too. Without any it looks again after a while.
func TestExecutorWakes(t *testing.T) {
	for name, c := range map[string]struct {
		wake func(x *executor, stop func())
		wait func(x *executor)
		want time.Duration
	}{
		"idle: leadership":  {func(x *executor, _ func()) { signal(x.lead) }, (*executor).idle, 0},
		"idle: a request":   {func(x *executor, _ func()) { signal(x.queue.signal) }, (*executor).idle, 0},
		"idle: a transfer":  {func(x *executor, _ func()) { go func() { x.give <- &giveUp{done: make(chan error, 1)} }() }, (*executor).idle, 0},
		"idle: the end":     {func(_ *executor, stop func()) { stop() }, (*executor).idle, 0},
		"idle: nothing":     {func(*executor, func()) {}, (*executor).idle, lookAgain},
		"again: leadership": {func(x *executor, _ func()) { signal(x.lead) }, (*executor).again, 0},
		"again: the end":    {func(_ *executor, stop func()) { stop() }, (*executor).again, 0},
		"again: nothing":    {func(*executor, func()) {}, (*executor).again, beginAgain},
		"idle: what is left": {func(x *executor, _ func()) {
			x.carry, x.since = []*call{{done: make(chan board.Result, 1)}}, time.Now()
		}, (*executor).idle, LAN().Election},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, stop := idleExecutor(t)
				defer stop()
				c.wake(x, stop)
				if d := took(func() { c.wait(x) }); d != c.want {
					t.Errorf("it woke after %v, want %v", d, c.want)
				}
			})
		})
	}
}

// A leader that loses its leadership while nothing is asked of it ends its term at that moment, not at its next look.
func TestLostLeadershipEndsTheTermAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		_, nodes := three(t, nil)
		s := leader(t, nodes).s
		synctest.Wait()
		if err := s.raft.Load().LeadershipTransfer().Error(); err != nil { // behind the executor's back
			t.Fatal(err)
		}
		synctest.Wait()
		if term := s.exec.term.Load(); term != 0 {
			t.Errorf("it is still ready in term %d", term)
		}
	})
}
