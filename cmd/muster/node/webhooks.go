package node

import (
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/scheduler"
)

// Webhooks are sent by who leads (M-21), each by a goroutine of its own: one that
// is slow or fails holds up neither a board nor another hook. How far each came
// is state, so that the next leader goes on there; what was taken and not yet
// noted is sent again under the same id.

const (
	hookPage   = 100              // events between two notes of how far a hook came
	hookScan   = 2000             // events that one reading of the state walks
	hookNote   = time.Second      // how long a note may wait for more
	hookIdle   = 20_000           // events of others after which a hook's cursor is noted all the same
	hookSoon   = 2 * time.Second  // the wait after a first failure; each one doubles it
	hookLatest = 2 * time.Hour    // the longest wait
	hookTime   = 15 * time.Second // for one answer
)

// hookWait is how long to wait after so many failures in a row.
func hookWait(failures int64) time.Duration {
	d := hookLatest
	if failures < 13 {
		d = min(hookSoon<<max(failures-1, 0), hookLatest)
	}
	return d - rand.N(d/10+1) // not all hooks of a machine that was away at once
}

// hookStore is what webhooks need of the replicated state.
type hookStore interface {
	Do(ctx context.Context, req *board.Request) board.Result
	View(fn func(board.View) error) error
}

// hooks serves the webhooks of one term.
type hooks struct {
	store hookStore
	feed  scheduler.Feed
	send  func(ctx context.Context, h *board.Webhook, id string, body []byte) error
	fleet string
	wait  func(failures int64) time.Duration
	log   *slog.Logger

	serve map[string]*served
}

// served is one webhook that is looked after.
type served struct {
	cancel context.CancelFunc
	event  chan struct{} // one slot: there may be something to send
	change chan struct{} // one slot: its record has changed
}

func wantsHooks(t board.Table, _ string) bool { return t == board.TEvent || t == board.TWebhook }

func (l *leading) newHooks() *hooks {
	n := l.n
	wait := n.cfg.hookWait
	if wait == nil {
		wait = hookWait
	}
	return &hooks{store: termStore{l}, feed: feedSub{n.store.Subscribe(wantsHooks)}, send: newHookSender(n.cfg.Data, n.cfg.Name).send,
		fleet: n.mem.Fleet, wait: wait, log: n.log.With("component", "webhooks"), serve: map[string]*served{}}
}

// run serves until ctx ends, and waits for all that it began.
func (x *hooks) run(ctx context.Context) {
	defer x.feed.Close()
	var wg sync.WaitGroup
	defer wg.Wait()
	for first := true; ; first = false {
		keys, all := x.feed.Take()
		x.meet(ctx, &wg, keys, all || first)
		select {
		case <-ctx.Done():
			return
		case <-x.feed.C():
		}
	}
}

