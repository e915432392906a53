package tmux

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

const (
	socket = "s"      // in Dir; short, because a socket's whole name may have only 108 bytes
	hold   = "muster" // the session that our client is attached to; it shows nothing
)

// DetachKey is the key that ends a look at a pane, as a person reads it.
const DetachKey = "Ctrl-]"

// Config is what a server needs.
type Config struct {
	Dir     string   // its own folder: made 0700 when it is not there
	Program string   // "" is tmux, looked for on PATH
	Env     []string // of the server, and so of every keeper in it; nil: a short list of this process's
	Log     *slog.Logger
}

// Server is muster's tmux server as one node drives it.
type Server struct {
	cfg     Config
	changed chan struct{}

	connects chan struct{} // one slot: who has it connects. A server that is frozen holds up nobody beyond its own time
	mu       sync.Mutex
	conn     *conn
	closed   bool
}

// Find looks for a tmux that this package can drive, 3.2 or newer; an error says
// why there is none.
func Find(program string) (path string, err error) {
	path, err = exec.LookPath(cmp.Or(program, "tmux"))
	if err != nil {
		return "", errors.New("tmux is not installed on this machine")
	}
	out, err := exec.Command(path, "-V").Output()
	if err != nil {
		return "", fmt.Errorf("%s -V: %w", path, err)
	}
	if v := strings.TrimSpace(string(out)); !fresh(v) {
		return "", fmt.Errorf("%s is %s; 3.2 is needed", path, v)
	}
	return path, nil
}

// fresh reads the answer of tmux -V: "tmux 3.3a", "tmux next-3.6".
func fresh(answer string) bool {
	_, v, _ := strings.Cut(answer, " ")
	major, rest, _ := strings.Cut(strings.TrimPrefix(v, "next-"), ".")
	n, err := strconv.Atoi(major)
	minor := strings.TrimRightFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if i := strings.IndexFunc(minor, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		minor = minor[:i]
	}
	m, merr := strconv.Atoi(minor)
	return err == nil && merr == nil && (n > 3 || n == 3 && m >= 2)
}

// New makes a Server. Nothing is touched before its first command.
func New(cfg Config) *Server {
	cfg.Program = cmp.Or(cfg.Program, "tmux")
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Env == nil {
		cfg.Env = environment(os.Environ())
	}
	return &Server{cfg: cfg, changed: make(chan struct{}, 1), connects: make(chan struct{}, 1)}
}

// environment is what the server, and so every pane, needs to know of this
// process's: nothing of a user's terminal, no secret.
func environment(from []string) []string {
	env := []string{"TERM=screen-256color"}
	for _, kv := range from {
		key, _, _ := strings.Cut(kv, "=")
		if slices.Contains([]string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR"}, key) || strings.HasPrefix(key, "LC_") {
			env = append(env, kv)
		}
	}
	return env
}

// settings are sent with every new connection: a server that an older version
// started is set the same way. A person who looks on has one key, and nothing
// that a program prints reaches a clipboard or another terminal (T17).
var settings = [][]string{
	{"set-option", "-g", "exit-empty", "off"},
	{"set-option", "-gq", "allow-passthrough", "off"},
	{"set-option", "-g", "set-clipboard", "off"},
	{"set-option", "-g", "allow-rename", "off"},
	{"set-option", "-g", "automatic-rename", "off"},
	{"set-option", "-g", "set-titles", "off"},
	{"set-option", "-g", "default-terminal", "screen-256color"},
	{"set-option", "-g", "remain-on-exit", "off"},
	{"set-option", "-g", "destroy-unattached", "off"},
	{"set-option", "-g", "detach-on-destroy", "on"},
	{"set-option", "-g", "window-size", "latest"},
	{"set-option", "-g", "history-limit", "5000"},
	{"set-option", "-g", "escape-time", "10"},
	{"set-option", "-g", "focus-events", "off"},
	{"set-option", "-g", "mouse", "off"},
	{"set-option", "-g", "prefix", "None"},
	{"set-option", "-g", "prefix2", "None"},
	{"set-option", "-g", "visual-bell", "off"},
	{"set-option", "-g", "bell-action", "none"},
	{"set-option", "-g", "monitor-activity", "off"},
	{"set-option", "-g", "status", "on"},
	{"set-option", "-g", "status-interval", "0"},
	{"set-option", "-g", "status-left-length", "60"},
	{"set-option", "-g", "status-right-length", "60"},
	{"set-option", "-g", "status-left", " #{@muster} "},
	{"set-option", "-g", "status-right", "#{?client_readonly,read only · ,}" + DetachKey + " leaves it running "},
	{"set-option", "-g", "window-status-format", ""},
	{"set-option", "-g", "window-status-current-format", ""},
	{"unbind-key", "-a", "-T", "root"},
	{"bind-key", "-T", "prefix", "x", "detach-client"}, // a table without keys is none, and cannot be emptied again
	{"unbind-key", "-a", "-T", "prefix"},
	{"bind-key", "-T", "root", "C-]", "if-shell", "-F", "#{m:*" + byNode + "*,#{client_flags}}", "send-keys C-]", "detach-client"},
}

