package mesh

import (
	"encoding/json"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// presence keeps what gossip says. The gossip library calls in with its own lock
// held; nothing here calls it while mu is held, and nothing here waits.
type presence struct {
	n       *Node
	changed chan struct{} // one slot
	kick    chan struct{} // one slot
	in      chan *memberlist.Packet

	mu   sync.Mutex
	seen map[NodeID]*seenNode

	listMu sync.Mutex // for what is below; never taken by the library's calls
	list   *memberlist.Memberlist
	ring   *memberlist.Keyring
	left   bool

	metaMu sync.Mutex
	meta   []byte // what was last told of ourselves
}

type seenNode struct {
	about   meta
	state   State // alive, dead or left, as gossip has it
	shown   State // with suspect, as last shown
	since   time.Time
	heard   time.Time
	leaving time.Time // when it said that it stops
}

// meta is what a node tells of itself in gossip: at most 512 bytes of JSON.
type meta struct {
	Name       string   `json:"n,omitempty"`
	API        string   `json:"p,omitempty"`
	Generation uint64   `json:"g,omitempty"`
	Addrs      []string `json:"a,omitempty"`
}

// note is the one message that nodes send each other over gossip.
type note struct {
	Left NodeID `json:"left"`
}

func parseNote(text []byte) (m note, ok bool) {
	ok = len(text) <= 256 && json.Unmarshal(text, &m) == nil && m.Left != ""
	return m, ok
}

// parseMeta reads what a node tells of itself; what cannot be read tells nothing.
func parseMeta(text []byte) (m meta) {
	if json.Unmarshal(text, &m) != nil {
		return meta{}
	}
	m.Addrs = validAddrs(m.Addrs)
	return m
}

func newPresence(n *Node) *presence {
	return &presence{
		n:       n,
		changed: make(chan struct{}, 1),
		kick:    make(chan struct{}, 1),
		in:      make(chan *memberlist.Packet, 256),
		seen:    make(map[NodeID]*seenNode),
	}
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

func (p *presence) kickNow() { signal(p.kick) }

// encodeMeta makes the meta fit: addresses are left out from the end first.
func encodeMeta(m meta, limit int) []byte {
	m.Name = m.Name[:min(len(m.Name), 64)]
	m.API = m.API[:min(len(m.API), 128)]
	for {
		text, err := json.Marshal(m)
		if err == nil && len(text) <= limit {
			return text
		}
		if len(m.Addrs) == 0 {
			return nil
		}
		m.Addrs = m.Addrs[:len(m.Addrs)-1]
	}
}

func (p *presence) ownMeta(limit int) []byte {
	a := p.n.cfg.about()
	return encodeMeta(meta{Name: a.Name, API: a.API, Generation: a.Generation, Addrs: p.n.own.list()}, limit)
}

// heard notes a sign of life. It never makes a node alive for gossip, but keeps
// it from being shown as suspect.
func (p *presence) heard(id NodeID, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.seen[id]; s != nil {
		s.heard = now
	}
}

// patience is how long an alive node may be silent before it is shown as
// suspect: each probe goes to one node, so a round takes longer in large fleets.
func (p *presence) patience() time.Duration {
	return time.Duration(4+3*len(p.seen)) * p.n.cfg.ProbeInterval / 2
}

func (s *seenNode) current(now time.Time, patience time.Duration) State {
	if s.state == StateAlive && now.Sub(s.heard) > patience {
		return StateSuspect
	}
	return s.state
}

// settle moves the shown states on; p.mu is held. It reports a change.
func (p *presence) settle(now time.Time) bool {
	changed := false
	patience := p.patience()
	for _, s := range p.seen {
		if st := s.current(now, patience); st != s.shown {
			s.shown, s.since = st, now
			changed = true
		}
	}
	return changed
}

func (p *presence) snapshot(now time.Time) map[NodeID]Seen {
	p.mu.Lock()
	p.settle(now)
	out := make(map[NodeID]Seen, len(p.seen))
	for id, s := range p.seen {
		out[id] = Seen{Name: s.about.Name, API: s.about.API, Generation: s.about.Generation, State: s.shown, Since: s.since}
	}
	p.mu.Unlock()
	for id, s := range out {
		if addr, ok := p.n.book.packetAddr(id); ok {
			s.Addr = addr.String()
			out[id] = s
		}
	}
	return out
}

func (p *presence) recheck() {
	p.mu.Lock()
	changed := false
	for id := range p.seen {
		if !p.n.cfg.Trust(id) {
			delete(p.seen, id)
			changed = true
		}
	}
	p.mu.Unlock()
	if changed {
		signal(p.changed)
	}
}

// up and down are told by the gossip library.
func (p *presence) up(id NodeID, text []byte) {
	m := parseMeta(text)
	now := time.Now()
	p.mu.Lock()
	s := p.seen[id]
	if s == nil {
		s = &seenNode{}
		p.seen[id] = s
	}
	s.about, s.state, s.heard, s.leaving = m, StateAlive, now, time.Time{}
	p.settle(now)
	p.mu.Unlock()
	p.n.book.gossiped(id, m.Addrs)
	p.n.linkUp(id)
	signal(p.changed)
}

func (p *presence) down(id NodeID) {
	now := time.Now()
	p.mu.Lock()
	if s := p.seen[id]; s != nil {
		s.state = StateDead
		if now.Sub(s.leaving) < time.Minute {
			s.state = StateLeft
		}
		p.settle(now)
	}
	p.mu.Unlock()
	signal(p.changed)
}

func (p *presence) noted(text []byte) {
	m, ok := parseNote(text)
	if !ok {
		return
	}
	now := time.Now()
	p.mu.Lock()
	if s := p.seen[m.Left]; s != nil {
		s.leaving = now
		if s.state == StateDead {
			s.state = StateLeft
			p.settle(now)
			defer signal(p.changed)
		}
	}
	p.mu.Unlock()
}

// loop joins at the start, rejoins whoever is not alive for as long as the node
// runs (memberlist never does that by itself), and keeps the shown states fresh.
func (p *presence) loop() error {
	tick := time.NewTicker(p.n.cfg.ProbeInterval)
	defer tick.Stop()
	lonely := 0
	for {
		p.refresh()
		alone := p.rejoin()
		if !alone {
			lonely = 0
		}
		next := time.NewTimer(rejoinDelay(alone, lonely))
		lonely++
		news := p.n.book.changed()
		if !alone {
			news = nil
		}
		for waiting := true; waiting; {
			select {
			case <-tick.C:
				p.mu.Lock()
				changed := p.settle(time.Now())
				p.mu.Unlock()
				if changed {
					signal(p.changed)
				}
			case <-next.C:
				waiting = false
			case <-news:
				waiting = false
			case <-p.kick:
				waiting, lonely = false, 0
			case <-p.n.ctx.Done():
				next.Stop()
				return nil
			}
		}
		next.Stop()
	}
}

// rejoinDelay is 30 to 60 s with company; alone it starts at a second.
func rejoinDelay(alone bool, lonely int) time.Duration {
	d := 30 * time.Second
	if alone {
		d = min(time.Second<<min(lonely, 5), d)
	}
	return d + rand.N(d)
}

// rejoin asks known nodes that are not alive to exchange states; it reports
// whether this node is alone.
func (p *presence) rejoin() (alone bool) {
	p.listMu.Lock()
	list := p.list
	p.listMu.Unlock()
	if list == nil {
		return true
	}
	var absent []NodeID
	present := 0
	for _, id := range p.n.book.ids() {
		if !p.n.cfg.Trust(id) {
			continue
		}
		p.mu.Lock()
		s := p.seen[id]
		alive := s != nil && s.state == StateAlive
		p.mu.Unlock()
		if alive {
			present++
		} else {
			absent = append(absent, id)
		}
	}
	// Alone, try the likeliest first; in company, anybody missing, by chance, so
	// that a dead node at the front does not hide one behind it.
	if present > 0 {
		rand.Shuffle(len(absent), func(i, j int) { absent[i], absent[j] = absent[j], absent[i] })
	}
	var names []string
	for _, id := range absent[:min(len(absent), rejoinAtOnce)] {
		if ip, ok := id.virtualIP(); ok {
			names = append(names, string(id)+"/"+virtualAddr(ip))
		}
	}
	if len(names) == 0 {
		return present == 0
	}
	joined, err := list.Join(names)
	if err != nil {
		p.n.log.Debug("rejoin", "tried", len(names), "err", err)
	}
	return present+joined == 0
}

const rejoinAtOnce = 5
