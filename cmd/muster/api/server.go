package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/user"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"muster/board"
)

const (
	maxBody        = 8 << 20
	defaultTimeout = 15 * time.Second
	maxTimeout     = 15 * time.Minute
)

// Headers of requests.
const (
	HeaderTimeout   = "Muster-Timeout"    // how long the answer may take, e.g. 15s
	HeaderRequestID = "Muster-Request-Id" // told with every answer to a write
)

// Door says through what a handler is reached, and so who may ask.
type Door int

// The doors.
const (
	DoorUser    Door = iota // the node's own socket: what the node's `local` role may do
	DoorSession             // run secrets only
	DoorToken               // the mesh's door: a token
)

// Sockets says where a node's two sockets are.
type Sockets struct {
	User, Session string
	InKeeperTree  func(pid int) bool // sessions must use their own socket
	Logger        *slog.Logger
}

// Server serves the two unix sockets.
type Server struct {
	http []*http.Server
	wg   sync.WaitGroup
	once sync.Once
}

// Serve opens both sockets, 0600. A stale socket file of a dead node is replaced;
// the folder's lock has made sure that no other node is alive.
func Serve(b Backend, s Sockets) (*Server, error) {
	srv := &Server{}
	for door, path := range map[Door]string{DoorUser: s.User, DoorSession: s.Session} {
		l, err := listenUnix(path)
		if err != nil {
			srv.Close()
			return nil, err
		}
		h := &http.Server{Handler: Handler(b, door, s.Logger), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
			ConnContext: func(ctx context.Context, c net.Conn) context.Context { return withPeer(ctx, c, door, s.InKeeperTree) }}
		srv.http = append(srv.http, h)
		srv.wg.Go(func() { _ = h.Serve(l) })
	}
	return srv, nil
}

// Close ends the sockets and waits; streams are cut.
func (s *Server) Close() {
	s.once.Do(func() {
		for _, h := range s.http {
			h.Close()
		}
		s.wg.Wait()
	})
}

// listenUnix listens on a socket that only this user can open. The address of a
// unix socket is short: a long path is reached through its open folder.
func listenUnix(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	short, done, err := shortPath(path)
	if err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	defer done()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	l.SetUnlinkOnClose(false)
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	return l, nil
}

type peerInfo struct {
	name    string
	refused string
}

type peerKey struct{}

func withPeer(ctx context.Context, c net.Conn, door Door, inTree func(int) bool) context.Context {
	p := peerInfo{}
	uid, pid, ok := peerCred(c)
	if !ok {
		p.refused = "the system does not say who is at the other end of this socket"
	} else {
		p.name = strconv.Itoa(uid)
		if u, err := user.LookupId(p.name); err == nil {
			p.name = u.Username
		}
		if uid != os.Getuid() && uid != 0 {
			p.refused = "this socket is another user's"
		}
		if door == DoorUser && inTree != nil && inTree(pid) {
			p.refused = "a session speaks through its own socket (MUSTER_SOCKET), with its run's secret"
		}
	}
	return context.WithValue(ctx, peerKey{}, p)
}

// handler answers one door.
type handler struct {
	b     Backend
	door  Door
	log   *slog.Logger
	flows *board.Workflows
}

// Handler is the API for one door.
func Handler(b Backend, door Door, log *slog.Logger) http.Handler {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	h := &handler{b: b, door: door, log: log, flows: board.NewWorkflows()}
	mux := http.NewServeMux()
	h.reads(mux)
	mux.HandleFunc("GET /v1/id", h.wrap(h.mint))
	if door != DoorSession {
		mux.HandleFunc("POST /v1/token", h.wrap(h.token))
	}
	if door == DoorUser {
		mux.HandleFunc("POST /v1/stop", h.wrap(h.stop))
	}
	mux.HandleFunc("POST /v1/do", h.wrap(h.do))
	mux.HandleFunc("/", h.wrap(func(r *http.Request, _ caller) (any, Fresh, error) {
		return nil, unread, board.Errorf(board.NotFound, "%s %s is not part of this API", r.Method, clip(r.URL.Path)).WithHint("the node may be older than the command; see: muster version")
	}))
	return mux
}

