package scheduler

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"time"

	"muster/board"
)

// Store is what the loop needs of the replicated state.
type Store interface {
	Do(ctx context.Context, req *board.Request) board.Result
	View(fn func(board.View) error) error
}

// Feed tells what has changed: a one-slot signal, and since the last Take which
// keys, or that everything must be read anew.
type Feed interface {
	C() <-chan struct{}
	Take() (keys []Key, all bool)
	Close()
}

// Key is one changed key of the state.
type Key struct {
	Table board.Table
	Key   string
}

// Contacts is what the leader knows of its nodes; nothing of it is in the log.
type Contacts interface {
	State(node string) board.Reading
	// GoneIn is how long until a session with this lease on this node may be counted gone.
	GoneIn(node string, lease time.Duration) (time.Duration, bool)
	// Condemn says that lease and margin have passed, and from then on keeps the node
	// without an answer until Acquit: between the two its session is counted gone,
	// and a fresh contact would let it start what no longer stands.
	Condemn(node string, lease time.Duration) bool
	Acquit(node string)
	// Next is how long until the state of one of the nodes may change without any contact.
	Next(nodes []string) (time.Duration, bool)
}

// Config of a loop.
type Config struct {
	Store     Store
	Feed      Feed
	Contacts  Contacts
	Workflows *board.Workflows
	Now       func() int64 // board time, ms
	Logger    *slog.Logger
}

// Loop schedules one term.
type Loop struct {
	cfg  Config
	poke chan struct{}

	// owned by Run
	queue   *queue // waits for room or a machine, or was not tried yet
	dirty   map[string]bool
	timers  map[string]int64 // card -> board time at which to look again
	offers  map[string]int64 // run on an offline machine -> board time of the next offer
	backoff map[string]int64 // card -> wait after a start that failed for no reason of its own
	room    bool             // something that others wait for may have come free
	hold    int64            // board time before which due times and leases are not asked again: the executor did not take them

	mu       sync.Mutex
	rounds   []*Round
	examined uint64
}

// maxStarts bounds the starts of one round that are on their way at a time.
const maxStarts = 256

// New makes a loop for one term.
func New(cfg Config) *Loop {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Workflows == nil {
		cfg.Workflows = board.NewWorkflows()
	}
	return &Loop{cfg: cfg, poke: make(chan struct{}, 1), queue: newQueue(), dirty: map[string]bool{},
		timers: map[string]int64{}, offers: map[string]int64{}, backoff: map[string]int64{}}
}

// Poke wakes the loop: what the contacts say has changed.
func (l *Loop) Poke() {
	select {
	case l.poke <- struct{}{}:
	default:
	}
}

// Examined is how many cards were looked at so far (goal P7's counter).
func (l *Loop) Examined() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.examined
}

// Run schedules until ctx ends. It wakes for a change, a due time or a changed
// contact, never on a tick (architecture.md §8).
func (l *Loop) Run(ctx context.Context) {
	defer l.cfg.Feed.Close()
	l.scan()
	for ctx.Err() == nil {
		r := l.round(ctx)
		l.keep(r)
		t := time.NewTimer(l.sleep())
		select {
		case <-ctx.Done():
		case <-l.cfg.Feed.C():
			l.take()
		case <-l.poke:
			l.room = true
		case <-t.C:
		}
		t.Stop()
	}
}

// scan reads every card once, when leadership begins.
func (l *Loop) scan() {
	l.room = true
	l.queue.clear()
	_ = l.cfg.Store.View(func(v board.View) error {
		starts := map[[2]string]bool{} // whether a status of a board starts anything
		board.EachCard(v, nil, func(c *board.Card) bool {
			if c.Run != "" || c.Stored == "done" || c.Stored == "archived" || c.Stored == "cancelled" {
				return true
			}
			at := [2]string{c.Board, c.Status}
			ok, known := starts[at]
			if !known {
				ok = l.startable(v, c)
				starts[at] = ok
			}
			if ok || c.Waits.Check != "" { // of many cards at rest nothing is kept in memory (goal P8)
				l.dirty[c.ID] = true
			}
			return true
		})
		return nil
	})
}

// startable tells whether a card's status starts anything; also when it cannot
// be told, so that the card is looked at and says why.
func (l *Loop) startable(v board.View, c *board.Card) bool {
	b := board.GetBoard(v, c.Board)
	if b == nil {
		return false
	}
	wf, err := l.cfg.Workflows.Of(v, b)
	return err != nil || wf.Startable(c.Status)
}

// take turns changed keys into cards to look at, and into room that may have come free.
func (l *Loop) take() {
	keys, all := l.cfg.Feed.Take()
	if all {
		l.scan()
		return
	}
	boards := map[string]bool{}
	for _, k := range keys {
		switch k.Table {
		case board.TCard:
			l.dirty[k.Key] = true
		case board.THeld:
			l.room = true
			if card := board.CardOfRun(k.Key); card != "" {
				l.dirty[card] = true
			}
		case board.TLink:
			for i := range k.Key {
				if k.Key[i] == '/' {
					l.dirty[k.Key[:i]] = true
				}
			}
		case board.TNode, board.TFleet:
			l.room = true
		case board.TBoard, board.TWorkflow:
			l.room = true
			boards[k.Key] = true
		}
	}
	if len(boards) > 0 {
		l.scanBoards(boards)
	}
}

