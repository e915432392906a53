package node

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/board"
	"muster/raftstore"
)

// copyFolder is what `cp -a` makes of a node's folder while it runs, without the sockets.
func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-pPR", from, to).CombinedOutput(); err != nil && !strings.Contains(string(out), "sock") {
		t.Fatalf("cp: %v: %s", err, out)
	}
	socks, _ := filepath.Glob(filepath.Join(to, "*.sock"))
	for _, s := range socks {
		if err := os.Remove(s); err != nil {
			t.Fatal(err)
		}
	}
}

// restarted is the config of a node that was started before.
func (n *Node) restarted() Config {
	cfg := n.cfg
	cfg.Token, cfg.Listen = "", ""
	return cfg
}

// openAll starts nodes beside each other: none of them leads without another.
func openAll(t *testing.T, cfgs ...Config) (nodes []*Node) {
	t.Helper()
	got := make(chan error, len(cfgs))
	for _, cfg := range cfgs {
		n, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { n.Close() })
		nodes = append(nodes, n)
		go func() { got <- n.Open(t.Context()) }()
	}
	for range cfgs {
		if err := <-got; err != nil {
			t.Fatal(err)
		}
	}
	return nodes
}

// until waits for what no feed tells.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(40 * time.Second); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("timed out: %s", what)
		}
	}
}

// whole is a folder's own files, to see that nothing was touched.
func whole(t *testing.T, dir string) (all string) {
	t.Helper()
	for _, name := range []string{"node.json", "node.key", filepath.Join("raft", "mark")} {
		b, _ := os.ReadFile(filepath.Join(dir, name))
		all += name + ":" + string(b) + "\n"
	}
	list, _ := filepath.Glob(filepath.Join(dir, "raft*"))
	return all + strings.Join(list, " ")
}

// M-32: nobody votes with lost state. A voter's folder is put back from a copy of the same start, and the voter that saw
// nothing of what was acknowledged in between comes up with it: the two elect nobody, the third has it all, and the copy
// comes back under a new store id, votes again, and says so.
func TestAFolderPutBackLosesNothing(t *testing.T) {
	nodes := threeVoters(t)
	a, b, c := nodes[0], nodes[1], nodes[2]
	kept := c.cfg.Data + ".copy"
	copyFolder(t, c.cfg.Data, kept)
	store, journal := c.mem.Store, c.launch.JournalID()
	b.Close()
	var cards []string
	for range 13 {
		title := "acknowledged"
		cards = append(cards, a.testDo(t, board.VCardAdd, board.CardAdd{Triage: true, CardFields: board.CardFields{Title: &title}})["id"].(string))
	}
	c.waitStatus(t, cards[12], "triage")
	c.Close()
	a.Close()
	for _, mv := range [][2]string{{c.cfg.Data, c.cfg.Data + ".dead"}, {kept, c.cfg.Data}} {
		if err := os.Rename(mv[0], mv[1]); err != nil {
			t.Fatal(err)
		}
	}
	nodes = openAll(t, a.restarted(), b.restarted(), c.restarted())
	a, c = nodes[0], nodes[2]
	for _, n := range nodes {
		for _, card := range cards {
			n.waitStatus(t, card, "triage")
		}
	}
	if c.mem.Store == store {
		t.Error("the copy came back under its old store id: it votes with lost state")
	}
	if c.launch.JournalID() == journal {
		t.Error("the copy goes on with its journal: the fleet takes its reports for ones it has")
	}
	until(t, "three voters again", func() bool {
		voters := 0
		for _, s := range a.store.Servers() {
			if s.Voter && !strings.HasSuffix(s.ID, store) {
				voters++
			}
		}
		return voters == 3
	})
	until(t, "an alarm at another node", func() bool {
		alarms := strings.Join((backend{a}).Readings(t.Context()).Alarms, "\n")
		return strings.Contains(alarms, "cleo gave up its vote") && strings.Contains(alarms, "is a copy, or was put back") && strings.Contains(alarms, "raft.aside1")
	})
}

