package node

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/launcher"
	"muster/mesh"
)

// lines is a log that can be read while it is written.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// count is how many lines hold all of the words.
func (l *lines) count(words ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
next:
	for line := range strings.Lines(l.buf.String()) {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue next
			}
		}
		n++
	}
	return n
}

// stranger is a fleet of one and what somebody who is not of it, or not any more, has in hand.
type stranger struct {
	t   *testing.T
	a   *Node
	log *lines
}

// knock does a handshake with a key, as who comes from an address of its own, and reads a byte: in TLS 1.3 a client
// learns of its refusal only then.
func (s *stranger) knock(from string, key ed25519.PrivateKey) error {
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		s.t.Fatal(err)
	}
	d := tls.Dialer{NetDialer: &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 20 * time.Second}, Config: &tls.Config{
		MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, NextProtos: []string{mesh.ALPNStream},
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}}
	c, err := d.DialContext(s.t.Context(), "tcp", s.a.mesh.Addr().String())
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	_, err = c.Read(make([]byte, 1))
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		return nil // it was let in, and nobody said anything
	}
	return err
}

func (s *stranger) newKey() ed25519.PrivateKey {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	return key
}

func (s *stranger) token(o api.TokenOptions) string {
	s.t.Helper()
	o.TTL = 600
	tok, err := backend{s.a}.NewToken(s.t.Context(), board.Actor{Kind: board.ActorPerson, Name: "ann", Node: string(s.a.ident.ID)}, o)
	if err != nil {
		s.t.Fatal(err)
	}
	return tok.Token
}

// door asks at the door for other machines, with a token's secret.
func (s *stranger) door(token string) *api.Client {
	s.t.Helper()
	tok, err := ParseToken(token)
	if err != nil {
		s.t.Fatal(err)
	}
	return &api.Client{Auth: "Bearer " + tok.Secret, Dial: func(ctx context.Context) (net.Conn, error) {
		return mesh.DialDoor(ctx, nil, s.a.mesh.Addr().String(), func(mesh.NodeID) error { return nil })
	}}
}

// add files a card for this machine.
func (s *stranger) add(title, script string) string {
	s.t.Helper()
	who := "sh"
	return s.a.testDo(s.t, board.VCardAdd, board.CardAdd{CardFields: board.CardFields{Title: &title, Body: &script, Assignee: &who, Machine: &s.a.cfg.Name}})["id"].(string)
}

