package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/cmd/muster/api/apitest"
)

// liveReader is a reader of a live view, with nothing between it and the handler but a connection.
type liveReader struct {
	t *testing.T
	r *bufio.Scanner
}

func watchLive(t *testing.T, f *apitest.Fleet, query string) *liveReader {
	t.Helper()
	h := api.Handler(f, api.DoorUser, nil)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(api.AsPerson(r.Context(), "ann")))
	}))
	t.Cleanup(srv.Close)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+"/v1/live"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != http.StatusOK {
		t.Fatalf("live view: %s", res.Status)
	}
	s := bufio.NewScanner(res.Body)
	s.Buffer(nil, 8<<20)
	return &liveReader{t, s}
}

// next is the next message of a kind; others are passed by.
func told[T any](l *liveReader, kind string) (x T) {
	l.t.Helper()
	for l.r.Scan() {
		if l.r.Text() != "event: "+kind || !l.r.Scan() {
			continue
		}
		var env api.Envelope
		if err := json.Unmarshal([]byte(strings.TrimPrefix(l.r.Text(), "data: ")), &env); err != nil {
			l.t.Fatalf("%s: %v", l.r.Text(), err)
		}
		if err := json.Unmarshal(env.Data, &x); err != nil {
			l.t.Fatal(err)
		}
		return x
	}
	l.t.Fatalf("the view ended before %q: %v", kind, l.r.Err())
	return x
}

// TestLive holds what is told against what the state is, through every kind of change.
func TestLive(t *testing.T) {
	f := apitest.Story()
	l := watchLive(t, f, "?board=default")
	all := told[api.LiveBoard](l, "board")
	if len(all.List) != 5 || len(all.Columns) == 0 || all.You.Role != "manager" || all.You.Node != "atlas" {
		t.Fatalf("the board whole: %d cards, %d columns, for %+v", len(all.List), len(all.Columns), all.You)
	}
	i := slices.IndexFunc(all.List, func(c api.LiveCard) bool { return c.ID == "d-2" })
	if s := all.List[i].Session; s == nil || s.Node != "atlas" || s.Profile != "script" {
		t.Errorf("the session that works on d-2: %+v", s)
	}
	if n := told[api.Needs](l, "needs"); len(n.List) != 1 || n.List[0].Card != "d-4" {
		t.Errorf("what needs a person: %+v", n)
	}
	if s := told[api.Status](l, "fleet"); len(s.Nodes) != 1 || s.Leader != "atlas" {
		t.Errorf("the fleet: %+v", s)
	}

	m := apitest.Manager()
	f.Must(m, board.VEvent, board.FireEvent{Card: "d-4", Event: "unblock"})
	c := told[api.LiveCards](l, "cards")
	if i := slices.IndexFunc(c.List, func(c api.LiveCard) bool { return c.ID == "d-4" }); i < 0 || c.List[i].Status == "blocked" || c.List[i].Attention != nil {
		t.Errorf("after unblock: %+v", c)
	}
	if n := told[api.Needs](l, "needs"); len(n.List) != 0 {
		t.Errorf("nothing needs a person any more: %+v", n)
	}

	title := "another"
	f.Must(m, board.VCardAdd, board.CardAdd{Board: "web", CardFields: board.CardFields{Title: &title}}) // not shown here
	f.Must(m, board.VCardLink, board.CardLink{Card: "d-5", After: []string{"d-1"}})
	c = told[api.LiveCards](l, "cards")
	ids := []string{}
	for _, x := range c.List {
		ids = append(ids, x.ID)
		if x.Board != "default" {
			t.Errorf("a card of board %s is told to who looks at default", x.Board)
		}
	}
	for _, want := range []string{"d-1", "d-5"} { // both ends of a link have changed
		if !slices.Contains(ids, want) {
			t.Errorf("a link of d-5 after d-1 told of %v", ids)
		}
	}

	f.Must(m, board.VEvent, board.FireEvent{Card: "d-1", Event: "archive"})
	for gone := false; !gone; {
		gone = slices.Contains(told[api.LiveCards](l, "cards").Gone, "d-1")
	}

	f.Must(m, board.VPause, board.Pause{Why: "a look"})
	for paused := false; !paused; {
		paused = len(told[api.Status](l, "fleet").Pauses) > 0
	}
}

