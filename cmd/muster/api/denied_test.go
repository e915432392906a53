package api_test

import (
	"errors"
	"io"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/cmd/muster/api/apitest"
)

// counting is a fleet that is told of denials.
type counting struct {
	*apitest.Fleet
	mu   sync.Mutex
	told map[string]int
}

func (c *counting) Denied(kind, _, _ string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told[kind]++
}

func (c *counting) take(kind string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.told[kind]
	c.told[kind] = 0
	return n
}

// Invariant 23: without a valid token the door answers nothing at all: not what
// this node is, not an id to ask with, no board's file.
func TestTheDoorTellsStrangersNothing(t *testing.T) {
	f := apitest.Story()
	f.Must(apitest.Manager(), board.VTokenCreate, board.TokenCreate{ID: board.HashSecret("join"), Role: "node"})
	for _, secret := range []string{"", "guess", "join"} {
		c := door(t, f, secret)
		for _, path := range []string{"/v1/info", "/v1/id", "/v1/status", "/v1/boards", "/v1/boards/default", "/v1/boards/default/export", "/v1/kinds", "/v1/counters",
			"/v1/inbox", "/v1/events?follow=true", "/v1/cards/d-1/context", "/v1/cards/d-1/diff", "/v1/dryrun"} {
			ans, err := c.Get(t.Context(), path, nil)
			if !errors.Is(err, &board.Error{Code: board.Refused, Check: board.CheckToken}) || ans != nil && ans.Data != nil {
				t.Errorf("token %q: %s: %v", secret, path, err)
			}
		}
	}
}

// A token of one board reads that board, and does not learn of others.
func TestTheDoorOfOneBoard(t *testing.T) {
	f := apitest.Story()
	f.Must(apitest.Manager(), board.VBoardCreate, board.BoardCreate{Slug: "docs", Prefix: "x"})
	f.Must(apitest.Manager(), board.VCardAdd, board.CardAdd{Board: "docs", CardFields: title("mine")})
	f.Must(apitest.Manager(), board.VTokenCreate, board.TokenCreate{ID: board.HashSecret("docs"), Role: "viewer", Board: "docs", Name: "eve"})
	c := door(t, f, "docs")
	for _, path := range []string{"/v1/cards/d-1", "/v1/boards/default", "/v1/boards/default/workflow", "/v1/cards?board=default", "/v1/events?board=default", "/v1/status", "/v1/nodes",
		"/v1/tokens", "/v1/sessions", "/v1/runs/d-1.1/log", "/v1/cards/d-1/why", "/v1/boards/default/export", "/v1/dryrun", "/v1/rounds"} {
		if _, err := c.Get(t.Context(), path, nil); !errors.Is(err, &board.Error{Code: board.Refused, Check: board.CheckScope}) {
			t.Errorf("%s: %v", path, err)
		}
	}
	cards, err := api.Decode[[]api.Card](c.Get(t.Context(), "/v1/cards", nil))
	if err != nil || len(cards) != 1 || cards[0].Board != "docs" {
		t.Errorf("cards: %+v, %v", cards, err)
	}
	boards, err := api.Decode[[]api.Board](c.Get(t.Context(), "/v1/boards", nil))
	if err != nil || len(boards) != 1 {
		t.Errorf("boards: %+v, %v", boards, err)
	}
	events, err := api.Decode[[]api.Event](c.Get(t.Context(), "/v1/events", nil))
	if err != nil || len(events) == 0 {
		t.Errorf("events: %v, %v", events, err)
	}
	for _, e := range events {
		if e.Board != "docs" {
			t.Errorf("shown event %s of board %q", e.ID, e.Board)
		}
	}
	if box, err := api.Decode[api.Inbox](c.Get(t.Context(), "/v1/inbox", nil)); err != nil || box.Who != "eve" {
		t.Errorf("inbox of %q, %v", box.Who, err)
	}
}

// Who is refused for who they are is counted, by kind, on every way in.
func TestDenialsAreTold(t *testing.T) {
	f := &counting{Fleet: apitest.Story(), told: map[string]int{}}
	srv := httptest.NewServer(api.Handler(f, api.DoorToken, nil))
	defer srv.Close()
	dir := folder(t)
	sock, err := api.Serve(f, api.Sockets{User: dir + "/muster.sock", Session: dir + "/session.sock", InKeeperTree: func(int) bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	defer sock.Close()
	user := &api.Client{Socket: dir + "/muster.sock"}
	stranger := &api.Client{Dial: dialTo(srv.Listener.Addr().String()), Auth: "Bearer guess"}
	f.Must(apitest.Manager(), board.VTokenCreate, board.TokenCreate{ID: board.HashSecret("web"), Role: "member", Board: "web"})
	bound := &api.Client{Dial: dialTo(srv.Listener.Addr().String()), Auth: "Bearer web"}
	live := &api.Client{Socket: dir + "/session.sock", Auth: "Run d-2.1:s2"}
	backup := func(c *api.Client) error {
		_, _, err := c.Backup(t.Context(), false, io.Discard, func(int64) {})
		return err
	}
	over := &api.Client{Socket: dir + "/session.sock", Auth: "Run d-1.1:s1"}
	for i, c := range []struct {
		kind string
		call func() error
	}{
		{board.CheckSocket, func() error { _, err := user.Get(t.Context(), "/v1/status", nil); return err }},
		{board.CheckSocket, func() error { _, err := user.Do(t.Context(), board.VBarrier, nil, f.MintID(), false); return err }},
		{board.CheckToken, func() error { _, err := stranger.Get(t.Context(), "/v1/status", nil); return err }},
		{board.CheckToken, func() error { _, err := stranger.Get(t.Context(), "/v1/events?follow=true", nil); return err }},
		{board.CheckToken, func() error { _, err := stranger.Do(t.Context(), board.VBarrier, nil, f.MintID(), false); return err }},
		{board.CheckToken, func() error { _, err := stranger.Get(t.Context(), "/v1/boards/default/export", nil); return err }},
		{board.CheckToken, func() error { return backup(stranger) }},
		{board.CheckRole, func() error { return backup(bound) }},
		{board.CheckScope, func() error { _, err := bound.Export(t.Context(), "default", io.Discard); return err }},
		{board.CheckRole, func() error { _, err := live.Export(t.Context(), "default", io.Discard); return err }},
		{board.CheckToken, func() error { _, _, err := stranger.Terminal(t.Context(), url.Values{"card": {"d-2"}}); return err }},
		{board.CheckSuperseded, func() error { _, err := over.Get(t.Context(), "/v1/cards/d-1", nil); return err }},
	} {
		if err := c.call(); err == nil {
			t.Errorf("%s: let through", c.kind)
		}
		if n := f.take(c.kind); n != 1 {
			t.Errorf("%d %s: told %d times", i, c.kind, n)
		}
	}
}

// Guesses at the door do not keep the leader busy.
func TestGuessesAreHeldUp(t *testing.T) {
	f := apitest.Story()
	c := door(t, f, "guess")
	for range 100 {
		if _, err := c.Do(t.Context(), board.VBarrier, nil, f.MintID(), false); err == nil {
			t.Fatal("let through")
		}
	}
	if n := len(f.Asked()); n == 0 || n > 60 {
		t.Errorf("the leader was asked %d times", n)
	}
}
