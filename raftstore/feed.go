package raftstore

import (
	"sync"
	"sync/atomic"

	"muster/board"
)

// Key names one record of the state.
type Key struct {
	Table board.Table
	Key   string
}

// feedLimit is how many changed keys a subscriber may leave lying; beyond, it is told to read everything again.
const feedLimit = 4096

// Sub is a subscription to changes of the local state. The signal comes after
// the change can be read.
type Sub struct {
	C <-chan struct{} // one slot: something changed since the last Take

	c      chan struct{}
	filter func(board.Table, string) bool
	feed   *feed

	mu   sync.Mutex
	keys map[Key]struct{}
	over bool
}

// Take returns the keys changed since the last Take, in no order. all means
// that there were too many, or that the state was replaced: read everything.
func (s *Sub) Take() (keys []Key, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all = s.over
	if !all {
		keys = make([]Key, 0, len(s.keys))
		for k := range s.keys {
			keys = append(keys, k)
		}
	}
	s.keys, s.over = nil, false
	return keys, all
}

// Close ends the subscription. C is not closed.
func (s *Sub) Close() {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	delete(s.feed.subs, s)
	s.feed.n.Store(int64(len(s.feed.subs)))
}

func (s *Sub) signal() {
	select {
	case s.c <- struct{}{}:
	default:
	}
}

func (s *Sub) add(keys []Key) {
	s.mu.Lock()
	any := false
	for _, k := range keys {
		if s.filter != nil && !s.filter(k.Table, k.Key) {
			continue
		}
		any = true
		if s.over {
			break
		}
		if s.keys == nil {
			s.keys = map[Key]struct{}{}
		}
		if s.keys[k] = struct{}{}; len(s.keys) > feedLimit {
			s.keys, s.over = nil, true
		}
	}
	s.mu.Unlock()
	if any {
		s.signal()
	}
}

// feed hands changes to subscribers without ever waiting for one.
type feed struct {
	mu   sync.Mutex
	subs map[*Sub]struct{}
	n    atomic.Int64
}

func (f *feed) watched() bool { return f.n.Load() > 0 }

// changed tells of keys; told is false when they were not collected, because
// nobody was subscribed when the write began: who came meanwhile reads again.
func (f *feed) changed(keys []Key, told bool) {
	if !told {
		f.all()
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.subs {
		s.add(keys)
	}
}

func (f *feed) all() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.subs {
		s.mu.Lock()
		s.keys, s.over = nil, true
		s.mu.Unlock()
		s.signal()
	}
}

// Subscribe tells of every change of a key for which filter (nil: any) says
// true. filter runs while entries are applied: it must be fast and take no
// lock. A new subscription begins with all, so that nothing between a read
// before and the subscription is missed.
func (s *Store) Subscribe(filter func(board.Table, string) bool) *Sub {
	c := make(chan struct{}, 1)
	sub := &Sub{C: c, c: c, filter: filter, feed: &s.feed, over: true}
	s.feed.mu.Lock()
	s.feed.subs[sub] = struct{}{}
	s.feed.n.Store(int64(len(s.feed.subs)))
	s.feed.mu.Unlock()
	sub.signal()
	return sub
}

// broadcast wakes everybody who waits for something to move.
type broadcast struct {
	mu sync.Mutex
	c  chan struct{}
}

func (b *broadcast) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.c == nil {
		b.c = make(chan struct{})
	}
	return b.c
}

func (b *broadcast) broadcast() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.c != nil {
		close(b.c)
		b.c = nil
	}
}
