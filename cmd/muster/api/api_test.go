package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/cmd/muster/api/apitest"
	"muster/scheduler"
)

var update = flag.Bool("update", false, "write the golden files anew")

// folder is one for sockets: its path is short on every system.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "muster")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// serve opens the fleet's sockets and gives a client of the user's.
func serve(t *testing.T, f *apitest.Fleet) *api.Client {
	t.Helper()
	dir := folder(t)
	srv, err := f.Serve(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	return &api.Client{Socket: filepath.Join(dir, "muster.sock"), Timeout: 5 * time.Second}
}

// session is a client of the session socket beside the user's.
func session(c *api.Client, run, secret string) *api.Client {
	return &api.Client{Socket: filepath.Join(filepath.Dir(c.Socket), "session.sock"), Timeout: 5 * time.Second, Auth: "Run " + run + ":" + secret}
}

// door is the API as strangers with a token reach it.
func door(t *testing.T, f *apitest.Fleet, secret string) *api.Client {
	t.Helper()
	srv := httptest.NewServer(api.Handler(f, api.DoorToken, nil))
	t.Cleanup(srv.Close)
	c := &api.Client{Timeout: 5 * time.Second, Dial: dialTo(srv.Listener.Addr().String())}
	if secret != "" {
		c.Auth = "Bearer " + secret
	}
	return c
}

func dialTo(addr string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", addr)
	}
}

// golden holds got against testdata/NAME.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test -update writes it anew)\n--- got\n%s\n--- want\n%s", path, got, want)
	}
}

// TestAnswers holds every read's envelope against a golden file: field names are
// what scripts depend on.
func TestAnswers(t *testing.T) {
	f := apitest.Story()
	f.Log("d-1.1", "1\n2\n", true)
	f.RoundLog = []scheduler.Round{{Time: apitest.Begin.UnixMilli(), Started: []scheduler.RoundStart{{Card: "d-1", Run: "d-1.1", Machine: "atlas", Profile: "script"}},
		Queued: []scheduler.RoundWait{{Card: "d-3", Check: "parents", Text: "waits for d-2"}}, MS: map[string]float64{"plan": 0.5}}}
	f.Must(apitest.Manager(), board.VTokenCreate, board.TokenCreate{ID: board.HashSecret("x"), Role: "viewer", TTL: 3600})
	c := serve(t, f)
	for name, path := range map[string]string{
		"status": "/v1/status", "info": "/v1/info", "nodes": "/v1/nodes", "node": "/v1/nodes/atlas", "boards": "/v1/boards", "board": "/v1/boards/default",
		"workflow": "/v1/boards/default/workflow", "cards": "/v1/cards?board=default", "blocked": "/v1/cards?attention=true", "attention": "/v1/attention", "card": "/v1/cards/d-1",
		"runs": "/v1/cards/d-2/runs", "why": "/v1/cards/d-3/why", "sessions": "/v1/sessions", "tokens": "/v1/tokens", "rounds": "/v1/rounds?n=5", "dryrun": "/v1/dryrun",
		"log": "/v1/runs/d-1.1/log", "events": "/v1/events?card=d-1", "missing": "/v1/cards/d-99", "nothing": "/v1/unheard",
	} {
		t.Run(name, func(t *testing.T) {
			golden(t, name+".json", raw(t, c, http.MethodGet, path, nil, nil))
		})
	}
}

// raw asks over the client's socket and gives the body, indented.
func raw(t *testing.T, c *api.Client, method, path string, body io.Reader, header http.Header) []byte {
	t.Helper()
	b, _, _ := exchange(t, c, method, path, body, header)
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", "  "); err != nil {
		t.Fatalf("%s is no JSON: %v\n%s", path, err, b)
	}
	return out.Bytes()
}

func exchange(t *testing.T, c *api.Client, method, path string, body io.Reader, header http.Header) (text []byte, status int, head http.Header) {
	t.Helper()
	hc := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", c.Socket)
	}}}
	req, err := http.NewRequestWithContext(t.Context(), method, "http://muster"+path, body)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range header {
		req.Header[k] = v
	}
	res, err := hc.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return b, res.StatusCode, res.Header
}

func title(s string) board.CardFields { return board.CardFields{Title: &s} }

// failing answers every request with one error.
type failing struct {
	*apitest.Fleet
	err *board.Error
}

func (f failing) Do(context.Context, board.Request) board.Result { return board.Result{Err: f.err} }

