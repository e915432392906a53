package node

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"muster/board"
	"muster/board/lease"
	"muster/mesh"
	"muster/scheduler"
)

// leading is what a node knows and does only while it leads: the contact table,
// the readings of the nodes, the scheduler of the term.
type leading struct {
	n       *Node
	mu      sync.Mutex
	table   *lease.Table
	last    map[string]board.Reading // as told with each node's last contact
	told    map[string][]string      // alarms of each node, as told with its last contact
	applied map[string]uint64        // raft index a node had applied at its last contact
	news    chan struct{}            // one slot: a node's state has changed by a contact
	sched   *scheduler.Loop
	marks   marks
	alarm   string            // DIVERGED, when no majority agrees on what the state is
	listed  map[string]bool   // node ids of the list as last read in this term
	odd     map[string]string // alarms of nodes that were not of the majority
}

func newLeading(n *Node) *leading {
	return &leading{n: n, table: lease.NewTable(n.cfg.Lease), last: map[string]board.Reading{}, applied: map[string]uint64{}, told: map[string][]string{}, odd: map[string]string{}, news: make(chan struct{}, 1)}
}

// run follows the terms: while this node leads and its executor is ready, the
// term's scheduler and the membership loop run; with the term they end.
func (l *leading) run(ctx context.Context) error {
	for {
		changed := l.n.leaderChanged()
		term, ok := l.n.store.LeaderTerm()
		if !ok {
			select {
			case <-ctx.Done():
				return nil
			case <-changed:
				continue
			}
		}
		if l.handOver(ctx) {
			continue
		}
		l.term(ctx, term)
		if ctx.Err() != nil {
			return nil
		}
	}
}

// term leads one term until it ends.
func (l *leading) term(ctx context.Context, term uint64) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.mu.Lock()
	l.table.Begin(term, l.n.now())
	clear(l.last)
	clear(l.applied)
	clear(l.told)
	l.marks, l.alarm, l.odd, l.listed = marks{}, "", map[string]string{}, nil
	l.sched = scheduler.New(scheduler.Config{Store: termStore{l}, Feed: feedSub{l.n.store.Subscribe(scheduler.Wants)}, Contacts: l,
		Workflows: l.n.flows, Now: l.n.store.BoardTime, Logger: l.n.log.With("component", "scheduler")})
	loop := l.sched
	l.mu.Unlock()
	var wg sync.WaitGroup
	wg.Go(func() { loop.Run(ctx) })
	wg.Go(func() { l.members(ctx) })
	wg.Go(func() { l.newHooks().run(ctx) })
	l.n.pokeContact()
	l.n.pushAll(term)
	for {
		changed := l.n.leaderChanged()
		if now, ok := l.n.store.LeaderTerm(); !ok || now != term {
			break
		}
		select {
		case <-ctx.Done():
		case <-changed:
			continue
		}
		break
	}
	cancel()
	wg.Wait()
	l.mu.Lock()
	l.table.End()
	l.sched = nil
	l.mu.Unlock()
}

// contact answers one contact: only after the voters have confirmed, asked after
// it came in, that this term still holds.
func (l *leading) contact(ctx context.Context, peer string, msg contactMsg) (contactAns, error) {
	own := l.ownMark(peer, msg) // before the lock: who reads the state asks for it (State)
	if l.older(peer, msg) {
		return contactAns{Older: true, Term: l.n.store.Term()}, nil
	}
	l.mu.Lock()
	before := l.table.State(peer, l.n.now()) // from Asked on the node counts as heard
	ask := l.table.Asked(peer, l.n.now())
	was, known := l.last[peer]
	l.last[peer], l.applied[peer], l.told[peer] = msg.Reading, msg.Applied, msg.Alarms
	round := l.table.Round()
	sched := l.sched
	odd := l.compare(peer, msg, own)
	l.mu.Unlock()
	if odd {
		return contactAns{Odd: true, Term: l.n.store.Term()}, nil
	}
	if sched == nil {
		return contactAns{}, &mesh.RemoteError{Code: checkNotLeader, Text: "not leading"}
	}
	term, err := l.n.store.Confirm(ctx)
	if err != nil {
		return contactAns{}, &mesh.RemoteError{Code: checkNotLeader, Text: err.Error()}
	}
	l.mu.Lock()
	ok := l.table.Answer(ask, round, term, l.n.now())
	moved := l.table.State(peer, l.n.now()) != before
	l.mu.Unlock()
	if !ok {
		return contactAns{}, &mesh.RemoteError{Code: checkNotLeader, Text: "the term has changed"}
	}
	if moved {
		select {
		case l.news <- struct{}{}:
		default:
		}
	}
	if moved || !known || was.Estop != msg.Reading.Estop || was.NoSpace != msg.Reading.NoSpace || was.Pressure != msg.Reading.Pressure || was.Slots != msg.Reading.Slots {
		sched.Poke() // after the answer: only from then on the node counts as online
	}
	if last := l.n.store.LastIndex(); msg.Applied > last { // asked after the term was confirmed: this log has all that is committed
		l.n.log.Error("a node has applied entries that are not in the fleet's log", "node", peer, "applied", msg.Applied, "log", last)
		return contactAns{Ahead: last, Term: term}, nil
	}
	_, seq := l.n.store.Applied()
	return contactAns{Term: term, Commit: l.n.store.CommitIndex(), Seq: seq, Time: l.n.store.BoardTime()}, nil
}

