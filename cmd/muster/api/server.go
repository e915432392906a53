package api

import (
	"context"
	"errors"
	"fmt"
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
	InKeeperTree  func(pid int) bool                  // sessions must use their own socket
	Login         func(name string) (WebLogin, error) // lets a person into the page; nil: there is none
	Logger        *slog.Logger
}

// Server serves the two unix sockets.
type Server struct {
	http   []*http.Server
	plain  []*plain
	wg     sync.WaitGroup
	once   sync.Once
	cancel context.CancelFunc
}

// Serve opens both sockets, 0600. A stale socket file of a dead node is replaced;
// the folder's lock has made sure that no other node is alive.
func Serve(b Backend, s Sockets) (*Server, error) {
	ctx, cancel := context.WithCancel(context.Background())
	srv := &Server{cancel: cancel}
	for door, path := range map[Door]string{DoorUser: s.User, DoorSession: s.Session} {
		l, err := listenUnix(path)
		if err != nil {
			srv.Close()
			return nil, err
		}
		h := newHandler(b, door, s.Logger)
		h.login = s.Login
		p := newPlain(ctx, l, h, func(c net.Conn) peerInfo { return peerOf(c, door, s.InKeeperTree) })
		full := &http.Server{Handler: h.mux(), ReadHeaderTimeout: headTime, IdleTimeout: idleTime, MaxHeaderBytes: 64 << 10, ConnContext: p.withPeer}
		srv.http, srv.plain = append(srv.http, full), append(srv.plain, p)
		srv.wg.Go(p.serve)
		srv.wg.Go(func() { _ = full.Serve(p) })
	}
	return srv, nil
}

// Close ends the sockets and waits; streams are cut.
func (s *Server) Close() {
	s.once.Do(func() {
		s.cancel()
		for _, p := range s.plain {
			p.Close()
		}
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
	check   string // of the refusal
}

type peerKey struct{}

func peerOf(c net.Conn, door Door, inTree func(int) bool) peerInfo {
	p := peerInfo{}
	uid, pid, ok := peerCred(c)
	if !ok {
		p.refused, p.check = "the system does not say who is at the other end of this socket", board.CheckUser
	} else {
		p.name = strconv.Itoa(uid)
		if u, err := user.LookupId(p.name); err == nil {
			p.name = u.Username
		}
		if uid != os.Getuid() && uid != 0 {
			p.refused, p.check = "this socket is another user's", board.CheckUser
		} else if door == DoorUser && inTree != nil && inTree(pid) {
			p.refused, p.check = "a session speaks through its own socket (MUSTER_SOCKET), with its run's secret", board.CheckSocket
		}
	}
	return p
}

// handler answers one door.
type handler struct {
	b     Backend
	door  Door
	log   *slog.Logger
	flows *board.Workflows
	login func(name string) (WebLogin, error)

	transfers slots // boards on their way in or out
	strangers pace  // requests of who the state does not know, to the leader
}

// Handler is the API for one door.
func Handler(b Backend, door Door, log *slog.Logger) http.Handler {
	return newHandler(b, door, log).mux()
}

func newHandler(b Backend, door Door, log *slog.Logger) *handler {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &handler{b: b, door: door, log: log, flows: board.NewWorkflows(), transfers: make(slots, oneFile)}
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
	board  string // the one it reads: a session's own, or its token's; "" for all
	role   string // of a token, once it is known
}

func (h *handler) caller(r *http.Request) (caller, error) {
	p, _ := r.Context().Value(peerKey{}).(peerInfo)
	return h.callerOf(p, r.Header.Get("Authorization"))
}

func (h *handler) callerOf(p peerInfo, authorization string) (caller, error) {
	if p.refused != "" {
		return caller{actor: board.Actor{Name: p.name}}, board.Errorf(board.Refused, "%s", p.refused).WithCheck(p.check)
	}
	node, name := h.b.Self()
	kind, rest, _ := strings.Cut(authorization, " ")
	switch h.door {
	case DoorSession:
		run, secret, ok := strings.Cut(rest, ":")
		if kind != "Run" || !ok || run == "" || secret == "" {
			return caller{}, board.Errorf(board.Refused, "this socket takes run secrets only").WithCheck(board.CheckSocket).WithHint("a session's verbs find it by MUSTER_SECRET_FILE; people use muster.sock")
		}
		return caller{actor: board.Actor{Kind: board.ActorRun, Run: run, Name: run, Node: node}, secret: secret, run: run}, nil
	case DoorToken:
		if kind != "Bearer" || rest == "" {
			return caller{}, board.Errorf(board.Refused, "this door takes a token").WithCheck(board.CheckToken).WithHint("make one with: muster token create --role member; then --token-file F")
		}
		return caller{actor: board.Actor{Kind: board.ActorPerson, Name: "token", Node: node}, secret: rest}, nil
	}
	return caller{actor: board.Actor{Kind: board.ActorPerson, Name: orElse(p.name, "user") + "@" + name, Node: node}}, nil
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
			h.denied(c, err)
			send(w, nil, unread, err, "")
			return
		}
		ctx = context.WithValue(ctx, writerKey{}, w)
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(timeoutOf(r) + streamWrite))
		data, fresh, err := fn(r.WithContext(ctx), c)
		h.denied(c, err)
		send(w, data, fresh, err, w.Header().Get(HeaderRequestID))
	}
}

func timeoutOf(r *http.Request) time.Duration { return timeoutFrom(r.Header.Get(HeaderTimeout)) }

func timeoutFrom(text string) time.Duration {
	if text == "" {
		return defaultTimeout
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return defaultTimeout
	}
	return min(d, maxTimeout)
}
