package api

import (
	"net/http"

	"muster/board"
)

// Peers is how the other nodes answer this one.
type Peers struct {
	Timers string `json:"timers"` // of this node: lan or wan
	Peers  []Peer `json:"peers"`
}

// Peer is one of them. Without an answer, Error says why.
type Peer struct {
	ID         string  `json:"id"`
	Name       string  `json:"name"`
	RTTMS      float64 `json:"rtt_ms"`
	ClockOffMS int64   `json:"clock_off_ms"` // its clock ahead of this machine's
	Error      string  `json:"error,omitempty"`
}

func (h *handler) peers(r *http.Request, c caller) (any, Fresh, error) {
	if err := h.mayRead(r, &c); err != nil {
		return nil, unread, err
	}
	if c.bound() {
		return nil, unread, board.Errorf(board.Refused, "who is bound to one board does not ask for machines").WithCheck(board.CheckRole)
	}
	return h.b.Peers(r.Context()), unread, nil
}
