package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"muster/cmd/muster/api"
)

// Config is what a page needs of its node.
type Config struct {
	Data   string   // the node's folder: key, port and the file that leads a browser here
	Listen string   // IP:PORT; "" is loopback, on the port of the last start or a free one
	Names  []string // further host names by which browsers reach it
	Cert   string   // files, PEM; without them it listens on loopback only
	Key    string

	User   http.Handler                       // the API as the node's own user has it
	Token  http.Handler                       // and for who has a token
	Secret func(token string) (string, error) // of a token as people copy it
	Doctor func(ctx context.Context) any      // findings; nil: none are shown
	Logger *slog.Logger
}

// Server is one open page.
type Server struct {
	cfg   Config
	l     net.Listener
	http  *http.Server
	hosts []string // allowed values of Host
	key   []byte
	codes codes
	conns conns
	rate  rates
	wg    sync.WaitGroup
	once  sync.Once
}

const (
	headTime = 5 * time.Second
	idleTime = time.Minute
	maxBody  = 1 << 20
)

// Check refuses what would show the board to whoever can listen on the way: a
// page that is not on loopback needs TLS. It opens nothing.
func (c *Config) Check() error {
	if (c.Cert == "") != (c.Key == "") {
		return errors.New("--http-cert and --http-key belong together")
	}
	for _, n := range c.Names {
		if n == "" || strings.ContainsAny(n, "/:@* \t") {
			return fmt.Errorf("--http-name %q is not a host name", n)
		}
	}
	if c.Listen == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(c.Listen)
	if _, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil {
		return fmt.Errorf("--http %q is not IP:PORT (or off)", c.Listen)
	}
	if !loopback(host) && c.Cert == "" {
		return fmt.Errorf("--http %s is not on loopback, and without TLS everybody on the way could read the board and act as who looks at it: "+
			"give --http-cert and --http-key, or keep it on loopback and use ssh -L", c.Listen)
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Open listens and serves.
func Open(cfg Config) (*Server, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: cfg, rate: newRates()}
	var err error
	if s.key, err = loadKey(filepath.Join(cfg.Data, "web.key")); err != nil {
		return nil, err
	}
	if s.l, err = s.listen(); err != nil {
		return nil, err
	}
	s.hosts = s.allowed()
	s.http = &http.Server{Handler: s.handler(), ReadHeaderTimeout: headTime, IdleTimeout: idleTime, MaxHeaderBytes: 16 << 10,
		ConnState: s.conns.state, ErrorLog: slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug)}
	l := s.l
	if cfg.Cert != "" {
		pair, err := tls.LoadX509KeyPair(cfg.Cert, cfg.Key)
		if err != nil {
			l.Close()
			return nil, fmt.Errorf("--http-cert %s, --http-key %s: %w", cfg.Cert, cfg.Key, err)
		}
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
	}
	s.wg.Go(func() { _ = s.http.Serve(l) })
	return s, nil
}

// Close ends it; streams are cut, and their pages come back by themselves.
func (s *Server) Close() {
	s.once.Do(func() {
		_ = s.http.Close()
		s.wg.Wait()
	})
}

// listen takes the port of the last start, so that a page which is open finds its
// node again; any free one when that is taken.
func (s *Server) listen() (net.Listener, error) {
	if s.cfg.Listen != "" {
		l, err := net.Listen("tcp", s.cfg.Listen)
		if err != nil {
			return nil, fmt.Errorf("--http %s: %w", s.cfg.Listen, err)
		}
		return l, nil
	}
	file := filepath.Join(s.cfg.Data, "web.port")
	last, _ := os.ReadFile(file)
	if n, err := strconv.ParseUint(strings.TrimSpace(string(last)), 10, 16); err == nil && n > 0 {
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.FormatUint(n, 10))); err == nil {
			return l, nil
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("a port for the page: %w", err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if err := os.WriteFile(file, []byte(port+"\n"), 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("the page's port: %w", err)
	}
	return l, nil
}

// Addr is where it listens.
func (s *Server) Addr() string { return s.l.Addr().String() }

// Page is its address for a browser on this machine.
func (s *Server) Page() string {
	host, port, _ := net.SplitHostPort(s.Addr())
	switch ip := net.ParseIP(host); {
	case len(s.cfg.Names) > 0:
		host = s.cfg.Names[0]
	case ip != nil && ip.IsUnspecified():
		host = "localhost"
	}
	return s.scheme() + "://" + net.JoinHostPort(host, port) + "/"
}

func (s *Server) scheme() string {
	if s.cfg.Cert != "" {
		return "https"
	}
	return "http"
}

// allowed are the values that Host may have: this listener's own address and the
// names that were configured, each with its port.
func (s *Server) allowed() (list []string) {
	host, port, _ := net.SplitHostPort(s.Addr())
	add := func(h string) {
		for _, x := range []string{net.JoinHostPort(h, port), map[string]string{"http80": h, "https443": h}[s.scheme()+port]} {
			if x != "" && !slices.Contains(list, x) {
				list = append(list, x)
			}
		}
	}
	if ip := net.ParseIP(host); ip != nil && (ip.IsLoopback() || ip.IsUnspecified()) {
		add("127.0.0.1")
		add("localhost")
		add("::1")
	}
	if ip := net.ParseIP(host); ip != nil && !ip.IsUnspecified() {
		add(host)
	}
	for _, n := range s.cfg.Names {
		add(strings.ToLower(n))
	}
	return list
}

// Login lets a person of this machine in: a code that is good once, and the file
// that leads a browser there without the code standing in a process's arguments.
func (s *Server) Login(name string) (api.WebLogin, error) {
	code, until := s.codes.make(name)
	x := api.WebLogin{Page: s.Page(), URL: s.Page() + "#code=" + code, Expires: until, File: filepath.Join(s.cfg.Data, "web-open.html")}
	if err := writePrivate(x.File, []byte("<!doctype html><meta charset=utf-8><meta http-equiv=refresh content=\"0;url="+x.URL+"\"><title>muster</title>\n")); err != nil {
		return api.WebLogin{}, fmt.Errorf("the file for the browser: %w", err)
	}
	return x, nil
}
