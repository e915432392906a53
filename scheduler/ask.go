package scheduler

import (
	"context"
	"encoding/json"
	"slices"

	"muster/board"
)

// Waits after starts that the executor refused although the plan saw no reason, ms.
const (
	triesAtOnce  = 3     // first the plan is made anew: state or readings have changed under it
	backoffFirst = 5_000 // then they differ about something: not again and again
	backoffMost  = 60_000
	askAgain     = 1_000 // after an answer that was lost, or a request that was not taken
)

// start asks the executor for all starts of a round at once, in their order: a
// place that the plan gave to one card is not to be taken by a later one.
func (l *Loop) start(ctx context.Context, r *Round, starts []Start) (reasons []board.CardReason) {
	results := l.askAll(ctx, len(starts), func(i int) (string, any) {
		s := starts[i]
		return board.VStart, board.Start{Card: s.Card, Node: s.Node, Status: s.Status, Profile: s.Profile}
	})
	for i, res := range results {
		s := starts[i]
		switch {
		case res.Err == nil:
			delete(l.tries, s.Card)
			r.started(s, res)
		case res.Err.Code == board.Unavailable, res.Err.Code == board.UnknownOutcome:
			l.timers.set(s.Card, r.Time+askAgain) // the term is ending, or its answer was lost: the state tells
		default:
			l.free = true // the place it was to have may be another's
			l.tries[s.Card]++
			over := l.tries[s.Card] - triesAtOnce
			if over < 0 { // somebody was first, or a machine has changed: no failure (M-03), and no reason to wait
				l.dirty[s.Card] = true
				continue
			}
			r.failed(s, res.Err)
			reasons = append(reasons, board.CardReason{Card: s.Card, Check: orElse(res.Err.Check, string(res.Err.Code)), Text: bare(res.Err.Message)})
			l.backoff.set(s.Card, r.Time+min(int64(backoffFirst)<<min(over, 10), backoffMost))
		}
	}
	return reasons
}

// record writes changed reasons, in slices.
func (l *Loop) record(ctx context.Context, reasons []board.CardReason) {
	parts := slices.Collect(slices.Chunk(reasons, 200))
	for _, res := range l.askAll(ctx, len(parts), func(i int) (string, any) { return board.VReasons, board.Reasons{Cards: parts[i]} }) {
		if res.Err != nil && ctx.Err() == nil {
			l.cfg.Logger.Warn("reasons not recorded", "err", res.Err)
		}
	}
}

// askAll asks the executor, as the fleet, for n things in their order, and waits
// for all answers; what is asked together shares log entries. No more than
// maxStarts are on their way at a time.
func (l *Loop) askAll(ctx context.Context, n int, what func(i int) (verb string, args any)) []board.Result {
	results := make([]board.Result, 0, n)
	for len(results) < n {
		var reqs []*board.Request
		for i := len(results); i < min(n, len(results)+maxStarts); i++ {
			verb, args := what(i)
			b, err := json.Marshal(args)
			if err != nil { // without args the executor refuses it, and the others go on
				l.cfg.Logger.Error("request cannot be written", "verb", verb, "err", err)
			}
			reqs = append(reqs, &board.Request{Actor: board.Platform(), Verb: verb, Args: b})
		}
		results = append(results, l.cfg.Store.DoAll(ctx, reqs)...)
	}
	return results
}
