package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/cmd/muster/api"
	"muster/cmd/muster/api/apitest"
)

// page is an open page of a fleet with a past, and a client that is not a browser.
type page struct {
	t   *testing.T
	s   *Server
	dir string
}

func openPage(t *testing.T) *page {
	t.Helper()
	dir := t.TempDir()
	return &page{t, reopen(t, dir), dir}
}

func reopen(t *testing.T, dir string) *Server {
	t.Helper()
	f := apitest.Story()
	s, err := Open(Config{Data: dir, User: api.Handler(f, api.DoorUser, nil), Token: api.Handler(f, api.DoorToken, nil),
		Secret: func(x string) (string, error) {
			rest, ok := strings.CutPrefix(x, "muster1.")
			if !ok {
				return "", errors.New("no token")
			}
			return rest, nil
		},
		Doctor: func(context.Context) any { return []string{"nothing"} }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// ask sends one request; header names a value by "Name: value".
func (p *page) ask(method, path, body string, header ...string) (int, string, http.Header) {
	p.t.Helper()
	req, err := http.NewRequest(method, "http://"+p.s.Addr()+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, h := range header {
		k, v, _ := strings.Cut(h, ": ")
		if k == "Host" {
			req.Host = v
		} else {
			req.Header.Set(k, v)
		}
	}
	res, err := (&http.Client{Timeout: 10 * time.Second}).Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		p.t.Fatal(err)
	}
	return res.StatusCode, string(b), res.Header
}

// enter is the header of a page that was let in.
func (p *page) enter() string {
	p.t.Helper()
	x, err := p.s.Login("ann")
	if err != nil {
		p.t.Fatal(err)
	}
	_, code, _ := strings.Cut(x.URL, "#code=")
	status, body, _ := p.ask("POST", "/web/login", `{"code":"`+code+`"}`, "Content-Type: application/json")
	var ans struct{ Data struct{ Bearer string } }
	if err := json.Unmarshal([]byte(body), &ans); err != nil || status != 200 {
		p.t.Fatalf("login: %d %s", status, body)
	}
	return "Authorization: Bearer " + ans.Data.Bearer
}

// TestCodeIsGoodOnce: a code lets in once; then, and without one, nothing is told.
func TestCodeIsGoodOnce(t *testing.T) {
	p := openPage(t)
	x, err := p.s.Login("ann")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(x.URL, "#code=")
	login := func() int {
		n, _, _ := p.ask("POST", "/web/login", `{"code":"`+code+`"}`, "Content-Type: application/json")
		return n
	}
	if a, b := login(), login(); a != 200 || b != 403 {
		t.Errorf("a code used twice: %d, then %d", a, b)
	}
	if info, err := os.Stat(x.File); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file for the browser: %v %v", info, err)
	}
	for _, path := range []string{"/v1/status", "/v1/boards/default", "/v1/live", "/web/doctor"} {
		for _, h := range []string{"X: none", "Authorization: Bearer made-up", "Authorization: Bearer w1.e30.e30", "Cookie: bearer=w1", "Authorization: Basic YTpi"} {
			if n, body, _ := p.ask("GET", path, "", h); n != 401 {
				t.Errorf("%s with %q: %d %s", path, h, n, body)
			}
		}
	}
}

// TestBearer: it is the person's, outlives a restart of the node on the same port, and is nobody's elsewhere.
func TestBearer(t *testing.T) {
	p := openPage(t)
	auth := p.enter()
	n, body, h := p.ask("GET", "/v1/boards/default", "", auth)
	if n != 200 || !strings.Contains(body, `"d-5"`) {
		t.Fatalf("%d %s", n, body)
	}
	if c := h.Get("Set-Cookie"); c != "" {
		t.Errorf("a cookie is set: %s", c)
	}
	if n, body, _ = p.ask("POST", "/v1/do", `{"verb":"event","args":{"card":"d-4","event":"comment","payload":{"text":"from the page"}}}`, auth, "Content-Type: application/json"); n != 200 {
		t.Errorf("a comment: %d %s", n, body)
	}
	if _, body, _ = p.ask("GET", "/v1/cards/d-4", "", auth); !strings.Contains(body, `"ann@atlas"`) {
		t.Errorf("the comment is not the person's: %s", body)
	}
	addr := p.s.Addr()
	p.s.Close()
	if p.s = reopen(t, p.dir); p.s.Addr() != addr {
		t.Fatalf("it listens on %s after a restart, and did on %s", p.s.Addr(), addr)
	}
	if n, body, _ = p.ask("GET", "/v1/status", "", auth); n != 200 {
		t.Errorf("after a restart: %d %s", n, body)
	}
	p.s.Close()
	l, err := net.Listen("tcp", addr) // somebody else has the port
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p.s = reopen(t, p.dir)
	if n, _, _ = p.ask("GET", "/v1/status", "", auth); n != 401 {
		t.Errorf("a bearer of another port is taken: %d", n)
	}
	if err := os.Remove(filepath.Join(p.dir, "web.key")); err != nil {
		t.Fatal(err)
	}
}

// TestOtherPagesGetNothing: a foreign Host, a foreign Origin and a request that a foreign
// page makes are refused on every method, before anybody is asked who they are (T19, T20, T21).
func TestOtherPagesGetNothing(t *testing.T) {
	p := openPage(t)
	auth := p.enter()
	_, port, _ := net.SplitHostPort(p.s.Addr())
	json := "Content-Type: application/json"
	for _, method := range []string{"GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD"} {
		for _, path := range []string{"/", "/v1/status", "/v1/live", "/v1/do", "/web/login", "/v1/events?follow=true"} {
			for _, c := range []struct {
				status int
				header []string
			}{
				{421, []string{"Host: evil.example"}},
				{421, []string{"Host: evil.example:" + port}},
				{421, []string{"Host: 127.0.0.1"}},
				{421, []string{"Host: 127.0.0.1:1"}},
				{421, []string{"Host: localhost.evil.example:" + port}},
				{403, []string{"Origin: http://evil.example"}},
				{403, []string{"Origin: null"}},
				{403, []string{"Origin: http://127.0.0.1:1"}},
				{403, []string{"Origin: https://127.0.0.1:" + port}},
				{403, []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors"}},
				{403, []string{"Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: no-cors"}},
			} {
				n, body, h := p.ask(method, path, "", append(c.header, auth, json)...)
				if n != c.status && !(method == "OPTIONS" && n == 403) {
					t.Errorf("%s %s with %v: %d %.80s", method, path, c.header, n, body)
				}
				if h.Get("Access-Control-Allow-Origin") != "" {
					t.Errorf("%s %s with %v: another origin is let in", method, path, c.header)
				}
				if strings.Contains(body, "d-5") {
					t.Errorf("%s %s with %v: told %s", method, path, c.header, body)
				}
			}
		}
	}
	if n, _, _ := p.ask("GET", "/", "", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"); n != 200 {
		t.Errorf("a link to the page: %d", n)
	}
	if n, _, _ := p.ask("GET", "/", "", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"); n != 403 {
		t.Errorf("the page in another page: %d", n)
	}
	for _, host := range []string{"localhost:" + port, "127.0.0.1:" + port, "[::1]:" + port} {
		if n, body, _ := p.ask("GET", "/v1/status", "", auth, "Host: "+host, "Origin: http://"+host, "Sec-Fetch-Site: same-origin"); n != 200 {
			t.Errorf("%s: %d %.200s", host, n, body)
		}
	}
}

// TestPolicy: whatever is answered, no script but the page's own files runs, and nothing frames it (T22).
func TestPolicy(t *testing.T) {
	p := openPage(t)
	for _, path := range []string{"/", "/index.html", "/app.css", "/js/main.js", "/nothing", "/v1/status"} {
		_, _, h := p.ask("GET", path, "")
		csp := h.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s: the policy lacks %s", path, want)
			}
		}
		if strings.Contains(csp, "unsafe") || strings.Contains(csp, "*") || strings.Contains(csp, "http") {
			t.Errorf("%s: a policy with a hole: %s", path, csp)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("X-Frame-Options") != "DENY" || h.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: %v", path, h)
		}
	}
}

// TestPageHoldsNoMarkupSink: text reaches the page as text, and nothing is fetched from outside.
func TestPageHoldsNoMarkupSink(t *testing.T) {
	entries, err := files.ReadDir("static/js")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := files.ReadFile("static/js/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, sink := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "https:", "document.cookie", "postMessage"} {
			if bytes.Contains(b, []byte(sink)) {
				t.Errorf("%s has %s", e.Name(), sink)
			}
		}
	}
	b, _ := files.ReadFile("static/index.html")
	for _, no := range []string{" style=", " onclick", " onload", "javascript:", "//cdn", "https:"} {
		if bytes.Contains(b, []byte(no)) {
			t.Errorf("index.html has %s", no)
		}
	}
}

