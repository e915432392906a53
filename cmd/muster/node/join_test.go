package node

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"muster/board"
	"muster/cmd/muster/api"
)

func (n *Node) joinToken(t *testing.T, uses int64) string {
	t.Helper()
	tok, err := backend{n}.NewToken(t.Context(), board.Actor{Kind: board.ActorPerson, Name: "ann", Node: string(n.ident.ID)}, api.TokenOptions{Role: "node", TTL: 600, Uses: uses})
	if err != nil {
		t.Fatal(err)
	}
	return tok.Token
}

// Two machines that join at once are both let in: the commit of one leaves the other's
// question at the door alone.
func TestTwoJoinAtOnce(t *testing.T) {
	a := open(t, testConfig(t, "atlas"))
	for round := range 10 {
		tok := a.joinToken(t, 2)
		var cfgs []Config
		for i := range 2 {
			c := testConfig(t, fmt.Sprintf("n%d-%d", round, i))
			c.Token, c.Replica = tok, true
			cfgs = append(cfgs, c)
		}
		for _, n := range openAll(t, cfgs...) {
			n.Close()
		}
	}
}

// The first answer of a join is lost after the fleet has let the machine in and the token is
// used up: the machine asks again, and is let in.
func TestLostJoinAnswer(t *testing.T) {
	a := open(t, testConfig(t, "atlas"))
	cfg := testConfig(t, "borea")
	cfg.Token, cfg.Replica = a.joinToken(t, 1), true
	lost := make(chan struct{}, 1)
	lost <- struct{}{}
	serve := a.door.Handler
	a.door.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-lost:
			serve.ServeHTTP(deaf{w.Header()}, r)
			panic(http.ErrAbortHandler) // the connection is cut instead of the answer
		default:
			serve.ServeHTTP(w, r)
		}
	})
	b := open(t, cfg)
	a.until(t, "borea is heard of", func() bool { return a.lease.State(string(b.ident.ID)).State == board.NodeOnline })
}

type deaf struct{ h http.Header }

func (d deaf) Header() http.Header         { return d.h }
func (d deaf) Write(p []byte) (int, error) { return len(p), nil }
func (d deaf) WriteHeader(int)             {}

// Where nobody listens there is nothing to wait for.
func TestNobodyToJoin(t *testing.T) {
	a := open(t, testConfig(t, "atlas"))
	cfg := testConfig(t, "borea")
	cfg.Token = a.joinToken(t, 1)
	a.Close()
	n, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), joinTime)
	defer cancel()
	if err := n.Open(ctx); board.CodeOf(err) != board.Unavailable || ctx.Err() != nil {
		t.Errorf("%v", err)
	}
}
