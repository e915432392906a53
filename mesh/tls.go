package mesh

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

type tlsStater interface{ ConnectionState() tls.ConnectionState }

// peerOfState is the node of the key that the other side has proved to hold.
func peerOfState(cs tls.ConnectionState) (NodeID, bool) {
	if len(cs.PeerCertificates) == 0 {
		return "", false
	}
	key, ok := cs.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	if !ok {
		return "", false
	}
	return IDOfKey(key), true
}

// baseTLS is what both sides of every protocol share. There are no session
// tickets: a resumed session would carry a trust that may have ended.
func baseTLS(id *Identity) *tls.Config {
	c := &tls.Config{
		MinVersion:             tls.VersionTLS13,
		SessionTicketsDisabled: true,
	}
	if id != nil {
		c.Certificates = []tls.Certificate{id.cert}
	}
	return c
}

// serverTLS chooses by the one protocol that the client offers: on the door a
// key may be shown, on all else it must be, and must be trusted, or the
// handshake fails (invariant 23).
func (n *Node) serverTLS() *tls.Config {
	byProto := make(map[string]*tls.Config)
	for _, alpn := range []string{ALPNRaft, ALPNStream, ALPNGossip, ALPNTerm, ALPNDoor} {
		c := baseTLS(n.cfg.Identity)
		c.NextProtos = []string{alpn}
		c.ClientAuth = tls.RequireAnyClientCert
		c.VerifyConnection = n.verifyClient
		if alpn == ALPNDoor {
			c.ClientAuth = tls.RequestClientCert
			c.VerifyConnection = nil
		}
		byProto[alpn] = c
	}
	c := baseTLS(n.cfg.Identity)
	c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if len(hello.SupportedProtos) == 1 {
			if c := byProto[hello.SupportedProtos[0]]; c != nil {
				return c, nil
			}
		}
		return nil, fmt.Errorf("offered protocols %q: want exactly one of ours", hello.SupportedProtos)
	}
	return c
}

func (n *Node) verifyClient(cs tls.ConnectionState) error {
	id, ok := peerOfState(cs)
	switch {
	case !ok:
		return errors.New("no Ed25519 key shown")
	case id == n.self:
		return fmt.Errorf("%w: the peer shows this node's own key; was its data folder copied to another machine?", ErrRefused)
	case !n.cfg.Trust(id):
		return fmt.Errorf("%w: node %s is not in the node list", ErrRefused, id)
	}
	return nil
}

// clientTLS accepts the one key that want does.
func clientTLS(id *Identity, alpn string, want func(NodeID) error) *tls.Config {
	c := baseTLS(id)
	c.NextProtos = []string{alpn}
	// There is no authority to ask: the key itself is what is checked.
	c.InsecureSkipVerify = true
	c.VerifyConnection = func(cs tls.ConnectionState) error {
		got, ok := peerOfState(cs)
		if !ok {
			return errors.New("no Ed25519 key shown")
		}
		if cs.NegotiatedProtocol != alpn {
			return fmt.Errorf("protocol %q instead of %q", cs.NegotiatedProtocol, alpn)
		}
		return want(got)
	}
	return c
}

// DialDoor connects to the door at addr. The key shown there is checked by want
// before a byte is sent. id may be nil: then no key is shown.
func DialDoor(ctx context.Context, id *Identity, addr string, want func(NodeID) error) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*dialTimeout)
	defer cancel()
	d := net.Dialer{Timeout: dialTimeout}
	raw, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("door: %w", err)
	}
	c := tls.Client(raw, clientTLS(id, ALPNDoor, want))
	if err := c.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, fmt.Errorf("door at %s: %w", addr, refusedByPeer(err))
	}
	return c, nil
}

// refusedByPeer marks an alert of the other side: in TLS 1.3 a client learns
// that its key was refused only when it reads.
func refusedByPeer(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "remote error" {
		return fmt.Errorf("%w by the peer: %w", ErrRefused, err)
	}
	return err
}