// TestWhatIsNotForThePage stays behind the node's own socket, whoever asks.
func TestWhatIsNotForThePage(t *testing.T) {
	p := openPage(t)
	auth := p.enter()
	for _, c := range [][2]string{{"POST", "/v1/stop"}, {"POST", "/v1/gc"}, {"POST", "/v1/token"}, {"POST", "/v1/web"}, {"GET", "/v1/backup"}, {"GET", "/v1/peers"}, {"GET", "/v1/terminal"},
		{"GET", "/v1/tokens"}, {"GET", "/v1/counters"}, {"GET", "/v1/boards/default/export"}, {"POST", "/v1/import"}, {"GET", "/v1/../v1/backup"}, {"GET", "/v1//backup"}} {
		if n, body, _ := p.ask(c[0], c[1], "{}", auth, "Content-Type: application/json"); n == 200 {
			t.Errorf("%s %s: %d %.80s", c[0], c[1], n, body)
		}
	}
	if n, _, _ := p.ask("POST", "/v1/do", `{"verb":"pause","args":{}}`, auth, "Content-Type: text/plain"); n != 403 {
		t.Errorf("a form's content type: %d", n)
	}
}

// TestRefusesToBeOpenWithoutTLS: off loopback everybody on the way could read along.
func TestRefusesToBeOpenWithoutTLS(t *testing.T) {
	for listen, ok := range map[string]bool{"127.0.0.1:0": true, "[::1]:8080": true, "localhost:1": true, "0.0.0.0:8080": false, "192.0.2.1:8080": false, ":8080": false, "nonsense": false, "127.0.0.1:99999": false} {
		if err := (&Config{Listen: listen}).Check(); (err == nil) != ok {
			t.Errorf("--http %s: %v", listen, err)
		}
	}
	if err := (&Config{Cert: "x"}).Check(); err == nil {
		t.Error("a certificate without its key is taken")
	}
	if err := (&Config{Names: []string{"a:1"}}).Check(); err == nil {
		t.Error("a name with a port is taken")
	}
}

