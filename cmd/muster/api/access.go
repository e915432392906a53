package api

import (
	"context"
	"encoding/hex"
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
		_, err := h.tokenRole(r.Context(), c.secret)
		return err
	}
	return h.look(r.Context(), func(v board.View) error {
		if n := board.GetNode(v, c.actor.Node); n != nil && n.Local == "none" {
			return board.Errorf(board.Refused, "users of this node's socket may do nothing (local=none)").WithHint("a manager can change it on another node: muster node set %s local=viewer", n.Name)
		}
		return nil
	})
}

// look reads the local state without asking how old it is.
func (h *handler) look(ctx context.Context, fn func(board.View) error) error {
	_, err := h.b.Read(ctx, false, fn)
	return err
}

// tokenRole is what a token lets its bearer be. A token for joining reads nothing.
func (h *handler) tokenRole(ctx context.Context, secret string) (role string, err error) {
	err = h.look(ctx, func(v board.View) error {
		t := board.GetToken(v, board.HashSecret(secret))
		if t == nil || t.Expires != 0 && t.Expires < max(v.Time(), time.Now().UnixMilli()) {
			return board.Errorf(board.Refused, "this token is not known here, or has ended").WithHint("ask a manager for: muster token create --role viewer")
		}
		switch t.Role {
		case "manager", "member", "viewer":
			role = t.Role
			return nil
		}
		return board.Errorf(board.Refused, "this token is for the role %q, not for calling", t.Role).WithHint("ask a manager for: muster token create --role viewer")
	})
	return role, err
}

// knowRun checks a session's secret against the hash in the state, and finds the
// board it may read (invariant 24). Its run may be younger than what this node
// has applied: then it waits.
func (h *handler) knowRun(ctx context.Context, c *caller) error {
	sub := h.b.Subscribe(func(t board.Table, key string) bool { return t == board.TRun && key == board.RunKey(c.run) })
	defer sub.Close()
	wait, cancel := context.WithTimeout(ctx, sessionWait)
	defer cancel()
	for {
		known := false
		err := h.look(ctx, func(v board.View) error {
			x := board.GetRun(v, c.run)
			if x == nil || len(x.SecretHash) == 0 && x.Gone == "" {
				return nil
			}
			known = true
			if len(x.SecretHash) == 0 || board.HashSecret(c.secret) != hex.EncodeToString(x.SecretHash) {
				return board.Errorf(board.Refused, "run %q is not known by that secret", clip(c.run)).WithCheck("secret")
			}
			if x.Gone != "" {
				return board.Errorf(board.Refused, "run %s is over: its secret opens nothing any more", x.ID).WithCheck("superseded")
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
			return board.Errorf(board.Refused, "run %q is not known by that secret", clip(c.run)).WithCheck("secret")
		}
	}
}

// sees refuses what is not the session's own board; everybody else sees all.
func (c caller) sees(slug string) error {
	if c.run != "" && slug != c.board {
		return board.Errorf(board.Refused, "a session reads its own board, %s", c.board)
	}
	return nil
}

// people wraps a read that is not for sessions.
func people(fn answerFunc) answerFunc {
	return func(r *http.Request, c caller) (any, Fresh, error) {
		if c.run != "" {
			return nil, unread, board.Errorf(board.Refused, "a session reads its own board, %s", c.board).WithHint("muster card show, muster card list, muster why")
		}
		return fn(r, c)
	}
}
