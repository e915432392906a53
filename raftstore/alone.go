package raftstore

import (
	"context"
	"io"
	"net"
	"time"

	"github.com/hashicorp/raft"
)

// alone tells whether this server is the only voter: nobody else can lead, and
// waiting an election timeout for somebody else's heartbeat is time lost.
func (s *Store) alone() bool {
	voters := 0
	for _, v := range s.Servers() {
		if v.Voter && v.ID != s.cfg.Server {
			return false
		}
		if v.Voter {
			voters++
		}
	}
	return voters == 1
}

// accept lets connections in, now that Raft runs. Who is the only voter comes
// first itself, with the word that Raft has for "stand for election now": safe
// at any time, as every election is, and with one voter it disturbs nobody.
func (s *Store) accept() {
	t, ok := s.trans.transport.(*netTransport)
	if !ok {
		return
	}
	defer close(t.stream.self)
	if !s.alone() {
		return
	}
	ours, theirs := net.Pipe()
	t.stream.self <- theirs
	s.tasks.Go(func() {
		end := &pipeEnd{Conn: ours, ctx: s.ctx}
		c := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{Stream: end, Timeout: time.Second, Logger: adaptLogger(s.cfg.Logger)})
		req := &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}}
		if err := c.TimeoutNow(raft.ServerID(s.cfg.Server), raft.ServerAddress(s.cfg.Server), req, &raft.TimeoutNowResponse{}); err != nil {
			s.log.Debug("election is left to its timeout", "err", err)
		}
		_ = c.Close() // nothing was written that could be lost
		_ = ours.Close()
	})
}

// pipeEnd is a stream with one connection, that nobody connects to.
type pipeEnd struct {
	net.Conn
	ctx context.Context
}

// Dial implements raft.StreamLayer.
func (p *pipeEnd) Dial(raft.ServerAddress, time.Duration) (net.Conn, error) { return p.Conn, nil }

// Accept implements net.Listener: it waits for the end.
func (p *pipeEnd) Accept() (net.Conn, error) {
	<-p.ctx.Done()
	return nil, io.EOF
}

// Addr implements net.Listener.
func (p *pipeEnd) Addr() net.Addr { return serverAddr("self") }