// M-32: the only voter goes on with a copy, under its store id, and says so; a folder that was only moved is none.
func TestACopyOfAFleetOfOneGoesOn(t *testing.T) {
	a := open(t, testConfig(t, "atlas"))
	a.testDo(t, board.VBoardApply, board.BoardApply{Board: "default", YAML: shell})
	card := a.testAdd(t, "before", "true")
	a.waitStatus(t, card, "done")
	a.Close()
	cfg := a.restarted()
	cfg.Data += ".moved"
	if err := os.Rename(a.cfg.Data, cfg.Data); err != nil {
		t.Fatal(err)
	}
	b := open(t, cfg)
	b.waitStatus(t, card, "done")
	if got := b.ownAlarms(); len(got) > 0 {
		t.Errorf("a moved folder is called a copy: %q", got)
	}
	b.Close()
	copyFolder(t, cfg.Data, cfg.Data+".copy")
	cfg.Data += ".copy"
	for start := range 2 {
		c := open(t, cfg)
		c.waitStatus(t, card, "done")
		c.waitStatus(t, c.testAdd(t, "after", "true"), "done")
		if c.mem.Store != a.mem.Store {
			t.Error("the only voter took a new store id: it has no fleet any more")
		}
		if got := strings.Join(c.ownAlarms(), "\n"); strings.Contains(got, "was copied or put back") != (start == 0) { // then the copy is its place
			t.Errorf("alarms are %q", got)
		}
		c.Close()
	}
}

// M-32: the founder comes back after its log was damaged: it knows its peers without its state.
func TestTheFounderComesBackWithoutItsLog(t *testing.T) {
	nodes := threeVoters(t)
	a := nodes[0]
	card := nodes[1].testAdd(t, "before", "true")
	nodes[1].waitStatus(t, card, "done")
	a.Close()
	segments, _ := filepath.Glob(filepath.Join(a.cfg.Data, "raft", "log", "*.wal"))
	if len(segments) == 0 {
		t.Fatal("there is no log to damage")
	}
	for _, s := range segments {
		if err := os.Truncate(s, 3000); err != nil {
			t.Fatal(err)
		}
	}
	b := open(t, a.restarted())
	if b.mem.Store == a.mem.Store {
		t.Fatal("the damaged log is still used")
	}
	b.waitStatus(t, card, "done")
	until(t, "three voters again", func() bool {
		voters := 0
		for _, s := range b.store.Servers() {
			if s.Voter {
				voters++
			}
		}
		return voters == 3
	})
}

// Invariant 15: a copy of a folder that is started beside the node is refused, untouched, and the node's status tells.
func TestACopyBesideTheNodeIsRefused(t *testing.T) {
	a := open(t, testConfig(t, "atlas"))
	a.testDo(t, board.VBoardApply, board.BoardApply{Board: "default", YAML: shell})
	cfg := a.restarted()
	copyFolder(t, a.cfg.Data, a.cfg.Data+".copy")
	cfg.Data += ".copy"
	before := whole(t, cfg.Data)
	n, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Listen = "127.0.0.1:0"
	err = n.Open(t.Context())
	var refused *board.Error
	if !errors.As(err, &refused) || refused.Code != board.Refused || !strings.Contains(err.Error(), "another process runs as this node already") {
		t.Fatalf("a second process of one node: %v", err)
	}
	if after := whole(t, cfg.Data); after != before {
		t.Errorf("the copy was touched:\n%s\n%s", before, after)
	}
	until(t, "an alarm", func() bool {
		return strings.Contains(strings.Join((backend{a}).Readings(t.Context()).Alarms, "\n"), cfg.Data)
	})
	a.testAdd(t, "the node goes on", "true")
}

// Invariant 15: of two processes with one key the older ends at its next contact; a start whose answer is on its way is none of two.
func TestTheOlderOfTwoProcessesEnds(t *testing.T) {
	a := open(t, testConfig(t, "atlas"))
	until(t, "it leads", func() bool { return a.lease.loop() != nil })
	about, err := a.about()
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(about)
	if err != nil {
		t.Fatal(err)
	}
	var up board.NodeUp
	if err := json.Unmarshal(b, &up); err != nil {
		t.Fatal(err)
	}
	up.Start = "a start of its copy"
	b, _ = json.Marshal(up)
	if ans, err := a.lease.contact(t.Context(), up.ID, contactMsg{Generation: up.Generation, Start: up.Start}); err != nil || ans.Older {
		t.Fatalf("before the copy came up its contact is answered %+v, %v", ans, err)
	}
	if res := a.Do(t.Context(), board.Request{Actor: board.Actor{Kind: board.ActorNode, Node: up.ID}, Verb: board.VNodeUp, Args: b}); res.Err != nil {
		t.Fatal(res.Err)
	}
	if ans, err := a.lease.contact(t.Context(), up.ID, contactMsg{Generation: up.Generation, Start: up.Start}); err != nil || ans.Older {
		t.Fatalf("the newer, which has not read its answer, is told %+v, %v", ans, err)
	}
	a.pokeContact()
	select {
	case <-a.Done():
	case <-time.After(30 * time.Second):
		t.Fatal("the older process goes on")
	}
	if err := a.Err(); err == nil || !strings.Contains(err.Error(), "this process was replaced") || a.Again() {
		t.Errorf("it ended with %v", err)
	}
}

