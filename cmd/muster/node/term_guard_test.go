package node

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/board"
	"muster/cmd/muster/tty"
)

// sightT is what somebody sees; told is closed when a text was there.
type sightT struct {
	mu   sync.Mutex
	all  strings.Builder
	want string
	told chan struct{}
}

func (s *sightT) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.Write(b)
	if s.want != "" && strings.Contains(s.all.String(), s.want) {
		close(s.told)
		s.want = ""
	}
	return len(b), nil
}

func (s *sightT) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.String()
}

// openPlain opens a node whose shells read nobody's own start files: those may wait for anything.
func openPlain(t *testing.T) *Node {
	t.Helper()
	t.Setenv("SHELL", "/bin/sh")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("ENV", "")
	return open(t, testConfig(t, "atlas"))
}

// shellT opens a real shell on n for who asks, types into it, and waits until it has answered. Its
// link's end comes over the channel.
func (n *Node) shellT(t *testing.T, a tty.Ask) <-chan error {
	t.Helper()
	a.Shell, a.Size = true, tty.Size{Cols: 80, Rows: 24}
	near, far := net.Pipe()
	n.spawn(func() { n.hostTerm(n.ident.ID, far) })
	if _, err := tty.Request(near, a, patience); err != nil {
		t.Fatalf("%+v: %v", a, err)
	}
	link, s, end := tty.NewLink(near), &sightT{want: "hi-2", told: make(chan struct{})}, make(chan error, 1)
	go func() { end <- link.Run(context.Background(), s) }()
	t.Cleanup(link.Leave)
	link.Type([]byte("echo hi-$((1+1))\r"))
	select {
	case <-s.told:
	case err := <-end:
		t.Fatalf("it ended: %v", err)
	case <-time.After(20 * time.Second):
		t.Fatalf("the shell does not answer; on its screen: %q", s.text())
	}
	return end
}

// An open look ends when what let it in does: the token, its time, the role of the machine's people, and
// what this machine's own file says.
func TestRightsEndAnOpenLook(t *testing.T) {
	n := openPlain(t)
	token := func(secret string, ttl int64) tty.Ask {
		n.testDo(t, board.VTokenCreate, board.TokenCreate{ID: board.HashSecret(secret), Role: "manager", TTL: ttl})
		return tty.Ask{ID: secret, Name: "token", Secret: secret}
	}
	other := n.shellT(t, token("other", 3600))
	for _, c := range []struct {
		name string
		ask  tty.Ask
		ends func()
		says string
	}{
		{"revoked", token("one", 3600), func() { n.testDo(t, board.VTokenRevoke, board.TokenRevoke{ID: board.HashSecret("one")}) }, "not known"},
		{"ended", token("two", 4), func() {}, ""}, // "has ended", or swept away at that time: not known
		{"own file", tty.Ask{ID: "ann", Name: "ann"}, func() {
			if err := os.WriteFile(n.dir.path(ownFile), []byte("attach: none\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "attach: none"},
	} {
		end := n.shellT(t, c.ask)
		if c.name == "own file" {
			select {
			case err := <-other:
				t.Errorf("one whose rights are as they were was ended: %v", err)
			default:
			}
		}
		c.ends()
		select {
		case err := <-end:
			var e *tty.End
			if !errors.As(err, &e) || e.Code != string(board.Refused) || e.Again || !strings.Contains(e.Text, c.says) {
				t.Errorf("%s: ended with %v, %+v", c.name, err, e)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%s: it goes on", c.name)
		}
	}
}

// A machine's people who may only look on from now on are asked to look anew, as such; who may not at all, is told.
func TestRoleEndsAnOpenLook(t *testing.T) {
	n := openPlain(t)
	n.testDo(t, board.VTokenCreate, board.TokenCreate{ID: board.HashSecret("boss"), Role: "manager", TTL: 3600})
	cfg := testConfig(t, "borea") // somebody must manage the fleet
	cfg.Token = joinToken(t, n)
	open(t, cfg)
	a := &tty.Ask{Name: "ann", Run: "d-1.1"}
	ends := make(chan *tty.End, 1)
	end := func() *tty.End {
		t.Helper()
		select {
		case e := <-ends:
			return e
		case <-time.After(30 * time.Second):
			t.Fatal("it goes on")
			return nil
		}
	}
	go func() { ends <- n.guard(t.Context(), n.ident.ID, a, &tty.Opened{Who: "ann@atlas"}) }()
	set := func(local string) {
		t.Helper()
		raw := toJSON(t, board.NodeSet{Node: "atlas", Local: local})
		res := n.Do(t.Context(), board.Request{ID: n.MintID(), Actor: board.Actor{Kind: board.ActorPerson, Name: "boss", Node: string(n.ident.ID)}, Secret: "boss", Verb: board.VNodeSet, Args: []byte(raw)})
		if res.Err != nil {
			t.Fatal(res.Err)
		}
	}
	set("member")
	if e := end(); e == nil || e.Code != "changed" || !e.Again {
		t.Errorf("a member who typed: %+v", e)
	}
	go func() { ends <- n.guard(t.Context(), n.ident.ID, a, &tty.Opened{Who: "ann@atlas", ReadOnly: true}) }()
	set("none")
	if e := end(); e == nil || e.Code != string(board.Refused) || e.Again {
		t.Errorf("one who may nothing: %+v", e)
	}
	n.denials.mu.Lock()
	defer n.denials.mu.Unlock()
	if n.denials.counts[board.CheckRole] != 1 {
		t.Errorf("denials: %v", n.denials.counts)
	}
}

// A machine shows so many terminals at a time, and says so to who asks for one more; who leaves makes room.
func TestTerminalsAreBounded(t *testing.T) {
	n := openPlain(t)
	n.termsOpen.Store(termsAtOnce - 1) // all but one are others'
	end := n.shellT(t, tty.Ask{ID: "last", Name: "ann"})
	near, far := net.Pipe()
	n.spawn(func() { n.hostTerm(n.ident.ID, far) })
	if _, err := tty.Request(near, tty.Ask{Name: "ann", Shell: true}, patience); err == nil || !strings.Contains(err.Error(), "64 terminals already") {
		t.Errorf("one more: %v", err)
	}
	n.cancel(errClosed)
	<-end
	n.tasks.Wait()
	if open := n.termsOpen.Load(); open != termsAtOnce-1 {
		t.Errorf("%d terminals are counted, and %d are open", open, termsAtOnce-1)
	}
}

// countC counts how often a connection is closed.
type countC struct {
	net.Conn
	closed chan struct{}
}

func (c *countC) Close() error { c.closed <- struct{}{}; return nil }

// A connection that is closed is nothing to its node any more.
func TestClosedTerminalIsForgotten(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	gone, open := &countC{closed: make(chan struct{}, 9)}, &countC{closed: make(chan struct{}, 9)}
	c := endsWith(ctx, gone)
	endsWith(ctx, open)
	_ = c.Close()
	if c.forget() {
		t.Error("the node keeps a connection that was closed")
	}
	cancel()
	<-open.closed
	if n := len(gone.closed); n != 1 {
		t.Errorf("closed %d times", n)
	}
}
