package raftstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

const (
	transportTimeout = 10 * time.Second
	transportPool    = 3
)

// stream lets Raft's own transport dial by server id: an address is looked up
// by whoever dials, so a node's address may change at any time.
type stream struct {
	net.Listener
	server string
	dial   func(ctx context.Context, server string) (net.Conn, error)
	ctx    context.Context // of the store
	self   chan net.Conn   // closed when Raft runs; before, this node's own connection, if there is one

	mu    sync.Mutex
	slots map[string]chan struct{} // of each server: who has it dials
}

// Accept implements net.Listener. Nobody is let in before Raft runs.
func (s *stream) Accept() (net.Conn, error) {
	select {
	case c := <-s.self:
		if c != nil {
			return c, nil
		}
	case <-s.ctx.Done():
	}
	c, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &meant{Conn: c, server: s.server}, nil
}

// meant is a connection that comes in for one server id. Raft's messages do not say
// whom they are for, and a node that lost its log has another id at the same place:
// it must not vote, or count entries as stored, in the name of the server it was (M-32).
// The caller's first word is the id it means. Read by one goroutine at a time.
type meant struct {
	net.Conn
	server string
	asked  bool
}

// Read implements net.Conn.
func (c *meant) Read(p []byte) (int, error) {
	if !c.asked {
		var size [1]byte
		if _, err := io.ReadFull(c.Conn, size[:]); err != nil {
			return 0, err
		}
		id := make([]byte, size[0])
		if _, err := io.ReadFull(c.Conn, id); err != nil {
			return 0, err
		}
		if string(id) != c.server {
			return 0, errors.Join(fmt.Errorf("a message for server %q came to %q", id, c.server), c.Conn.Close())
		}
		c.asked = true
	}
	return c.Conn.Read(p)
}

// mean says whom a new connection is for.
func mean(ctx context.Context, c net.Conn, server string) error {
	until, _ := ctx.Deadline()
	err := c.SetWriteDeadline(until)
	if err == nil {
		_, err = c.Write(append([]byte{byte(len(server))}, server...))
	}
	if err == nil {
		err = c.SetWriteDeadline(time.Time{})
	}
	if err != nil {
		c.Close()
	}
	return err
}

type serverAddr string

func (a serverAddr) Network() string { return "muster" }
func (a serverAddr) String() string  { return string(a) }

// Addr is this node's Raft address, its node id.
func (s *stream) Addr() net.Addr { return serverAddr(nodeOf(s.server)) }

// Dial implements raft.StreamLayer; what it gets for an address is a server id
// (see ServerAddr). It waits for the link instead of failing fast: Raft backs
// off appends to a peer that fails up to 10 s, and would find it back only
// after that. One dials, the others wait for their turn.
func (s *stream) Dial(server raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	if s.dial == nil {
		return nil, errors.New("this store has no way to dial")
	}
	ctx, cancel := context.WithTimeout(s.ctx, timeout)
	defer cancel()
	slot := s.slot(string(server))
	select {
	case slot <- struct{}{}:
		defer func() { <-slot }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, 250*time.Millisecond) {
		c, err := s.dial(ctx, string(server))
		if err == nil {
			err = mean(ctx, c, string(server))
		}
		if err == nil {
			return c, nil
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, err
		}
	}
}

func (s *stream) slot(server string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slots[server] == nil {
		s.slots[server] = make(chan struct{}, 1)
	}
	return s.slots[server]
}

// ServerAddr implements raft.ServerAddressProvider.
func (s *stream) ServerAddr(id raft.ServerID) (raft.ServerAddress, error) {
	return raft.ServerAddress(id), nil
}

func newTransport(ctx context.Context, c *Config) transport {
	if c.transport != nil {
		return c.transport
	}
	s := &stream{Listener: c.Listener, server: c.Server, dial: c.Dial, ctx: ctx, slots: map[string]chan struct{}{}, self: make(chan net.Conn, 1)}
	return &netTransport{stream: s, NetworkTransport: raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: s, ServerAddressProvider: s, MaxPool: transportPool, Timeout: transportTimeout,
		Logger: adaptLogger(c.Logger),
	})}
}

// netTransport is Raft's own transport and the stream below it.
type netTransport struct {
	*raft.NetworkTransport
	stream *stream
}

// adaptLogger lets Raft log into ours.
func adaptLogger(l *slog.Logger) hclog.Logger {
	h := hclog.NewInterceptLogger(&hclog.LoggerOptions{Name: "raft", Level: hclog.Debug, Output: io.Discard})
	h.RegisterSink(logSink{l.With("component", "raft")})
	return h
}

type logSink struct{ l *slog.Logger }

// Accept implements hclog.SinkAdapter. What Raft calls information is told as
// debug: a person reads of leaders and members from us.
func (s logSink) Accept(_ string, level hclog.Level, msg string, args ...any) {
	to := slog.LevelDebug
	switch {
	case level >= hclog.Error:
		to = slog.LevelWarn // an unreachable peer is an error to Raft
	case level >= hclog.Warn:
		to = slog.LevelInfo
	}
	if s.l.Enabled(context.Background(), to) {
		s.l.Log(context.Background(), to, msg, args...)
	}
}
