package launcher

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"muster/board"
	"muster/board/lease"
)

// outbox sends what the journal has filed: in order, one on its way at a time,
// each until it has an outcome. A refusal is one; no leader is none.
type outbox struct {
	r *Reconciler

	mu    sync.Mutex
	items []*item
	more  chan struct{} // one slot: there may be items
	again chan struct{} // one slot: there may be a leader
}

func newOutbox(r *Reconciler, items []*item) *outbox {
	return &outbox{r: r, items: items, more: make(chan struct{}, 1), again: make(chan struct{}, 1)}
}

func (o *outbox) add(it *item) {
	o.mu.Lock()
	o.items = append(o.items, it)
	o.mu.Unlock()
	notify(o.more)
}

func (o *outbox) kick() { notify(o.again) }

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (o *outbox) head() *item {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.items) == 0 {
		return nil
	}
	return o.items[0]
}

func (o *outbox) pop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.items[0] = nil
	o.items = o.items[1:]
}

// waiting is the number of items without outcome.
func (o *outbox) waiting() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.items)
}

// Unsent is the number of reports that wait for an outcome.
func (r *Reconciler) Unsent() int { return r.box.waiting() }

// hasWord tells whether a word is filed under this request id.
func (o *outbox) hasWord(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, it := range o.items {
		if it.Act == lease.ActWord && it.Word != nil && it.Word.ID == id {
			return true
		}
	}
	return false
}

// send is the outbox's goroutine.
func (o *outbox) send() {
	defer o.r.wg.Done()
	for {
		it := o.head()
		if it == nil {
			select {
			case <-o.more:
				continue
			case <-o.r.stop:
				return
			}
		}
		res, ok := o.deliver(it)
		if !ok {
			return
		}
		o.pop()
		o.r.post(func() { o.r.outcome(it, res) })
	}
}

// deliver asks until there is an outcome; false when the launcher closes.
func (o *outbox) deliver(it *item) (board.Result, bool) {
	retry := false
	for tries := 1; ; tries++ {
		at(atSend)
		ctx, cancel := context.WithTimeout(o.r.ctx, sendWait)
		res := o.r.cfg.Send(ctx, o.r.request(it, retry))
		cancel()
		if o.r.ctx.Err() != nil {
			return res, false
		}
		if isOutcome(res) {
			at(atAnswered)
			return res, true
		}
		if res.Err.Code == board.Internal && tries >= poisonTries {
			// One item that the leader cannot digest must not hold up all others (invariant 22).
			o.r.log.Error("report given up", "run", it.Run, "report", reportName(it.Act), "message", res.Err.Message)
			return res, true
		}
		retry = true // whatever became of this copy, the next is a later one
		if tries == 1 || tries%50 == 0 {
			o.r.log.Debug("report waits for a leader", "run", it.Run, "report", reportName(it.Act), "tries", tries, "message", res.Err.Message)
		}
		if !o.r.pause(o.r.ctx, o.again, tries) {
			return res, false
		}
	}
}

const (
	sendWait    = 15 * time.Second
	poisonTries = 20
)

// isOutcome tells whether an answer is one: done, or refused for good. A leader
// that could not be asked, or may or may not have done it, is asked again.
func isOutcome(res board.Result) bool {
	if res.Err == nil {
		return true
	}
	switch res.Err.Code {
	case board.Unavailable, board.Internal:
		return false
	case board.UnknownOutcome:
		return res.Err.Check == board.CheckBelow // too old to be told, for ever
	}
	return true
}

// pause waits before the next try: longer each time, until woken. False when
// the context is over.
func (r *Reconciler) pause(ctx context.Context, again <-chan struct{}, tries int) bool {
	d := min(10*time.Millisecond<<min(tries, 8), 2*time.Second)
	t := time.NewTimer(d/2 + rand.N(d/2))
	defer t.Stop()
	select {
	case <-t.C:
	case <-again:
	case <-ctx.Done():
		return false
	}
	return true
}
