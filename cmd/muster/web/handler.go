package web

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"muster/cmd/muster/api"
)

// shown are the reads that the page needs, by the first word after /v1/. What is
// not here (stop, gc, tokens' secrets, backups, whole exports) stays behind the socket.
var shown = map[string]bool{"status": true, "nodes": true, "boards": true, "cards": true, "attention": true, "inbox": true, "sessions": true, "rounds": true,
	"dryrun": true, "runs": true, "kinds": true, "info": true, "events": true, "live": true, "id": true}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/v1/", s.callers(http.HandlerFunc(s.api)))
	mux.Handle("POST /web/login", http.HandlerFunc(s.login))
	mux.Handle("GET /web/doctor", s.callers(http.HandlerFunc(s.doctor)))
	mux.Handle("/", static())
	return s.guard(mux)
}

// refuse answers as the API does.
func refuse(w http.ResponseWriter, status int, check, text, hint string) {
	e := map[string]string{"code": "refused", "check": check, "message": text}
	if hint != "" {
		e["hint"] = hint
	}
	answer(w, status, map[string]any{"v": api.Version, "error": e})
}

func answer(w http.ResponseWriter, status int, x any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(x)
}

// login makes a bearer of a code, once.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	if !s.rate.stranger() {
		refuse(w, http.StatusTooManyRequests, "rate", "too many tries; wait a moment", "")
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(headTime))
	var x struct {
		Code string `json:"code"`
	}
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") || json.NewDecoder(http.MaxBytesReader(w, r.Body, 4096)).Decode(&x) != nil {
		refuse(w, http.StatusBadRequest, "code", "that is no code", "")
		return
	}
	name, ok := s.codes.take(x.Code)
	if !ok {
		refuse(w, http.StatusForbidden, "code", "this way in was used, or has ended", "make a new one: muster web")
		return
	}
	bearer, until := s.bearer(name)
	answer(w, http.StatusOK, map[string]any{"v": api.Version, "data": map[string]any{"bearer": bearer, "until": until.UTC().Format(time.RFC3339)}})
}

// callers lets through who has a bearer: a page's own, or a token of the fleet.
func (s *Server) callers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if kind != "Bearer" || text == "" {
			if !s.rate.stranger() {
				refuse(w, http.StatusTooManyRequests, "rate", "too many tries; wait a moment", "")
				return
			}
			refuse(w, http.StatusUnauthorized, "bearer", "nobody is let in here without a code or a token", "run: muster web")
			return
		}
		if !s.rate.caller(text) {
			refuse(w, http.StatusTooManyRequests, "rate", "too many requests; wait a moment", "")
			return
		}
		if r.ContentLength > maxBody {
			refuse(w, http.StatusRequestEntityTooLarge, "size", "that is more than a page may send", "")
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		if strings.HasPrefix(text, stayMark) {
			name, ok := s.known(text)
			if !ok {
				refuse(w, http.StatusUnauthorized, "bearer", "this page was let in too long ago, or by another node", "run: muster web")
				return
			}
			next.ServeHTTP(w, r.WithContext(api.AsPerson(r.Context(), name)))
			return
		}
		secret, err := s.cfg.Secret(text)
		if err != nil {
			refuse(w, http.StatusUnauthorized, "token", "that is no token", "paste it as muster token create printed it")
			return
		}
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+secret)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), withToken{}, true)))
	})
}

// withToken marks a request of who has a token.
type withToken struct{}

func (s *Server) api(w http.ResponseWriter, r *http.Request) {
	word, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
	ok := r.Method == http.MethodGet && shown[word] && !strings.HasSuffix(rest, "/export")
	if r.Method == http.MethodPost && r.URL.Path == "/v1/do" {
		ok = strings.HasPrefix(r.Header.Get("Content-Type"), "application/json")
	}
	if !ok {
		refuse(w, http.StatusForbidden, "route", "that is not for the page", "use the command line")
		return
	}
	s.behind(r).ServeHTTP(w, r)
}

func (s *Server) behind(r *http.Request) http.Handler {
	if r.Context().Value(withToken{}) != nil {
		return s.cfg.Token
	}
	return s.cfg.User
}

// doctor tells what was found on this machine, to who may see its fleet.
func (s *Server) doctor(w http.ResponseWriter, r *http.Request) {
	if s.cfg.Doctor == nil || r.Context().Value(withToken{}) != nil {
		refuse(w, http.StatusForbidden, "route", "the doctor speaks to users of this machine", "run there: muster doctor")
		return
	}
	answer(w, http.StatusOK, map[string]any{"v": api.Version, "data": s.cfg.Doctor(r.Context())})
}
