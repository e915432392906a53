package node

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"muster/board"
	"muster/board/lease"
)

// The simple voter rule (architecture.md §6): from 1 to 3 when two are stable,
// one after the other; a pair goes back to one; people's words override batteries,
// and never take the majority of those that are here.
func TestNextStep(t *testing.T) {
	const now = int64(100_000_000)
	long := now - time.Hour.Milliseconds()
	node := func(id string, edit func(*board.Node)) board.Node {
		n := board.Node{ID: id, Name: id, Store: "s", Role: board.RoleReplica, Started: long, Joined: long}
		if edit != nil {
			edit(&n)
		}
		return n
	}
	lead := func(n *board.Node) { n.Role = board.RoleVoter }
	fresh := func(n *board.Node) { n.Started = now - 4000 }
	battery := func(n *board.Node) { n.Battery = true }
	wanted := func(n *board.Node) { n.Battery, n.Vote = true, true }
	demoted := func(n *board.Node) { n.NoVote = true }
	dead := func(n *board.Node) { n.Role, n.State, n.OfflineSince = board.RoleVoter, board.NodeOffline, long }
	away := func(n *board.Node) { dead(n); n.OfflineSince = now - 4000 }
	four := map[string]bool{"a/s": true, "b/s": true, "c/s": true, "d/s": false}
	votes := func(edit func(*board.Node)) func(*board.Node) {
		return func(n *board.Node) { lead(n); edit(n) }
	}
	for name, tc := range map[string]struct {
		nodes   []board.Node
		servers map[string]bool
		offline string
		want    string
		wait    time.Duration
	}{
		"alone":                     {[]board.Node{node("a", lead)}, map[string]bool{"a/s": true}, "", "", 0},
		"a new node comes in":       {[]board.Node{node("a", lead), node("b", nil)}, map[string]bool{"a/s": true}, "", "add b/s", 0},
		"two are not enough":        {[]board.Node{node("a", lead), node("b", nil)}, map[string]bool{"a/s": true, "b/s": false}, "", "", 0},
		"three: the first":          {[]board.Node{node("a", lead), node("b", nil), node("c", nil)}, map[string]bool{"a/s": true, "b/s": false, "c/s": false}, "", "promote b/s", 0},
		"three: then the second":    {[]board.Node{node("a", lead), node("b", nil), node("c", nil)}, map[string]bool{"a/s": true, "b/s": true, "c/s": false}, "", "promote c/s", 0},
		"not yet stable":            {[]board.Node{node("a", lead), node("b", fresh), node("c", nil)}, map[string]bool{"a/s": true, "b/s": false, "c/s": false}, "", "", 6 * time.Second},
		"far behind":                {[]board.Node{node("a", lead), node("b", nil), node("c", nil)}, map[string]bool{"a/s": true, "b/s": false, "c/s": false}, "", "", 2 * time.Second},
		"one is offline":            {[]board.Node{node("a", lead), node("b", nil), node("c", nil)}, map[string]bool{"a/s": true, "b/s": false, "c/s": false}, "b", "", 0},
		"the third failed":          {[]board.Node{node("a", lead), node("b", nil), node("c", nil)}, map[string]bool{"a/s": true, "b/s": true, "c/s": false}, "c", "demote b/s", 0},
		"laptops do not vote":       {[]board.Node{node("a", lead), node("b", battery), node("c", battery)}, map[string]bool{"a/s": true, "b/s": false, "c/s": false}, "", "", 0},
		"but when a person says so": {[]board.Node{node("a", lead), node("b", wanted), node("c", wanted)}, map[string]bool{"a/s": true, "b/s": false, "c/s": false}, "", "promote b/s", 0},
		"demoted by hand":           {[]board.Node{node("a", lead), node("b", demoted), node("c", nil)}, map[string]bool{"a/s": true, "b/s": true, "c/s": true}, "", "demote b/s", 0},
		"the leader is demoted":     {[]board.Node{node("a", votes(demoted)), node("b", lead), node("c", lead)}, map[string]bool{"a/s": true, "b/s": true, "c/s": true}, "", "hand over a/s", 0},
		"... and one is offline":    {[]board.Node{node("a", votes(demoted)), node("b", lead), node("c", lead)}, map[string]bool{"a/s": true, "b/s": true, "c/s": true}, "c", "", lookAgain},
		"demoted, another offline":  {[]board.Node{node("a", lead), node("b", votes(demoted)), node("c", lead)}, map[string]bool{"a/s": true, "b/s": true, "c/s": true}, "c", "", lookAgain},
		"demoted, itself offline":   {[]board.Node{node("a", lead), node("b", demoted), node("c", lead)}, map[string]bool{"a/s": true, "b/s": true, "c/s": true}, "b", "demote b/s", 0},
		"held, the list follows":    {[]board.Node{node("a", lead), node("b", demoted), node("c", lead)}, map[string]bool{"a/s": true, "b/s": true, "c/s": true}, "c", "record b voter", 0},
		"a lost store goes":         {[]board.Node{node("a", lead), node("b", nil)}, map[string]bool{"a/s": true, "b/old": false}, "", "remove b/old", 0},
		"a removed node goes":       {[]board.Node{node("a", lead)}, map[string]bool{"a/s": true, "x/s": false}, "", "remove x/s", 0},
		"the list follows":          {[]board.Node{node("a", lead), node("b", nil), node("c", lead)}, map[string]bool{"a/s": true, "b/s": true, "c/s": true}, "", "record b voter", 0},
		"a dead voter goes":         {[]board.Node{node("a", lead), node("b", dead), node("c", lead), node("d", nil)}, four, "b", "demote b/s", 0},
		"another takes its place":   {[]board.Node{node("a", lead), node("b", dead), node("c", lead), node("d", nil)}, map[string]bool{"a/s": true, "b/s": false, "c/s": true, "d/s": false}, "b", "promote d/s", 0},
		"it comes back":             {[]board.Node{node("a", lead), node("b", nil), node("c", lead), node("d", lead)}, map[string]bool{"a/s": true, "b/s": false, "c/s": true, "d/s": true}, "", "", 0},
		"not away for long enough":  {[]board.Node{node("a", lead), node("b", away), node("c", lead), node("d", nil)}, four, "b", "", 6 * time.Second},
		"nobody to replace it":      {[]board.Node{node("a", lead), node("b", dead), node("c", lead), node("d", demoted)}, four, "b", "", 0},
		"who would is too new":      {[]board.Node{node("a", lead), node("b", dead), node("c", lead), node("d", fresh)}, four, "b", "", 6 * time.Second},
		"dead by no verdict":        {[]board.Node{node("a", lead), node("b", lead), node("c", lead), node("d", nil)}, four, "b", "", 0},
		"a majority must be left":   {[]board.Node{node("a", lead), node("b", dead), node("c", dead), node("d", nil)}, four, "bc", "", 0},
		"a fourth stays a replica":  {[]board.Node{node("a", lead), node("b", lead), node("c", lead), node("d", nil)}, map[string]bool{"a/s": true, "b/s": true, "c/s": true, "d/s": false}, "", "", 0},
	} {
		s, wait := nextStep(membersIn{Servers: tc.servers, Nodes: tc.nodes, Self: "a", Now: now, Young: true, Online: func(id string) bool { return !strings.Contains(tc.offline, id) }, Behind: func(id string) bool { return name == "far behind" && id == "b" }})
		got := ""
		if s != nil {
			got = s.what + " " + s.server
			if s.what == "record" {
				got = fmt.Sprintf("record %s %s", s.node, s.role)
			}
		}
		if got != tc.want || wait != tc.wait {
			t.Errorf("%s: %q, wait %s; want %q, %s", name, got, wait, tc.want, tc.wait)
		}
	}
}

