package fakemodel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Turn is one answer of the model: the first of its fields that is set counts.
type Turn struct {
	Wait   <-chan struct{} // the answer waits until this is closed or the client goes away
	Status int             // refuse with this HTTP status and the text of Say
	Limit  *Limit          // refuse with 429: a limit with its end
	Run    string          // call the client's tool for shell commands
	Beyond bool            // ... and ask to run it outside of the sandbox, where the tool has one
	Tool   string          // call the client's tool of this name with Input (Messages only)
	Input  map[string]any
	Ask    string // ask the person, by the client's tool for questions
	Say    string // text; with Run or Ask it comes before them
	Times  int    // requests that get this turn; 0 is one, -1 all that come
}

// Limit is a subscription's limit that is used up.
type Limit struct {
	Resets time.Time
}

// Request is what a client asked, for a test to look at.
type Request struct {
	API     string // messages, responses, chat, gemini
	Model   string
	Word    string   // of the conversation; "" for none
	Turn    int      // index of the turn it got, -1 for none
	Said    string   // what the user said last
	Earlier int      // answers of the model in the history that came with it
	Tools   []string // names of the tools that it offers
	Output  string   // of the newest tool call; "" for none
}

// Server is the stand-in. Close ends it and what waits in it.
type Server struct {
	URL string // http://127.0.0.1:PORT, without a path

	http   *http.Server
	closed chan struct{}

	mu    sync.Mutex
	talks map[string]*talk
	asked []Request
	more  chan struct{} // closed and replaced at each request
	ids   int
}

// talk is a conversation: the turns left, and how often the first was given.
type talk struct {
	turns []Turn
	at    int
	given int
}

// Start serves on a free port of 127.0.0.1.
func Start() (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("fake model: %w", err)
	}
	s := &Server{URL: "http://" + l.Addr().String(), closed: make(chan struct{}), talks: map[string]*talk{}, more: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", s.handle("messages", readMessages, writeMessages))
	mux.HandleFunc("POST /v1/messages/count_tokens", whole(object{"input_tokens": 100}))
	mux.HandleFunc("POST /v1/responses", s.handle("responses", readResponses, writeResponses))
	mux.HandleFunc("POST /v1/chat/completions", s.handle("chat", readChat, writeChat))
	mux.HandleFunc("POST /v1beta/models/", s.handle("gemini", readGemini, writeGemini))
	mux.HandleFunc("GET /v1/models", whole(object{"object": "list", "data": []any{object{"id": "fake-model", "object": "model", "type": "model", "display_name": "Fake",
		"created": 0, "created_at": "2026-01-01T00:00:00Z", "owned_by": "fake"}}, "models": []any{}, "has_more": false}))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			w.WriteHeader(http.StatusNotFound)
		}
	})
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			panic(err) // the listener is ours alone
		}
	}()
	return s, nil
}

// Close ends the server at once, with the answers that wait.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closed:
	default:
		close(s.closed)
		_ = s.http.Close()
	}
}

// Talk sets the turns of the conversation with a word. A request after the last
// turn is told "nothing more to say".
func (s *Server) Talk(word string, turns ...Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.talks[word] = &talk{turns: turns}
}

// Asked is all that was asked so far, in order.
func (s *Server) Asked() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.asked...)
}

// Await waits for a request for which found is true.
func (s *Server) Await(ctx context.Context, found func(Request) bool) (Request, error) {
	for seen := 0; ; {
		s.mu.Lock()
		list, more := s.asked[seen:], s.more
		s.mu.Unlock()
		for _, r := range list {
			if found(r) {
				return r, nil
			}
		}
		seen += len(list)
		select {
		case <-more:
		case <-ctx.Done():
			return Request{}, fmt.Errorf("fake model: no such request among %d: %w", seen, ctx.Err())
		}
	}
}

// ask is a request as the server understands it, whatever its API.
type ask struct {
	Request
	stream bool
	json   bool     // the client wants JSON of its own form
	users  []string // everything that users said, oldest first
	id     string   // unique, for the answer
}

// tool is the first of these tools that the client offers, "" when none is.
func (a *ask) tool(names ...string) string {
	for _, want := range names {
		for _, have := range a.Tools {
			if have == want {
				return have
			}
		}
	}
	return ""
}

// shells are the names that the programs give to their tool for commands.
var shells = []string{"Bash", "exec_command", "shell_command", "shell", "run_shell_command", "bash"}

func (a *ask) shell() string { return a.tool(shells...) }

