package scheduler

import "maps"

// passed is what the loop remembers beside the state, for who plans from outside:
// which nodes and which cards it passes by, until when.
type passed struct {
	nodes map[string]passedNode
	cards map[string]int64
}

type passedNode struct {
	until int64
	why   string
}

// passBy keeps which nodes this plan passes by.
func (l *Loop) passBy(in Input) {
	by := map[string]passedNode{}
	for node := range l.asides.nodes {
		if until, why := in.Aside(node); until > 0 {
			by[node] = passedNode{until, why}
		}
	}
	l.mu.Lock()
	l.passed.nodes = by
	l.mu.Unlock()
}

// putOff keeps which cards are not tried now, because the executor refused them.
func (l *Loop) putOff() {
	l.mu.Lock()
	if len(l.backoff.at)+len(l.passed.cards) > 0 {
		l.passed.cards = maps.Clone(l.backoff.at)
	}
	l.mu.Unlock()
}

// Aside tells which nodes the loop passes by, as [Input].Aside does; it may be called from anywhere.
func (l *Loop) Aside(node string) (until int64, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.passed.nodes[node]
	return p.until, p.why
}

// Rank is a candidate's place in its board's queue, as [Input].Rank is; it may be called from anywhere.
func (l *Loop) Rank(c *Candidate) int { return l.queue.rank(c) }

// Later tells which cards are not tried now, as [Input].Later does; it may be called from anywhere.
func (l *Loop) Later(card string) (until int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.passed.cards[card]
}
