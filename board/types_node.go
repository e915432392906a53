package board

// Node roles and recorded states.
const (
	RoleVoter   = "voter"
	RoleReplica = "replica"

	NodeOnline  = "online"
	NodeOffline = "offline"
	NodeLeft    = "left"
)

// Node is one machine of the committed node list, which is the trust (architecture.md §6).
type Node struct {
	ID, Name          string
	Key               []byte // public key
	Addrs             []string
	Store             string // id of its raft store; the raft server id is ID/Store
	Role, Local       string // voter or replica; what users of its socket may do
	NoVote            bool   // joined with --replica, or demoted by hand
	Vote              bool   // promoted by hand: votes although it has a battery
	Generation        uint64 // one more each start, by compare-and-set
	Labels            map[string]string
	Tools, Harnesses  []string
	Slots             int64
	AlwaysOn, Battery bool
	OS, Arch, Version string
	State             string // recorded changes only (M-10)
	OfflineSince      int64
	Joined, Started   int64
	Draining          bool
	Journal           string // id of its outbox journal
	MemoryMB          int64
	StartID           string // of the start that made this generation
	DrainBy, DrainWhy string
	DrainAt           int64
	Panes             bool              // it opens sessions in terminal panes
	Own               map[string]string // labels that it says of itself at its start
	Said              map[string]string // labels by a person's word: they win over what the node says of itself; an empty value takes one away
	Boards            []string          // whose sessions it takes, by its own file; none: of all
	LocalMost         string            // what users of its socket may be at most, by its own word; "": as Local says
	Format            uint64            // highest format of the state that its muster knows; 0: the first
	Orgs              []string          // organisations that it holds credentials for, by its own word
	unknown
}

// SocketRole is what users of the node's own socket are: what the fleet says, and
// never more than the node itself says.
func (n *Node) SocketRole() string {
	role := orElse(n.Local, "manager")
	if n.LocalMost != "" && RoleRank(n.LocalMost) < RoleRank(role) {
		return n.LocalMost
	}
	return role
}

func (n *Node) fields(w *wire) {
	w.uint(40, &n.Format)
	str(w, 1, &n.ID)
	str(w, 2, &n.Name)
	w.bytes(3, &n.Key)
	w.strs(4, &n.Addrs)
	str(w, 5, &n.Store)
	str(w, 6, &n.Role)
	str(w, 7, &n.Local)
	w.bool(8, &n.NoVote)
	w.bool(9, &n.Vote)
	w.uint(10, &n.Generation)
	w.dict(11, &n.Labels)
	w.strs(12, &n.Tools)
	w.strs(13, &n.Harnesses)
	w.int(14, &n.Slots)
	w.bool(15, &n.AlwaysOn)
	w.bool(16, &n.Battery)
	str(w, 17, &n.OS)
	str(w, 18, &n.Arch)
	str(w, 19, &n.Version)
	str(w, 20, &n.State)
	w.int(21, &n.OfflineSince)
	w.int(22, &n.Joined)
	w.int(23, &n.Started)
	w.bool(24, &n.Draining)
	str(w, 25, &n.Journal)
	w.int(26, &n.MemoryMB)
	str(w, 27, &n.StartID)
	w.bool(28, &n.Panes)
	str(w, 29, &n.DrainBy)
	str(w, 30, &n.DrainWhy)
	w.int(31, &n.DrainAt)
	w.dict(32, &n.Own)
	w.dict(33, &n.Said)
	w.strs(40, &n.Boards)
	str(w, 41, &n.LocalMost)
	w.strs(42, &n.Orgs)
}

// Token lets somebody join or call (architecture.md §6). Only a hash of its secret is kept; the key is that hash.
type Token struct {
	ID, Role, Local string
	Expires, Made   int64
	Uses            int64 // left: machines that join, or changes made; 0 without a bound
	By              Actor
	Name, Board     string // who calls with it; the one board it is for
	unknown
}

func (t *Token) fields(w *wire) {
	str(w, 1, &t.ID)
	str(w, 2, &t.Role)
	str(w, 3, &t.Local)
	w.int(4, &t.Expires)
	w.int(5, &t.Made)
	w.int(6, &t.Uses)
	w.nest(7, &t.By)
	str(w, 8, &t.Name)
	str(w, 9, &t.Board)
}

// Done is the stored outcome of a request id.
type Done struct {
	Seq     uint64
	At      int64
	Digest  []byte // of the actor and the caller's words
	Code    string // "" for success
	Check   string
	Message string
	Hint    string
	Data    []byte // small JSON
	unknown
}

func (d *Done) fields(w *wire) {
	w.uint(1, &d.Seq)
	w.int(2, &d.At)
	w.bytes(3, &d.Digest)
	str(w, 4, &d.Code)
	str(w, 5, &d.Check)
	str(w, 6, &d.Message)
	str(w, 7, &d.Hint)
	w.bytes(8, &d.Data)
}

// Outbox is the last number taken of a node's journal.
type Outbox struct {
	Journal, Node string
	Last          uint64
	unknown
}

func (o *Outbox) fields(w *wire) {
	str(w, 1, &o.Journal)
	str(w, 2, &o.Node)
	w.uint(3, &o.Last)
}

// Due kinds.
const (
	DueCard   = "card"    // look at the card again (start_after, a guard's end)
	DueClaim  = "claim"   // a pending order's expiry
	DueWork   = "working" // a run's limit of time in turns
	DueRun    = "run"     // a limit of a run (runtime)
	DueNode   = "node"    // an observation that lasts
	DueAge    = "age"     // a session's age limit
	DueStale  = "stale"   // nothing was heard of a session for too long
	DueLost   = "lost"    // a session is missing
	DueIdle   = "idle"    // a session is idle
	DueClose  = "close"   // a close that was requested
	DueExpire = "expire"  // a token's end
	DueCool   = "cool"    // a rate limit's end
)

// Due is a moment at which something is looked at again: due times are state,
// so that a new leader keeps them (architecture.md §8).
type Due struct {
	At        int64
	Kind, Key string
	unknown
}

func (d *Due) fields(w *wire) {
	w.int(1, &d.At)
	str(w, 2, &d.Kind)
	str(w, 3, &d.Key)
}