// take gives the turn for a request.
func (s *Server) take(a *ask) Turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids++
	a.id = fmt.Sprintf("fake%06d", s.ids)
	a.Turn = -1
	t := Turn{Say: "ok"}
	if a.json {
		t.Say = `{"title":"fake","isNewTopic":false,"next_speaker":"user","reasoning":"scripted","model_choice":"flash"}`
	}
	if talk := s.find(a); talk != nil && a.shell() != "" {
		t = talk.next(a)
	}
	s.asked = append(s.asked, a.Request)
	close(s.more)
	s.more = make(chan struct{})
	return t
}

// find is the conversation whose word was said last.
func (s *Server) find(a *ask) *talk {
	for i := len(a.users) - 1; i >= 0; i-- {
		for word, t := range s.talks {
			if strings.Contains(a.users[i], word) {
				a.Word = word
				return t
			}
		}
	}
	return nil
}

func (t *talk) next(a *ask) Turn {
	if t.at >= len(t.turns) {
		return Turn{Say: "nothing more to say"}
	}
	turn := t.turns[t.at]
	a.Turn = t.at
	if t.given++; turn.Times >= 0 && t.given >= max(turn.Times, 1) {
		t.at, t.given = t.at+1, 0
	}
	return turn
}

type (
	object = map[string]any
	reader func(r *http.Request, body []byte) (*ask, error)
	writer func(w http.ResponseWriter, a *ask, t Turn)
)

// maxBody is the largest request that is read.
const maxBody = 64 << 20

func (s *Server) handle(name string, read reader, write writer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
		if err != nil {
			return // the client went away
		}
		a, err := read(r, body)
		if err != nil {
			refuse(w, name, http.StatusBadRequest, object{"type": "invalid_request_error", "message": err.Error()})
			return
		}
		a.API = name
		t := s.take(a)
		if t.Wait != nil {
			select {
			case <-t.Wait:
			case <-r.Context().Done():
				return
			case <-s.closed:
				panic(http.ErrAbortHandler) // not an empty answer: the connection is cut
			}
		}
		switch {
		case t.Limit != nil:
			refuseLimit(w, name, t.Limit.Resets)
		case t.Status != 0:
			refuse(w, name, t.Status, object{"type": "api_error", "message": t.Say})
		default:
			write(w, a, t)
		}
	}
}

// refuse answers with an error in the form of its API.
func refuse(w http.ResponseWriter, api string, status int, e object) {
	v := object{"error": e}
	switch api {
	case "messages":
		v["type"] = "error"
	case "gemini":
		e["code"], e["status"] = status, "UNAVAILABLE"
	}
	answer(w, status, v)
}

// refuseLimit says that a limit is used up until a moment, as each service does.
func refuseLimit(w http.ResponseWriter, api string, resets time.Time) {
	at := fmt.Sprint(resets.Unix())
	in := max(1, int(time.Until(resets).Seconds()))
	e := object{"type": "rate_limit_error", "message": "This request would exceed your account's rate limit. Please try again later."}
	switch api {
	case "messages":
		h := w.Header()
		h.Set("anthropic-ratelimit-unified-status", "rejected")
		h.Set("anthropic-ratelimit-unified-reset", at)
		h.Set("anthropic-ratelimit-unified-representative-claim", "five_hour")
		h.Set("anthropic-ratelimit-unified-5h-status", "rejected")
		h.Set("anthropic-ratelimit-unified-5h-reset", at)
		h.Set("anthropic-ratelimit-unified-5h-utilization", "1")
		h.Set("retry-after", fmt.Sprint(in))
		h.Set("x-should-retry", "false")
	case "gemini":
		e = object{"message": fmt.Sprintf("You exceeded your current quota. Please retry in %ds.", in), "details": []any{
			object{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": fmt.Sprintf("%ds", in)}}}
	default:
		e = object{"type": "usage_limit_reached", "message": "The usage limit has been reached", "plan_type": "plus", "resets_at": resets.Unix(), "resets_in_seconds": in}
	}
	refuse(w, api, http.StatusTooManyRequests, e)
}

func whole(v object) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, v) }
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("content-type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}

// stream writes server-sent events.
type stream struct{ w http.ResponseWriter }

func newStream(w http.ResponseWriter) stream {
	w.Header().Set("content-type", "text/event-stream")
	w.Header().Set("cache-control", "no-cache")
	return stream{w}
}

func (s stream) send(event string, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // what is sent is made here
	}
	if event != "" {
		fmt.Fprintf(s.w, "event: %s\n", event)
	}
	fmt.Fprintf(s.w, "data: %s\n\n", b)
	if f, ok := s.w.(http.Flusher); ok {
		f.Flush()
	}
}

// text is the text of content that is a string or a list of parts.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []struct {
		Text    string          `json:"text"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
		if len(p.Content) > 0 {
			b.WriteString(text(p.Content))
		}
	}
	return b.String()
}