// meet begins with hooks that are new, ends with those that are gone, and tells
// the others what has changed.
func (x *hooks) meet(ctx context.Context, wg *sync.WaitGroup, keys []scheduler.Key, all bool) {
	hooked := func(k scheduler.Key) bool { return k.Table == board.TWebhook }
	if all || slices.ContainsFunc(keys, hooked) {
		found := map[string]bool{}
		_ = x.store.View(func(v board.View) error {
			board.EachWebhook(v, func(h *board.Webhook) bool { found[board.WebhookKey(h.Board, h.ID)] = true; return true })
			return nil
		})
		for key, s := range x.serve {
			if !found[key] {
				s.cancel()
				delete(x.serve, key)
			}
		}
		for key := range found {
			if x.serve[key] == nil {
				s := &served{event: make(chan struct{}, 1), change: make(chan struct{}, 1)}
				var mine context.Context
				mine, s.cancel = context.WithCancel(ctx)
				x.serve[key] = s
				wg.Go(func() { (&hook{x: x, s: s, key: key}).run(mine) })
			}
		}
	}
	for key, s := range x.serve {
		poke(s.event)
		if all || slices.Contains(keys, scheduler.Key{Table: board.TWebhook, Key: key}) {
			poke(s.change)
		}
	}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// hook is one webhook being served.
type hook struct {
	x       *hooks
	s       *served
	key     string
	rec     *board.Webhook
	cursor  string // of the last event that was taken or is not wanted
	skipped int    // events of others since the last note
	dirty   bool   // cursor is to be noted
}

func (k *hook) run(ctx context.Context) {
	defer k.s.cancel()
	for k.read(ctx) {
		list, more := k.page()
		var err error
		for _, e := range list {
			if err = k.try(ctx, e); err != nil {
				break
			}
			k.cursor, k.dirty = e.ID, true
			if k.rec.Failures > 0 {
				k.rec.Failures = 0
				k.note(ctx, "")
			}
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			k.failed(ctx, err)
		case !more:
			k.idle(ctx)
		case k.dirty:
			k.note(ctx, "")
		}
	}
}

// read reads the hook's record; false when it is no more.
func (k *hook) read(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	k.rec = nil
	_ = k.x.store.View(func(v board.View) error {
		board.EachWebhook(v, func(h *board.Webhook) bool {
			if board.WebhookKey(h.Board, h.ID) == k.key {
				k.rec = h
			}
			return k.rec == nil
		})
		return nil
	})
	if k.rec != nil {
		k.cursor = max(k.cursor, k.rec.Cursor)
	}
	return k.rec != nil
}

// page copies the next wanted events out of the state; more tells that there may
// be others behind them.
func (k *hook) page() (list []*board.Event, more bool) {
	last, read := k.cursor, 0
	_ = k.x.store.View(func(v board.View) error {
		board.EachEvent(v, k.cursor, func(key string, e *board.Event) bool {
			if key <= k.cursor {
				return true
			}
			last = key
			read++
			if k.rec.Wants(e) {
				list = append(list, e)
			}
			return read < hookScan && len(list) < hookPage
		})
		return nil
	})
	more = read >= hookScan || len(list) >= hookPage
	if len(list) == 0 {
		k.cursor = last // events of others are passed by
		if k.skipped += read; k.skipped >= hookIdle {
			k.dirty, k.skipped = true, 0
		}
	}
	return list, more
}

// hookBody is what a receiver gets: the event as the API shows it, and the fleet it is of.
type hookBody struct {
	Fleet string `json:"fleet"`
	api.Event
}

func (k *hook) try(ctx context.Context, e *board.Event) error {
	body, err := json.Marshal(hookBody{k.x.fleet, api.EventOf(e)})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, hookTime)
	defer cancel()
	return k.x.send(ctx, k.rec, board.EventID(e.ID), body)
}

// failed notes a failure and waits: longer each time, and no longer once
// somebody has set the hook anew.
func (k *hook) failed(ctx context.Context, err error) {
	k.rec.Failures++
	k.x.log.Warn("webhook failed", "board", k.rec.Board, "hook", k.rec.ID, "failures", k.rec.Failures, "err", err)
	k.note(ctx, err.Error())
	t := time.NewTimer(k.x.wait(k.rec.Failures))
	defer t.Stop()
	for mine := k.rec.Failures; ; {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			return
		case <-k.s.change:
			if !k.read(ctx) || k.rec.Failures != mine {
				return
			}
		}
	}
}

// idle waits for something to send; what was taken is noted a little later, so
// that a burst of events is one note.
func (k *hook) idle(ctx context.Context) {
	var late <-chan time.Time
	if k.dirty {
		t := time.NewTimer(hookNote)
		defer t.Stop()
		late = t.C
	}
	select {
	case <-ctx.Done():
	case <-k.s.event:
	case <-late:
		k.note(ctx, "")
	}
}

// note writes into the state how far this hook came. Without it the next leader
// sends again, under the same ids.
func (k *hook) note(ctx context.Context, why string) {
	args, err := json.Marshal(board.HookState{Board: k.rec.Board, ID: k.rec.ID, Cursor: k.cursor, Failures: k.rec.Failures, Error: why})
	if err != nil {
		return
	}
	res := k.x.store.Do(ctx, &board.Request{Actor: board.Platform(), Verb: board.VHookState, Args: args})
	if res.Err == nil {
		k.dirty, k.skipped = false, 0
	}
}
