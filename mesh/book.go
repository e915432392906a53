package mesh

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

// peersFile is the address book inside the data folder.
const peersFile = "peers.json"

// addrsPerPeer bounds the addresses kept of a peer; the oldest leave.
const addrsPerPeer = 8

// book is where every known peer was or is said to be. What was told by the
// peer itself or by the node list is kept on disk, so that a node that was away
// for months rejoins with it alone; what gossip says is only kept in memory and
// tried last, as whoever has the gossip key can say it of anybody.
type book struct {
	path string
	self NodeID
	log  *slog.Logger

	mu     sync.Mutex
	peers  map[NodeID]*peerEntry
	dirty  bool
	save   chan struct{} // one slot
	change chan struct{} // closed and replaced when an address is news
}

type peerEntry struct {
	addrs   []string // newest first
	listed  []string // the last argument of setPeer
	gossip  []string
	udp     netip.AddrPort // where to send gossip packets
	reached time.Time
}

type savedBook struct {
	Format int         `json:"format"`
	Peers  []savedPeer `json:"peers"`
}

type savedPeer struct {
	ID      NodeID   `json:"id"`
	Addrs   []string `json:"addrs"`
	Reached int64    `json:"reached_ms,omitempty"`
}

func newBook(dir string, self NodeID, log *slog.Logger) *book {
	return &book{
		path:   filepath.Join(dir, peersFile),
		self:   self,
		log:    log,
		peers:  make(map[NodeID]*peerEntry),
		save:   make(chan struct{}, 1),
		change: make(chan struct{}),
	}
}

// load reads the file. A damaged one is set aside and said: peers can be told
// anew, so it must not keep a node from starting.
func (b *book) load() error {
	text, err := os.ReadFile(b.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("known peers: %w", err)
	}
	var s savedBook
	if err := json.Unmarshal(text, &s); err != nil || s.Format != 1 {
		bad := b.path + ".damaged"
		b.log.Warn("the file of known peers cannot be read; set aside", "file", b.path, "kept_as", bad, "err", err, "format", s.Format)
		if err := os.Rename(b.path, bad); err != nil {
			return fmt.Errorf("known peers: %w", err)
		}
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range s.Peers {
		if _, err := ParseNodeID(string(p.ID)); err != nil || p.ID == b.self {
			continue
		}
		e := &peerEntry{addrs: validAddrs(p.Addrs)}
		if p.Reached > 0 {
			e.reached = time.UnixMilli(p.Reached)
		}
		if len(e.addrs) > 0 {
			e.udp = literal(e.addrs)
			b.peers[p.ID] = e
		}
	}
	return nil
}

// flush writes the file if anything changed.
func (b *book) flush() error {
	b.mu.Lock()
	if !b.dirty {
		b.mu.Unlock()
		return nil
	}
	b.dirty = false
	s := savedBook{Format: 1}
	for id, e := range b.peers {
		if len(e.addrs) == 0 {
			continue
		}
		p := savedPeer{ID: id, Addrs: slices.Clone(e.addrs)}
		if !e.reached.IsZero() {
			p.Reached = e.reached.UnixMilli()
		}
		s.Peers = append(s.Peers, p)
	}
	b.mu.Unlock()
	slices.SortFunc(s.Peers, func(x, y savedPeer) int { return cmp.Compare(x.ID, y.ID) })
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("known peers: %w", err)
	}
	if err := writeFileSynced(b.path, append(text, '\n')); err != nil {
		b.mu.Lock()
		b.dirty = true
		b.mu.Unlock()
		return fmt.Errorf("known peers: %w", err)
	}
	return nil
}

// entry is the entry of a peer, made if need be; nil for this node itself.
func (b *book) entry(id NodeID) *peerEntry {
	if id == b.self {
		return nil
	}
	e := b.peers[id]
	if e == nil {
		e = &peerEntry{}
		b.peers[id] = e
	}
	return e
}

// setPeer takes the addresses of the node list. They only count as news when
// the list itself has changed.
func (b *book) setPeer(id NodeID, addrs []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entry(id)
	addrs = validAddrs(addrs)
	if e == nil || slices.Equal(e.listed, addrs) {
		return
	}
	e.listed = addrs
	b.front(e, addrs)
}

