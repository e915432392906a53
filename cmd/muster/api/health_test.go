package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/cmd/muster/api/apitest"
)

// measured is a fleet with figures and health, as a node has them.
type measured struct {
	*apitest.Fleet
	checks []api.Check
}

func (m measured) Health(context.Context) []api.Check { return m.checks }

func (m measured) Metrics() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "muster_quorum 1\n") })
}

// TestMonitorAnswersThisMachineOnly (T20): a page that has its own name point here
// gets nothing, by no method and at no path, and neither does a page of another origin.
func TestMonitorAnswersThisMachineOnly(t *testing.T) {
	h := api.Monitor(measured{Fleet: apitest.New()})
	for _, x := range []struct {
		method, path, host, origin string
		want                       int
	}{
		{"GET", "/metrics", "127.0.0.1:7190", "", 200},
		{"GET", "/metrics", "[::1]:7190", "", 200},
		{"GET", "/livez", "localhost", "", 200},
		{"GET", "/readyz", "127.8.9.1:1", "", 200},
		{"GET", "/metrics", "evil.example", "", 421},
		{"GET", "/metrics", "evil.example:7190", "", 421},
		{"GET", "/livez", "127.0.0.1.evil.example", "", 421},
		{"GET", "/readyz", "localhost.evil.example:7190", "", 421},
		{"GET", "/metrics", "192.0.2.7:7190", "", 421},
		{"POST", "/metrics", "evil.example", "", 421},
		{"GET", "/metrics", "127.0.0.1:7190", "http://evil.example", 421},
		{"GET", "/metrics", "", "", 421},
		{"POST", "/metrics", "127.0.0.1:7190", "", 405},
		{"GET", "/v1/status", "127.0.0.1:7190", "", 404},
		{"GET", "/debug/pprof/", "127.0.0.1:7190", "", 404},
	} {
		r := httptest.NewRequest(x.method, x.path, nil)
		r.Host = x.host
		if x.origin != "" {
			r.Header.Set("Origin", x.origin)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != x.want {
			t.Errorf("%s %s, Host %q, Origin %q: %d, want %d", x.method, x.path, x.host, x.origin, w.Code, x.want)
		}
		if w.Code == 421 && strings.Contains(w.Body.String(), "muster_quorum") {
			t.Errorf("Host %q: figures in a refusal", x.host)
		}
	}
}

// TestReadySaysWhatIsWrong: a check that fails is 503 with its words; that the node lives stays true.
func TestReadySaysWhatIsWrong(t *testing.T) {
	h := api.Monitor(measured{apitest.New(), []api.Check{{Name: "leader", OK: true}, {Name: "space", Text: "NOSPACE: 3 MB are left"}}})
	get := func(path string) (int, string) {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Host = "127.0.0.1"
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	if code, text := get("/readyz"); code != 503 || !strings.Contains(text, "space: NOSPACE: 3 MB are left") || strings.Contains(text, "leader:") {
		t.Errorf("readyz: %d %s", code, text)
	}
	if code, text := get("/livez"); code != 200 || !strings.Contains(text, `"ready":true`) {
		t.Errorf("livez: %d %s", code, text)
	}
}

// curl asks at a socket by hand.
func curl(t *testing.T, socket, auth, path string) (int, string) {
	t.Helper()
	c := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://muster"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if auth != "" {
		r.Header.Set("Authorization", auth)
	}
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// TestMachinesDoors: figures, document and profiles are for people; profiles, which show what the process holds, for managers.
func TestMachinesDoors(t *testing.T) {
	f, dir := apitest.New(), folder(t)
	srv, err := api.Serve(measured{Fleet: f}, api.Sockets{User: dir + "/muster.sock", Session: dir + "/session.sock"})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	user, session := filepath.Join(dir, "muster.sock"), filepath.Join(dir, "session.sock")
	f.Must(apitest.Manager(), board.VBoardApply, board.BoardApply{Board: "default", YAML: "version: 1\nname: default\nextends: default\nprofiles:\n  sh: {harness: command, args: [true]}\n"})
	title, who := "x", "sh"
	id, _ := f.Must(apitest.Manager(), board.VCardAdd, board.CardAdd{CardFields: board.CardFields{Title: &title, Assignee: &who}})["id"].(string)
	run := f.Run(id, "its-secret")
	for _, path := range []string{"/metrics", "/v1/openapi.json", "/readyz", "/livez", "/v1/health", "/debug/pprof/", "/debug/pprof/goroutine?debug=1"} {
		if code, text := curl(t, user, "", path); code != 200 || text == "" {
			t.Errorf("%s at the user's socket: %d %s", path, code, text)
		}
		if code, text := curl(t, session, "Run "+run+":its-secret", path); code != 404 && (path == "/v1/openapi.json") != (code == 200) {
			t.Errorf("%s at the sessions' socket: %d %s", path, code, text)
		}
	}
	for _, role := range []string{"member", "none"} {
		f.Join(role, role)
		if code, text := curl(t, user, "", "/debug/pprof/heap"); code != 409 || !strings.Contains(text, "manager") {
			t.Errorf("%s takes a profile: %d %s", role, code, text)
		}
		open := role != "none"
		for _, path := range []string{"/metrics", "/v1/openapi.json", "/readyz"} {
			if code, _ := curl(t, user, "", path); (code == 200) != open {
				t.Errorf("%s for %s: %d", path, role, code)
			}
		}
	}
}

// TestAnswersAreWhatTheDocumentSays: each read's answer has the fields of the
// type that its schema is made of, and no other.
func TestAnswersAreWhatTheDocumentSays(t *testing.T) {
	f, dir := apitest.New(), folder(t)
	srv, err := f.Serve(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	title := "x"
	id, _ := f.Must(apitest.Manager(), board.VCardAdd, board.CardAdd{CardFields: board.CardFields{Title: &title}})["id"].(string)
	c := &api.Client{Socket: filepath.Join(dir, "muster.sock")}
	reads := api.Reads()
	if len(reads) < 25 {
		t.Fatalf("%d reads", len(reads))
	}
	for path, data := range reads {
		asked := strings.NewReplacer("{slug}", "default", "{id}", id).Replace(path)
		switch path {
		case "/v1/nodes/{id}":
			asked = "/v1/nodes/atlas"
		case "/v1/runs/{id}/log", "/v1/agents/{id...}":
			continue // there is none
		}
		q := url.Values{}
		if path == "/v1/memory/file" {
			q.Set("path", "notes")
		}
		a, err := c.Get(t.Context(), asked, q)
		if err != nil {
			t.Errorf("%s: %v", asked, err)
			continue
		}
		d := json.NewDecoder(bytes.NewReader(a.Data))
		d.DisallowUnknownFields()
		if err := d.Decode(reflect.New(reflect.TypeOf(data)).Interface()); err != nil {
			t.Errorf("%s: %v in %s", asked, err, a.Data)
		}
	}
}