func clip(s string) string {
	if len(s) > 120 {
		return s[:120] + "..."
	}
	return s
}

// caller is who asks, as far as the door can tell; what it may do is found by
// the leader, from the state.
type caller struct {
	actor  board.Actor
	secret string
	run    string // of a session
	board  string // a session's own
}

func (h *handler) caller(r *http.Request) (caller, error) {
	p, _ := r.Context().Value(peerKey{}).(peerInfo)
	if p.refused != "" {
		return caller{}, board.Errorf(board.Refused, "%s", p.refused)
	}
	info := h.b.Info()
	kind, rest, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	switch h.door {
	case DoorSession:
		run, secret, ok := strings.Cut(rest, ":")
		if kind != "Run" || !ok || run == "" || secret == "" {
			return caller{}, board.Errorf(board.Refused, "this socket takes run secrets only").WithHint("a session's verbs find it by MUSTER_SECRET_FILE; people use muster.sock")
		}
		return caller{actor: board.Actor{Kind: board.ActorRun, Run: run, Name: run, Node: info.ID}, secret: secret, run: run}, nil
	case DoorToken:
		if kind != "Bearer" || rest == "" {
			return caller{}, board.Errorf(board.Refused, "this door takes a token").WithHint("make one with: muster token create --role member; then --token-file F")
		}
		return caller{actor: board.Actor{Kind: board.ActorPerson, Name: "token", Node: info.ID}, secret: rest}, nil
	}
	return caller{actor: board.Actor{Kind: board.ActorPerson, Name: orElse(p.name, "user") + "@" + info.Name, Node: info.ID}}, nil
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

type answerFunc func(r *http.Request, c caller) (data any, f Fresh, err error)

// wrap gives every request its caller, its deadline, its bound and its one
// answer; a panic is an answer too.
func (h *handler) wrap(fn answerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				h.log.Error("panic in a request", "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
				send(w, nil, unread, board.Errorf(board.Internal, "%v", p), "")
			}
		}()
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		ctx, cancel := context.WithTimeout(r.Context(), timeoutOf(r))
		defer cancel()
		c, err := h.caller(r)
		if err != nil {
			send(w, nil, unread, err, "")
			return
		}
		ctx = context.WithValue(ctx, writerKey{}, w)
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(timeoutOf(r) + streamWrite))
		data, fresh, err := fn(r.WithContext(ctx), c)
		send(w, data, fresh, err, w.Header().Get(HeaderRequestID))
	}
}

func timeoutOf(r *http.Request) time.Duration {
	d, err := time.ParseDuration(r.Header.Get(HeaderTimeout))
	if err != nil || d <= 0 {
		return defaultTimeout
	}
	return min(d, maxTimeout)
}

var statusOf = map[board.Code]int{board.Invalid: 400, board.NotFound: 404, board.Refused: 409, board.Conflict: 409, board.Exhausted: 413,
	board.Unavailable: 503, board.UnknownOutcome: 504, board.Internal: 500}

func send(w http.ResponseWriter, data any, f Fresh, err error, id string) {
	env := Envelope{V: Version, Index: f.Index}
	if f.Age >= 0 && err == nil {
		ms := f.Age.Milliseconds()
		env.AgeMS = &ms
	}
	status := http.StatusOK
	if err != nil {
		env.Error = failure(err, id)
		status = cmp.Or(statusOf[env.Error.Code], http.StatusInternalServerError)
	} else if data != nil {
		b, jerr := json.Marshal(data)
		if jerr != nil {
			env.Error, status = failure(jerr, id), 500
		}
		env.Data = b
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(env)
}

func tooLarge() *board.Error {
	return board.Errorf(board.Exhausted, "the request is larger than %d MB", maxBody>>20).WithHint("keep large text in files")
}

func failure(err error, id string) *Failure {
	var e *board.Error
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		e = tooLarge()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		e = board.Errorf(board.Unavailable, "no answer in time").WithHint("see: muster status")
	case !errors.As(err, &e):
		e = board.Errorf(board.Internal, "%v", err)
	}
	f := &Failure{Error: *e}
	if e.Code == board.UnknownOutcome || e.Code == board.Unavailable {
		f.RequestID = id
	}
	return f
}