// learn puts addresses in front: where the peer says it is, or was seen, now.
func (b *book) learn(id NodeID, addrs ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.entry(id); e != nil {
		b.front(e, validAddrs(addrs))
	}
}

func (b *book) front(e *peerEntry, addrs []string) {
	if len(addrs) == 0 {
		return
	}
	merged := slices.Clone(addrs)
	for _, a := range e.addrs {
		if !slices.Contains(merged, a) {
			merged = append(merged, a)
		}
	}
	merged = merged[:min(len(merged), addrsPerPeer)]
	if slices.Equal(merged, e.addrs) {
		return
	}
	news := slices.ContainsFunc(addrs, func(a string) bool { return !slices.Contains(e.addrs, a) })
	e.addrs = merged
	if ap := literal(addrs); ap.IsValid() && news {
		e.udp = ap
	}
	if news { // a new order alone is not worth a write
		b.markDirty()
		b.announce()
	}
}

// gossiped notes what gossip says of a peer's addresses.
func (b *book) gossiped(id NodeID, addrs []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entry(id)
	addrs = validAddrs(addrs)
	if e == nil || slices.Equal(e.gossip, addrs) {
		return
	}
	e.gossip = addrs
	if ap := literal(addrs); ap.IsValid() {
		e.udp = ap
	}
	b.announce()
}

// reached notes that a peer answered, with the right key, at this address.
func (b *book) reachedAt(id NodeID, addr string, remote net.Addr, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entry(id)
	if e == nil {
		return
	}
	if ap, err := netip.ParseAddrPort(remote.String()); err == nil {
		e.udp = ap
	}
	// The order is kept on disk too, but a file write for every dial is not
	// worth it.
	if now.Sub(e.reached) > time.Minute {
		b.markDirty()
	}
	e.reached = now
	if len(e.addrs) == 0 || e.addrs[0] != addr {
		e.addrs = slices.Insert(slices.DeleteFunc(e.addrs, func(a string) bool { return a == addr }), 0, addr)
		e.addrs = e.addrs[:min(len(e.addrs), addrsPerPeer)]
	}
}

func (b *book) forget(id NodeID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.peers[id]; ok {
		delete(b.peers, id)
		b.markDirty()
	}
}

// candidates are the addresses to try, in order.
func (b *book) candidates(id NodeID) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.peers[id]
	if e == nil {
		return nil
	}
	out := slices.Clone(e.addrs)
	for _, a := range e.gossip {
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

func (b *book) packetAddr(id NodeID) (netip.AddrPort, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.peers[id]
	if e == nil || !e.udp.IsValid() {
		return netip.AddrPort{}, false
	}
	return e.udp, true
}

// ids are all peers with an address, last reached first.
func (b *book) ids() []NodeID {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]NodeID, 0, len(b.peers))
	for id, e := range b.peers {
		if len(e.addrs)+len(e.gossip) > 0 {
			out = append(out, id)
		}
	}
	slices.SortFunc(out, func(x, y NodeID) int {
		if c := b.peers[y].reached.Compare(b.peers[x].reached); c != 0 {
			return c
		}
		return cmp.Compare(x, y)
	})
	return out
}

// changed is closed at the next news of an address.
func (b *book) changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.change
}

// wake lets whoever waits for an address try again now.
func (b *book) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.announce()
}

func (b *book) announce() {
	close(b.change)
	b.change = make(chan struct{})
}

func (b *book) markDirty() {
	b.dirty = true
	select {
	case b.save <- struct{}{}:
	default:
	}
}

// checkAddr says what is wrong with a "host:port".
func checkAddr(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("address %q: want host:port: %w", addr, err)
	}
	if p, err := strconv.Atoi(port); err != nil || p < 1 || p > 65535 || host == "" || len(host) > 255 {
		return fmt.Errorf("address %q: want host:port", addr)
	}
	return nil
}

func validAddrs(addrs []string) []string {
	var out []string
	for _, a := range addrs {
		if checkAddr(a) == nil && !slices.Contains(out, a) && len(out) < addrsPerPeer {
			out = append(out, a)
		}
	}
	return out
}

// literal is the first address that needs no name lookup.
func literal(addrs []string) netip.AddrPort {
	for _, a := range addrs {
		if ap, err := netip.ParseAddrPort(a); err == nil {
			return ap
		}
	}
	return netip.AddrPort{}
}
