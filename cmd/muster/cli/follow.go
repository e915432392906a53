package cli

import (
	"context"
	"net/url"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
)

// findCardRun is a run of a card; a zero one when it is not there (yet).
func (a *app) findCardRun(ctx context.Context, card, run string) (api.Run, error) {
	runs, err := api.Decode[[]api.Run](a.get(ctx, "/v1/cards/"+url.PathEscape(card)+"/runs", nil))
	for _, r := range runs {
		if r.ID == run {
			return r, nil
		}
	}
	return api.Run{}, err
}

// stillThere waits a moment for who follows a log that nobody answers for. It is over when this node is gone for
// long, or when the session is known to be over: the machine that has the rest of its log is away.
func (a *app) stillThere(ctx context.Context, card, run string, since time.Time, why error) error {
	select {
	case <-ctx.Done():
		return nil // its caller sees that
	case <-time.After(500 * time.Millisecond):
	}
	x, err := a.findCardRun(ctx, card, run)
	switch {
	case err == nil && x.GoneAt != nil:
		return board.Errorf(board.Unavailable, "the session of run %s is over (%s), and the rest of its log cannot be had: %v", run, orElse(x.Outcome, x.Gone), why).WithHint("later: muster log %s", card)
	case err != nil && (board.CodeOf(err) != board.Unavailable || time.Since(since) > a.patience):
		return err
	}
	return nil
}
