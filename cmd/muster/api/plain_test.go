package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/cmd/muster/api/apitest"
)

// wire is one connection to a node's socket, spoken by hand.
type wire struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func dialRaw(t *testing.T, b api.Backend) *wire {
	t.Helper()
	dir := folder(t)
	srv, err := api.Serve(b, api.Sockets{User: filepath.Join(dir, "muster.sock"), Session: filepath.Join(dir, "session.sock")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	c, err := net.Dial("unix", filepath.Join(dir, "muster.sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return &wire{t, c, bufio.NewReader(c)}
}

func (w *wire) send(text string) {
	w.t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		w.t.Fatal(err)
	}
}

func (w *wire) answer() (status int, head http.Header, body string) {
	w.t.Helper()
	r, err := http.ReadResponse(w.in, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	b, err := io.ReadAll(r.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return r.StatusCode, r.Header, string(b)
}

func post(body string, headers ...string) string {
	return "POST /v1/do HTTP/1.1\r\nHost: muster\r\n" + strings.Join(append(headers, ""), "\r\n") + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
}

// The short way in and net/http answer the same: status, body, id and kind of what is sent.
func TestBothWaysInAnswerTheSame(t *testing.T) {
	f := apitest.New()
	w := dialRaw(t, f)
	id := f.MintID()
	for _, c := range []struct{ name, body, header string }{
		{"done", `{"verb":"card.add","args":{"title":"x"},"id":"` + id + `"}`, "Accept: */*"},
		{"done, id in the head", `{"verb":"card.add","args":{"title":"y"}}`, api.HeaderRequestID + ": " + id + "y"},
		{"refused", `{"verb":"event","args":{"card":"d-99","event":"comment"},"id":"` + id + `n"}`, "Accept: */*"},
		{"not spoken", `{"verb":"fleet.init","args":{}}`, "Accept: */*"},
		{"no JSON", `{"verb":`, "Accept: */*"},
		{"unknown field", `{"verb":"card.add","args":{},"as":"root"}`, "Accept: */*"},
		{"two values", `{"verb":"barrier"} {}`, "Accept: */*"},
		{"an id with a line in it", `{"verb":"event","args":{"card":"d-1","event":"comment"},"id":"a\r\nX: y"}`, "Accept: */*"},
		{"empty", ``, "Accept: */*"},
	} {
		w.send(post(c.body, c.header))
		status, head, body := w.answer()
		full := dialRaw(t, f)
		full.send(post(c.body, c.header, "X-Other: this is not plain"))
		status2, head2, body2 := full.answer()
		if status != status2 || body != body2 {
			t.Errorf("%s: %d %s, by net/http %d %s", c.name, status, body, status2, body2)
		}
		for _, name := range []string{"Content-Type", api.HeaderRequestID} {
			if head.Get(name) != head2.Get(name) && !strings.Contains(head2.Get(name), "X: y") { // net/http makes spaces of control characters
				t.Errorf("%s: %s is %q, by net/http %q", c.name, name, head.Get(name), head2.Get(name))
			}
		}
		if head.Get("X") != "" || head.Get("Date") == "" {
			t.Errorf("%s: head %v", c.name, head)
		}
	}
}

// A connection may say anything, in any pieces, and in any order.
func TestAConnectionMaySayAnything(t *testing.T) {
	f := apitest.New()
	w := dialRaw(t, f)
	ok := func(what string) {
		t.Helper()
		if status, _, body := w.answer(); status != 200 {
			t.Fatalf("%s: %d %s", what, status, body)
		}
	}
	add := post(`{"verb":"card.add","args":{"title":"x"}}`)
	for i := range add {
		w.send(add[i : i+1])
	}
	ok("a byte at a time")
	w.send(add + add)
	ok("two at once")
	ok("two at once")
	w.send(post(`{"verb":"card.add","args":{"title":"x","body":"` + strings.Repeat("b", 100_000) + `"}}`))
	ok("a large one")
	w.send("GET /v1/info HTTP/1.1\r\nHost: m\r\n\r\n")
	ok("a read")
	w.send("POST /v1/do HTTP/1.1\r\nHost: m\r\nTransfer-Encoding: chunked\r\n\r\n12\r\n" + `{"verb":"barrier"}` + "\r\n0\r\n\r\n")
	ok("in chunks")
	w.send(add)
	ok("a write after all that")
	for _, bad := range []string{
		"POST /v1/do HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",                                             // no host
		"POST /v1/do HTTP/1.1\r\nHost: m\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",             // which?
		"POST /v1/do HTTP/1.1\r\nHost: m\r\nContent-Length : 2\r\n\r\n{}",                                 // a space
		"POST /v1/do HTTP/1.1\r\nHost: m\r\nContent-Length: +2\r\n\r\n{}",                                 // a sign
		"POST /v1/do HTTP/1.1\r\nHost: m\r\nContent-Length: 99999999\r\nConnection: close\r\n\r\n{\"id\"", // too large
	} {
		w := dialRaw(t, f)
		w.send(bad)
		if c, ok := w.Conn.(*net.UnixConn); ok {
			_ = c.CloseWrite()
		}
		if r, err := http.ReadResponse(w.in, nil); err == nil && r.StatusCode < 400 {
			t.Errorf("%q is answered %d", bad, r.StatusCode)
		}
	}
}

// waiting is a node whose requests have no end of their own.
type waiting struct {
	*apitest.Fleet
	began, ended chan struct{}
}

func (w waiting) Do(ctx context.Context, _ board.Request) board.Result {
	close(w.began)
	<-ctx.Done()
	close(w.ended)
	return board.Result{Err: board.Errorf(board.Unavailable, "no")}
}

// A request ends with its caller, long before its time is up: nothing is done for one who has left. So it does with the server.
func TestARequestEndsWithItsCaller(t *testing.T) {
	for _, how := range []string{"hangs up", "the server closes"} {
		t.Run(how, func(t *testing.T) {
			dir := folder(t)
			b := waiting{apitest.New(), make(chan struct{}), make(chan struct{})}
			srv, err := api.Serve(b, api.Sockets{User: filepath.Join(dir, "muster.sock"), Session: filepath.Join(dir, "session.sock")})
			if err != nil {
				t.Fatal(err)
			}
			defer srv.Close()
			c, err := net.Dial("unix", filepath.Join(dir, "muster.sock"))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := io.WriteString(c, post(`{"verb":"card.add","args":{}}`, api.HeaderTimeout+": 10m")); err != nil {
				t.Fatal(err)
			}
			<-b.began
			if how == "hangs up" {
				c.Close()
			} else {
				srv.Close()
			}
			select {
			case <-b.ended:
			case <-time.After(20 * time.Second):
				t.Fatal("the request goes on")
			}
		})
	}
}

// slow is a node that answers after the caller was looked for.
type slow struct{ *apitest.Fleet }

func (s slow) Do(ctx context.Context, r board.Request) board.Result {
	wait, cancel := context.WithTimeout(ctx, 150*time.Millisecond)
	defer cancel()
	<-wait.Done()
	return s.Fleet.Do(ctx, r)
}

// A slow answer leaves the connection as good as a fast one.
func TestASlowAnswerKeepsTheConnection(t *testing.T) {
	w := dialRaw(t, slow{apitest.New()})
	for range 2 {
		w.send(post(`{"verb":"card.add","args":{"title":"x"}}`))
		if status, _, body := w.answer(); status != 200 {
			t.Fatalf("%d %s", status, body)
		}
	}
}

// defective is a node whose writes have a defect.
type defective struct{ *apitest.Fleet }

func (defective) Do(context.Context, board.Request) board.Result { panic("a defect") }

// A defect in one write is answered, and the connection goes on.
func TestPanicOfAWriteIsAnAnswer(t *testing.T) {
	w := dialRaw(t, defective{apitest.New()})
	for range 2 {
		w.send(post(`{"verb":"card.add","args":{"title":"x"}}`))
		if status, _, body := w.answer(); status != 500 || !strings.Contains(body, "a defect") {
			t.Errorf("%d %s", status, body)
		}
	}
}
