package api_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/cmd/muster/api/apitest"
)

// lossy is a way to a node that may lose what comes back.
type lossy struct {
	socket string
	lose   atomic.Int64 // answers of writes that get lost, from now on
	writes atomic.Int64 // requests that went out by POST
}

func (l *lossy) dial(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", l.socket)
	if err != nil {
		return nil, err
	}
	return &lossyConn{Conn: c, l: l}, nil
}

type lossyConn struct {
	net.Conn
	l    *lossy
	post atomic.Bool
}

func (c *lossyConn) Write(b []byte) (int, error) {
	if strings.HasPrefix(string(b), "POST ") {
		c.post.Store(true)
		c.l.writes.Add(1)
	}
	return c.Conn.Write(b)
}

func (c *lossyConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.post.Load() && c.l.lose.Add(-1) >= 0 {
		c.Close()
		return 0, errors.New("cut")
	}
	return n, err
}

// TestLostAnswerIsAskedAgain: a write whose answer is lost is sent again under
// its id and as a retry; it is done once, and the caller has the one answer.
func TestLostAnswerIsAskedAgain(t *testing.T) {
	f := apitest.New()
	way := &lossy{socket: serve(t, f).Socket}
	way.lose.Store(2)
	c := &api.Client{Dial: way.dial, Timeout: 5 * time.Second}
	a, err := api.Decode[map[string]string](c.Do(t.Context(), board.VCardAdd, board.CardAdd{CardFields: title("once")}, "", false))
	if err != nil || a["id"] != "d-1" {
		t.Fatalf("%v, %v", a, err)
	}
	if n := way.writes.Load(); n != 3 {
		t.Errorf("sent %d times, want 3", n)
	}
	if l, err := api.Decode[[]api.Card](c.Get(t.Context(), "/v1/cards", nil)); err != nil || len(l) != 1 {
		t.Errorf("%d cards, %v; want 1", len(l), err)
	}
}

// TestUnknownOutcome: when no answer comes back in time the outcome is unknown,
// never guessed; under the id that is told the true one is found.
func TestUnknownOutcome(t *testing.T) {
	f := apitest.New()
	way := &lossy{socket: serve(t, f).Socket}
	way.lose.Store(1 << 30)
	c := &api.Client{Dial: way.dial, Timeout: time.Millisecond}
	a, err := c.Do(t.Context(), board.VCardAdd, board.CardAdd{CardFields: title("perhaps")}, "", false)
	if !errors.Is(err, &board.Error{Code: board.UnknownOutcome}) || a == nil || a.RequestID == "" {
		t.Fatalf("%+v, %v", a, err)
	}
	way.lose.Store(0)
	again := &api.Client{Dial: way.dial, Timeout: 5 * time.Second}
	x, err := api.Decode[map[string]string](again.Do(t.Context(), board.VCardAdd, board.CardAdd{CardFields: title("perhaps")}, a.RequestID, true))
	if err != nil || x["id"] != "d-1" {
		t.Errorf("%v, %v", x, err)
	}
	if _, err := again.Do(t.Context(), board.VCardAdd, board.CardAdd{CardFields: title("another")}, a.RequestID, true); !errors.Is(err, &board.Error{Code: board.Conflict}) && !errors.Is(err, &board.Error{Code: board.Invalid}) {
		t.Errorf("other words under a known id: %v", err)
	}
}

// TestRequestIDInTheHeader: plain HTTP clients may name their request in a header.
func TestRequestIDInTheHeader(t *testing.T) {
	f := apitest.New()
	c := serve(t, f)
	id := f.MintID()
	for range 2 {
		b, status, head := exchange(t, c, "POST", "/v1/do", strings.NewReader(`{"verb":"card.add","args":{"title":"x"},"retry":true}`), map[string][]string{api.HeaderRequestID: {id}})
		if status != 200 || !strings.Contains(string(b), `"d-1"`) || head.Get(api.HeaderRequestID) != id {
			t.Errorf("HTTP %d, id %q: %s", status, head.Get(api.HeaderRequestID), b)
		}
	}
}