// pastRun is a run that is over, and its secret.
func (s *stranger) pastRun() (card, run, secret string) {
	s.t.Helper()
	go_ := filepath.Join(s.t.TempDir(), "go")
	card = s.add("a run", "while [ ! -e "+go_+" ]; do sleep 0.05; done")
	run = card + ".1"
	dir := filepath.Join(s.a.cfg.Data, "runs", run)
	s.a.until(s.t, "the run has its secret", func() bool {
		x, err := launcher.ReadSecret(dir)
		if err == nil {
			secret = x.Secret
		}
		return err == nil
	})
	if err := os.WriteFile(go_, nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.a.waitStatus(s.t, card, "done")
	return card, run, secret
}

// asOther is what another user's program gets at the user's socket, though its mode lets everybody in.
func (s *stranger) asOther() error {
	dir := s.t.TempDir()
	bin := filepath.Join(dir, "ask")
	b, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(bin, b, 0o755)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	sock, _ := s.a.sockets()
	for _, path := range []string{dir, filepath.Dir(dir), s.a.cfg.Data, filepath.Dir(s.a.cfg.Data), filepath.Dir(filepath.Dir(s.a.cfg.Data))} {
		if err := os.Chmod(path, 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := os.Chmod(sock, 0o777); err != nil { // whatever its mode has become
		s.t.Fatal(err)
	}
	defer os.Chmod(s.a.cfg.Data, 0o700)
	c := exec.Command(bin, askVerb, sock)
	c.Dir, c.SysProcAttr = dir, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := c.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
	return answered(out)
}

// asSession is what a session's program gets there.
func (s *stranger) asSession() error {
	out := filepath.Join(s.t.TempDir(), "out")
	sock, _ := s.a.sockets()
	s.a.waitStatus(s.t, s.add("a curious session", os.Args[0]+" "+askVerb+" "+sock+" > "+out), "done")
	b, err := os.ReadFile(out)
	if err != nil {
		s.t.Fatal(err)
	}
	return answered(b)
}

func answered(out []byte) error {
	if _, text, ok := strings.Cut(string(out), "ANSWER "); ok && !strings.HasPrefix(text, "<nil>") {
		return errors.New(strings.TrimSpace(text))
	}
	return nil
}

// Invariants 23, 24: whoever is not of the fleet, not any more, or not what it takes, is refused; each refusal is counted by its
// kind, and a line of the log tells of it.
func TestStrangersView(t *testing.T) {
	s := &stranger{t: t, log: &lines{}}
	cfg := testConfig(t, "atlas")
	cfg.Logger = slog.New(slog.NewTextHandler(s.log, nil))
	s.a = open(t, cfg)
	s.a.testDo(t, board.VBoardApply, board.BoardApply{Board: "default", YAML: shell})
	joined := s.token(api.TokenOptions{Role: "node", Uses: 1})
	replica := open(t, withToken(testConfig(t, "borea"), joined))
	gone := s.a.joined(t, "cleo", func(c *Config) { c.Replica = true })
	s.a.until(t, "cleo is heard of", func() bool { return s.a.lease.State(string(gone.ident.ID)).State == board.NodeOnline })
	s.a.testDo(t, board.VNodeRemove, board.NodeRemove{Node: "cleo"})
	revoked := s.token(api.TokenOptions{Role: "manager", Name: "eve"})
	tok, err := ParseToken(revoked)
	if err != nil {
		t.Fatal(err)
	}
	s.a.testDo(t, board.VTokenRevoke, board.TokenRevoke{ID: board.HashSecret(tok.Secret)})
	viewer, member := s.token(api.TokenOptions{Role: "viewer", Name: "vic"}), s.token(api.TokenOptions{Role: "member", Name: "mem"})
	card, run, secret := s.pastRun()
	_, sessions := s.a.sockets()
	title, notRoot := "by a viewer", ""
	if os.Getuid() != 0 {
		notRoot = "needs root: to be another user of the machine"
	}

	for name, tc := range map[string]struct {
		kind string
		try  func() error
		skip string
	}{
		"a key that nobody listed": {"handshake", func() error { return s.knock("127.0.0.2", s.newKey()) }, ""},
		"a node of another fleet": {"handshake", func() error {
			other := open(t, testConfig(t, "other"))
			return s.knock("127.0.0.3", keyOf(t, other))
		}, ""},
		"a removed node": {"handshake", func() error { return s.knock("127.0.0.4", keyOf(t, gone)) }, ""},
		"a token that was used up": {board.CheckToken, func() error {
			n, err := New(withToken(testConfig(t, "dione"), joined))
			if err != nil {
				return err
			}
			defer n.Close()
			return n.Open(t.Context())
		}, ""},
		"a token that was revoked": {board.CheckToken, func() error {
			_, err := s.door(revoked).Get(t.Context(), "/v1/status", nil)
			return err
		}, ""},
		"a viewer's write": {board.CheckRole, func() error {
			_, err := s.door(viewer).Do(t.Context(), board.VCardAdd, board.CardAdd{CardFields: board.CardFields{Title: &title}}, s.a.MintID(), false)
			return err
		}, ""},
		"a member's manager verb": {board.CheckRole, func() error {
			_, err := s.door(member).Do(t.Context(), board.VNodeRemove, board.NodeRemove{Node: "borea"}, s.a.MintID(), false)
			return err
		}, ""},
		"a run's secret after the run": {board.CheckSecret, func() error {
			c := &api.Client{Socket: sessions, Auth: "Run " + run + ":" + secret}
			_, err := c.Do(t.Context(), board.VEvent, board.FireEvent{Card: card, Event: "comment"}, s.a.MintID(), false)
			return err
		}, ""},
		"a replica that speaks for the fleet": {board.CheckSpeaker, func() error {
			b, err := replica.mesh.Call(t.Context(), s.a.ident.ID, "do", board.EncodeRequest(&board.Request{ID: s.a.MintID(), Verb: board.VBarrier, Actor: board.Actor{Kind: board.ActorPlatform}}))
			if err != nil {
				t.Fatal(err)
			}
			res, err := board.DecodeResult(b)
			if err != nil {
				t.Fatal(err)
			}
			if res.Err == nil {
				return nil
			}
			return res.Err
		}, ""},
		"another user of the machine":    {board.CheckUser, s.asOther, notRoot},
		"a session at the user's socket": {board.CheckSocket, s.asSession, ""},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			if tc.skip != "" {
				t.Skip(tc.skip)
			}
			words := []string{"msg=denied", "kind=" + tc.kind}
			if tc.kind == "handshake" {
				words = []string{`msg="connection refused"`}
			}
			counted, logged := backend{s.a}.Counters()["denied_"+tc.kind], s.log.count(words...)
			err := tc.try()
			if err == nil {
				t.Fatal("let in")
			}
			s.a.until(t, "it is counted, and a line tells of it", func() bool {
				return backend{s.a}.Counters()["denied_"+tc.kind] > counted && s.log.count(words...) > logged
			})
			t.Log(err)
		})
	}
}

func withToken(c Config, token string) Config {
	c.Token, c.Replica = token, true
	return c
}

// keyOf is the key of a node, as who copied its file has it.
func keyOf(t *testing.T, n *Node) ed25519.PrivateKey {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(n.cfg.Data, "node.key"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(b)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return key.(ed25519.PrivateKey)
}