// scanBoards looks at a board anew after its workflow or its values have changed.
func (l *Loop) scanBoards(changed map[string]bool) {
	_ = l.cfg.Store.View(func(v board.View) error {
		board.EachBoard(v, func(b *board.Board) bool {
			if !changed[b.Slug] {
				return true
			}
			board.EachCard(v, b, func(c *board.Card) bool {
				if c.Run == "" {
					l.dirty[c.ID] = true
				}
				return true
			})
			return true
		})
		return nil
	})
}

// round observes, plans and asks the executor, once.
func (l *Loop) round(ctx context.Context) *Round {
	r := newRound(l.cfg.Now())
	at := time.Now()
	l.observe(ctx, r)
	r.phase("observe", &at)
	starts, reasons := l.plan(r)
	r.phase("plan", &at)
	reasons = append(reasons, l.start(ctx, r, starts)...)
	r.phase("start", &at)
	l.record(ctx, r, reasons)
	r.phase("reasons", &at)
	return r
}

// plan looks at what changed, and at what waits for room when room may have come free.
func (l *Loop) plan(r *Round) (starts []Start, reasons []board.CardReason) {
	if len(l.dirty) == 0 && !l.room && !l.timersDue(r.Time) {
		return nil, nil
	}
	_ = l.cfg.Store.View(func(v board.View) error {
		in := Input{View: v, Workflows: l.cfg.Workflows, Nodes: l.cfg.Contacts.State, Now: r.Time}
		fresh := l.refresh(in, &reasons)
		starts = l.walk(in, r, fresh, &reasons)
		return nil
	})
	l.room = false
	return starts, reasons
}

func (l *Loop) timersDue(now int64) bool {
	due := false
	for card, at := range l.timers {
		if at <= now {
			l.dirty[card] = true
			due = true
			delete(l.timers, card)
		}
	}
	for card, at := range l.backoff {
		if at <= now {
			l.dirty[card] = true
			due = true
			delete(l.backoff, card)
		}
	}
	return due
}

