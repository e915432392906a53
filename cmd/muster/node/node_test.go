package node

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/launcher"
)

// The test binary is the muster binary of its keepers.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == launcher.KeepVerb {
		if err := launcher.Keep(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const shell = `
version: 1
name: default
extends: default
profiles:
  sh: {harness: command, args: [sh, -c, 'sh "$MUSTER_BODY"']}
`

func testConfig(t *testing.T, name string) Config {
	t.Helper()
	cfg := Config{Data: filepath.Join(t.TempDir(), name), Name: name, Binary: os.Args[0], Slots: 8, Labels: map[string]string{"always-on": "true"}}
	if testing.Verbose() {
		cfg.Logger = slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelInfo})).With("node", name)
	}
	return cfg
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	fmt.Fprint(os.Stderr, string(p))
	return len(p), nil
}

func open(t *testing.T, cfg Config) *Node {
	t.Helper()
	n, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

func (n *Node) testDo(t *testing.T, verb string, args any) map[string]any {
	t.Helper()
	b, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	res := n.Do(ctx, board.Request{ID: n.MintID(), Actor: board.Actor{Kind: board.ActorPerson, Name: "ann@" + n.cfg.Name, Node: string(n.ident.ID)}, Verb: verb, Args: b})
	if res.Err != nil {
		t.Fatalf("%s: %v", verb, res.Err)
	}
	m := map[string]any{}
	_ = json.Unmarshal(res.Data, &m)
	return m
}

func (n *Node) testAdd(t *testing.T, title, body string, after ...string) string {
	t.Helper()
	who := "sh"
	return n.testDo(t, board.VCardAdd, board.CardAdd{After: after, CardFields: board.CardFields{Title: &title, Body: &body, Assignee: &who}})["id"].(string)
}

// waitStatus waits on the change feed until a card is in a status.
func (n *Node) waitStatus(t *testing.T, card, status string) *board.Card {
	t.Helper()
	sub := n.store.Subscribe(func(tab board.Table, key string) bool { return tab == board.TCard && key == card })
	defer sub.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		var c *board.Card
		_ = n.store.View(func(v board.View) error { c = board.GetCard(v, card); return nil })
		if c != nil && c.Status == status {
			return c
		}
		select {
		case <-sub.C:
			sub.Take()
		case <-ctx.Done():
			why, _ := n.why(card)
			b, _ := json.Marshal(why)
			t.Fatalf("card %s is %+v, want %s; why: %s", card, c, status, b)
		}
	}
}

// One node from nothing: the first up makes a fleet and the board `default`; a card runs and is done.
func TestOneNodeRunsACard(t *testing.T) {
	n := open(t, testConfig(t, "atlas"))
	n.testDo(t, board.VBoardApply, board.BoardApply{Board: "default", YAML: shell})
	out := filepath.Join(t.TempDir(), "out")
	card := n.testAdd(t, "hello", "echo $MUSTER_RUN > "+out)
	n.waitStatus(t, card, "done")
	if b, err := os.ReadFile(out); err != nil || string(b) != card+".1\n" {
		t.Fatalf("the session wrote %q (%v)", b, err)
	}
}

// Three nodes: joined by one string; a card filed at each is done, wherever it runs.
func TestThreeNodes(t *testing.T) {
	a := open(t, testConfig(t, "atlas"))
	a.testDo(t, board.VBoardApply, board.BoardApply{Board: "default", YAML: shell})
	tok, err := backend{a}.NewToken(t.Context(), board.Actor{Kind: board.ActorPerson, Name: "ann", Node: string(a.ident.ID)}, api.TokenOptions{Role: "node", TTL: 600})
	if err != nil {
		t.Fatal(err)
	}
	nodes := []*Node{a}
	for _, name := range []string{"borea", "cleo"} {
		cfg := testConfig(t, name)
		cfg.Token = tok.Token
		nodes = append(nodes, open(t, cfg))
	}
	for i, n := range nodes {
		card := n.testAdd(t, fmt.Sprint("card ", i), "true")
		a.waitStatus(t, card, "done")
		n.waitStatus(t, card, "done")
	}
}
