package board

import (
	"encoding/json"
	"strings"
	"testing"
)

// M-36: the fleet keeps 1, 3 or 5 voters, and a word about one says what comes of it: demoting one of three without
// another in its place ends with one.
func TestVotersSoon(t *testing.T) {
	v := Node{Role: RoleVoter, State: NodeOnline}
	gone := Node{Role: RoleVoter, State: NodeOnline, NoVote: true}
	r := Node{Role: RoleReplica, State: NodeOnline}
	off := Node{Role: RoleReplica, State: NodeOffline}
	laptop := Node{Role: RoleReplica, State: NodeOnline, Battery: true}
	wanted := Node{Role: RoleReplica, State: NodeOnline, Battery: true, Vote: true}
	never := Node{Role: RoleReplica, State: NodeOnline, NoVote: true}
	for name, tc := range map[string]struct {
		nodes     []Node
		now, soon int
	}{
		"alone":                      {[]Node{v}, 1, 1},
		"a pair does not vote":       {[]Node{v, wanted}, 1, 1},
		"three do":                   {[]Node{v, wanted, r}, 1, 3},
		"not the offline one":        {[]Node{v, wanted, off}, 1, 1},
		"nor laptops":                {[]Node{v, r, laptop}, 1, 1},
		"nor who never votes":        {[]Node{v, r, never}, 1, 1},
		"one of three goes":          {[]Node{v, v, gone}, 3, 1},
		"another takes its place":    {[]Node{v, v, gone, r}, 3, 3},
		"a fourth by hand waits":     {[]Node{v, v, v, wanted}, 3, 3},
		"two more by hand make five": {[]Node{v, v, v, wanted, wanted}, 3, 5},
		"from one to three, not on":  {[]Node{v, wanted, wanted, wanted}, 1, 3},
	} {
		var all []*Node
		for i := range tc.nodes {
			all = append(all, &tc.nodes[i])
		}
		if now, soon := votersSoon(all); now != tc.now || soon != tc.soon {
			t.Errorf("%s: %d, then %d; want %d, then %d", name, now, soon, tc.now, tc.soon)
		}
	}
}

// architecture.md §6: what users of a node's socket may do stands in the node list; somebody must be left who manages.
func TestNodeSet(t *testing.T) {
	f := newFleet(t)
	if err := f.do(f.person(VNodeSet), NodeSet{Node: "atlas", Local: "viewer"}).Err; err == nil || !strings.Contains(err.Message, "only machine") {
		t.Fatalf("the last manager went: %v", err)
	}
	if err := f.do(f.person(VNodeSet), NodeSet{Node: "atlas", Local: "king"}).Err; err == nil || err.Code != Invalid {
		t.Fatalf("local=king: %v", err)
	}
	f.must(f.person(VTokenCreate), TokenCreate{ID: HashSecret("s"), Role: "node", Local: "manager"})
	f.must(Request{Actor: Actor{Kind: ActorNode, Node: borea}, Verb: VNodeJoin}, NodeJoin{Node: NodeUp{ID: borea, Name: "borea"}, Secret: "s"})
	f.must(f.person(VNodeSet), NodeSet{Node: "atlas", Local: "viewer"})
	if err := f.do(f.person(VCardAdd), CardAdd{CardFields: CardFields{Title: new("x")}}).Err; err == nil || err.Code != Refused {
		t.Fatalf("a viewer files cards: %v", err)
	}
	if err := f.do(f.person(VNodeSet), NodeSet{Node: "borea", Local: "manager"}).Err; err == nil || err.Code != Refused {
		t.Fatalf("a viewer sets roles: %v", err)
	}
}

// WFL-14: a parameter keeps its kind; null clears it, and what is null says nothing of its kind.
func TestParamsKeepTheirKind(t *testing.T) {
	f := newFleet(t)
	set := func(name, val string) *Error {
		return f.do(f.person(VBoardSet), BoardSet{Board: "default", Set: map[string]json.RawMessage{"params." + name: json.RawMessage(val)}}).Err
	}
	for _, x := range []struct {
		name, val, wrong string
	}{
		{"review", `"no"`, "params.review is true or false"},
		{"review", `false`, ""},
		{"failure_limit", `"many"`, "params.failure_limit is a number"},
		{"failure_limit", `5`, ""},
		{"triage_surfaces", `"pane"`, "params.triage_surfaces is a list"},
		{"reviewer", `"rev"`, ""},
		{"reviewer", `7`, "params.reviewer is a text"},
		{"reviewer", `null`, ""},
		{"lease", `null`, ""},
		{"lease", `"long"`, "params.lease is a number"},
		{"lease", `90`, ""},
	} {
		err := set(x.name, x.val)
		if (err == nil) != (x.wrong == "") || err != nil && !strings.Contains(err.Message, x.wrong) {
			t.Errorf("%s=%s: %v, want %q", x.name, x.val, err, x.wrong)
		}
	}
}
