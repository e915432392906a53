package node

import (
	"slices"
	"strings"
	"time"

	"muster/board"
)

// membersIn is what the rule of voters looks at.
type membersIn struct {
	Servers map[string]bool // raft server id -> votes
	Nodes   []board.Node
	Self    string
	Now     int64
	Young   bool // a fleet younger than an hour
	Online  func(id string) bool
	Behind  func(id string) bool // its log is far behind: not yet a voter
}

// nextStep is the next change of Raft's configuration, or nil; wait says when
// time alone may bring one. It is pure. Order: servers of lost stores go, new ones
// come in as replicas, then voters: 1 goes to 3 when two eligible nodes have been
// stable, one after the other at once; if the third fails the second is demoted.
func nextStep(in membersIn) (*step, time.Duration) {
	byNode := map[string]string{} // node -> its server now
	for _, s := range sortedServers(in.Servers) {
		id, store, _ := strings.Cut(s, "/")
		i := slices.IndexFunc(in.Nodes, func(n board.Node) bool { return n.ID == id })
		if i < 0 || in.Nodes[i].Store != store {
			if id != in.Self {
				return &step{what: "remove", server: s, node: id}, 0
			}
			continue
		}
		byNode[id] = s
	}
	for _, n := range in.Nodes {
		if byNode[n.ID] == "" && n.Store != "" {
			return &step{what: "add", server: n.ID + "/" + n.Store, node: n.ID}, 0
		}
	}
	s, wait := nextVoter(in, byNode)
	if s != nil {
		return s, 0
	}
	for _, n := range in.Nodes {
		role := board.RoleReplica
		if in.Servers[byNode[n.ID]] {
			role = board.RoleVoter
		}
		if byNode[n.ID] != "" && n.Role != role {
			return &step{what: "record", node: n.ID, role: role}, 0
		}
	}
	return nil, wait
}

// lagWait is when a replica that was behind is looked at again.
const lagWait = 2 * time.Second

// nextVoter is the simple voter rule. A person's word (promote, demote) overrides
// the rule of batteries, never the count: 1, 3 or 5. A dead voter is replaced, never just
// removed. It goes first and the other comes next: the other way round, a fleet of four would
// stand still if the new one failed at that moment.
func nextVoter(in membersIn, byNode map[string]string) (*step, time.Duration) {
	var voters, ready []board.Node
	var wait time.Duration
	for _, n := range in.Nodes {
		if in.Servers[byNode[n.ID]] {
			voters = append(voters, n)
			continue
		}
		if n.NoVote || n.Battery && !n.Vote || byNode[n.ID] == "" || !in.Online(n.ID) {
			continue
		}
		d := stableFor(n, in)
		if d == 0 && in.Behind(n.ID) {
			d = lagWait
		}
		if d > 0 {
			if wait == 0 || d < wait {
				wait = d
			}
			continue
		}
		ready = append(ready, n)
	}
	held := false
	for _, n := range voters {
		switch {
		case !n.NoVote || len(voters) < 2:
		case !majorityWithout(n.ID, voters, in):
			held = true
		case n.ID == in.Self: // who leads cannot take its own vote: another does, when it leads
			return &step{what: "hand over", server: byNode[n.ID], node: n.ID}, 0
		default:
			return &step{what: "demote", server: byNode[n.ID], node: n.ID}, 0
		}
	}
	// people's words first, then who has been here longest
	slices.SortStableFunc(ready, func(a, b board.Node) int {
		switch {
		case a.Vote != b.Vote && a.Vote:
			return -1
		case a.Vote != b.Vote:
			return 1
		}
		return int(a.Joined - b.Joined)
	})
	switch {
	case len(voters) == 1 && len(ready) >= 2, len(voters) == 2 && len(ready) >= 1:
		return &step{what: "promote", server: byNode[ready[0].ID], node: ready[0].ID}, 0
	case len(voters) == 2: // a pair loses its state with either: back to one until a third is there
		for _, n := range voters {
			if n.ID != in.Self {
				return &step{what: "demote", server: byNode[n.ID], node: n.ID}, 0
			}
		}
	case len(voters) >= 3 && len(voters) < 5 && len(ready) >= 2 && ready[0].Vote && ready[1].Vote, len(voters) == 4 && len(ready) >= 1:
		return &step{what: "promote", server: byNode[ready[0].ID], node: ready[0].ID}, 0
	}
	if len(voters) >= 3 {
		dead, later := deadVoter(voters, in)
		switch {
		case dead == "":
			wait = later
		case len(ready) > 0: // its place is given away in the next step
			return &step{what: "demote", server: byNode[dead], node: dead}, 0
		}
	}
	if held { // a contact that comes back is no change of the node list
		wait = lookAgain
	}
	return nil, wait
}

const lookAgain = 5 * time.Second

// majorityWithout tells whether the voters that are left when one goes have a
// majority that is here. The new configuration counts from the moment it is written:
// without that majority it could never be committed, and the fleet would stand still.
func majorityWithout(id string, voters []board.Node, in membersIn) bool {
	here := 0
	for _, n := range voters {
		if n.ID != id && (n.ID == in.Self || in.Online(n.ID)) {
			here++
		}
	}
	return here > (len(voters)-1)/2
}

// stable is how long a machine must be up before it may vote by the rule, and a voter away before
// another takes its place.
func stable(in membersIn) time.Duration {
	if in.Young {
		return 10 * time.Second
	}
	return 5 * time.Minute
}

// stableFor is how long a node must still be up before it may vote by the rule; a
// person's word needs no wait.
func stableFor(n board.Node, in membersIn) time.Duration {
	if n.Vote {
		return 0
	}
	return max(0, stable(in)-time.Duration(in.Now-n.Started)*time.Millisecond)
}

// deadVoter is a voter that has been away for so long that another may take its
// place, and whose vote the others can do without; later says when time alone may bring one.
func deadVoter(voters []board.Node, in membersIn) (id string, later time.Duration) {
	for _, n := range voters {
		if n.ID == in.Self || in.Online(n.ID) || n.State != board.NodeOffline || !majorityWithout(n.ID, voters, in) {
			continue
		}
		d := stable(in) - time.Duration(in.Now-n.OfflineSince)*time.Millisecond
		if d <= 0 {
			return n.ID, 0
		}
		if later == 0 || d < later {
			later = d
		}
	}
	return "", later
}

func sortedServers(m map[string]bool) []string {
	s := make([]string, 0, len(m))
	for k := range m {
		s = append(s, k)
	}
	slices.Sort(s)
	return s
}
