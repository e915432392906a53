package mesh

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"
)

var innerProtocols = []string{ALPNRaft, ALPNStream, ALPNGossip}

func anybody(NodeID) error { return nil }

func newIdentityIn(t *testing.T) *Identity {
	t.Helper()
	id, err := LoadOrCreateIdentity(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// knock does a client's handshake with these settings and reads a byte: in TLS
// 1.3 a client learns of its refusal only then.
func knock(t *testing.T, addr string, c *tls.Config) error {
	t.Helper()
	conn, err := tls.Dial("tcp", addr, c)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, err = conn.Read(make([]byte, 1))
	if errors.Is(err, io.EOF) {
		return nil // closed after a complete handshake
	}
	return err
}

// Invariant 23: a key outside the node list, no key, and a key of another kind
// are refused in the handshake of every protocol but the door.
func TestStrangerIsRefusedInTheHandshake(t *testing.T) {
	f := newFleet(t)
	a := f.start(func(c *Config) { c.HandshakeTimeout = 20 * time.Second })
	addr := a.Addr().String()
	stranger := newIdentityIn(t)
	noKey := func(alpn string) *tls.Config { return clientTLS(nil, alpn, anybody) }
	otherKind := func(alpn string) *tls.Config {
		c := clientTLS(nil, alpn, anybody)
		c.Certificates = []tls.Certificate{ecdsaCert(t)}
		return c
	}
	for _, alpn := range innerProtocols {
		for name, c := range map[string]*tls.Config{
			"stranger": clientTLS(stranger, alpn, anybody), "no key": noKey(alpn), "ECDSA key": otherKind(alpn),
			"our own key": clientTLS(a.cfg.Identity, alpn, anybody),
		} {
			err := refusedByPeer(knock(t, addr, c))
			if !errors.Is(err, ErrRefused) {
				t.Errorf("%s with %s: got %v, want a refusal in the handshake", alpn, name, err)
			}
		}
	}
	// No protocol, an unknown one, or several at once are refused too.
	for _, protos := range [][]string{nil, {"h2"}, {ALPNDoor, ALPNRaft}} {
		c := clientTLS(stranger, ALPNDoor, anybody)
		c.NextProtos, c.VerifyConnection = protos, nil
		if err := refusedByPeer(knock(t, addr, c)); !errors.Is(err, ErrRefused) {
			t.Errorf("protocols %q: got %v", protos, err)
		}
	}
	// An old TLS version as well.
	old := clientTLS(stranger, ALPNDoor, anybody)
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if err := knock(t, addr, old); err == nil {
		t.Error("TLS 1.2 was let in")
	}
}

func ecdsaCert(t *testing.T) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Who dials checks the key too: another node at the known address is no peer.
func TestWrongKeyOnDial(t *testing.T) {
	f := newFleet(t)
	a, b, c := f.start(nil), f.start(nil), f.start(nil)
	a.SetPeer(b.Self(), c.Addr().String())
	_, err := a.Call(ctxFor(t, 10*time.Second), b.Self(), "m", nil)
	if !errors.Is(err, ErrNotSent) || !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), string(c.Self())) {
		t.Fatalf("got %v, want that %s answers there", err, c.Self())
	}
	// With the right address beside the wrong one the right one is found.
	a.Learn(b.Self(), b.Addr().String())
	a.Learn(b.Self(), c.Addr().String())
	if _, err := a.Call(ctxFor(t, 10*time.Second), b.Self(), "m", nil); err != nil {
		t.Fatal(err)
	}
}

// The list is asked on both sides: a peer that does not know us, or that we do
// not know, is not reached, and the reason says so.
func TestUntrustedEitherWay(t *testing.T) {
	f, g := newFleet(t), newFleet(t)
	a, b := f.start(nil), g.start(nil)
	know(a, b)
	if _, err := a.Call(ctxFor(t, 5*time.Second), b.Self(), "m", nil); !errors.Is(err, ErrRefused) || !errors.Is(err, ErrNotSent) {
		t.Fatalf("not on our list: %v", err)
	}
	f.set(b.Self(), true)
	_, err := a.Call(ctxFor(t, 5*time.Second), b.Self(), "m", nil)
	if !errors.Is(err, ErrRefused) || !errors.Is(err, ErrNotSent) {
		t.Fatalf("not on the peer's list: %v", err)
	}
}

// T5: a node that is removed from the list loses its open connections, of every
// protocol and in both directions, and gets no new ones.
func TestRecheckClosesOpenConnections(t *testing.T) {
	f := newFleet(t)
	hang := func(ctx context.Context, _ NodeID, method string, _ []byte) ([]byte, error) {
		if method == "hang" {
			<-ctx.Done()
		}
		return nil, nil
	}
	a := f.start(func(c *Config) { c.Handler = hang })
	b := f.start(func(c *Config) { c.Handler = hang })
	know(a, b)
	in, err := dialAccept(t, b, a)
	if err != nil {
		t.Fatal(err)
	}
	out, err := dialAccept(t, a, b)
	if err != nil {
		t.Fatal(err)
	}
	calls := make(chan error, 2)
	for _, m := range [][2]*member{{a, b}, {b, a}} {
		if _, err := m[0].Call(ctxFor(t, 10*time.Second), m[1].Self(), "m", nil); err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := m[0].Call(ctxFor(t, 20*time.Second), m[1].Self(), "hang", nil)
			calls <- err
		}()
	}
	eventually(t, "both calls run", func() bool {
		return running(a.Node, b.Self()) == 1 && running(b.Node, a.Self()) == 1
	})
	f.set(b.Self(), false)
	start := time.Now()
	a.Recheck()
	for range 2 {
		if err := <-calls; !errors.Is(err, ErrConnLost) {
			t.Errorf("a call under way: %v", err)
		}
	}
	for _, c := range []net.Conn{in, out} {
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a Raft connection is still open: %v", err)
		}
	}
	if d := time.Since(start); d > time.Second {
		t.Errorf("closed after %v", d)
	}
	if _, err := b.Call(ctxFor(t, 5*time.Second), a.Self(), "m", nil); err == nil {
		t.Error("a removed node was answered")
	}
}

