package api

import (
	"context"
	"net/http"
	"time"

	"muster/board"
)

// WebLogin is how a person gets into this node's page: the code in the URL's fragment, which no
// server and no log sees, is good once, and for a short time.
type WebLogin struct {
	URL     string    `json:"url"`  // with the code
	Page    string    `json:"page"` // without it
	File    string    `json:"file"` // leads a browser there; readable by this user alone, so that no code stands in arguments
	Expires time.Time `json:"expires_at"`
}

// AsPerson is a request of a person of this machine, whom another door has made
// sure of: the handler of [DoorUser] takes them for one at its socket.
func AsPerson(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, peerKey{}, peerInfo{name: name})
}

// web lets who is at the socket into the page.
func (h *handler) web(r *http.Request, c caller) (any, Fresh, error) {
	if h.login == nil {
		return nil, unread, board.Errorf(board.NotFound, "this node shows no page: it was started with --http off").WithHint("start it without")
	}
	if err := h.mayRead(r, &c); err != nil {
		return nil, unread, err
	}
	name, _ := r.Context().Value(peerKey{}).(peerInfo)
	x, err := h.login(name.name)
	return x, unread, err
}
