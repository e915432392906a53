package raftstore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// clockDoubt is how far it may be before all voters are waited for, not only a majority.
const clockDoubt, clockPatience = 5 * time.Second, 300 * time.Millisecond

// clockAlarm is how far this machine's clock may be from the voters' median before it gives up leading.
const clockAlarm = time.Minute

// clockTries is how often it tries to hand over before it leads all the same: nobody else may be able to.
const clockTries = 20

// boardClock stamps board time, on the leader. At the start of a term it is
// the later of the state's last time and the lower median of the voters'
// clocks; then it advances with elapsed time, sleep included, whatever a wall
// clock does. It never goes back.
type boardClock struct {
	s   *Store
	mu  sync.Mutex
	set bool
	at  time.Duration // boot clock at base
	max int64         // newest stamp given

	base int64
	off  atomic.Int64
}

// begin sets the clock for a term. off is how far this machine's wall clock is
// from the median; it is only judged with three answers or more, since of two
// clocks nobody can tell which is wrong. An error: no majority answered.
func (c *boardClock) begin(r *raft.Raft, term uint64) (off time.Duration, err error) {
	ctx, cancel := context.WithTimeout(c.s.ctx, 2*c.s.cfg.Timers.Election)
	defer cancel()
	own := c.s.cfg.Wall()
	answers := clockAnswers{more: make(chan struct{}, 1)}
	if err := askVoters(ctx, c.s, r, c.s.cfg.AskClock, own, answers.note); err != nil {
		return 0, fmt.Errorf("clocks of the voters: %w", err)
	}
	times, off := answers.judge(own)
	for end := time.After(clockPatience); off.Abs() > clockDoubt && len(times) < 3; times, off = answers.judge(own) {
		select {
		case <-answers.more:
			continue
		case <-end:
		case <-ctx.Done():
		}
		break
	}
	median := lowerMedian(times)
	c.off.Store(int64(off))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.base = max(c.s.state.now().Time, median)
	c.at = c.s.cfg.BootClock()
	c.set = true
	if len(times) < 3 {
		off = 0
	}
	return off, nil
}

// clockAnswers collects what voters say, also after a majority has.
type clockAnswers struct {
	mu    sync.Mutex
	times []int64
	more  chan struct{}
}

func (a *clockAnswers) note(t time.Time, _ bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.times = append(a.times, t.UnixMilli())
	signal(a.more)
	return true
}

func (a *clockAnswers) judge(own time.Time) (times []int64, off time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	times = slices.Clone(a.times)
	return times, time.Duration(own.UnixMilli()-lowerMedian(times)) * time.Millisecond
}

func lowerMedian(v []int64) int64 {
	v = slices.Sorted(slices.Values(v))
	return v[(len(v)-1)/2]
}

// now is the board time, ms; false before the first term.
func (c *boardClock) now() (int64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.set {
		return 0, false
	}
	c.max = max(c.max, c.base+(c.s.cfg.BootClock()-c.at).Milliseconds())
	return c.max, true
}
