package raftstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"muster/board"
)

// asked lets a test answer for the voters.
type asked struct {
	mu    sync.Mutex
	term  func(server string, real uint64) (uint64, error)
	clock func(server string) (time.Time, error)
	n     atomic.Int64
}

func (a *asked) tune(c *Config) {
	real := c.AskTerm
	c.AskTerm = func(ctx context.Context, server string) (uint64, error) {
		a.n.Add(1)
		t, err := real(ctx, server)
		a.mu.Lock()
		f := a.term
		a.mu.Unlock()
		if err == nil && f != nil {
			return f(server, t)
		}
		return t, err
	}
	clock := c.AskClock
	c.AskClock = func(ctx context.Context, server string) (time.Time, error) {
		a.mu.Lock()
		f := a.clock
		a.mu.Unlock()
		if f != nil {
			return f(server)
		}
		return clock(ctx, server)
	}
}

func (a *asked) setTerm(f func(string, uint64) (uint64, error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.term = f
}

// §2: what writes nothing is answered only when a majority of the voters, asked
// after it came in, is still in the batch's term.
func TestAnswerThatWritesNothingAsksTheVoters(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		var a asked
		_, nodes := three(t, a.tune)
		l := leader(t, nodes)
		must(t, l.s.Do(ctx(t), toy(verbAdd, "a")))
		before := a.n.Load()
		for _, verb := range []string{verbGet, verbAbove} {
			r := l.s.Do(ctx(t), toyN(verb, "a", 1, 0)) // a read, and a refusal
			if verb == verbGet && string(r.Data) != "1" || verb == verbAbove && !isCode(r, board.Refused, "") {
				t.Fatalf("%s: %+v", verb, r)
			}
		}
		if n := a.n.Load() - before; n < 2 || n > 4 {
			t.Fatalf("two answers that write nothing asked voters %d times", n)
		}
		for name, f := range map[string]func(string, uint64) (uint64, error){
			"in a later term": func(_ string, t uint64) (uint64, error) { return t + 1, nil },
			"do not answer":   func(string, uint64) (uint64, error) { return 0, errInjected },
		} {
			a.setTerm(f)
			for _, verb := range []string{verbGet, verbAbove} {
				short, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
				r := l.s.Do(short, toyN(verb, "a", 1, 0))
				cancel()
				if r.Err == nil || r.Err.Code == board.Refused {
					t.Errorf("voters %s, and %s was answered: %+v", name, verb, r)
				}
			}
			if _, err := l.s.Confirm(ctx(t)); !errors.Is(err, ErrNotLeader) {
				t.Errorf("voters %s, and Confirm said %v", name, err)
			}
			if r := l.s.Do(ctx(t), toy(verbAdd, "b")); r.Err != nil && r.Err.Code == board.Refused {
				t.Errorf("a write needs no question: %+v", r)
			}
		}
		one := nodes[1].server
		a.setTerm(func(server string, t uint64) (uint64, error) { // one of two is enough: with the leader a majority
			if server == one {
				return 0, errInjected
			}
			return t, nil
		})
		waitFor(t, "a majority confirms", func() bool { return leader(t, nodes).s.Do(ctx(t), toy(verbGet, "a")).Err == nil })
	})
}

// Refusals and reads that share a batch with a write need no question: the commit confirms the term.
func TestAnswerBesideAWriteAsksNobody(t *testing.T) {
	t.Parallel()
	var a asked
	s, g := gated(t, a.tune)
	release := g.hold()
	first := inFlight(t, s, toy(verbAdd, "a"))
	before := s.exec.questions.Load()
	var wg sync.WaitGroup
	for _, verb := range []string{verbAdd, verbGet, verbAbove} {
		wg.Go(func() { s.Do(ctx(t), toyN(verb, "a", 0, 0)) })
	}
	waitFor(t, "they wait", func() bool { return waiting(s) == 3 })
	release()
	wg.Wait()
	must(t, <-first)
	if q := s.exec.questions.Load() - before; q != 0 {
		t.Fatalf("a batch that writes asked %d questions", q)
	}
}

// Concurrent callers that came before a round started share it; one that came after does not.
func TestConfirmSharesRounds(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		var a asked
		_, nodes := three(t, a.tune)
		l := leader(t, nodes)
		gate := make(chan struct{})
		a.setTerm(func(_ string, t uint64) (uint64, error) { <-gate; return t, nil })
		before := a.n.Load()
		var wg sync.WaitGroup
		var bad atomic.Int64
		confirm := func() {
			if _, err := l.s.Confirm(ctx(t)); err != nil {
				bad.Add(1)
			}
		}
		wg.Go(confirm)
		waitFor(t, "the first round has asked", func() bool { return a.n.Load() == before+2 })
		for range 50 {
			wg.Go(confirm)
		}
		waitFor(t, "50 wait", func() bool { l.s.votes.mu.Lock(); defer l.s.votes.mu.Unlock(); return len(l.s.votes.waiting) == 50 })
		if n := a.n.Load() - before; n != 2 {
			t.Fatalf("asked %d times while a round was on its way", n)
		}
		close(gate)
		wg.Wait()
		if n := a.n.Load() - before; n != 4 || bad.Load() > 0 {
			t.Fatalf("51 callers asked %d times, want 4 (two rounds); %d failed", n, bad.Load())
		}
	})
}