// bye takes a node's word that it stops.
func (l *leading) bye(peer string) {
	l.mu.Lock()
	l.table.Bye(peer)
	l.mu.Unlock()
}

// termStore is the store as the leader's own requests see it: an alarm holds them
// up like everybody's (DIVERGED: nothing is written).
type termStore struct{ l *leading }

func (s termStore) Do(ctx context.Context, req *board.Request) board.Result {
	return s.l.n.lead(ctx, *req)
}

// DoAll implements scheduler.Store.
func (s termStore) DoAll(ctx context.Context, reqs []*board.Request) []board.Result {
	results := make([]board.Result, len(reqs))
	var may []*board.Request
	var at []int
	for i, req := range reqs {
		if err := s.l.n.mayLead(req); err != nil {
			results[i] = board.Result{Err: err}
			continue
		}
		may, at = append(may, req), append(at, i)
	}
	for i, res := range s.l.n.store.DoAll(ctx, may) {
		results[at[i]] = res
	}
	return results
}

func (s termStore) View(fn func(board.View) error) error { return s.l.n.store.View(fn) }

// mayLag is how many log entries a replica may be behind when it is made a voter:
// until it has caught up nothing could be written without the others.
const mayLag = 1000

// behind tells of a node that has not applied nearly what this one has.
func (l *leading) behind(node string) bool {
	index, _ := l.n.store.Applied()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.applied[node]+mayLag < index
}

// State implements scheduler.Contacts: the verdict on a node and its last reading.
func (l *leading) State(node string) board.Reading {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state(node)
}

func (l *leading) state(node string) board.Reading {
	now := l.n.now()
	r := l.last[node]
	r.State = l.table.State(node, now).String()
	r.AgeMS = -1
	if age, ok := l.table.Age(node, now); ok {
		r.AgeMS = age.Milliseconds()
	}
	if r.Pressure == "" || r.State != board.NodeOnline {
		r.Pressure = "unknown" // old or absent: no restriction (M-15)
	}
	return r
}

// GoneIn implements scheduler.Contacts: how long until a session with this lease
// on this node may be counted gone; false when it never may.
func (l *leading) GoneIn(node string, d time.Duration) (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.table.GoneAt(node, d)
	return at.Sub(l.n.now()), ok
}

// Condemn and Acquit implement scheduler.Contacts: between them the node gets no answer.
func (l *leading) Condemn(node string, d time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.table.Condemn(node, d, l.n.now())
}

// Acquit ends what Condemn began.
func (l *leading) Acquit(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.table.Acquit(node)
}

// Next implements scheduler.Contacts: when the state of one of the nodes may
// change without any contact.
func (l *leading) Next(nodes []string) (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.n.now()
	at, ok := l.table.Next(nodes, now)
	return at.Sub(now), ok
}

// loop is the scheduler of the term, nil when this node does not lead.
func (l *leading) loop() *scheduler.Loop {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sched
}

// push sends new orders to their nodes right after the commit: the state stays
// the source, the push is the shortcut (architecture.md §3). It never blocks.
func (n *Node) push(term uint64, txns []board.Txn) {
	for _, t := range txns {
		for _, op := range t.Ops {
			if op.Table != board.TOrder || op.Delete {
				continue
			}
			if o := board.DecodeOrder(op.Val); o != nil && o.State == board.OrderPending {
				n.measures.started(o)
				n.pushOrder(term, o.Node, op.Val, o)
			}
		}
	}
}

func (n *Node) pushOrder(term uint64, node string, raw []byte, o *board.Order) {
	if node == string(n.ident.ID) {
		n.launch.Push(term, *o)
		return
	}
	b, err := json.Marshal(orderMsg{Term: term, Order: raw})
	if err == nil {
		n.mesh.Push(mesh.NodeID(node), "order", b)
	}
}

type orderMsg struct {
	Term  uint64 `json:"term"`
	Order []byte `json:"order"`
}

// pushAll pushes what is still pending when a term begins: the leader before may
// have died between the commit and its push.
func (n *Node) pushAll(term uint64) {
	type row struct {
		o   board.Order
		raw []byte
	}
	var rows []row
	_ = n.store.View(func(v board.View) error {
		v.Scan(board.TOrder, "", "", func(_ string, val []byte) bool {
			if o := board.DecodeOrder(val); o != nil && o.State == board.OrderPending {
				rows = append(rows, row{*o, slices.Clone(val)})
			}
			return true
		})
		return nil
	})
	for _, r := range rows {
		n.pushOrder(term, r.o.Node, r.raw, &r.o)
	}
}
