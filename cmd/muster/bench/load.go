package bench

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Load is what a closed loop of clients did in one window.
type Load struct {
	Ops     int64
	Took    time.Duration
	Latency Latency
}

// PerSecond is the throughput.
func (l Load) PerSecond() float64 { return float64(l.Ops) / l.Took.Seconds() }

// ClosedLoop lets clients do operations one after the other, each client its
// own, until the window is over; an operation that runs then is finished and
// counted. op is told its client (0..clients-1) and how many that client did
// before. The first error ends the loop and is returned. This is the load
// generator of every side, so that both sides of a pair pay the same for it.
func ClosedLoop(ctx context.Context, window time.Duration, clients int, op func(ctx context.Context, client, n int) error) (Load, error) {
	if clients < 1 {
		return Load{}, errors.New("a closed loop needs a client")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	took := make([][]time.Duration, clients)
	start := time.Now()
	end := start.Add(window)
	var wait sync.WaitGroup
	for client := range clients {
		wait.Go(func() {
			for n := 0; ; n++ {
				from := time.Now()
				if n > 0 && !from.Before(end) || ctx.Err() != nil {
					return
				}
				if err := op(ctx, client, n); err != nil {
					cancel(err)
					return
				}
				took[client] = append(took[client], time.Since(from))
			}
		})
	}
	wait.Wait()
	l := Load{Took: time.Since(start)}
	if ctx.Err() != nil {
		return l, context.Cause(ctx)
	}
	var all []time.Duration
	for _, t := range took {
		all = append(all, t...)
	}
	l.Ops, l.Latency = int64(len(all)), LatencyOf(all)
	return l, nil
}