// Changed has something when a pane has come or gone, or the server has: then
// read [Server.Panes]. It has one slot.
func (s *Server) Changed() <-chan struct{} { return s.changed }

func (s *Server) note() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Close lets go of the server. It and its panes go on.
func (s *Server) Close() {
	s.mu.Lock()
	c := s.conn
	s.conn, s.closed = nil, true
	s.mu.Unlock()
	if c != nil {
		c.close()
	}
}

var errClosed = errors.New("tmux: closed")

// Open makes sure that the server runs and this process is its client.
func (s *Server) Open(ctx context.Context) error {
	_, err := s.client(ctx)
	return err
}

// client is the kept connection, or a new one: a server that was killed is
// started again by the next command.
func (s *Server) client(ctx context.Context) (*conn, error) {
	if c, err := s.kept(); c != nil || err != nil {
		return c, err
	}
	select {
	case s.connects <- struct{}{}:
		defer func() { <-s.connects }()
	case <-ctx.Done():
		return nil, fmt.Errorf("tmux: its server does not answer: %w", ctx.Err())
	}
	if c, err := s.kept(); c != nil || err != nil {
		return c, err // somebody else connected meanwhile
	}
	if err := ownFolder(s.cfg.Dir); err != nil {
		return nil, err
	}
	c, err := dial(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := c.doAll(ctx, settings); err != nil {
		c.close()
		return nil, fmt.Errorf("tmux: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		c.close()
		return nil, errClosed
	}
	s.conn = c
	return c, nil
}

// kept is the connection that there is, nil without one.
func (s *Server) kept() (*conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, errClosed
	case s.conn != nil && !s.conn.over():
		return s.conn, nil
	}
	return nil, nil
}

// ownFolder makes the folder of the socket, or refuses one that others may look
// into (T7): who has the socket has every session.
func ownFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("tmux: %w", err)
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("tmux: %w", err)
	}
	if !st.IsDir() || st.Mode().Perm()&0o077 != 0 || !mine(st) {
		return fmt.Errorf("tmux: folder %s must be this user's own and open to nobody else (mode 0700)", dir)
	}
	return nil
}

// do runs one command and answers its output. A connection that was lost before
// the command was sent is made anew; one lost meanwhile is an error, because
// nobody knows whether the command was carried out.
func (s *Server) do(ctx context.Context, words ...string) (string, error) {
	c, err := s.client(ctx)
	if err != nil {
		return "", err
	}
	out, err := c.do(ctx, words...)
	if err != nil {
		return "", fmt.Errorf("tmux %s: %w", words[0], err)
	}
	return out, nil
}

// doAll is [Server.do] of several commands without output.
func (s *Server) doAll(ctx context.Context, list [][]string) error {
	c, err := s.client(ctx)
	if err == nil {
		err = c.doAll(ctx, list)
	}
	if err != nil {
		return fmt.Errorf("tmux %w", err)
	}
	return nil
}

// byNode is a flag of clients that tells those of the node from those of a person who uses tmux: of a
// session with one pane it means nothing else. To them the key that leaves is a key like any other,
// because the person's own side knows it. (Who attaches by hand leaves by it, but with -r: tmux lets
// those use no condition.)
const byNode = "active-pane"

// Client is the command, and the folder it has to be run in, that shows a session's
// pane in its terminal. Flags and features are tmux's; color tells that the terminal shows all colours.
func (s *Server) Client(name string, readOnly, color bool) (dir string, argv []string) {
	argv = []string{s.cfg.Program, "-u", "-S", socket}
	if color {
		argv = append(argv, "-T", "RGB")
	}
	flags := byNode
	if readOnly {
		flags += ",read-only,ignore-size"
	}
	return s.cfg.Dir, append(argv, "attach-session", "-f", flags, "-t", "="+Name(name)+":")
}

// Dir is the server's own folder.
func (s *Server) Dir() string { return s.cfg.Dir }

func (s *Server) path(name string) string { return filepath.Join(s.cfg.Dir, name) }
