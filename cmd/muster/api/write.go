package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"muster/board"
)

// bodyTime is how long a caller may take to send what it asks.
const bodyTime = 30 * time.Second

func decode(r *http.Request, into any) error {
	if w, ok := r.Context().Value(writerKey{}).(http.ResponseWriter); ok {
		rc := http.NewResponseController(w)
		_ = rc.SetReadDeadline(time.Now().Add(bodyTime))
		defer func() { _ = rc.SetReadDeadline(time.Time{}) }()
	}
	return decodeFrom(r.Body, into)
}

// do executes one request.
func (h *handler) do(r *http.Request, c caller) (any, Fresh, error) {
	var d Do
	if err := decode(r, &d); err != nil {
		return nil, unread, err
	}
	d.ID = orElse(d.ID, r.Header.Get(HeaderRequestID))
	w, _ := r.Context().Value(writerKey{}).(http.ResponseWriter)
	return h.write(r.Context(), c, d, func(id string) {
		if w != nil {
			w.Header().Set(HeaderRequestID, id)
		}
	})
}

// write executes one request; under is told its id before.
func (h *handler) write(ctx context.Context, c caller, d Do, under func(id string)) (any, Fresh, error) {
	if c.run != "" && d.Verb != board.VEvent && d.Verb != board.VCardAdd {
		return nil, unread, board.Errorf(board.Refused, "%s is not for sessions", clip(d.Verb)).WithHint("a session says events of its card, and files cards")
	}
	if !spoken(d.Verb) {
		return nil, unread, board.Errorf(board.Invalid, "unknown verb %q", clip(d.Verb)).WithHint("the node may be older than the command; see: muster version")
	}
	if err := h.stranger(ctx, c); err != nil {
		return nil, unread, err
	}
	if d.ID == "" {
		d.ID = h.b.MintID()
	}
	under(d.ID)
	req := board.Request{ID: d.ID, Retry: d.Retry, Actor: c.actor, Verb: d.Verb, Args: d.Args, Secret: c.secret}
	if d.Verb == board.VAdopt { // the caller's words are its own; what this machine saw goes with them
		var a board.Adopt
		if err := json.Unmarshal(d.Args, &a); err != nil {
			return nil, unread, board.Errorf(board.Invalid, "%s: %v", d.Verb, err)
		}
		var err *board.Error
		if req.Vouch, err = h.b.Vouch(a); err != nil {
			return nil, unread, err
		}
	}
	var res board.Result
	if c.run != "" {
		res = h.b.SessionSay(ctx, c.run, c.secret, req)
	} else {
		res = h.b.Do(ctx, req)
	}
	if res.Err != nil {
		return nil, unread, res.Err
	}
	return res.Data, Fresh{Index: res.Seq, Age: -1}, nil
}

// stranger holds up who comes with a token that this node does not know, at a
// pace: the leader is asked, because the state here may be older than the token,
// and is not to be kept busy by guesses.
func (h *handler) stranger(ctx context.Context, c caller) error {
	if h.door != DoorToken {
		return nil
	}
	err := h.knowToken(ctx, &c)
	if err != nil && h.strangers.allow(time.Now()) {
		return nil
	}
	return err
}

type writerKey struct{}

// token makes a token: the executor holds whoever asks against the state.
func (h *handler) token(r *http.Request, c caller) (any, Fresh, error) {
	var o TokenOptions
	if err := decode(r, &o); err != nil {
		return nil, unread, err
	}
	o.Secret = c.secret
	ans, err := h.b.NewToken(r.Context(), c.actor, o)
	if err != nil {
		return nil, unread, err
	}
	return ans, unread, nil
}

// mint gives an id for a request. A stranger is given none: it holds the fleet's era.
func (h *handler) mint(r *http.Request, c caller) (any, Fresh, error) {
	if h.door == DoorToken {
		if err := h.knowToken(r.Context(), &c); err != nil {
			return nil, unread, err
		}
	}
	return h.b.MintID(), unread, nil
}

func (h *handler) stop(r *http.Request, _ caller) (any, Fresh, error) {
	info := h.b.Info()
	h.b.Stop(r.URL.Query().Get("restart") == "true")
	return info, unread, nil
}
