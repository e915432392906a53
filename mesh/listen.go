package mesh

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// listen opens the TCP listener and the UDP socket on one port number.
func listen(addr string) (net.Listener, *net.UDPConn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, nil, fmt.Errorf("listen: %w", err)
	}
	// With port 0 the system chooses for TCP; UDP may have that one in use.
	for try := 0; ; try++ {
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			return nil, nil, listenError("tcp", addr, err)
		}
		_, chosen, _ := net.SplitHostPort(ln.Addr().String())
		pc, err := net.ListenPacket("udp", net.JoinHostPort(host, chosen))
		if err == nil {
			return ln, pc.(*net.UDPConn), nil
		}
		_ = ln.Close()
		if port != "0" || try == 20 {
			return nil, nil, listenError("udp", addr, err)
		}
	}
}

func listenError(network, addr string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("listen on %s: the %s port is in use by another program (or another muster); stop it or choose another port: %w", addr, network, err)
	}
	return fmt.Errorf("listen on %s: %w", addr, err)
}

// gate bounds the handshakes under way, in all and per address, so that one
// stranger with many half-open connections does not keep the others out.
type gate struct {
	limit, perHost int

	mu     sync.Mutex
	total  int
	byHost map[string]int
}

func newGate(limit int) *gate {
	return &gate{limit: limit, perHost: max(4, limit/4), byHost: make(map[string]int)}
}

func (g *gate) enter(host string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.total >= g.limit || g.byHost[host] >= g.perHost {
		return false
	}
	g.total++
	g.byHost[host]++
	return true
}

func (g *gate) leave(host string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.total--
	if g.byHost[host]--; g.byHost[host] == 0 {
		delete(g.byHost, host)
	}
}

// accept takes connections until the listener is closed.
func (n *Node) accept() error {
	for {
		c, err := n.ln.Accept()
		if err != nil {
			if n.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			// Out of file descriptors and the like: others will close some.
			n.logAbout("accept", "accept failed", "err", err)
			select {
			case <-time.After(50 * time.Millisecond):
			case <-n.ctx.Done():
				return nil
			}
			continue
		}
		host := hostOf(c.RemoteAddr())
		if !n.gate.enter(host) {
			n.stats.refused.Add(1)
			_ = c.Close()
			n.logAbout("gate "+host, "too many handshakes under way; connection closed", "remote", host)
			continue
		}
		if !n.spawn(func() { n.handshake(c, host) }) {
			n.gate.leave(host)
			_ = c.Close()
			return nil
		}
	}
}

// handshake finds out who a connection is and hands it to its protocol.
func (n *Node) handshake(raw net.Conn, host string) {
	leave := sync.OnceFunc(func() { n.gate.leave(host) })
	defer leave()
	t := n.conns.track(raw)
	if t == nil {
		return
	}
	until := time.Now().Add(n.cfg.HandshakeTimeout)
	ctx, cancel := context.WithDeadline(n.ctx, until)
	defer cancel()
	c := tls.Server(t, n.tlsServer)
	if err := c.HandshakeContext(ctx); err != nil {
		n.refuse(t, host, err)
		return
	}
	id, _ := peerOfState(c.ConnectionState())
	if c.ConnectionState().NegotiatedProtocol == ALPNDoor {
		if !t.enterDoor(host) {
			n.refuse(t, host, fmt.Errorf("the door has %d places, half of them for one address, and none is free", n.cfg.DoorLimit))
			return
		}
		leave()
		n.door.offer(&Conn{Conn: c, peer: id, raw: t}, n.ctx.Done())
		return
	}
	t.setPeer(id)
	conn := &Conn{Conn: c, peer: id, raw: t}
	if err := n.greetClient(conn, until); err != nil {
		n.refuse(t, host, err)
		return
	}
	// Trust may have ended between the handshake and setPeer, unseen by Recheck.
	if !n.cfg.Trust(id) {
		n.refuse(t, host, fmt.Errorf("%w: node %s is not in the node list", ErrRefused, id))
		return
	}
	leave()
	n.route(conn)
}

func (n *Node) route(c *Conn) {
	n.heard(c.peer)
	n.linkUp(c.peer)
	switch c.ConnectionState().NegotiatedProtocol {
	case ALPNRaft:
		n.raft.offer(c, n.ctx.Done())
	case ALPNGossip:
		n.gossip.offer(c, n.ctx.Done())
	case ALPNTerm:
		n.term.offer(c, n.ctx.Done())
	case ALPNStream:
		n.serveStream(c)
	default:
		c.abort()
	}
}

func (n *Node) refuse(t *tracked, host string, err error) {
	_ = t.Close()
	if n.ctx.Err() != nil {
		return
	}
	n.stats.refused.Add(1)
	n.logAbout("handshake "+host, "connection refused", "remote", host, "err", err)
}

// logAbout logs one line per key and minute.
func (n *Node) logAbout(key, msg string, args ...any) {
	if ok, skipped := n.limit.allow(key, time.Now()); ok {
		n.log.Warn(msg, append(args, "skipped", skipped)...)
	}
}

func hostOf(a net.Addr) string {
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return host
}