// TestKeyOfThePage: one that others can read is refused, with what to do.
func TestKeyOfThePage(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "web.key")
	for _, c := range []struct {
		data string
		mode os.FileMode
	}{{strings.Repeat("k", keyBytes), 0o644}, {"short", 0o600}} {
		if err := os.WriteFile(file, []byte(c.data), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, c.mode); err != nil {
			t.Fatal(err)
		}
		if _, err := loadKey(file); err == nil || !strings.Contains(err.Error(), "delete it") {
			t.Errorf("mode %o, %d bytes: %v", c.mode, len(c.data), err)
		}
	}
}

// TestFloodsAreBounded: many connections that say nothing, and a large body, leave the page usable (T23).
func TestFloodsAreBounded(t *testing.T) {
	p := openPage(t)
	auth := p.enter()
	for range maxConns + 100 {
		c, err := net.Dial("tcp", p.s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if n, _, _ := p.ask("GET", "/v1/status", "", auth); n != 200 {
		t.Errorf("beside %d idle connections: %d", maxConns+100, n)
	}
	p.s.conns.mu.Lock()
	if n := len(p.s.conns.open); n > maxConns+1 {
		t.Errorf("%d connections are open", n)
	}
	p.s.conns.mu.Unlock()
	if n, _, _ := p.ask("POST", "/v1/do", strings.Repeat("x", maxBody+1), auth, "Content-Type: application/json"); n != 413 {
		t.Errorf("a large body: %d", n)
	}
	refused := 0
	for i := range strangerBurst + 50 {
		if n, _, _ := p.ask("POST", "/web/login", fmt.Sprintf(`{"code":"guess%d"}`, i), "Content-Type: application/json"); n == 429 {
			refused++
		}
	}
	if refused == 0 {
		t.Error("guesses are not slowed down")
	}
	if n, _, _ := p.ask("GET", "/v1/status", "", auth); n != 200 {
		t.Errorf("after guesses of others: %d", n)
	}
}

// TestStaticFiles: each is served as what it is, and an unchanged one is not sent again.
func TestStaticFiles(t *testing.T) {
	p := openPage(t)
	for path, kind := range map[string]string{"/": "text/html", "/js/main.js": "text/javascript", "/app.css": "text/css", "/favicon.svg": "image/svg+xml"} {
		n, body, h := p.ask("GET", path, "")
		if n != 200 || !strings.HasPrefix(h.Get("Content-Type"), kind) || body == "" {
			t.Errorf("%s: %d %s", path, n, h.Get("Content-Type"))
		}
		if n, body, _ = p.ask("GET", path, "", "If-None-Match: "+h.Get("ETag")); n != 304 || body != "" {
			t.Errorf("%s again: %d", path, n)
		}
	}
	for _, path := range []string{"/static/app.css", "/../web.key", "/js/", "/web.key"} {
		if n, _, _ := p.ask("GET", path, ""); n != 404 && n != 307 && n != 301 {
			t.Errorf("%s: %d", path, n)
		}
	}
}
