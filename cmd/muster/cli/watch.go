package cli

import (
	"context"
	"net/url"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
)

// patienceOfReaders is how long who follows goes on without an answer (app.patience).
const patienceOfReaders = time.Minute

// cursor is the id of the newest event, from which a stream goes on; "0" of an empty log.
func (a *app) cursor(ctx context.Context) (string, error) {
	l, err := api.Decode[[]api.Event](a.get(ctx, "/v1/events", url.Values{"last": {"1"}}))
	if err != nil || len(l) == 0 {
		return "0", err
	}
	return l[len(l)-1].ID, nil
}

// changes calls look at once, then whenever an event of the query has come,
// until it says that it has seen enough. Events that come close together are
// one change. No poll: the node tells.
func (a *app) changes(ctx context.Context, q url.Values, look func() (enough bool, err error)) error {
	from, err := a.cursor(ctx) // before the first look: what happens between the two is not missed
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	q.Set("since", from)
	signal := make(chan struct{}, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- a.cl.Events(ctx, q, func(api.Event) bool {
			select {
			case signal <- struct{}{}:
			default:
			}
			return true
		})
	}()
	seen := time.Now() // when the node last answered: it gave the cursor
	for {
		enough, err := look()
		switch {
		case board.CodeOf(err) == board.Unavailable && time.Since(seen) < a.patience: // it is started anew, or looks for a leader
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(300 * time.Millisecond):
			}
			continue
		case err != nil || enough:
			return err
		}
		seen = time.Now()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			return err
		case <-signal:
		}
	}
}

// watch shows a board again whenever it changes, at most ten times a second.
func (a *app) watch(ctx context.Context, name string) error {
	path := "/v1/boards/" + url.PathEscape(name)
	err := a.changes(ctx, url.Values{"board": {name}}, func() (bool, error) {
		ans, err := a.get(ctx, path, nil)
		if err == nil && a.io.Terminal && !a.json {
			a.printf("\x1b[H\x1b[2J")
		}
		err = show(a, ans, err, func(b api.BoardDetail) []string { return cardIDs(b.List) }, func(b api.BoardDetail) {
			a.printBoard(&b)
			a.printf("\n%s\n", a.color(dim, clock(a.io.Now())+", Ctrl-C ends"))
		})
		if err == nil {
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
		return false, err
	})
	if ctx.Err() != nil {
		return nil // a person ended it
	}
	return err
}
