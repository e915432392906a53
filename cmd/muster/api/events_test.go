package api_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/cmd/muster/api/apitest"
)

func comment(f *apitest.Fleet, card, text string) {
	f.Must(apitest.Manager(), board.VEvent, board.FireEvent{Card: card, Event: "comment", Payload: map[string]any{"text": text}})
}

// follow reads a stream in the background.
func follow(t *testing.T, c *api.Client, q url.Values) (<-chan api.Event, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	events := make(chan api.Event, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(events)
		_ = c.Events(ctx, q, func(e api.Event) bool {
			select {
			case events <- e:
				return true
			case <-ctx.Done():
				return false
			}
		})
	}()
	t.Cleanup(func() { cancel(); <-done })
	return events, cancel
}

func next(t *testing.T, events <-chan api.Event) api.Event {
	t.Helper()
	select {
	case e, ok := <-events:
		if !ok {
			t.Fatal("the stream ended")
		}
		return e
	case <-time.After(10 * time.Second):
		t.Fatal("no event within 10 s")
	}
	return api.Event{}
}

// TestStreamCatchesUpThenFollows: first what the state holds after the cursor,
// then what comes, in order, without a gap and nothing twice.
func TestStreamCatchesUpThenFollows(t *testing.T) {
	f := apitest.Story()
	c := serve(t, f)
	all, err := api.Decode[[]api.Event](c.Get(t.Context(), "/v1/events", nil))
	if err != nil || len(all) < 5 {
		t.Fatalf("%d events, %v", len(all), err)
	}
	events, _ := follow(t, c, url.Values{"since": {all[1].ID}})
	for _, want := range all[2:] {
		if got := next(t, events); got.ID != want.ID {
			t.Fatalf("got %s, want %s", got.ID, want.ID)
		}
	}
	for i := range 20 { // each when the one before has come: the stream has nothing left to read then, and must be woken
		comment(f, "d-1", fmt.Sprintf("live %d", i))
		if e := next(t, events); e.Kind != "comment" || e.Card != "d-1" || !strings.Contains(string(e.Payload), fmt.Sprintf("live %d", i)) {
			t.Fatalf("got %+v", e)
		}
	}
}

// TestStreamFilters: card, kind and board, in lists and in streams.
func TestStreamFilters(t *testing.T) {
	f := apitest.Story()
	c := serve(t, f)
	newest, err := api.Decode[[]api.Event](c.Get(t.Context(), "/v1/events", url.Values{"last": {"1"}}))
	if err != nil || len(newest) != 1 {
		t.Fatalf("%v, %v", newest, err)
	}
	if none, err := api.Decode[[]api.Event](c.Get(t.Context(), "/v1/events", url.Values{"since": {"now"}})); err != nil || len(none) != 0 {
		t.Errorf("since now: %v, %v", none, err)
	}
	events, _ := follow(t, c, url.Values{"card": {"d-5"}, "kind": {"comment"}, "since": {newest[0].ID}})
	comment(f, "d-1", "of another card")
	f.Must(apitest.Manager(), board.VCardEdit, board.CardEdit{Card: "d-5", CardFields: title("of another kind")})
	comment(f, "d-5", "this one")
	if e := next(t, events); e.Card != "d-5" || e.Kind != "comment" {
		t.Errorf("got %+v", e)
	}
	l, err := api.Decode[[]api.Event](c.Get(t.Context(), "/v1/events", url.Values{"board": {"web"}}))
	if err != nil || len(l) == 0 {
		t.Fatalf("%v, %v", l, err)
	}
	for _, e := range l {
		if e.Board != "web" {
			t.Errorf("event of board %q", e.Board)
		}
	}
}

