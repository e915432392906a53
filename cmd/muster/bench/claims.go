package bench

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
)

// startsAtOnce is how many cards wait when a round is let go: fewer than one node has slots.
const startsAtOnce = 60

// claimsTime bounds one round, from the filing of its cards to the end of their sessions.
const claimsTime = 5 * time.Minute

// trueBoard is the workflow of a board whose sessions do nothing.
const trueBoard = `
version: 1
name: default
extends: default
profiles:
  nothing: {harness: command, args: ["true"]}
`

// claims measures how fast cards that may start are claimed: from the end of a
// pause until a node that does not lead has the launch order of each in its state.
// The machines launch meanwhile, as they would; that is waited for, not measured.
type claims struct {
	fleet *Fleet
	at    *FleetNode // where the claims are looked for; not the leader
}

func newClaims(ctx context.Context, f *Fleet) (*claims, error) {
	_, other, err := f.Sort(ctx)
	if err != nil {
		return nil, err
	}
	_, err = f.Do(ctx, other, board.VBoardApply, board.BoardApply{Board: "default", YAML: trueBoard})
	return &claims{f, other}, err
}

func (c *claims) side() Side {
	return Side{Name: fmt.Sprintf("%d cards that wait -> their launch orders in the state of a non-leader, three nodes", startsAtOnce), Run: func(ctx context.Context, window time.Duration) (Sample, error) {
		var took time.Duration
		n := 0
		grown := map[string]float64{}
		for end := time.Now().Add(window); n == 0 || time.Now().Before(end); n += startsAtOnce {
			one, err := c.once(ctx, grown)
			if err != nil {
				return Sample{}, err
			}
			took += one
		}
		for name := range grown {
			grown[name] *= 1000 / float64(n)
		}
		grown["starts measured in the window"] = float64(n)
		return Sample{Value: float64(n) / took.Seconds(), Counters: grown}, nil
	}}
}

// once lets a round go and times it; grown gains what the nodes counted meanwhile.
func (c *claims) once(ctx context.Context, grown map[string]float64) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, claimsTime)
	defer cancel()
	if _, err := c.fleet.Do(ctx, c.at, board.VPause, board.Pause{Why: "cards are being filed"}); err != nil {
		return 0, fmt.Errorf("pause: %w", err)
	}
	mine, err := c.file(ctx)
	if err != nil {
		return 0, err
	}
	seen := make(chan api.Event, 4*startsAtOnce)
	var read sync.WaitGroup
	read.Go(func() {
		_ = c.at.api.Events(ctx, url.Values{}, func(e api.Event) bool {
			if mine[e.Card] {
				select {
				case seen <- e:
				case <-ctx.Done():
				}
			}
			return true
		})
	})
	defer read.Wait()
	defer cancel()
	if err := each(ctx, seen, "created"); err != nil { // the stream has come to now
		return 0, fmt.Errorf("filed cards: %w", err)
	}
	before, err := c.fleet.counted(ctx)
	if err != nil {
		return 0, err
	}
	from := time.Now()
	if _, err := c.fleet.Do(ctx, c.at, board.VResume, board.Pause{}); err != nil {
		return 0, fmt.Errorf("resume: %w", err)
	}
	if err := each(ctx, seen, "claimed"); err != nil {
		return 0, fmt.Errorf("claims: %w", err)
	}
	took := time.Since(from)
	after, err := c.fleet.counted(ctx)
	if err != nil {
		return 0, err
	}
	for name, n := range after {
		grown[name] += n - before[name]
	}
	return took, c.idle(ctx, mine)
}

// file files the cards; they wait for the end of the pause.
func (c *claims) file(ctx context.Context) (map[string]bool, error) {
	mine := map[string]bool{}
	title, who := "do nothing", "nothing"
	for range startsAtOnce {
		data, err := c.fleet.Do(ctx, c.at, board.VCardAdd, board.CardAdd{CardFields: board.CardFields{Title: &title, Assignee: &who}})
		if err != nil {
			return nil, fmt.Errorf("file a card: %w", err)
		}
		id, _ := data["id"].(string)
		mine[id] = true
	}
	return mine, nil
}

// each waits for an event of each card.
func each(ctx context.Context, seen <-chan api.Event, kind string) error {
	cards := map[string]bool{}
	for len(cards) < startsAtOnce {
		select {
		case e := <-seen:
			if e.Kind == kind {
				cards[e.Card] = true
			}
		case <-ctx.Done():
			return fmt.Errorf("%d of %d are %s: %w", len(cards), startsAtOnce, kind, ctx.Err())
		}
	}
	return nil
}

// idle waits until the sessions have ended, so that the next window begins on an idle fleet.
func (c *claims) idle(ctx context.Context, mine map[string]bool) error {
	for card := range mine {
		for {
			d, err := api.Decode[api.CardDetail](c.at.api.Get(ctx, "/v1/cards/"+card, nil))
			if err == nil && d.Status == "done" {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("card %s is %s and not done (%v)", card, d.Status, err)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return nil
}

// claimsAll compares claims with events of many clients, which are the same way
// through executor and log.
func claimsAll(ctx context.Context, env Env) ([]Result, error) {
	return withFleet(ctx, env, 3, func(f *Fleet, p Posts) ([]Result, error) {
		c, err := newClaims(ctx, f)
		if err != nil {
			return nil, err
		}
		r, err := Pair(ctx, env.Config("claims", "1/s"), c.side(), HTTPPosts("events of three nodes, 64 clients at all nodes", "unix", f.doors(), 64, p))
		return []Result{r}, err
	})
}