// Invariant 7: a node that has applied more than the leader's log holds is told so at its contact, stops, and takes a new store id.
func TestAheadOfTheLeader(t *testing.T) {
	a := open(t, testConfig(t, "atlas"))
	until(t, "it leads", func() bool { return a.lease.loop() != nil })
	last := a.store.LastIndex()
	ans, err := a.lease.contact(t.Context(), "somebody", contactMsg{Applied: last + 1000})
	if err != nil || ans.Ahead < last {
		t.Fatalf("answered %+v, %v; want the end of the log, at least %d", ans, err, last)
	}
	if ans, err := a.lease.contact(t.Context(), "somebody", contactMsg{Applied: last}); err != nil || ans.Ahead != 0 {
		t.Fatalf("a good node is told %+v, %v", ans, err)
	}
	a.diverged(raftstore.ErrDiverged)
	<-a.Done()
	if !a.Again() || !strings.HasPrefix(a.mem.Refetch, "DIVERGED: ") {
		t.Errorf("it does not start anew: again %v, refetch %q", a.Again(), a.mem.Refetch)
	}
}

// A folder that has lost what says whose it is is refused, and nothing is touched; with a token the machine comes back under its own id.
func TestFoldersThatAreNotWhole(t *testing.T) {
	a := open(t, testConfig(t, "atlas"))
	a.testDo(t, board.VBoardApply, board.BoardApply{Board: "default", YAML: shell})
	other := open(t, testConfig(t, "other"))
	cfg := testConfig(t, "borea")
	cfg.Token = joinToken(t, a)
	b := open(t, cfg)
	id := b.ident.ID
	b.Close()
	cfg = b.restarted()
	file := func(name string) string { return filepath.Join(cfg.Data, name) }
	for name, tc := range map[string]struct {
		file string
		harm func(path string) error
		want string
	}{
		"no node.json":        {"node.json", os.Remove, "no node.json; nothing was changed"},
		"an empty node.json":  {"node.json", func(p string) error { return os.Truncate(p, 0) }, "node.json is broken"},
		"no node.key":         {"node.key", os.Remove, "no node.key; nothing was changed"},
		"another's node.key":  {"node.key", func(p string) error { return replace(p, filepath.Join(other.cfg.Data, "node.key")) }, "node.key is the key of node " + string(other.ident.ID)},
		"a key without block": {"node.key", func(p string) error { return os.Truncate(p, 0) }, "damaged"},
	} {
		kept, err := os.ReadFile(file(tc.file))
		if err != nil {
			t.Fatal(err)
		}
		if err := tc.harm(file(tc.file)); err != nil {
			t.Fatal(err)
		}
		before := whole(t, cfg.Data)
		n, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Open(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
		if after := whole(t, cfg.Data); after != before {
			t.Errorf("%s: it was touched:\n%s\n%s", name, before, after)
		}
		if f := CheckFolder(cfg.Data, nil); len(f.Faults) == 0 {
			t.Errorf("%s: check finds nothing", name)
		}
		if err := os.WriteFile(file(tc.file), kept, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(file("node.json")); err != nil {
		t.Fatal(err)
	}
	cfg.Token = joinToken(t, a)
	b = open(t, cfg)
	if b.ident.ID != id {
		t.Error("with a token the machine came back as another node")
	}
	b.testAdd(t, "it is back", "true")
	if _, err := os.Stat(file("raft.aside1")); err != nil {
		t.Errorf("what it held was not kept: %v", err)
	}
}

func replace(path, by string) error {
	b, err := os.ReadFile(by)
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}