// TestNewest: the last events, oldest first, of all and of one card.
func TestNewest(t *testing.T) {
	f := apitest.Story()
	for i := range 10 {
		comment(f, "d-1", fmt.Sprint(i))
		f.Must(apitest.Manager(), board.VBarrier, nil) // moves no event
	}
	c := serve(t, f)
	all, err := api.Decode[[]api.Event](c.Get(t.Context(), "/v1/events", nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 3, len(all), len(all) + 5} {
		l, err := api.Decode[[]api.Event](c.Get(t.Context(), "/v1/events", url.Values{"last": {fmt.Sprint(n)}}))
		want := all[max(0, len(all)-n):]
		if err != nil || len(l) != len(want) || l[0].ID != want[0].ID || l[len(l)-1].ID != want[len(want)-1].ID {
			t.Errorf("last %d: %d events, %v", n, len(l), err)
		}
	}
	l, err := api.Decode[[]api.Event](c.Get(t.Context(), "/v1/events", url.Values{"last": {"2"}, "card": {"d-1"}}))
	if err != nil || len(l) != 2 || !strings.Contains(string(l[1].Payload), `"9"`) {
		t.Errorf("last 2 of d-1: %+v, %v", l, err)
	}
}

// TestSlowReader: who reads slowly holds nobody up and misses nothing: the
// events wait in the state, not in a queue.
func TestSlowReader(t *testing.T) {
	f := apitest.Story()
	c := serve(t, f)
	conn, err := net.Dial("unix", c.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	all, err := api.Decode[[]api.Event](c.Get(t.Context(), "/v1/events", nil))
	if err != nil {
		t.Fatal(err)
	}
	// not since=now: that is some moment after the stream was opened, and the first comment may come before it
	fmt.Fprintf(conn, "GET /v1/events?follow=true&since=%s&kind=comment HTTP/1.1\r\nHost: x\r\n\r\n", all[len(all)-1].ID)
	until(t, "the stream is open", func() bool { return f.Subs() == 1 })
	const many = 1500
	text := strings.Repeat("x", 1000) // more in all than a socket holds
	for i := range many {
		comment(f, "d-1", fmt.Sprintf("%d %s", i, text)) // would hang here if the reader could hold it up
	}
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	seen := 0
	for seen < many && lines.Scan() {
		if strings.Contains(lines.Text(), fmt.Sprintf(`"text":"%d x`, seen)) {
			seen++
		}
	}
	if seen != many {
		t.Errorf("read %d of %d events in order: %v", seen, many, lines.Err())
	}
}

// TestStreamEndsWithItsReader: a reader that is gone leaves nothing behind.
func TestStreamEndsWithItsReader(t *testing.T) {
	f := apitest.Story()
	c := serve(t, f)
	events, cancel := follow(t, c, nil)
	next(t, events)
	cancel()
	until(t, "the subscription is closed", func() bool { return f.Subs() == 0 })
}

// TestServerSentEvents: the form browsers take, and Last-Event-ID as cursor.
func TestServerSentEvents(t *testing.T) {
	f := apitest.Story()
	c := serve(t, f)
	all, err := api.Decode[[]api.Event](c.Get(t.Context(), "/v1/events", nil))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("unix", c.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	last := all[len(all)-2]
	fmt.Fprintf(conn, "GET /v1/events?follow=true HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nLast-Event-ID: %s\r\n\r\n", last.ID)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := res.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("content type %q", got)
	}
	lines := bufio.NewScanner(res.Body)
	var got []string
	for len(got) < 4 && lines.Scan() {
		got = append(got, lines.Text())
	}
	want := all[len(all)-1]
	if got[0] != "id: "+want.ID || got[1] != "event: "+want.Kind || !strings.HasPrefix(got[2], `data: {"v":1,`) || got[3] != "" {
		t.Errorf("got %q", got)
	}
}

// TestStreamOutlivesARestart: the node is started anew; the reader goes on after the last event it saw.
func TestStreamOutlivesARestart(t *testing.T) {
	f := apitest.Story()
	dir := folder(t)
	srv, err := f.Serve(dir)
	if err != nil {
		t.Fatal(err)
	}
	c := &api.Client{Socket: filepath.Join(dir, "muster.sock"), Timeout: 5 * time.Second}
	events, _ := follow(t, c, url.Values{"kind": {"comment"}})
	next(t, events) // of the story
	srv.Close()
	comment(f, "d-1", "meanwhile")
	if srv, err = f.Serve(dir); err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	if e := next(t, events); !strings.Contains(string(e.Payload), "meanwhile") {
		t.Errorf("got %+v", e)
	}
}

// TestBadCursor: an id that is none is refused, in a list and in a stream.
func TestBadCursor(t *testing.T) {
	c := serve(t, apitest.Story())
	for _, q := range []url.Values{{"since": {"x"}}, {"since": {"x"}, "follow": {"true"}}} {
		if _, err := c.Get(t.Context(), "/v1/events", q); !errors.Is(err, &board.Error{Code: board.Invalid}) {
			t.Errorf("%v: %v", q, err)
		}
	}
}

// barriers counts the consistent readings.
type barriers struct {
	*apitest.Fleet
	n atomic.Int64
}

func (b *barriers) Read(ctx context.Context, consistent bool, fn func(board.View) error) (api.Fresh, error) {
	if consistent {
		b.n.Add(1)
	}
	return b.Fleet.Read(ctx, consistent, fn)
}

// A follower that asks for a consistent reading gets one, to begin with: not one for every event that comes.
func TestAFollowerAsksTheLeaderOnce(t *testing.T) {
	b := &barriers{Fleet: apitest.Story()}
	w := dialRaw(t, b)
	w.send("GET /v1/events?follow=true&consistent=true HTTP/1.1\r\nHost: m\r\n\r\n")
	r, err := http.ReadResponse(w.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(r.Body)
	for range 3 {
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		b.Must(apitest.Manager(), board.VCardAdd, board.CardAdd{CardFields: title("x")})
	}
	for text := ""; !strings.Contains(text, `"title":"x"`); {
		if text, err = lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	if n := b.n.Load(); n != 1 {
		t.Errorf("%d consistent readings", n)
	}
}

// An event that no reader can take ends the stream with words; it is not asked for again and again.
func TestAnEventTooLargeToReadEndsTheStream(t *testing.T) {
	asked := 0
	dir := folder(t)
	l, err := net.Listen("unix", filepath.Join(dir, "muster.sock"))
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = io.WriteString(w, strings.Repeat("x", 5<<20)+"\n")
	})}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { srv.Close() })
	c := &api.Client{Socket: filepath.Join(dir, "muster.sock"), Timeout: time.Second}
	err = c.Events(t.Context(), nil, func(api.Event) bool { return true })
	if !errors.Is(err, &board.Error{Code: board.Internal}) || asked != 1 {
		t.Errorf("asked %d times: %v", asked, err)
	}
}
