package node

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/mesh"
)

// joined opens another node of a's fleet.
func (n *Node) joined(t *testing.T, name string, with func(*Config)) *Node {
	t.Helper()
	tok, terr := backend{n}.NewToken(t.Context(), board.Actor{Kind: board.ActorPerson, Name: "ann", Node: string(n.ident.ID)}, api.TokenOptions{Role: "node", TTL: 600, Uses: 1})
	if terr != nil {
		t.Fatal(terr)
	}
	cfg := testConfig(t, name)
	cfg.Token = tok.Token
	if with != nil {
		with(&cfg)
	}
	return open(t, cfg)
}

// until looks whenever the node list or the fleet's record has changed in n's state.
func (n *Node) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not within two minutes: %s", what)
		}
	}
}

func (n *Node) key() []byte {
	if k := n.gossip.Load(); k != nil {
		return *k
	}
	return nil
}

// T5, invariant 23: at the commit of its removal a machine's connections end and
// its key opens nothing any more; gossip gets a key that it does not know. A join on
// its folder brings it back under its own id.
func TestRemovedNode(t *testing.T) {
	a := open(t, testConfig(t, "atlas"))
	b := a.joined(t, "borea", func(c *Config) { c.Replica = true })
	was := a.key()
	a.until(t, "borea is heard of", func() bool { return a.lease.State(string(b.ident.ID)).State == board.NodeOnline })
	raw, err := b.mesh.Dial(t.Context(), a.ident.ID, mesh.ALPNStream)
	if err != nil {
		t.Fatal(err)
	}
	a.testDo(t, board.VNodeRemove, board.NodeRemove{Node: "borea"})
	_ = raw.SetReadDeadline(time.Now().Add(10 * time.Second))
	var late net.Error
	if _, err := raw.Read(make([]byte, 1)); err == nil || errors.As(err, &late) && late.Timeout() {
		t.Errorf("the open connection lives on: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if c, err := b.mesh.Dial(ctx, a.ident.ID, mesh.ALPNRaft); err == nil {
		c.Close()
		t.Error("a removed machine is let in")
	}
	a.until(t, "gossip has another key", func() bool { return !bytes.Equal(a.key(), was) })
	if len(a.gossipKeys()) != 1 {
		t.Error("the key that a removed machine knows still counts")
	}
	if bytes.Equal(b.key(), a.key()) {
		t.Error("the removed machine knows the new key")
	}
	b.until(t, "the removed machine is told", func() bool { return b.removed.Load() != nil })
	sock, _ := b.sockets()
	s, serr := api.Decode[api.Status]((&api.Client{Socket: sock}).Get(t.Context(), "/v1/status", nil))
	if serr != nil || s.Removed == "" || strings.Contains(strings.Join(slices.Concat(s.Alarms, s.Notes), " "), "muster recover") {
		t.Errorf("status of a removed machine: %+v %v", s, serr)
	}
	w := httptest.NewRecorder()
	b.door.Handler.ServeHTTP(w, httptest.NewRequest("GET", "/v1/cards", nil))
	if w.Code != 403 || !strings.Contains(w.Body.String(), "was removed from the fleet") {
		t.Errorf("a call at the door of a removed machine: %d %s", w.Code, w.Body)
	}
	id, folder := b.ident.ID, b.cfg.Data
	b.Close()
	back := a.joined(t, "borea", func(c *Config) { c.Data = folder })
	if back.ident.ID != id {
		t.Errorf("it came back as %s", back.ident.ID)
	}
	a.until(t, "it is here again, with the new key", func() bool {
		return a.lease.State(string(id)).State == board.NodeOnline && bytes.Equal(back.key(), a.key())
	})
}

// A step of membership that fails again and again, of another machine, keeps no valid key with one that was removed.
func TestGossipRotatesWhileAStepFails(t *testing.T) {
	cfg := testConfig(t, "atlas")
	failed := make(chan struct{}, 1)
	cfg.step = func(what string) error {
		if what != "promote" {
			return nil
		}
		select {
		case failed <- struct{}{}:
		default:
		}
		return errors.New("it fails always")
	}
	a := open(t, cfg)
	b := a.joined(t, "borea", func(c *Config) { c.Replica = true })
	for _, name := range []string{"cleo", "dora"} {
		a.joined(t, name, nil)
		a.testDo(t, board.VNodeVote, board.NodeVote{Node: name, Vote: true})
	}
	a.until(t, "borea is heard of", func() bool { return a.lease.State(string(b.ident.ID)).State == board.NodeOnline })
	select {
	case <-failed:
	case <-time.After(patience):
		t.Fatal("no step fails")
	}
	was := a.key()
	a.testDo(t, board.VNodeRemove, board.NodeRemove{Node: "borea"})
	a.until(t, "gossip has another key", func() bool { return !bytes.Equal(a.key(), was) })
}

// A machine that knows nobody any more where it knew them is introduced by a token, which
// is not used up: it is in the list. A token of another fleet changes nothing.
func TestIntroducedAnew(t *testing.T) {
	a := open(t, testConfig(t, "atlas"))
	b := a.joined(t, "borea", func(c *Config) { c.Replica = true })
	a.until(t, "borea is heard of", func() bool { return a.lease.State(string(b.ident.ID)).State == board.NodeOnline })
	b.Close()
	ac := a.cfg
	a.Close()
	ac.Listen, ac.Token = "127.0.0.1:0", ""
	a = open(t, ac) // at another address, and borea does not hear of it
	bc := b.cfg
	stranger := open(t, testConfig(t, "other"))
	st, terr := backend{stranger}.NewToken(t.Context(), board.Actor{Kind: board.ActorPerson, Name: "ann", Node: string(stranger.ident.ID)}, api.TokenOptions{Role: "node", TTL: 600})
	if terr != nil {
		t.Fatal(terr)
	}
	bc.Token = st.Token
	if n, err := New(bc); err != nil {
		t.Fatal(err)
	} else if err := n.Open(t.Context()); board.CodeOf(err) != board.Refused {
		t.Errorf("a token of another fleet: %v", err)
	}
	tok, terr := backend{a}.NewToken(t.Context(), board.Actor{Kind: board.ActorPerson, Name: "ann", Node: string(a.ident.ID)}, api.TokenOptions{Role: "node", TTL: 600, Uses: 1})
	if terr != nil {
		t.Fatal(terr)
	}
	bc.Token = tok.Token
	b = open(t, bc)
	a.until(t, "borea is back", func() bool {
		return a.lease.State(string(b.ident.ID)).State == board.NodeOnline && b.named.Load() == nil
	})
	_ = a.store.View(func(v board.View) error {
		if k := board.GetToken(v, board.HashSecret(mustToken(t, tok.Token).Secret)); k == nil || k.Uses != 1 {
			t.Errorf("the token was used: %+v", k)
		}
		return nil
	})
}

func mustToken(t *testing.T, s string) *Token {
	t.Helper()
	k, err := ParseToken(s)
	if err != nil {
		t.Fatal(err)
	}
	return k
}
