package node

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"muster/board"
)

// members makes Raft's configuration what the node list wants (architecture.md
// §6): every node a replica at least, and voters by the simple rule 1 -> 3. It
// wakes when the node list changes or a node comes into contact, never on a tick;
// what failed is tried again after a while.
func (l *leading) members(ctx context.Context) {
	sub := l.n.store.Subscribe(func(t board.Table, _ string) bool { return t == board.TNode })
	defer sub.Close()
	for {
		again, err := l.membersOnce(ctx)
		if err != nil && ctx.Err() == nil {
			l.n.log.Warn("membership step failed", "err", err)
			again = 2 * time.Second
		}
		var later <-chan time.Time
		if again > 0 {
			later = time.After(again)
		}
		select {
		case <-ctx.Done():
			return
		case <-sub.C:
			sub.Take()
		case <-l.news:
		case <-later:
		}
	}
}

// step is one change of Raft's configuration, one at a time.
type step struct {
	what   string // add, remove, promote, demote, hand over, record
	server string
	node   string
	role   string
}

func (l *leading) membersOnce(ctx context.Context) (again time.Duration, err error) {
	for ctx.Err() == nil {
		servers := map[string]bool{}
		for _, s := range l.n.store.Servers() {
			servers[s.ID] = s.Voter
		}
		var nodes []board.Node
		young := false
		err := l.n.store.View(func(v board.View) error {
			board.EachNode(v, func(n *board.Node) bool { nodes = append(nodes, *n); return true })
			if f := board.GetFleet(v); f != nil {
				young = l.n.store.BoardTime()-f.Created < time.Hour.Milliseconds()
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
		l.forget(nodes)
		now := l.n.store.BoardTime()
		s, wait := nextStep(membersIn{Servers: servers, Nodes: nodes, Self: string(l.n.ident.ID), Now: now, Young: young,
			Online: func(id string) bool { return l.State(id).State == board.NodeOnline }, Behind: l.behind})
		if s == nil {
			return wait, nil
		}
		if err := l.apply(ctx, s); err != nil {
			return 0, err
		}
		l.n.log.Info("membership", "step", s.what, "server", s.server, "node", s.node, "role", s.role)
	}
	return 0, ctx.Err()
}

// forget drops what is known of nodes that were in the list and are not any
// more. One that is not yet there is kept: the founder is in contact before its
// own entry is committed, and would wait three seconds for the next one.
func (l *leading) forget(nodes []board.Node) {
	l.mu.Lock()
	defer l.mu.Unlock()
	here := make(map[string]bool, len(nodes))
	for _, n := range nodes {
		here[n.ID] = true
	}
	for id := range l.listed {
		if !here[id] {
			l.table.Forget(id)
			delete(l.last, id)
			delete(l.applied, id)
			delete(l.told, id)
			delete(l.marks.hashes, id)
		}
	}
	l.listed = here
}

func (l *leading) apply(ctx context.Context, s *step) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	switch s.what {
	case "add":
		return l.n.store.AddNonvoter(ctx, s.server)
	case "remove":
		return l.n.store.RemoveServer(ctx, s.server)
	case "promote":
		return l.n.store.AddVoter(ctx, s.server)
	case "demote":
		return l.n.store.Demote(ctx, s.server)
	case "hand over":
		return l.n.store.Transfer(ctx)
	}
	b, err := json.Marshal(board.NodeRole{Node: s.node, Role: s.role})
	if err != nil {
		return err
	}
	if res := l.n.lead(ctx, board.Request{Actor: board.Platform(), Verb: board.VNodeRole, Args: b}); res.Err != nil {
		return res.Err
	}
	return nil
}

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
// the rule of batteries, never the count: 1, 3 or 5.
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
		wait = 0
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

// stableFor is how long a node must still be up before it may vote by the rule; a
// person's word needs no wait.
func stableFor(n board.Node, in membersIn) time.Duration {
	need := 5 * time.Minute
	if in.Young {
		need = 10 * time.Second
	}
	if n.Vote {
		return 0
	}
	return max(0, need-time.Duration(in.Now-n.Started)*time.Millisecond)
}

func sortedServers(m map[string]bool) []string {
	s := make([]string, 0, len(m))
	for k := range m {
		s = append(s, k)
	}
	slices.Sort(s)
	return s
}
