package scheduler

import (
	"slices"
	"sync"
)

// queue holds the candidates that wait, each signature in a line of its own, in
// order. Cards of one signature are refused alike, so that a round which finds
// no room for the first of a line is done with the line: its work is by lines
// and starts, not by cards.
//
// One goroutine changes and reads it. Others may ask for a rank: what changes the lines holds mu.
type queue struct {
	mu    sync.Mutex
	cards map[string]*Candidate
	lines map[string]*line
}

type line struct {
	cards  []*Candidate
	sorted bool
	said   string // check that the first of them waits for
	told   int    // so many of the first were told
}

func newQueue() *queue {
	return &queue{cards: map[string]*Candidate{}, lines: map[string]*line{}}
}

func (q *queue) clear() {
	q.mu.Lock()
	defer q.mu.Unlock()
	clear(q.cards)
	clear(q.lines)
}

func (q *queue) has(card string) bool { return q.cards[card] != nil }

// add puts candidates into their lines; the cards must not be in the queue. A
// few, beside what the line holds, are put in their places, for many the line is
// sorted when it is read: a long line is not sorted for a hundred changes (goal P7b).
func (q *queue) add(list []*Candidate) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, c := range list {
		q.cards[c.Card] = c
		l := q.lines[c.sig]
		if l == nil {
			l = &line{sorted: true}
			q.lines[c.sig] = l
		}
		if l.sorted && len(list) <= 32+len(l.cards)/8 {
			at, _ := slices.BinarySearchFunc(l.cards, c, before)
			l.cards = slices.Insert(l.cards, at, c)
			if at < l.told { // who comes is told by itself
				l.told++
			}
			continue
		}
		l.cards = append(l.cards, c)
		l.sorted, l.told = false, 0
	}
}

// remove takes a card out; one that is not there is no mistake.
func (q *queue) remove(card string) {
	c := q.cards[card]
	if c == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.cards, card)
	l := q.lines[c.sig]
	l.sort()
	if at, ok := slices.BinarySearchFunc(l.cards, c, before); ok {
		l.cards = slices.Delete(l.cards, at, at+1)
		if at < l.told {
			l.told--
		}
	}
	if len(l.cards) == 0 {
		delete(q.lines, c.sig)
	}
}

// sort is line.sort of a line that others may look at.
func (q *queue) sort(l *line) {
	if !l.sorted {
		q.mu.Lock()
		defer q.mu.Unlock()
		l.sort()
	}
}

// rank is a candidate's place among those of its board that wait, from 1, whether it waits itself or not: by lines,
// not by cards. It may be called from anywhere, and changes nothing.
func (q *queue) rank(me *Candidate) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := 1
	for _, l := range q.lines {
		if len(l.cards) == 0 || l.cards[0].board != me.board { // a line is of one board
			continue
		}
		if l.sorted {
			n, _ := slices.BinarySearchFunc(l.cards, me, before)
			at += n
			continue
		}
		for _, c := range l.cards { // it is sorted when its round reads it
			if before(c, me) < 0 {
				at++
			}
		}
	}
	return at
}

func (l *line) sort() {
	if !l.sorted {
		slices.SortFunc(l.cards, before)
		l.sorted = true
	}
}

// all goes through the whole queue in order, as one queue, leaving out the rest
// of a line for which done says so. Taking the card that is told out of the queue
// is allowed, nothing else may change it.
func (q *queue) all(done func(sig string) bool, fn func(*Candidate) bool) {
	var heads []*head
	for _, l := range q.lines {
		q.sort(l)
		heads = append(heads, &head{rest: slices.Clone(l.cards[:min(len(l.cards), headCards)]), line: l})
	}
	slices.SortFunc(heads, func(a, b *head) int { return before(a.rest[0], b.rest[0]) })
	for len(heads) > 0 {
		h := heads[0]
		c := h.rest[0]
		heads = heads[1:]
		if done(c.sig) {
			continue
		}
		if !fn(c) {
			return
		}
		if done(c.sig) || !h.next(c) {
			continue
		}
		at, _ := slices.BinarySearchFunc(heads, h, func(a, b *head) int { return before(a.rest[0], b.rest[0]) })
		heads = slices.Insert(heads, at, h)
	}
}

// headCards is how many cards of a line are looked at ahead.
const headCards = 64

// head is how far a line was read: cards that follow may leave it meanwhile.
type head struct {
	rest []*Candidate
	line *line
}

// next goes on behind c; false at the end of the line.
func (h *head) next(c *Candidate) bool {
	h.rest = h.rest[1:]
	if len(h.rest) > 0 {
		return true
	}
	at, here := slices.BinarySearchFunc(h.line.cards, c, before)
	if here {
		at++
	}
	h.rest = slices.Clone(h.line.cards[at:min(len(h.line.cards), at+headCards)])
	return len(h.rest) > 0
}