// bodyTime is how long a caller may take to send what it asks.
const bodyTime = 30 * time.Second

func decode(r *http.Request, into any) error {
	if w, ok := r.Context().Value(writerKey{}).(http.ResponseWriter); ok {
		rc := http.NewResponseController(w)
		_ = rc.SetReadDeadline(time.Now().Add(bodyTime))
		defer func() { _ = rc.SetReadDeadline(time.Time{}) }()
	}
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return err
		}
		return board.Errorf(board.Invalid, "request: %v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return board.Errorf(board.Invalid, "request: more than one JSON value")
	}
	return nil
}

// spoken are the verbs that come through a door; nodes and the fleet have their own ways.
var spoken = map[string]bool{board.VBoardCreate: true, board.VBoardApply: true, board.VBoardSet: true, board.VCardAdd: true, board.VCardEdit: true,
	board.VCardLink: true, board.VCardUnlink: true, board.VEvent: true, board.VStart: true, board.VTokenRevoke: true, board.VNodeVote: true, board.VNodeSet: true, board.VMove: true, board.VBarrier: true,
	board.VSubscribe: true, board.VInboxAck: true, board.VSend: true, board.VWebhook: true}

// do executes one request.
func (h *handler) do(r *http.Request, c caller) (any, Fresh, error) {
	var d Do
	if err := decode(r, &d); err != nil {
		return nil, unread, err
	}
	if c.run != "" && d.Verb != board.VEvent && d.Verb != board.VCardAdd {
		return nil, unread, board.Errorf(board.Refused, "%s is not for sessions", clip(d.Verb)).WithHint("a session says events of its card, and files cards")
	}
	if !spoken[d.Verb] {
		return nil, unread, board.Errorf(board.Invalid, "unknown verb %q", clip(d.Verb)).WithHint("the node may be older than the command; see: muster version")
	}
	if d.ID == "" {
		d.ID = r.Header.Get(HeaderRequestID)
	}
	if d.ID == "" {
		d.ID = h.b.MintID()
	}
	w, _ := r.Context().Value(writerKey{}).(http.ResponseWriter)
	if w != nil {
		w.Header().Set(HeaderRequestID, d.ID)
	}
	req := board.Request{ID: d.ID, Retry: d.Retry, Actor: c.actor, Verb: d.Verb, Args: d.Args, Secret: c.secret}
	var res board.Result
	if c.run != "" {
		res = h.b.SessionSay(r.Context(), c.run, c.secret, req)
	} else {
		res = h.b.Do(r.Context(), req)
	}
	if res.Err != nil {
		return nil, unread, res.Err
	}
	return res.Data, Fresh{Index: res.Seq, Age: -1}, nil
}

type writerKey struct{}

// token makes a token. Through the mesh's door the caller's own token must be a
// manager's: the executor is asked in this node's name.
func (h *handler) token(r *http.Request, c caller) (any, Fresh, error) {
	var o TokenOptions
	if err := decode(r, &o); err != nil {
		return nil, unread, err
	}
	if h.door == DoorToken {
		role, err := h.tokenRole(r.Context(), c.secret)
		if err != nil {
			return nil, unread, err
		}
		if role != "manager" {
			return nil, unread, board.Errorf(board.Refused, "%s: the role %q may not do that", board.VTokenCreate, role)
		}
	}
	ans, err := h.b.NewToken(r.Context(), c.actor, o)
	if err != nil {
		return nil, unread, err
	}
	return ans, unread, nil
}

func (h *handler) mint(*http.Request, caller) (any, Fresh, error) { return h.b.MintID(), unread, nil }

func (h *handler) stop(r *http.Request, _ caller) (any, Fresh, error) {
	info := h.b.Info()
	h.b.Stop(r.URL.Query().Get("restart") == "true")
	return info, unread, nil
}
