package directorytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"muster/cmd/muster/directory"
)

// Server is a directory behind an http.Handler.
type Server struct {
	Token string // that a caller must bring

	mu     sync.Mutex
	agents map[string]string // id -> declared or ended
	keys   map[string]string // idempotency key -> what it did
	log    []string          // what took effect, in order: "declare ID", "end ID"
	wrong  []string          // what no directory should see
	calls  int
	now    int // calls that are being answered
	fault  func(word, id string) Fault
	wake   chan struct{}
}

// Fault is what a call meets.
type Fault struct {
	Status int           // answered instead of doing it
	After  bool          // it is done, and then there is no answer
	Hang   time.Duration // before anything is done
}

// New is an empty directory.
func New(token string) *Server {
	return &Server{Token: token, agents: map[string]string{}, keys: map[string]string{}, wake: make(chan struct{})}
}

// Fail sets what calls meet; nil: nothing. word is declare or end.
func (s *Server) Fail(f func(word, id string) Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Forget makes it forget an agent, and every key.
func (s *Server) Forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.agents, id)
	clear(s.keys)
}

// Log is what took effect, in order.
func (s *Server) Log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.log...)
}

// Wrong is what came that no directory should see.
func (s *Server) Wrong() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.wrong...)
}

// Calls is how many calls came.
func (s *Server) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// Changed is closed at the next call that was answered.
func (s *Server) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wake
}

// ServeHTTP answers POST /agents and POST /agents/ID/end.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var d directory.Declaration
	err := json.NewDecoder(r.Body).Decode(&d)
	word := "declare"
	if strings.HasSuffix(r.URL.Path, "/end") {
		word = "end"
	}
	f := s.begin(word, d.ID)
	if f.Hang > 0 {
		select {
		case <-time.After(f.Hang):
		case <-r.Context().Done():
		}
	}
	status, answer := f.Status, map[string]string{}
	switch {
	case r.Header.Get("Authorization") != "Bearer "+s.Token:
		status = http.StatusUnauthorized
	case err != nil || d.ID == "" || r.Header.Get("Idempotency-Key") == "":
		status = http.StatusBadRequest
	case status == 0:
		status = s.take(word, d, r.Header.Get("Idempotency-Key"), answer)
	}
	s.end()
	if f.After {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *Server) begin(word, id string) (f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.now++; s.now > 1 {
		s.wrong = append(s.wrong, fmt.Sprintf("two calls at a time: %s %s", word, id))
	}
	if s.fault != nil {
		f = s.fault(word, id)
	}
	return f
}

func (s *Server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now--
	close(s.wake)
	s.wake = make(chan struct{})
}

// take does what a word says, once for its key.
func (s *Server) take(word string, d directory.Declaration, key string, answer map[string]string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	what := word + " " + d.ID
	if was, ok := s.keys[key]; ok {
		if was != what {
			s.wrong = append(s.wrong, "a key came for "+was+" and for "+what)
		}
		answer["id"] = d.ID
		return http.StatusOK
	}
	switch state := s.agents[d.ID]; {
	case word == "end" && state == "":
		answer["agent"] = d.ID
		return http.StatusNotFound
	case word == "declare" && d.Parent != "" && s.agents[d.Parent] == "":
		answer["agent"] = d.Parent
		return http.StatusNotFound
	case word == "declare" && state != "":
		answer["id"] = d.ID
		return http.StatusConflict
	}
	s.keys[key], s.agents[d.ID] = what, word
	s.log = append(s.log, what)
	answer["id"] = d.ID
	return http.StatusOK
}