// dialAccept gives the far end of a Raft connection.
func dialAccept(t *testing.T, from, to *member) (net.Conn, error) {
	got := make(chan error, 1)
	go func() {
		_, err := from.Dial(ctxFor(t, 10*time.Second), to.Self(), ALPNRaft)
		got <- err
	}()
	c, err := to.RaftListener().Accept()
	if err != nil {
		return nil, err
	}
	return c, <-got
}

// Another fleet, and a greeting that the wiring refuses (the era), are refused
// with the reason on both sides.
func TestGreeting(t *testing.T) {
	f := newFleet(t)
	a := f.start(nil)
	other := f.start(func(c *Config) { c.FleetID = "another-fleet" })
	era := f.start(func(c *Config) {
		c.Greeting = func() string { return "era 2" }
		c.CheckGreeting = func(_ NodeID, text string) error {
			if text != "era 2" {
				return errors.New("you are of era " + text)
			}
			return nil
		}
	})
	know(a, other, era)
	_, err := a.Call(ctxFor(t, 5*time.Second), other.Self(), "m", nil)
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "another-fleet") {
		t.Errorf("got %v", err)
	}
	eventually(t, "the other side says why", func() bool { return other.log.count("test-fleet") > 0 })
	_, err = a.Call(ctxFor(t, 5*time.Second), era.Self(), "m", nil)
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "you are of era") {
		t.Errorf("got %v", err)
	}
	_, err = era.Call(ctxFor(t, 5*time.Second), a.Self(), "m", nil)
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "you are of era") {
		t.Errorf("got %v", err)
	}
}

// Who greets tells where it listens: the peer can then dial back.
func TestGreetingTeachesTheAddress(t *testing.T) {
	f := newFleet(t)
	a, b := f.start(nil), f.start(nil)
	a.SetPeer(b.Self(), b.Addr().String())
	if _, err := a.Call(ctxFor(t, 5*time.Second), b.Self(), "m", nil); err != nil {
		t.Fatal(err)
	}
	if out, err := b.Call(ctxFor(t, 5*time.Second), a.Self(), "m", []byte("x")); err != nil || string(out) != "m x" {
		t.Fatalf("got %q, %v", out, err)
	}
}

// A stranger that sends garbage, and one that sends nothing, many times, costs
// one log line, and the fleet goes on.
func TestGarbageOnThePort(t *testing.T) {
	f := newFleet(t)
	a := f.start(func(c *Config) {
		c.HandshakeTimeout = 200 * time.Millisecond
		c.HandshakeLimit = 16
	})
	b := f.start(nil)
	know(a, b)
	const knocks = 30
	for i := range knocks {
		c, err := net.Dial("tcp", a.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if i%2 == 0 {
			_, _ = c.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
		}
	}
	eventually(t, "all are refused", func() bool { return a.Stats().HandshakesRefused >= knocks })
	if n := a.log.count("connection refused"); n != 1 {
		t.Errorf("%d lines about one stranger's handshakes", n)
	}
	if _, err := b.Call(ctxFor(t, 10*time.Second), a.Self(), "m", nil); err != nil {
		t.Fatalf("the fleet does not go on: %v", err)
	}
	a.conns.mu.Lock()
	open := len(a.conns.open)
	a.conns.mu.Unlock()
	if open > 3 {
		t.Errorf("%d connections are kept", open)
	}
}

// A trusted peer that sends nonsense on a stream loses that connection only.
func TestGarbageOnAStream(t *testing.T) {
	f := newFleet(t)
	a, b := f.start(nil), f.start(nil)
	know(a, b)
	for _, bad := range [][]byte{
		{0, 0, 0, 1, 9, 0, 0, 0, 0, 0, 0, 0, 0},
		{0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0, 0, 0, 0, 0},
		{0, 0, 0, 10, kindRequest, 0, 0, 0, 0, 0, 0, 0, 1, 7},
	} {
		c, err := a.dialPeer(ctxFor(t, 5*time.Second), b.Self(), ALPNStream)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(bad); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Errorf("% x: was answered", bad)
		} else if ne, ok := err.(net.Error); ok && ne.Timeout() {
			t.Errorf("% x: the connection stays open", bad)
		}
		c.abort()
	}
	if _, err := a.Call(ctxFor(t, 5*time.Second), b.Self(), "m", nil); err != nil {
		t.Fatal(err)
	}
}
