package meshtest

import (
	"crypto/ed25519"
	"crypto/sha256"
	"math/rand/v2"
	"sync"
	"time"

	"muster/mesh"
)

// ID makes a node id out of a name, the same each time.
func ID(name string) mesh.NodeID {
	seed := sha256.Sum256([]byte(name))
	key, _ := ed25519.NewKeyFromSeed(seed[:]).Public().(ed25519.PublicKey)
	return mesh.IDOfKey(key)
}

// Network is what lies between the nodes.
type Network struct {
	mu      sync.Mutex
	rng     *rand.Rand
	nodes   map[mesh.NodeID]*Node
	cuts    map[way]bool
	dropReq float64
	dropAns float64
	pipes   map[*conn]struct{}
	seen    map[way]mesh.Seen
	change  chan struct{} // closed and replaced when a way opens or ends
}

// way is one direction between two nodes.
type way struct{ from, to mesh.NodeID }

// New is a network whose faults by chance come from seed.
func New(seed uint64) *Network {
	return &Network{
		rng:    rand.New(rand.NewPCG(seed, 0)),
		nodes:  make(map[mesh.NodeID]*Node),
		cuts:   make(map[way]bool),
		pipes:  make(map[*conn]struct{}),
		seen:   make(map[way]mesh.Seen),
		change: make(chan struct{}),
	}
}

// Add starts a node; one that was closed may come back under its id. A nil trust
// trusts everybody.
func (w *Network) Add(id mesh.NodeID, h mesh.Handler, trust func(mesh.NodeID) bool) *Node {
	n := newNode(w, id, h, trust)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.nodes[id] != nil {
		panic("meshtest: node " + string(id) + " runs already")
	}
	w.nodes[id] = n
	w.changed()
	return n
}

// Cut stops what goes from one node to the other; the other direction stays.
func (w *Network) Cut(from, to mesh.NodeID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cuts[way{from, to}] = true
	w.changed()
}

// Partition leaves only the ways inside each group; a node in no group is alone.
func (w *Network) Partition(groups ...[]mesh.NodeID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	group := make(map[mesh.NodeID]int)
	for i, g := range groups {
		for _, id := range g {
			group[id] = i + 1
		}
	}
	for a := range w.nodes {
		for b := range w.nodes {
			if a != b && (group[a] == 0 || group[a] != group[b]) {
				w.cuts[way{a, b}] = true
			}
		}
	}
	w.changed()
}

// Heal opens every way and ends Drop.
func (w *Network) Heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.cuts)
	w.dropReq, w.dropAns = 0, 0
	w.changed()
}

// Drop loses this share (0 to 1) of the requests before, and of the answers
// after their handler ran. Either way the caller is told that nobody knows.
func (w *Network) Drop(requests, answers float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dropReq, w.dropAns = requests, answers
}

// open reports whether something sent now from one node reaches the other.
func (w *Network) open(from, to mesh.NodeID) bool {
	a, b := w.nodes[from], w.nodes[to]
	return a != nil && b != nil && !w.cuts[way{from, to}]
}

// linked reports whether both have a way to each other and trust each other.
func (w *Network) linked(a, b mesh.NodeID) bool {
	return w.open(a, b) && w.open(b, a) && w.nodes[a].trusts(b) && w.nodes[b].trusts(a)
}

// changed settles what follows from a change; w.mu is held.
func (w *Network) changed() {
	for c := range w.pipes {
		if !w.linked(c.self, c.peer) {
			delete(w.pipes, c)
			_ = c.Conn.Close()
		}
	}
	now := time.Now()
	for a, n := range w.nodes {
		for b := range w.nodes {
			if a == b {
				continue
			}
			w.look(n, way{a, b}, now)
		}
		for p := range w.seen {
			if p.from == a && w.nodes[p.to] == nil {
				w.look(n, p, now)
			}
		}
	}
	close(w.change)
	w.change = make(chan struct{})
}

// look updates what one node thinks of another.
func (w *Network) look(n *Node, p way, now time.Time) {
	state := mesh.StateDead
	if w.linked(p.from, p.to) {
		state = mesh.StateAlive
	}
	old, known := w.seen[p]
	if old.State == state || (!known && state == mesh.StateDead) {
		return
	}
	w.seen[p] = mesh.Seen{Name: string(p.to), Addr: string(p.to), State: state, Since: now}
	select {
	case n.presence <- struct{}{}:
	default:
	}
}

func (w *Network) chance(share func() float64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := share()
	return s > 0 && w.rng.Float64() < s
}