// greeting is the first word of both sides on every protocol but the door, the
// client's first. The server's tells the client that it was let in.
type greeting struct {
	Fleet   string   `json:"fleet"`
	Text    string   `json:"text,omitempty"`
	Addrs   []string `json:"addrs,omitempty"`
	Refused string   `json:"refused,omitempty"`
}

const greetingLimit = 8 << 10

func (n *Node) ownGreeting() greeting {
	return greeting{Fleet: n.cfg.FleetID, Text: n.cfg.greeting(), Addrs: n.own.list()}
}

func (n *Node) checkGreeting(peer NodeID, g greeting) error {
	if g.Refused != "" {
		if n.cfg.CheckGreeting != nil && g.Fleet == n.cfg.FleetID {
			_ = n.cfg.CheckGreeting(peer, g.Text) // it may be why; what it says is told by the peer
		}
		return fmt.Errorf("%w by node %s: %s", ErrRefused, peer, g.Refused)
	}
	if g.Fleet != n.cfg.FleetID {
		return fmt.Errorf("%w: node %s is of fleet %q, this is %q", ErrRefused, peer, g.Fleet, n.cfg.FleetID)
	}
	if n.cfg.CheckGreeting != nil {
		if err := n.cfg.CheckGreeting(peer, g.Text); err != nil {
			return fmt.Errorf("%w: %w", ErrRefused, err)
		}
	}
	return nil
}

func writeGreeting(w io.Writer, g greeting) error {
	text, err := json.Marshal(g)
	if err != nil || len(text) > greetingLimit {
		return fmt.Errorf("greeting of %d bytes: %w", len(text), errors.Join(err, errors.New("at most 8 KiB")))
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(text))), text...))
	return err
}

func readGreeting(r io.Reader) (g greeting, err error) {
	var size [2]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return g, refusedByPeer(err)
	}
	n := int(binary.BigEndian.Uint16(size[:]))
	if n > greetingLimit {
		return g, fmt.Errorf("greeting of %d bytes", n)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return g, err
	}
	if err := json.Unmarshal(text, &g); err != nil {
		return g, fmt.Errorf("greeting: %w", err)
	}
	return g, nil
}

// greetServer is the client's half. The connection's deadline is set around it.
func (n *Node) greetServer(c *Conn, until time.Time) error {
	if err := c.SetDeadline(until); err != nil {
		return err
	}
	if err := writeGreeting(c, n.ownGreeting()); err != nil {
		return refusedByPeer(err)
	}
	g, err := readGreeting(c)
	if err != nil {
		return err
	}
	if err := n.checkGreeting(c.peer, g); err != nil {
		return err
	}
	n.book.learn(c.peer, g.Addrs...)
	return c.SetDeadline(time.Time{})
}

// greetClient is the server's half.
func (n *Node) greetClient(c *Conn, until time.Time) error {
	if err := c.SetDeadline(until); err != nil {
		return err
	}
	g, err := readGreeting(c)
	if err != nil {
		return err
	}
	if err := n.checkGreeting(c.peer, g); err != nil {
		if g.Refused == "" {
			_ = writeGreeting(c, greeting{Fleet: n.cfg.FleetID, Text: n.cfg.greeting(), Refused: err.Error()})
		}
		return err
	}
	if err := writeGreeting(c, n.ownGreeting()); err != nil {
		return err
	}
	n.book.learn(c.peer, seenAt(c.RemoteAddr(), g.Addrs)...)
	return c.SetDeadline(time.Time{})
}

// seenAt puts what a peer says of its addresses behind what we see: the address
// it came from with the port it listens on.
func seenAt(remote net.Addr, said []string) []string {
	if len(said) == 0 {
		return nil
	}
	host, _, err := net.SplitHostPort(remote.String())
	_, port, err2 := net.SplitHostPort(said[0])
	if err != nil || err2 != nil {
		return said
	}
	return append([]string{net.JoinHostPort(host, port)}, said...)
}
