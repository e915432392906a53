package raftstore

import (
	"context"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"
)

// confirmer answers "do I still lead?" by a question to the voters that is
// sent after it was asked: a majority, this node included, whose Raft term is
// still the one this node leads in. (Raft's own VerifyLeader counts answers to
// heartbeats that were under way before, and counts replicas.) One round
// serves everybody who waits when it starts.
type confirmer struct {
	s       *Store
	mu      sync.Mutex
	waiting []chan confirmed
	running bool
}

type confirmed struct {
	term uint64
	err  error
}

func newConfirmer(s *Store) *confirmer { return &confirmer{s: s} }

// Confirm returns the term in which this node leads, confirmed by a majority
// of the voters after the call came in. ErrNotLeader if it does not, or if no
// majority answers in time.
func (s *Store) Confirm(ctx context.Context) (term uint64, err error) { return s.votes.confirm(ctx, 0) }

// confirm asks for a term, or for whichever this node leads in (0).
func (c *confirmer) confirm(ctx context.Context, term uint64) (uint64, error) {
	me := make(chan confirmed, 1)
	c.mu.Lock()
	c.waiting = append(c.waiting, me)
	if !c.running {
		c.running = true
		go c.rounds() // ends by itself: every question has an end
	}
	c.mu.Unlock()
	select {
	case got := <-me:
		if got.err == nil && term != 0 && got.term != term {
			got.err = fmt.Errorf("%w: term %d is over", ErrNotLeader, term)
		}
		return got.term, got.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	case <-c.s.ctx.Done():
		return 0, context.Cause(c.s.ctx)
	}
}

func (c *confirmer) rounds() {
	for {
		c.mu.Lock()
		list := c.waiting
		c.waiting = nil
		if len(list) == 0 {
			c.running = false
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		term, err := c.round()
		for _, w := range list {
			w <- confirmed{term, err}
		}
	}
}

// round asks all voters at once and returns as soon as a majority has answered.
func (c *confirmer) round() (uint64, error) {
	r := c.s.raft.Load()
	term := c.s.exec.term.Load()
	if term == 0 || !c.s.exec.leads(r, term) {
		return 0, ErrNotLeader
	}
	ctx, cancel := context.WithTimeout(c.s.ctx, 2*c.s.cfg.Timers.Election)
	defer cancel()
	same := func(t uint64, _ bool) bool { return t == term }
	if err := askVoters(ctx, c.s, r, c.s.cfg.AskTerm, term, same); err != nil {
		return 0, fmt.Errorf("%w: term %d is not confirmed: %w", ErrNotLeader, term, err)
	}
	if !c.s.exec.leads(r, term) {
		return 0, fmt.Errorf("%w: term %d is over", ErrNotLeader, term)
	}
	return term, nil
}

// askVoters puts a question to every other voter and returns when a majority,
// this node included with its own answer, is counted by ok.
func askVoters[T any](ctx context.Context, s *Store, r *raft.Raft, ask func(context.Context, string) (T, error),
	own T, ok func(T, bool) bool) error {
	var others []string
	voters, mine := 0, false
	for _, v := range r.GetConfiguration().Configuration().Servers {
		if v.Suffrage != raft.Voter {
			continue
		}
		voters++
		if string(v.ID) == s.cfg.Server {
			mine = true
		} else {
			others = append(others, string(v.ID))
		}
	}
	need, open := voters/2+1, len(others)
	if mine && ok(own, true) {
		need--
	}
	if need <= 0 {
		return nil
	}
	if ask == nil {
		return fmt.Errorf("there is no way to ask the voters")
	}
	answers := make(chan bool, len(others))
	for _, id := range others {
		go func() {
			got, err := ask(ctx, id)
			answers <- err == nil && ok(got, false)
		}()
	}
	for ; open >= need && open > 0; open-- {
		select {
		case yes := <-answers:
			if yes {
				if need--; need == 0 {
					return nil
				}
			}
		case <-ctx.Done():
			return fmt.Errorf("%d more of %d voters must answer: %w", need, voters, context.Cause(ctx))
		}
	}
	return fmt.Errorf("%d more of %d voters must agree", need, voters)
}
