package scheduler

import "container/heap"

// timers are board times (ms) at which something is looked at again, one a key.
// Setting, taking away and finding the earliest cost the logarithm of their
// number: a round does not walk through all that wait for a time.
type timers struct {
	at    map[string]int64
	queue timerHeap // may hold moments that were moved or taken away since
}

type timer struct {
	at  int64
	key string
}

type timerHeap []timer

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h timerHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *timerHeap) Push(x any)        { *h = append(*h, x.(timer)) }
func (h *timerHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

func newTimers() *timers { return &timers{at: map[string]int64{}} }

// set moves the key's moment to at.
func (t *timers) set(key string, at int64) {
	if t.at[key] == at {
		return
	}
	t.at[key] = at
	heap.Push(&t.queue, timer{at, key})
	if len(t.queue) > 2*len(t.at)+64 { // most of it is out of date
		t.queue = t.queue[:0]
		for k, at := range t.at {
			t.queue = append(t.queue, timer{at, k})
		}
		heap.Init(&t.queue)
	}
}

func (t *timers) remove(key string) { delete(t.at, key) }

// due takes out what has come, earliest first.
func (t *timers) due(now int64) (keys []string) {
	for t.settle(); len(t.queue) > 0 && t.queue[0].at <= now; t.settle() {
		key := t.queue[0].key
		delete(t.at, key)
		keys = append(keys, key)
	}
	return keys
}

// next is the earliest moment, 0 without one.
func (t *timers) next() int64 {
	if t.settle(); len(t.queue) > 0 {
		return t.queue[0].at
	}
	return 0
}

// settle drops from the front what does not hold any more.
func (t *timers) settle() {
	for len(t.queue) > 0 && t.at[t.queue[0].key] != t.queue[0].at {
		heap.Pop(&t.queue)
	}
}