// A token is one string; what is not one is refused with what to do.
func TestToken(t *testing.T) {
	tok := Token{Fleet: "f", Nodes: []peerID{{ID: "a", Addrs: []string{"127.0.0.1:1"}}}, Secret: "s", Role: "node"}
	got, err := ParseToken(" " + tok.String() + "\n")
	if err != nil || got.Secret != "s" || got.Nodes[0].ID != "a" {
		t.Fatalf("%+v, %v", got, err)
	}
	past := tok
	past.Expires = 1
	for _, bad := range []string{"", "hello", "muster1.", "muster1.!!", "muster1.e30", past.String()} {
		if _, err := ParseToken(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// A node that is not in the list any more is forgotten by the leader: no row, no reading, no mark stays of it (M-09).
func TestForgetsNodesThatAreGone(t *testing.T) {
	l := newLeading(&Node{cfg: Config{Boot: func() time.Duration { return time.Hour }, Lease: lease.DefaultConfig()}})
	l.table.Begin(1, l.n.now())
	for _, id := range []string{"a", "b"} {
		l.table.Asked(id, l.n.now())
		l.last[id], l.applied[id] = board.Reading{Slots: 3}, 7
	}
	l.marks = marks{at: 1, hashes: map[string]string{"a": "x", "b": "y"}}
	l.forget([]board.Node{{ID: "b"}}) // "a" is in contact before its entry is there
	if _, known := l.table.Age("a", l.n.now()); !known {
		t.Fatal("a was forgotten before it was in the list")
	}
	l.forget([]board.Node{{ID: "a"}, {ID: "b"}})
	l.forget([]board.Node{{ID: "a"}})
	if _, known := l.table.Age("b", l.n.now()); known || l.State("b").Slots != 0 || l.applied["b"] != 0 || l.marks.hashes["b"] != "" {
		t.Fatalf("b is still known: %+v", l.State("b"))
	}
	if _, known := l.table.Age("a", l.n.now()); !known || l.State("a").Slots != 3 {
		t.Fatalf("a was forgotten: %+v", l.State("a"))
	}
}
