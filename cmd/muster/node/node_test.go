package node

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
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
	if len(os.Args) > 1 && os.Args[1] == renewKilledVerb {
		fmt.Fprintln(os.Stderr, renewKilled(os.Args[2:]))
		os.Exit(1)
	}
	if len(os.Args) > 2 && os.Args[1] == askVerb {
		_, err := (&api.Client{Socket: os.Args[2]}).Get(context.Background(), "/v1/status", nil)
		fmt.Println("ANSWER", err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// askVerb makes the test binary a program that asks at a socket, and prints the error it gets.
const askVerb = "ask-socket"

// patience bounds every wait of these tests for what must come: it is there so that a hang ends, and is no claim of how
// fast anything is; a busy machine with two processors takes half a minute for what takes a second alone.
const patience = 2 * time.Minute

const shell = `
version: 1
name: default
extends: default
profiles:
  sh: {harness: command, args: [sh, -c, 'sh "$MUSTER_BODY"']}
`

func testConfig(t *testing.T, name string) Config {
	t.Helper()
	cfg := Config{Data: filepath.Join(t.TempDir(), name), Name: name, Binary: os.Args[0], Slots: 8, Labels: map[string]string{"always-on": "true"},
		readWait: patience} // a machine with far more to do than it can is no node that was cut off
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
	ctx, cancel := context.WithTimeout(t.Context(), patience)
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

func toJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// waitStatus waits on the change feed until a card is in a status.
func (n *Node) waitStatus(t *testing.T, card, status string) *board.Card {
	t.Helper()
	sub := n.store.Subscribe(func(tab board.Table, key string) bool { return tab == board.TCard && key == card })
	defer sub.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
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

// Invariant 7, M-32: who is in the minority is told to fetch anew; without a majority nobody is, and everybody is told.
func TestJudgeOfHashes(t *testing.T) {
	for name, tc := range map[string]struct {
		hashes map[string]string
		nodes  int
		odd    string
		split  bool
	}{
		"all agree":                   {map[string]string{"a": "x", "b": "x", "c": "x"}, 3, "", false},
		"one of three":                {map[string]string{"a": "x", "b": "y", "c": "x"}, 3, "b", false},
		"two differ, one unheard":     {map[string]string{"a": "x", "b": "y"}, 3, "", false},
		"two of two":                  {map[string]string{"a": "x", "b": "y"}, 2, "", true},
		"three ways":                  {map[string]string{"a": "x", "b": "y", "c": "z"}, 3, "", true},
		"a majority with one unheard": {map[string]string{"a": "x", "b": "x", "c": "y"}, 4, "", false},
		"the leader itself":           {map[string]string{"leader": "y", "b": "x", "c": "x"}, 3, "leader", false},
	} {
		odd, split := marks{hashes: tc.hashes}.judge(tc.nodes)
		if fmt.Sprint(odd) != fmt.Sprint(strings.Fields(tc.odd)) || split != tc.split {
			t.Errorf("%s: odd %v, split %v; want %q, %v", name, odd, split, tc.odd, tc.split)
		}
	}
}

// M-32: a node whose log is gone comes back under a new store id, fetches all of it and votes again; its node id and key stay.
func TestLostLogRejoins(t *testing.T) {
	a := open(t, testConfig(t, "atlas"))
	a.testDo(t, board.VBoardApply, board.BoardApply{Board: "default", YAML: shell})
	tok, terr := backend{a}.NewToken(t.Context(), board.Actor{Kind: board.ActorPerson, Name: "ann", Node: string(a.ident.ID)}, api.TokenOptions{Role: "node", TTL: 600})
	if terr != nil {
		t.Fatal(terr)
	}
	cfg := testConfig(t, "borea")
	cfg.Token = tok.Token
	b := open(t, cfg)
	card := b.testAdd(t, "before", "true")
	b.waitStatus(t, card, "done")
	id, store := b.ident.ID, b.mem.Store
	b.Close()
	if err := os.RemoveAll(filepath.Join(cfg.Data, "raft")); err != nil {
		t.Fatal(err)
	}
	cfg.Token = ""
	b = open(t, cfg)
	if b.ident.ID != id || b.mem.Store == store {
		t.Fatalf("node %s store %s; want node %s and another store than %s", b.ident.ID, b.mem.Store, id, store)
	}
	b.waitStatus(t, card, "done")
	b.waitStatus(t, b.testAdd(t, "after", "true"), "done")
	for _, s := range a.store.Servers() {
		if s.ID == string(id)+"/"+store {
			t.Fatalf("the lost store %s is still a member", s.ID)
		}
	}
}

// A leader that hears a minority's hash tells that node to fetch anew, and the node does (architecture.md §2).
func TestOddStateIsFetchedAnew(t *testing.T) {
	a := open(t, testConfig(t, "atlas"))
	for tick := time.NewTicker(5 * time.Millisecond); a.lease.loop() == nil; { // its term begins with no marks
		<-tick.C
	}
	a.lease.mu.Lock()
	a.lease.marks = marks{at: 1, hashes: map[string]string{"x": "00", "y": "00", string(a.ident.ID): "00"}}
	a.lease.mu.Unlock()
	ans, err := a.lease.contact(t.Context(), string(a.ident.ID), contactMsg{MarkAt: 1, Mark: "ff", Generation: a.mem.Generation})
	if err != nil || !ans.Odd {
		t.Fatalf("a contact with another hash was answered %+v (%v), want odd", ans, err)
	}
	if got := a.lease.diverged(); len(got) != 1 || !strings.Contains(got[0], "atlas") {
		t.Errorf("alarms are %q, want one that names atlas", got)
	}
	a.odd()
	<-a.Done()
	if !a.Again() || a.mem.Rebuild == "" || a.mem.Refetch != "" {
		t.Fatal("the node did not stop to make its state anew")
	}
	a.mem.Odd = true // it was rebuilt once: if it is odd again, its own snapshot holds what is wrong
	a.odd()
	if a.mem.Refetch == "" {
		t.Error("odd a second time, the node does not take a new store id")
	}
}

func joinToken(t *testing.T, n *Node) string {
	t.Helper()
	tok, err := backend{n}.NewToken(t.Context(), board.Actor{Kind: board.ActorPerson, Name: "ann", Node: string(n.ident.ID)}, api.TokenOptions{Role: "node", TTL: 600})
	if err != nil {
		t.Fatal(err)
	}
	return tok.Token
}
