package api

import (
	"context"
	"net/http"
	"time"

	"muster/board"
)

// sessionWait is how long a session's read waits until this node's state knows
// its run: a session may be faster than the report of its launch.
const sessionWait = 30 * time.Second

// mayRead holds who asks against the state: reads are answered by this node, so
// that they are not seen by the executor. What may be written is found there.
func (h *handler) mayRead(r *http.Request, c *caller) error {
	switch h.door {
	case DoorSession:
		return h.knowRun(r.Context(), c)
	case DoorToken:
		return h.knowToken(r.Context(), c)
	}
	return h.look(r.Context(), func(v board.View) error {
		if n := board.GetNode(v, c.actor.Node); n != nil && n.SocketRole() == "none" {
			return board.Errorf(board.Refused, "users of this node's socket may do nothing (local=none)").WithCheck(board.CheckRole).WithHint("a manager can change it on another node: muster node set %s local=viewer", n.Name)
		}
		return nil
	})
}

// look reads the local state without asking how old it is.
func (h *handler) look(ctx context.Context, fn func(board.View) error) error {
	_, err := h.b.Read(ctx, false, fn)
	return err
}

// knowToken finds what a token lets its bearer be, for reads: its role, and the
// one board it is for. A token for joining reads nothing.
func (h *handler) knowToken(ctx context.Context, c *caller) error {
	return h.look(ctx, func(v board.View) error {
		k, err := board.Usable(v, c.secret, max(v.Time(), time.Now().UnixMilli()))
		if err != nil {
			return err
		}
		c.role, c.board, c.actor.Name = k.Role, k.Board, k.Who()
		return nil
	})
}

// knowRun checks a session's secret against the hash in the state, and finds the
// board it may read (invariant 24). Its run may be younger than what this node
// has applied: then it waits.
func (h *handler) knowRun(ctx context.Context, c *caller) error {
	sub := h.b.Subscribe(func(t board.Table, key string) bool { return t == board.TRun && key == board.RunKey(c.run) })
	defer sub.Close()
	wait, cancel := context.WithTimeout(ctx, sessionWait)
	defer cancel()
	node, _ := h.b.Self()
	for {
		known := false
		err := h.look(ctx, func(v board.View) error {
			x := board.GetRun(v, c.run)
			if x == nil || len(x.SecretHash) == 0 && x.Gone == "" {
				return nil
			}
			known = true
			if !x.Opens(node, c.secret) {
				return board.Errorf(board.Refused, "run %q is not known by that secret", clip(c.run)).WithCheck(board.CheckSecret)
			}
			if x.Gone != "" {
				return board.Errorf(board.Refused, "run %s is over: its secret opens nothing any more", x.ID).WithCheck(board.CheckSuperseded)
			}
			c.board = x.Board
			return nil
		})
		if known || err != nil {
			return err
		}
		select {
		case <-sub.C():
		case <-wait.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return board.Errorf(board.Refused, "run %q is not known by that secret", clip(c.run)).WithCheck(board.CheckSecret)
		}
	}
}

// bound tells whether the caller reads one board only: a session, or a token of one board.
func (c caller) bound() bool { return c.board != "" }

// sees refuses what is not on the caller's one board; everybody else sees all.
func (c caller) sees(slug string) error {
	if c.bound() && slug != c.board {
		return c.outside()
	}
	return nil
}

// outside is the refusal of what is beyond the caller's one board.
func (c caller) outside() *board.Error {
	if c.run != "" {
		return board.Errorf(board.Refused, "a session reads its own board, %s", c.board).WithCheck(board.CheckScope).WithHint("muster card show, muster card list, muster why")
	}
	return board.Errorf(board.Refused, "this token is for board %s alone", c.board).WithCheck(board.CheckScope).WithHint("ask a manager for one of the fleet: muster token create")
}

// people wraps a read of the fleet: not for sessions, and not for tokens of one board.
func people(fn answerFunc) answerFunc {
	return func(r *http.Request, c caller) (any, Fresh, error) {
		if c.bound() {
			return nil, unread, c.outside()
		}
		return fn(r, c)
	}
}
