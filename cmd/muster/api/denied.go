package api

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"muster/board"
)

// A Denier backend is told of everybody who was refused for who they are: it
// counts by kind, and logs at a bounded rate.
type Denier interface {
	// Denied tells of a denial: its kind (a check of [board.Denial]), who it was as far as the door can tell, and the refusal.
	Denied(kind, who, why string)
}

func (h *handler) denied(c caller, err error) {
	var e *board.Error
	if err == nil || !errors.As(err, &e) {
		return
	}
	kind := board.Denial(e)
	if d, ok := h.b.(Denier); ok && kind != "" {
		d.Denied(kind, orElse(h.bearer(c), "a stranger"), e.Message)
	}
}

// bearer is who asked, by the name of the token that was shown where the state knows it.
func (h *handler) bearer(c caller) string {
	if h.door != DoorToken || c.secret == "" {
		return c.actor.Name
	}
	_ = h.look(context.Background(), func(v board.View) error {
		if k := board.GetToken(v, board.HashSecret(c.secret)); k != nil {
			c.actor.Name = k.Who()
		}
		return nil
	})
	return c.actor.Name
}

// refuse answers a request that is not wrapped, and tells of a denial.
func (h *handler) refuse(w http.ResponseWriter, c caller, err error) {
	h.denied(c, err)
	send(w, nil, unread, err, "")
}

// pace lets so many through at once and so many a second afterwards.
type pace struct {
	mu   sync.Mutex
	left float64
	at   time.Time
}

const (
	paceBurst  = 20
	paceSecond = 5
)

// allow takes one; false when there is none now.
func (p *pace) allow(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at.IsZero() {
		p.left = paceBurst
	} else if d := now.Sub(p.at); d > 0 {
		p.left = min(p.left+d.Seconds()*paceSecond, paceBurst)
	}
	p.at = now
	if p.left < 1 {
		return false
	}
	p.left--
	return true
}