// refresh reads the changed cards anew and gives those that could start.
func (l *Loop) refresh(in Input, reasons *[]board.CardReason) (fresh []*Candidate) {
	ids := make([]string, 0, len(l.dirty))
	for id := range l.dirty {
		ids = append(ids, id)
	}
	cards := map[string]*board.Card{}            // read once, unless there are many
	for _, id := range ids[:len(ids):len(ids)] { // a card that was finished: those that wait for it in the queue
		c := board.GetCard(in.View, id)
		if len(cards) < 1000 {
			cards[id] = c
		}
		if c != nil && board.Finished(c.Stored) {
			for _, child := range board.Children(in.View, id) {
				if l.queue.has(child) && !l.dirty[child] {
					ids = append(ids, child)
				}
			}
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	clear(l.dirty)
	l.count(len(ids))
	for _, id := range ids {
		l.queue.remove(id)
		delete(l.timers, id)
		if l.backoff[id] > in.Now {
			continue
		}
		c, read := cards[id]
		if !read {
			c = board.GetCard(in.View, id)
		}
		cand, wait := look(in, c)
		switch {
		case cand != nil:
			fresh = append(fresh, cand)
		default:
			l.wait(c, wait, reasons)
		}
	}
	l.queue.add(fresh)
	return fresh
}

// walk goes through the queue in order and starts what can start. When nothing
// came free only the fresh ones are tried; a signature that was refused for want
// of room is not tried again in the same round.
func (l *Loop) walk(in Input, r *Round, fresh []*Candidate, reasons *[]board.CardReason) (starts []Start) {
	if len(fresh) == 0 && (!l.room || len(l.queue.cards) == 0) {
		return nil
	}
	room := board.NewRoom(in.View, in.Workflows, in.Now)
	full, tried := map[string]*Wait{}, map[string]bool{}
	more := false
	step := func(cand *Candidate) bool {
		if more = len(starts) >= maxStarts; more {
			return false
		}
		tried[cand.Card] = true
		l.count(1)
		s, w := try(in, room, cand)
		switch {
		case s != nil:
			starts = append(starts, *s)
			l.queue.remove(cand.Card)
		case w == nil:
			l.queue.remove(cand.Card)
		default:
			if w.room {
				full[cand.sig] = w
			} else if w.Until > 0 {
				l.timers[cand.Card] = w.Until
				l.queue.remove(cand.Card)
			}
			r.queue(cand.Card, w)
			l.wait(board.GetCard(in.View, cand.Card), w, reasons)
		}
		return true
	}
	slices.SortFunc(fresh, before)
	isFull := func(sig string) bool { return full[sig] != nil }
	if l.room {
		l.queue.all(isFull, step)
	} else {
		for _, cand := range fresh {
			if !isFull(cand.sig) && !step(cand) {
				break
			}
		}
	}
	for _, cand := range fresh { // not tried, because the first of its signature was refused: for the same reason
		if w := full[cand.sig]; w != nil && !tried[cand.Card] {
			l.wait(board.GetCard(in.View, cand.Card), &Wait{Card: cand.Card, Check: w.Check, Text: l.own(w, cand.Card)}, reasons)
		}
	}
	if more {
		l.Poke() // the next round goes on
	}
	return starts
}

// own is another card's wait in this card's words.
func (l *Loop) own(w *Wait, card string) string {
	if head := "card " + w.Card + ": "; len(w.Text) > len(head) && w.Text[:len(head)] == head {
		return "card " + card + ": " + w.Text[len(head):]
	}
	return w.Text
}

// wait notes a changed reason; one that stands already is not written again.
func (l *Loop) wait(c *board.Card, w *Wait, reasons *[]board.CardReason) {
	if c == nil {
		return
	}
	x := board.CardReason{Card: c.ID}
	if w != nil {
		x.Check, x.Text = w.Check, w.Text
	}
	if c.Waits.Check != x.Check || c.Waits.Text != clip(x.Text, 300) && x.Check != "" {
		*reasons = append(*reasons, x)
	}
}

// start asks the executor for all starts of a round at once: they share entries.
func (l *Loop) start(ctx context.Context, r *Round, starts []Start) (reasons []board.CardReason) {
	results := make([]board.Result, len(starts))
	var wg sync.WaitGroup
	for i, s := range starts {
		wg.Go(func() {
			results[i] = l.ask(ctx, board.VStart, board.Start{Card: s.Card, Node: s.Node, Status: s.Status, Profile: s.Profile})
		})
	}
	wg.Wait()
	for i, res := range results {
		s := starts[i]
		switch {
		case res.Err == nil:
			r.started(s, res)
		case res.Err.Check == "claimed_elsewhere":
			l.dirty[s.Card] = true // somebody was first: no failure (M-03)
		case res.Err.Code == board.Unavailable, res.Err.Code == board.UnknownOutcome:
			l.dirty[s.Card] = true // the term is ending, or its answer was lost: the state tells
		default:
			r.failed(s, res.Err)
			reasons = append(reasons, board.CardReason{Card: s.Card, Check: res.Err.Check, Text: res.Err.Message})
			l.backoff[s.Card] = r.Time + 5_000 // a refusal the plan did not foresee: not again at once
		}
	}
	return reasons
}

// record writes changed reasons, in slices.
func (l *Loop) record(ctx context.Context, _ *Round, reasons []board.CardReason) {
	for part := range slices.Chunk(reasons, 200) {
		if res := l.ask(ctx, board.VReasons, board.Reasons{Cards: part}); res.Err != nil && ctx.Err() == nil {
			l.cfg.Logger.Warn("reasons not recorded", "err", res.Err)
		}
	}
}

// ask says something to the executor as the fleet.
func (l *Loop) ask(ctx context.Context, verb string, args any) board.Result {
	b, err := json.Marshal(args)
	if err != nil {
		return board.Result{Err: board.Errorf(board.Internal, "%s: %v", verb, err)}
	}
	return l.cfg.Store.Do(ctx, &board.Request{Actor: board.Platform(), Verb: verb, Args: b})
}

// sleep is how long nothing can happen without a change: until the next due time,
// look, offer, lease or change of contact.
func (l *Loop) sleep() time.Duration {
	if len(l.dirty) > 0 {
		return 20 * time.Millisecond // what the executor could not take: the term is ending, or too much waits
	}
	now := l.cfg.Now()
	next := int64(0)
	earlier := func(at int64) {
		if at > 0 && (next == 0 || at < next) {
			next = at
		}
	}
	for _, m := range []map[string]int64{l.timers, l.offers, l.backoff} {
		for _, at := range m {
			earlier(at)
		}
	}
	var nodes []string
	_ = l.cfg.Store.View(func(v board.View) error {
		if at := board.NextDue(v); at > 0 {
			earlier(max(at, l.hold))
		}
		board.EachNode(v, func(n *board.Node) bool { nodes = append(nodes, n.ID); return true })
		board.EachHeld(v, "", func(h *board.Held) bool {
			if d, ok := l.cfg.Contacts.GoneIn(h.Node, time.Duration(h.Lease)*time.Millisecond); ok && h.Lease > 0 {
				earlier(max(now+max(d.Milliseconds(), 0)+1, l.hold))
			}
			return true
		})
		return nil
	})
	d := time.Hour
	if next > 0 {
		d = time.Duration(max(next-now, 0)) * time.Millisecond
	}
	if c, ok := l.cfg.Contacts.Next(nodes); ok {
		d = min(d, c+time.Millisecond)
	}
	return max(d, time.Millisecond)
}

func (l *Loop) count(n int) {
	l.mu.Lock()
	l.examined += uint64(n)
	l.mu.Unlock()
}

// Wants are the changes a loop must hear of.
func Wants(t board.Table, key string) bool {
	switch t {
	case board.TCard, board.THeld, board.TLink, board.TNode, board.TBoard, board.TWorkflow, board.TDue:
		return true
	case board.TFleet:
		return key == board.FleetKey
	}
	return false
}