// TestLiveIsRefused: what is not there, or not the caller's, is refused before anything is told.
func TestLiveIsRefused(t *testing.T) {
	f := apitest.Story()
	h := api.Handler(f, api.DoorUser, nil)
	for path, want := range map[string]int{"/v1/live?board=nowhere": 404, "/v1/live?bored=x": 400} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil).WithContext(api.AsPerson(t.Context(), "ann")))
		if w.Code != want {
			t.Errorf("%s: %d, want %d: %s", path, w.Code, want, w.Body)
		}
	}
	if n := f.Subs(); n != 0 {
		t.Errorf("%d subscriptions are left open", n)
	}
	f.Join("borea", "none")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/v1/live", nil).WithContext(api.AsPerson(t.Context(), "ann")))
	if w.Code != 409 || !strings.Contains(w.Body.String(), "local=none") {
		t.Errorf("a user who may do nothing: %d %s", w.Code, w.Body)
	}
}

// TestMovesAreWhatHappens: each event that a card is said to take is taken, and leads
// where it was said to lead; each that it is said to refuse is refused in the same words.
func TestMovesAreWhatHappens(t *testing.T) {
	for _, card := range []string{"d-2", "d-4"} {
		for _, m := range moves(t, apitest.Story(), card) {
			f := apitest.Story()
			if m.Event == "start" {
				continue // the leader finds out where
			}
			args, _ := json.Marshal(board.FireEvent{Card: card, Event: m.Event, Payload: map[string]any{"text": "-", "why": "-", "summary": "-", "reason": "-", "kind": "needs_input",
				"title": "t", "children": []any{map[string]any{"title": "-"}}, "assignee": "script"}})
			res := f.Do(t.Context(), board.Request{ID: f.MintID(), Actor: apitest.Manager(), Verb: board.VEvent, Args: args})
			if m.OK != (res.Err == nil) {
				t.Errorf("%s %s: said %v (%s), and it was %v", card, m.Event, m.OK, m.Text, res.Err)
				continue
			}
			if !m.OK {
				if res.Err.Message != m.Text || res.Err.Check != m.Check {
					t.Errorf("%s %s: said %q, refused with %q", card, m.Event, m.Text, res.Err.Message)
				}
				continue
			}
			got := ""
			_, _ = f.Read(t.Context(), false, func(v board.View) error { got = board.GetCard(v, card).Status; return nil })
			if got != m.Target {
				t.Errorf("%s %s: said to lead to %s, and it is in %s", card, m.Event, m.Target, got)
			}
		}
	}
}

func moves(t *testing.T, f *apitest.Fleet, card string) []api.Move {
	t.Helper()
	w := httptest.NewRecorder()
	before := f.Hash()
	var seq uint64
	_, _ = f.Read(t.Context(), false, func(v board.View) error { seq = v.Seq(); return nil })
	api.Handler(f, api.DoorUser, nil).ServeHTTP(w, httptest.NewRequest("GET", "/v1/cards/"+card+"/moves", nil).WithContext(api.AsPerson(t.Context(), "ann")))
	list := decode[[]api.Move](t, w)
	if len(list) == 0 || f.Hash() != before {
		t.Fatalf("%s: %d moves", card, len(list))
	}
	_, _ = f.Read(t.Context(), false, func(v board.View) error {
		if v.Seq() != seq {
			t.Errorf("%s: asking wrote something", card)
		}
		return nil
	})
	if slices.ContainsFunc(list, func(m api.Move) bool { return m.Event == "exited" || m.Event == "promote" }) {
		t.Errorf("%s: what the fleet says is offered to people: %+v", card, list)
	}
	return list
}

func decode[T any](t *testing.T, w *httptest.ResponseRecorder) (x T) {
	t.Helper()
	var env api.Envelope
	if err := json.Unmarshal(w.Body.Bytes(), &env); err != nil || env.Error != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	if err := json.Unmarshal(env.Data, &x); err != nil {
		t.Fatal(err)
	}
	return x
}