// M-02, §2: board time is the lower median of the voters' clocks, or the
// state's last time if that is later; it then follows the boot clock and no
// wall clock, and never goes back.
func TestBoardTime(t *testing.T) {
	t.Parallel()
	var boot, wall atomic.Int64 // ms
	wall.Store(1_000_000)
	n, s := single(t, func(c *Config) {
		c.BootClock = func() time.Duration { return time.Duration(boot.Load()) * time.Millisecond }
		c.Wall = func() time.Time { return time.UnixMilli(wall.Load()) }
	})
	stamp := func() int64 {
		t.Helper()
		must(t, s.Do(ctx(t), toy(verbAdd, "a")))
		if now, stored := s.BoardTime(), s.state.now().Time; now != stored {
			t.Fatalf("the clock says %d, stamped was %d", now, stored)
		}
		return s.state.now().Time
	}
	if got := stamp(); got != 1_000_000 {
		t.Fatalf("first stamp %d", got)
	}
	wall.Store(9_000_000_000) // a wall clock steps: nothing follows
	boot.Store(500)
	if got := stamp(); got != 1_000_500 || s.BoardTime() != got {
		t.Fatalf("after a step of the wall clock and 500 ms: %d, BoardTime %d", got, s.BoardTime())
	}
	boot.Store(100) // a boot clock that goes back (a virtual machine): time stands
	if got := stamp(); got != 1_000_500 {
		t.Fatalf("after the boot clock went back: %d", got)
	}
	n.close()
	wall.Store(5) // the next term's clocks are behind the state
	boot.Store(0)
	s = n.open()
	waitLeads(t, s)
	if got := stamp(); got != 1_000_500 {
		t.Fatalf("a term with clocks behind the state stamps %d", got)
	}
}

func TestLowerMedian(t *testing.T) {
	t.Parallel()
	for want, v := range map[int64][]int64{1: {1}, 2: {9, 2}, 5: {5, 100, 1}, 4: {4, 9, 1, 7}} {
		if got := lowerMedian(v); got != want {
			t.Errorf("of %v: %d, want %d", v, got, want)
		}
	}
}

// Without the clocks of a majority no term begins.
func TestTermNeedsTheClocksOfAMajority(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		var a asked
		_, nodes := three(t, a.tune)
		leader(t, nodes)
		a.mu.Lock()
		a.clock = func(string) (time.Time, error) { return time.Time{}, errInjected }
		a.mu.Unlock()
		l := leader(t, nodes)
		rounds := func() (n uint64) {
			for _, x := range nodes {
				n += x.s.exec.rounds.Load()
			}
			return n
		}
		// whoever becomes Raft's leader now, its executor does not begin
		if err := l.s.Transfer(ctx(t)); err != nil {
			t.Fatal(err)
		}
		before := rounds()
		waitFor(t, "another one is Raft's leader", func() bool { id, _ := l.s.Leader(); return id != "" && id != l.server })
		short, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		for _, n := range nodes {
			if r := n.s.Do(short, toy(verbAdd, "a")); r.Err == nil {
				t.Fatalf("%s executed without the clocks of a majority", n.server)
			}
		}
		if rounds() != before {
			t.Fatal("a batch was executed")
		}
		a.mu.Lock()
		a.clock = nil
		a.mu.Unlock()
		waitFor(t, "it leads when the clocks answer", func() bool { return leader(t, nodes).s.Do(ctx(t), toy(verbAdd, "a")).Err == nil })
	})
}

// A machine more than a minute off the median of three gives up leading.
func TestWrongClockDoesNotLead(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		var off atomic.Bool
		_, nodes := three(t, func(c *Config) {
			if c.Server == "n2/s1" {
				c.Wall = func() time.Time {
					if off.Load() {
						return time.Now().Add(time.Hour)
					}
					return time.Now()
				}
			}
		})
		bad := nodes[1]
		waitFor(t, "a sound clock leads", func() bool {
			if l := leader(t, nodes); l == bad {
				_ = l.s.Transfer(ctx(t))
				return false
			}
			return true
		})
		off.Store(true)
		for range 4 {
			l := leader(t, nodes)
			if l == bad {
				t.Fatalf("a clock one hour ahead leads (off by %v)", l.s.ClockOff())
			}
			must(t, l.s.Do(ctx(t), toy(verbAdd, "a")))
			if ahead := l.s.BoardTime() - time.Now().UnixMilli(); ahead > 60_000 {
				t.Fatalf("board time is %d ms ahead", ahead)
			}
			_ = l.s.Transfer(ctx(t)) // to the wrong clock, sooner or later
		}
	})
}
