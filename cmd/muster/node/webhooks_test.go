package node

import (
	"crypto/hmac"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
)

const hookSecret = "a secret of more than sixteen bytes"

// receiver is a server outside. It tells repeats by their id.
type receiver struct {
	t   *testing.T
	srv *httptest.Server

	mu      sync.Mutex
	ids     []string // in the order of their first coming
	kinds   []string
	repeats int
	answer  int // status, 0 is 200
	asked   int
	news    chan struct{}
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{t: t, news: make(chan struct{}, 1)}
	r.srv = httptest.NewServer(r)
	t.Cleanup(r.srv.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	id, at := req.Header.Get(hookIDHeader), req.Header.Get(hookTimeHeader)
	if err != nil || !hmac.Equal([]byte(req.Header.Get(hookSignHeader)), []byte(sign([]byte(hookSecret), id, at, body))) {
		r.t.Errorf("event %q is not signed: %q (%v)", id, req.Header.Get(hookSignHeader), err)
	}
	var e struct {
		Fleet string `json:"fleet"`
		api.Event
	}
	if json.Unmarshal(body, &e) != nil || e.ID != id || e.Fleet == "" {
		r.t.Errorf("event %q has the body %s", id, body)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	defer poke(r.news)
	if r.answer != 0 {
		w.Header().Set("Location", r.srv.URL+"/elsewhere")
		w.WriteHeader(r.answer)
		return
	}
	if slices.Contains(r.ids, id) {
		r.repeats++
		return
	}
	r.ids, r.kinds = append(r.ids, id), append(r.kinds, e.Kind)
}

// await waits until something is true of what came.
func (r *receiver) await(what string, ok func() bool) {
	r.t.Helper()
	end := time.NewTimer(30 * time.Second)
	defer end.Stop()
	for {
		r.mu.Lock()
		done, have := ok(), fmt.Sprint(r.ids, " asked ", r.asked)
		r.mu.Unlock()
		if done {
			return
		}
		select {
		case <-r.news:
		case <-end.C:
			r.t.Fatalf("not within 30 s: %s; came: %s", what, have)
		}
	}
}

func (r *receiver) set(answer int) {
	r.mu.Lock()
	r.answer = answer
	r.mu.Unlock()
}

// putSecret lays the webhook's secret where a node looks for it.
func putSecret(t *testing.T, data string) {
	t.Helper()
	dir := filepath.Join(data, "secrets")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "web.key"), []byte(hookSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// eventIDs are the public ids of the events of a kind, oldest first.
func (n *Node) eventIDs(kind string) (ids []string) {
	_ = n.store.View(func(v board.View) error {
		board.EachEvent(v, "", func(key string, e *board.Event) bool {
			if e.Kind == kind {
				ids = append(ids, board.EventID(key))
			}
			return true
		})
		return nil
	})
	return ids
}

// eventually waits, on the change feed, until the state says so.
func (n *Node) eventually(t *testing.T, what string, ok func(v board.View) bool) {
	t.Helper()
	sub := n.store.Subscribe(func(board.Table, string) bool { return true })
	defer sub.Close()
	end := time.NewTimer(30 * time.Second)
	defer end.Stop()
	for {
		done := false
		_ = n.store.View(func(v board.View) error { done = ok(v); return nil })
		if done {
			return
		}
		select {
		case <-sub.C:
			sub.Take()
		case <-end.C:
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

// M-21: a board's events reach a webhook signed, each at least once and in order, also those of the time in which the leader
// changed; the next leader goes on where the last one was. The receiver tells repeats by the event's id.
func TestWebhookOutlivesItsLeader(t *testing.T) {
	cfg := testConfig(t, "atlas")
	putSecret(t, cfg.Data)
	a := open(t, cfg)
	a.testDo(t, board.VBoardApply, board.BoardApply{Board: "default", YAML: shell})
	tok, err := backend{a}.NewToken(t.Context(), board.Actor{Kind: board.ActorPerson, Name: "ann", Node: string(a.ident.ID)}, api.TokenOptions{Role: "node", TTL: 600, Uses: 2})
	if err != nil {
		t.Fatal(err)
	}
	nodes := []*Node{a}
	for _, name := range []string{"borea", "cleo"} {
		cfg := testConfig(t, name)
		putSecret(t, cfg.Data)
		cfg.Token = tok.Token
		nodes = append(nodes, open(t, cfg))
	}
	a.eventually(t, "three voters", func(v board.View) bool {
		n := 0
		board.EachNode(v, func(x *board.Node) bool {
			if x.Role == board.RoleVoter {
				n++
			}
			return true
		})
		return n == 3
	})
	r := newReceiver(t)
	a.testDo(t, board.VCardAdd, board.CardAdd{CardFields: board.CardFields{Title: text("before")}}) // not sent: it was before
	a.testDo(t, board.VWebhook, board.WebhookSet{Board: "default", URL: r.srv.URL + "/hook?key=1", Secret: "web.key", Kinds: []string{"created"}})
	add := func(n *Node, title string) {
		n.testDo(t, board.VCardAdd, board.CardAdd{Triage: true, CardFields: board.CardFields{Title: text(title)}})
	}
	for i := range 3 {
		add(nodes[i], fmt.Sprint("first ", i))
	}
	r.await("three events", func() bool { return len(r.ids) == 3 })
	r.set(http.StatusServiceUnavailable) // what happens now waits, and its leader dies
	add(a, "while it does not answer")
	r.await("a try that fails", func() bool { return r.asked > 3 })
	leader := slices.IndexFunc(nodes, func(n *Node) bool { _, ok := n.store.LeaderTerm(); return ok })
	nodes[leader].Close()
	rest := slices.Delete(slices.Clone(nodes), leader, leader+1)
	add(rest[0], "after it died")
	r.set(0)
	add(rest[1], "last")
	r.await("all events", func() bool { return len(r.ids) == 6 })
	want := rest[0].eventIDs("created")[1:]
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.ids, want) {
		t.Fatalf("taken %v, want %v (%d repeats)", r.ids, want, r.repeats)
	}
}

func text(s string) *string { return &s }

// M-21: a webhook that fails is shown with since, count and error, holds up no board, tries again, and goes on with nothing lost.
// Redirects are not followed.
func TestFailingWebhookIsShownAndHoldsNothingUp(t *testing.T) {
	cfg := testConfig(t, "atlas")
	cfg.hookWait = func(int64) time.Duration { return time.Millisecond }
	putSecret(t, cfg.Data)
	n := open(t, cfg)
	r := newReceiver(t)
	r.set(http.StatusFound)
	n.testDo(t, board.VWebhook, board.WebhookSet{Board: "default", URL: r.srv.URL, Secret: "web.key", Kinds: []string{"created"}})
	n.testDo(t, board.VWebhook, board.WebhookSet{Board: "default", URL: r.srv.URL + "/other", Secret: "missing.key"})
	for i := range 3 {
		n.testDo(t, board.VCardAdd, board.CardAdd{CardFields: board.CardFields{Title: text(fmt.Sprint("card ", i))}})
	}
	hook := func(v board.View, url string) *board.Webhook {
		return board.GetWebhook(v, "default", board.WebhookID(url))
	}
	n.eventually(t, "two hooks that fail", func(v board.View) bool {
		x, y := hook(v, r.srv.URL), hook(v, r.srv.URL+"/other")
		return x.Failures >= 3 && x.Since > 0 && x.Error == "answered 302: redirects are not followed" &&
			y.Failures > 0 && y.Error == "its secret file missing.key cannot be read on atlas: no such file or directory"
	})
	r.set(0)
	r.await("three events", func() bool { return len(r.ids) == 3 })
	n.eventually(t, "a hook that works", func(v board.View) bool {
		x := hook(v, r.srv.URL)
		return x.Failures == 0 && x.Since == 0 && x.Error == ""
	})
	if want := n.eventIDs("created"); !slices.Equal(r.ids, want) {
		t.Fatalf("taken %v, want %v", r.ids, want)
	}
}

// The waits of a webhook grow from seconds to hours, and not beyond.
func TestWebhookWaits(t *testing.T) {
	last := time.Duration(0)
	for i := range int64(60) {
		d := hookWait(i)
		if d < hookSoon*9/10 || d > hookLatest || i > 1 && i < 12 && d < last {
			t.Errorf("after %d failures: %s (before: %s)", i, d, last)
		}
		last = d
	}
	if hookWait(1) > hookSoon || hookWait(13) < hookLatest*9/10 {
		t.Errorf("first %s, thirteenth %s", hookWait(1), hookWait(13))
	}
}

// Threats: a secret that others can read, that is short or no file is not used.
func TestWebhookSecrets(t *testing.T) {
	data := t.TempDir()
	putSecret(t, data)
	s := newHookSender(data, "atlas")
	put := func(name, text string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(data, "secrets", name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(data, "secrets", name), mode); err != nil {
			t.Fatal(err)
		}
	}
	put("open.key", hookSecret, 0o644)
	put("short.key", "short", 0o600)
	put("base64.key", "whsec_MDEyMzQ1Njc4OWFiY2RlZg==", 0o600)
	put("broken.key", "whsec_!", 0o600)
	for file, want := range map[string]string{"web.key": "", "base64.key": "", filepath.Join(data, "secrets", "web.key"): "",
		"open.key": "can be read by others", "short.key": "fewer than 16", "broken.key": "no base64", "none.key": "no such file", data: "is no file"} {
		b, err := s.secret(file)
		if want == "" && (err != nil || len(b) < minHookSecret) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %d bytes, %v; want %q", file, len(b), err, want)
		}
	}
}