// TestMovesOfAViewer: who may only look is offered nothing.
func TestMovesOfAViewer(t *testing.T) {
	f := apitest.Story()
	f.Join("borea", "viewer")
	for _, m := range moves(t, f, "d-4") {
		if m.OK {
			t.Errorf("a viewer is offered %s", m.Event)
		}
	}
}

// TestFlow: undoing events from now backwards ends with no card, at the time before the first.
func TestFlow(t *testing.T) {
	f := apitest.Story()
	w := httptest.NewRecorder()
	api.Handler(f, api.DoorUser, nil).ServeHTTP(w, httptest.NewRequest("GET", "/v1/boards/default/flow?hours=720", nil).WithContext(api.AsPerson(t.Context(), "ann")))
	x := decode[api.Flow](t, w)
	last := len(x.Times) - 1
	sum, first := 0, 0
	for _, s := range x.Statuses {
		sum, first = sum+x.Counts[s][last], first+x.Counts[s][0]
	}
	if sum != 5 || first != 0 || x.Counts["done"][last] != 1 || x.Counts["running"][last] != 1 || x.Counts["blocked"][last] != 1 {
		t.Errorf("at first %d cards, now %d: %v", first, sum, x.Counts)
	}
	i := slices.IndexFunc(x.Stays, func(s api.Stay) bool { return s.Status == "running" })
	if i < 0 || x.Stays[i].Cards != 1 || x.Stays[i].MedS != 2 { // d-1 ran for two seconds
		t.Errorf("time in running: %+v", x.Stays)
	}
}

// TestChart: the picture of a workflow is an SVG, without script.
func TestChart(t *testing.T) {
	w := httptest.NewRecorder()
	api.Handler(apitest.Story(), api.DoorUser, nil).ServeHTTP(w, httptest.NewRequest("GET", "/v1/boards/default/chart", nil).WithContext(api.AsPerson(t.Context(), "ann")))
	x := decode[struct{ SVG string }](t, w)
	if !strings.HasPrefix(x.SVG, "<svg") || strings.Contains(x.SVG, "script>") {
		t.Errorf("%.200s", x.SVG)
	}
}

// The client's live view gives each message with its kind, and says why it has ended: refused, left, or the node is gone.
func TestClientFollowsALiveView(t *testing.T) {
	f := apitest.Story()
	h := api.Handler(f, api.DoorUser, nil)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(api.AsPerson(r.Context(), "ann")))
	}))
	t.Cleanup(srv.Close)
	c := &api.Client{Dial: func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", srv.Listener.Addr().String())
	}}
	var kinds []string
	filed := false
	err := c.Live(context.Background(), "default", func(kind string, env api.Envelope) bool {
		kinds = append(kinds, kind)
		if kind == "fleet" && !filed { // all has been told
			filed = true
			title := "one"
			f.Must(apitest.Manager(), board.VCardAdd, board.CardAdd{Board: "default", CardFields: board.CardFields{Title: &title}})
		}
		if kind != "cards" {
			return true
		}
		x, err := api.Decode[api.LiveCards](&api.Answer{Data: env.Data}, nil)
		if err != nil || len(x.List) != 1 || x.List[0].Title != "one" {
			t.Errorf("%+v (%v)", x, err)
		}
		return false
	})
	if want := []string{"board", "needs", "fleet", "cards"}; err != nil || !slices.Equal(kinds, want) { // not the board whole again
		t.Errorf("%v, ended with %v; want %v", kinds, err, want)
	}
	if err := c.Live(context.Background(), "nowhere", func(string, api.Envelope) bool { return true }); board.CodeOf(err) != board.NotFound {
		t.Errorf("of a board that is not there: %v", err)
	}
	err = c.Live(context.Background(), "default", func(string, api.Envelope) bool { srv.CloseClientConnections(); return true })
	if board.CodeOf(err) != board.Unavailable {
		t.Errorf("cut off: %v", err)
	}
	ctx, leave := context.WithCancel(context.Background())
	if err := c.Live(ctx, "default", func(string, api.Envelope) bool { leave(); return true }); err != nil {
		t.Errorf("who leaves is told %v", err)
	}
}
