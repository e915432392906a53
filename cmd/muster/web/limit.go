package web

import (
	"crypto/sha256"
	"net"
	"net/http"
	"sync"
	"time"
)

// maxConns bounds the connections that are open. A page has a few; when there
// are more, the one goes that has waited longest without asking anything (T23).
const maxConns = 256

// conns are the open connections, those that ask nothing by age.
type conns struct {
	mu   sync.Mutex
	open map[net.Conn]bool
	idle []net.Conn // oldest first
}

// state is http.Server.ConnState.
func (c *conns) state(conn net.Conn, st http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[net.Conn]bool{}
	}
	for i, x := range c.idle {
		if x == conn {
			c.idle = append(c.idle[:i], c.idle[i+1:]...)
			break
		}
	}
	switch st {
	case http.StateNew, http.StateIdle:
		c.open[conn] = true
		c.idle = append(c.idle, conn)
		if len(c.open) > maxConns && len(c.idle) > 0 {
			_ = c.idle[0].Close() // its own goroutine tells the rest
			delete(c.open, c.idle[0])
			c.idle = c.idle[1:]
		}
	case http.StateActive:
		c.open[conn] = true
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
	}
}

// bucket is what may be asked: so many at once, refilled at a pace.
type bucket struct {
	left float64
	at   time.Time
}

func (b *bucket) take(perSecond, most float64, now time.Time) bool {
	b.left = min(most, b.left+now.Sub(b.at).Seconds()*perSecond)
	b.at = now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

const (
	callerRate, callerBurst     = 100, 400
	strangerRate, strangerBurst = 20, 60
	maxCallers                  = 1024
)

// rates hold who asks too much: each bearer for itself, those without one together.
type rates struct {
	mu      *sync.Mutex
	nobody  *bucket
	callers map[[32]byte]*bucket
}

func newRates() rates {
	return rates{mu: &sync.Mutex{}, nobody: &bucket{left: strangerBurst, at: time.Now()}, callers: map[[32]byte]*bucket{}}
}

func (r rates) stranger() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.nobody.take(strangerRate, strangerBurst, time.Now())
}

func (r rates) caller(bearer string) bool {
	key, now := sha256.Sum256([]byte(bearer)), time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.callers[key]
	if b == nil {
		if len(r.callers) >= maxCallers { // bearers that are made up: those that rest longest go
			for k, x := range r.callers {
				if now.Sub(x.at) > time.Minute {
					delete(r.callers, k)
				}
			}
			if len(r.callers) >= maxCallers {
				return r.nobody.take(strangerRate, strangerBurst, now)
			}
		}
		b = &bucket{left: callerBurst, at: now}
		r.callers[key] = b
	}
	return b.take(callerRate, callerBurst, now)
}