// TestErrorsKeepTheirClass: errors.Is works on the far side of the socket, with
// check, words and hint, and every class has its HTTP status.
func TestErrorsKeepTheirClass(t *testing.T) {
	for code, status := range map[board.Code]int{board.Invalid: 400, board.NotFound: 404, board.Refused: 409, board.Conflict: 409, board.Exhausted: 413,
		board.Unavailable: 503, board.UnknownOutcome: 504, board.Internal: 500, "from_the_future": 500} {
		t.Run(string(code), func(t *testing.T) {
			want := board.Errorf(code, "it is so").WithCheck("because").WithHint("do this")
			srv := httptest.NewServer(api.Handler(failing{apitest.New(), want}, api.DoorUser, nil))
			defer srv.Close()
			res, err := http.Post(srv.URL+"/v1/do", "application/json", strings.NewReader(`{"verb":"card.add","args":{},"id":"x"}`))
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != status {
				t.Errorf("HTTP status %d, want %d", res.StatusCode, status)
			}
			c := &api.Client{Timeout: time.Second, Dial: func(context.Context) (net.Conn, error) { return net.Dial("tcp", srv.Listener.Addr().String()) }}
			ans, err := c.Do(t.Context(), board.VCardAdd, board.CardAdd{}, "x", false)
			if !errors.Is(err, &board.Error{Code: code, Check: "because"}) {
				t.Fatalf("got %v (%s)", err, board.CodeOf(err))
			}
			var e *board.Error
			if errors.As(err, &e); *e != *want {
				t.Errorf("got %+v, want %+v", *e, *want)
			}
			if code == board.UnknownOutcome && (ans == nil || ans.RequestID != "x") {
				t.Errorf("an unknown outcome without the id to ask again with: %+v", ans)
			}
		})
	}
}

// TestBadRequests: one clear error each, and nothing is done.
func TestBadRequests(t *testing.T) {
	f := apitest.New()
	c := serve(t, f)
	for name, x := range map[string]struct {
		path, body string
		status     int
		words      string
	}{
		"unknown key":         {"/v1/do", `{"verb":"card.add","frob":1}`, 400, "frob"},
		"unknown key of args": {"/v1/do", `{"verb":"card.add","args":{"title":"x","frob":1}}`, 400, "frob"},
		"no JSON":             {"/v1/do", `verb`, 400, "request"},
		"two values":          {"/v1/do", `{"verb":"barrier"} {}`, 400, "more than one"},
		"empty":               {"/v1/do", ``, 400, "request"},
		"unknown verb":        {"/v1/do", `{"verb":"frobnicate"}`, 400, "frobnicate"},
		"verb of nodes":       {"/v1/do", `{"verb":"report"}`, 400, "report"},
		"verb of the fleet":   {"/v1/do", `{"verb":"gone"}`, 400, "gone"},
		"start of a node":     {"/v1/do", `{"verb":"node.up"}`, 400, "node.up"},
		"no title":            {"/v1/do", `{"verb":"card.add","args":{}}`, 400, "title"},
		"bad id":              {"/v1/do", `{"verb":"card.add","id":"mine","args":{"title":"x"}}`, 400, "mine"},
		"too large":           {"/v1/do", `{"verb":"card.add","args":{"body":"` + strings.Repeat("x", 10_000_000) + `"}}`, 413, "larger than 8 MB"},
		"token role":          {"/v1/token", `{"role":"king","ttl":60}`, 400, "king"},
	} {
		t.Run(name, func(t *testing.T) {
			b, status, _ := exchange(t, c, http.MethodPost, x.path, strings.NewReader(x.body), nil)
			var env api.Envelope
			if err := json.Unmarshal(b, &env); err != nil || env.Error == nil || env.V != api.Version {
				t.Fatalf("no error envelope: %s", b)
			}
			if status != x.status || !strings.Contains(env.Error.Message, x.words) || strings.Contains(env.Error.Message, "\n") {
				t.Errorf("status %d, %q; want %d with %q in one line", status, env.Error.Message, x.status, x.words)
			}
		})
	}
	if list, err := api.Decode[[]api.Card](c.Get(t.Context(), "/v1/cards", nil)); err != nil || len(list) != 0 {
		t.Errorf("after bad requests there are cards: %v, %v", list, err)
	}
}

// TestLargeRequestIsNotSent: the client knows the bound, so that the connection
// is not cut in the middle.
func TestLargeRequestIsNotSent(t *testing.T) {
	c := serve(t, apitest.New())
	body := strings.Repeat("x", 10_000_000)
	_, err := c.Do(t.Context(), board.VCardAdd, board.CardAdd{CardFields: board.CardFields{Body: &body}}, "", false)
	if !errors.Is(err, &board.Error{Code: board.Exhausted}) || !strings.Contains(err.Error(), "8 MB") {
		t.Errorf("got %v", err)
	}
}

