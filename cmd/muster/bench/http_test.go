package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// httpServer is net/http on a unix socket.
func httpServer(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	return path
}

func TestHTTPConnReadsWhatServersSend(t *testing.T) {
	door := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("request: %v %v", err, r.Header)
		}
		switch r.URL.Path {
		case "/chunked":
			_, _ = w.Write(body[:1])
			w.(http.Flusher).Flush()
			_, _ = w.Write(body[1:])
		case "/refused":
			http.Error(w, "no", http.StatusConflict)
		case "/empty":
		default:
			_, _ = w.Write(body)
		}
	})
	c, err := DialHTTP(t.Context(), "unix", door)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	long := strings.Repeat("x", 100_000)
	for _, want := range []struct {
		path, body string
		status     int
		answer     string
	}{
		{"/", `{"a":1}`, 200, `{"a":1}`},
		{"/chunked", "chunks", 200, "chunks"},
		{"/chunked", long, 200, long},
		{"/refused", "x", 409, "no\n"},
		{"/empty", "x", 200, ""},
		{"/", long, 200, long}, // the connection is still in step
	} {
		status, answer, err := c.Post(t.Context(), want.path, []byte(want.body))
		if err != nil || status != want.status || string(answer) != want.answer {
			t.Errorf("%s %.10q: %d %.10q, %v", want.path, want.body, status, answer, err)
		}
	}
}

func TestHTTPConnFailsHonestly(t *testing.T) {
	for _, said := range []string{"", "hello\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"} {
		ours, theirs := net.Pipe()
		go func() {
			_, _ = theirs.Read(make([]byte, 1024))
			_, _ = io.WriteString(theirs, said)
			_ = theirs.Close()
		}()
		c := newHTTPConn(ours, "h")
		if status, _, err := c.Post(t.Context(), "/", nil); err == nil {
			t.Errorf("%q was taken for an answer %d", said, status)
		}
		_ = c.Close()
	}
	ours, theirs := net.Pipe() // nobody reads
	defer theirs.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, _, err := newHTTPConn(ours, "h").Post(ctx, "/", nil); err == nil {
		t.Error("the deadline of the context does not count")
	}
}

func TestHTTPSides(t *testing.T) {
	var served atomic.Int64
	door := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		_, _ = io.Copy(w, r.Body)
	})
	p := Posts{
		Path: "/",
		Body: func(client, n int) []byte { return fmt.Appendf(nil, "%d.%d", client, n) },
		OK: func(status int, answer []byte) error {
			if status != 200 || !strings.Contains(string(answer), ".") {
				return fmt.Errorf("answer %d %q", status, answer)
			}
			return nil
		},
		Counters: func(context.Context) (map[string]float64, error) {
			return map[string]float64{"served": float64(served.Load())}, nil
		},
	}
	for _, s := range []Side{HTTPPosts("many", "unix", []string{door, door}, 5, p), HTTPAck("one", "unix", door, p)} {
		sample, err := s.Run(t.Context(), 30*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if sample.Value <= 0 || sample.Latency.N == 0 || sample.Counters["served"] != 1000 {
			t.Errorf("%s: %+v", s.Name, sample)
		}
	}
	refused := errors.New("refused")
	p.OK = func(int, []byte) error { return refused }
	if _, err := HTTPAck("bad", "unix", door, p).Run(t.Context(), time.Second); !errors.Is(err, refused) {
		t.Errorf("an answer that is not ok: %v", err)
	}
	if _, err := HTTPAck("none", "unix", door+"x", p).Run(t.Context(), time.Second); err == nil {
		t.Error("a door that is not there")
	}
}
