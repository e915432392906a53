package tty

import (
	"sync"
	"time"
)

// room is what may still be sent before the other side has taken what is on its way.
type room struct {
	mu   sync.Mutex
	more sync.Cond
	left int
	over bool
}

func newRoom() *room {
	r := &room{left: window}
	r.more.L = &r.mu
	return r
}

// take waits for room and takes at most n bytes of it; 0 when it is over.
func (r *room) take(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.left == 0 && !r.over {
		r.more.Wait()
	}
	if r.over {
		return 0
	}
	n = min(n, r.left)
	r.left -= n
	return n
}

// give gives room back; false when that is more than there was.
func (r *room) give(n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left += n
	r.more.Broadcast()
	return r.left <= window
}

func (r *room) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	r.more.Broadcast()
}

// queue holds bytes between two goroutines, at most so many.
type queue struct {
	mu   sync.Mutex
	more sync.Cond
	most int
	b    []byte
	away int // taken, and not told to be done with
	over bool
}

func newQueue(most int) *queue {
	q := &queue{most: most}
	q.more.L = &q.mu
	return q
}

// add appends bytes; false, and nothing is appended, when there is no room for all.
func (q *queue) add(b []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over || len(q.b)+len(b) > q.most {
		return false
	}
	q.b = append(q.b, b...)
	q.more.Broadcast()
	return true
}

// take waits for bytes and moves at most len(to) of them; 0 when it is over.
func (q *queue) take(to []byte) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.b) == 0 && !q.over {
		q.more.Wait()
	}
	if q.over {
		return 0
	}
	n := copy(to, q.b)
	q.away += n
	if q.b = q.b[n:]; len(q.b) == 0 {
		q.b = nil // a paste's memory is not kept
	}
	return n
}

// end drops what is queued.
func (q *queue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over, q.b = true, nil
	q.more.Broadcast()
}

// took tells that bytes which were taken are where they belong.
func (q *queue) took(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.away -= n
	q.more.Broadcast()
}

// drain waits until all bytes are where they belong, for at most d.
func (q *queue) drain(d time.Duration) {
	late := false
	t := time.AfterFunc(d, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		late = true
		q.more.Broadcast()
	})
	defer t.Stop()
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.b)+q.away > 0 && !q.over && !late {
		q.more.Wait()
	}
}