// panicking is a node with a defect.
type panicking struct{ *apitest.Fleet }

func (panicking) Readings(context.Context) api.Readings { panic("a defect") }

// TestPanicIsAnAnswer: a defect in one request is answered, and the server goes on.
func TestPanicIsAnAnswer(t *testing.T) {
	h := api.Handler(panicking{apitest.New()}, api.DoorUser, nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/status", nil))
	var env api.Envelope
	if err := json.Unmarshal(w.Body.Bytes(), &env); err != nil || env.Error == nil || env.Error.Code != board.Internal || w.Code != 500 {
		t.Errorf("HTTP %d: %s", w.Code, w.Body)
	}
}

// TestEveryRequestEnds: without a leader a write is answered when its time is up.
func TestEveryRequestEnds(t *testing.T) {
	f := apitest.New()
	f.NoLeader = true
	c := serve(t, f)
	c.Timeout = 50 * time.Millisecond
	begin := time.Now()
	_, err := c.Do(t.Context(), board.VCardAdd, board.CardAdd{CardFields: title("x")}, "", false)
	if !errors.Is(err, &board.Error{Code: board.Unavailable, Check: "no_leader"}) {
		t.Errorf("got %v", err)
	}
	if d := time.Since(begin); d > 5*time.Second {
		t.Errorf("a request of 50 ms took %s", d)
	}
}

// TestReadsSayHowFresh: a local read has the Seq it is true at and its age (M-31);
// a consistent one is refused without a leader instead of being old.
func TestReadsSayHowFresh(t *testing.T) {
	f := apitest.Story()
	c := serve(t, f)
	ans, err := c.Get(t.Context(), "/v1/cards", nil)
	if err != nil || ans.Index == 0 || ans.AgeMS == nil || *ans.AgeMS != 250 {
		t.Fatalf("answer %+v, %v", ans, err)
	}
	ans, err = c.Do(t.Context(), board.VCardAdd, board.CardAdd{CardFields: title("x")}, "", false)
	if err != nil || ans.Index == 0 || ans.AgeMS != nil {
		t.Errorf("answer of a write: %+v, %v", ans, err)
	}
	f.NoLeader = true
	if _, err = c.Get(t.Context(), "/v1/cards", map[string][]string{"consistent": {"true"}}); !errors.Is(err, &board.Error{Code: board.Unavailable}) {
		t.Errorf("a consistent read without a leader: %v", err)
	}
}

// TestStatusTellsWhatIsAtStake: one voter, no leader, who needs a person.
func TestStatusTellsWhatIsAtStake(t *testing.T) {
	f := apitest.Story()
	c := serve(t, f)
	s, err := api.Decode[api.Status](c.Get(t.Context(), "/v1/status", nil))
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(s.Notes, "\n"); !strings.Contains(notes, "one voter: if its disk dies") || s.Needs != 1 || len(s.First) != 1 || s.First[0].Card != "d-4" {
		t.Errorf("notes: %s; attention %d: %+v", notes, s.Needs, s.First)
	}
	if len(s.Alarms) != 0 || !s.Quorum || s.Leader != "atlas" {
		t.Errorf("alarms %q, quorum %v, leader %q", s.Alarms, s.Quorum, s.Leader)
	}
	f.NoLeader = true
	s, err = api.Decode[api.Status](c.Get(t.Context(), "/v1/status", nil))
	if err != nil || s.Quorum || len(s.Alarms) == 0 || !strings.Contains(s.Alarms[0], "no leader is reachable") {
		t.Errorf("without a leader: %+v, %v", s.Alarms, err)
	}
	if s.Nodes[0].State != board.NodeUnknown {
		t.Errorf("without the leader's readings a node is %q, want unknown", s.Nodes[0].State)
	}
}

// TestStopIsTold: stop and restart reach the node, through the user's socket only.
func TestStopIsTold(t *testing.T) {
	f := apitest.New()
	c := serve(t, f)
	for path, again := range map[string]bool{"/v1/stop": false, "/v1/stop?restart=true": true} {
		if i, err := api.Decode[api.Info](c.Post(t.Context(), path, struct{}{})); err != nil || i.Name != "atlas" {
			t.Fatalf("%+v, %v", i, err)
		}
		if got := <-f.Stopped; got != again {
			t.Errorf("%s: restart %v", path, got)
		}
	}
	if _, err := door(t, f, "x").Post(t.Context(), "/v1/stop", struct{}{}); !errors.Is(err, &board.Error{Code: board.NotFound}) {
		t.Errorf("through the mesh's door: %v", err)
	}
}
