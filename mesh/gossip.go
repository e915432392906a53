package mesh

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	// packetMax keeps packets whole on networks with an MTU of 1280 (WireGuard).
	packetMax = 1200
	// virtualPort is the port of every virtual address.
	virtualPort = 1
	// leaveTime bounds the good-bye.
	leaveTime = 300 * time.Millisecond
	// updateTime bounds the wait for a change of our own meta to spread.
	updateTime = time.Second
)

func virtualAddr(ip netip.Addr) string {
	return net.JoinHostPort(ip.String(), strconv.Itoa(virtualPort))
}

// refresh starts gossip once there is a key, follows changes of the keys, and
// tells what has changed about this node.
func (p *presence) refresh() {
	p.listMu.Lock()
	defer p.listMu.Unlock()
	if p.left || p.n.cfg.GossipKeys == nil {
		return
	}
	keys := p.n.cfg.GossipKeys()
	if len(keys) == 0 {
		return
	}
	if p.list == nil {
		if err := p.create(keys); err != nil {
			p.n.logAbout("gossip", "gossip could not be started", "err", err)
		}
		return
	}
	if err := syncKeys(p.ring, keys); err != nil {
		p.n.logAbout("gossip keys", "the gossip keys could not be changed", "err", err)
	}
	now := p.ownMeta(memberlist.MetaMaxSize)
	p.metaMu.Lock()
	same := bytes.Equal(now, p.meta)
	p.metaMu.Unlock()
	if !same {
		if err := p.list.UpdateNode(updateTime); err != nil {
			p.n.log.Debug("telling of this node's change", "err", err)
		}
	}
}

func (p *presence) create(keys [][]byte) error {
	ring, err := memberlist.NewKeyring(keys[1:], keys[0])
	if err != nil {
		return err
	}
	c := memberlist.DefaultLANConfig()
	c.Name = string(p.n.self)
	c.Transport = &gossipTransport{n: p.n, packets: p.in}
	c.Label = p.n.cfg.FleetID
	c.Keyring = ring
	c.Delegate, c.Events, c.Alive, c.Ping = gossipCalls{p}, gossipCalls{p}, gossipCalls{p}, gossipCalls{p}
	c.Logger = log.New(&gossipLog{log: p.n.log, limit: newLogLimit(10 * time.Second)}, "", 0)
	c.UDPBufferSize = packetMax
	c.EnableCompression = false // packets are small, and it spares us unpacking what others packed
	c.DeadNodeReclaimTime = 30 * time.Second
	c.TCPTimeout = 5 * time.Second
	c.ProbeInterval = p.n.cfg.ProbeInterval
	c.ProbeTimeout = p.n.cfg.ProbeInterval / 2
	c.GossipInterval = min(c.GossipInterval, p.n.cfg.ProbeInterval)
	list, err := memberlist.Create(c)
	if err != nil {
		return err
	}
	p.list, p.ring = list, ring
	return nil
}

// syncKeys makes the ring hold exactly these keys, the first to encrypt with.
func syncKeys(ring *memberlist.Keyring, keys [][]byte) error {
	var errs []error
	for _, k := range keys {
		errs = append(errs, ring.AddKey(k))
	}
	errs = append(errs, ring.UseKey(keys[0]))
	for _, have := range ring.GetKeys() {
		wanted := false
		for _, k := range keys {
			wanted = wanted || bytes.Equal(have, k)
		}
		if !wanted {
			errs = append(errs, ring.RemoveKey(have))
		}
	}
	return errors.Join(errs...)
}

// leave says good-bye and ends gossip.
func (p *presence) leave() {
	p.listMu.Lock()
	defer p.listMu.Unlock()
	list := p.list
	p.list, p.left = nil, true
	if list == nil {
		return
	}
	text, err := json.Marshal(note{Left: p.n.self})
	p.mu.Lock()
	var to []NodeID
	for id, s := range p.seen {
		if s.state == StateAlive {
			to = append(to, id)
		}
	}
	p.mu.Unlock()
	for _, id := range to {
		if ip, ok := id.virtualIP(); ok && err == nil {
			_ = list.SendToAddress(memberlist.Address{Addr: virtualAddr(ip), Name: string(id)}, text)
		}
	}
	if len(to) > 0 {
		_ = list.Leave(leaveTime)
	}
	_ = list.Shutdown()
}

// gossipCalls is what the gossip library calls, with its lock held.
type gossipCalls struct{ p *presence }

var (
	_ memberlist.Delegate      = gossipCalls{}
	_ memberlist.EventDelegate = gossipCalls{}
	_ memberlist.AliveDelegate = gossipCalls{}
	_ memberlist.PingDelegate  = gossipCalls{}
)

func (g gossipCalls) NodeMeta(limit int) []byte {
	text := g.p.ownMeta(limit)
	g.p.metaMu.Lock()
	g.p.meta = text
	g.p.metaMu.Unlock()
	return text
}

func (g gossipCalls) NotifyMsg(b []byte)              { g.p.noted(b) }
func (g gossipCalls) GetBroadcasts(int, int) [][]byte { return nil }
func (g gossipCalls) LocalState(bool) []byte          { return nil }
func (g gossipCalls) MergeRemoteState([]byte, bool)   {}
func (g gossipCalls) AckPayload() []byte              { return nil }
func (g gossipCalls) other(n *memberlist.Node) bool   { return n.Name != string(g.p.n.self) }
func (g gossipCalls) NotifyUpdate(n *memberlist.Node) { g.NotifyJoin(n) }
func (g gossipCalls) NotifyPingComplete(n *memberlist.Node, _ time.Duration, _ []byte) {
	g.p.heard(NodeID(n.Name), time.Now())
}

func (g gossipCalls) NotifyJoin(n *memberlist.Node) {
	if g.other(n) {
		g.p.up(NodeID(n.Name), n.Meta)
	}
}

func (g gossipCalls) NotifyLeave(n *memberlist.Node) {
	if g.other(n) {
		g.p.down(NodeID(n.Name))
	}
}

// NotifyAlive lets only nodes of the node list into gossip, each only under the
// address that is made of its id.
func (g gossipCalls) NotifyAlive(n *memberlist.Node) error {
	id := NodeID(n.Name)
	if id == g.p.n.self {
		return nil
	}
	ip, ok := id.virtualIP()
	if got, ok2 := netip.AddrFromSlice(n.Addr); !ok || !ok2 || got != ip || n.Port != virtualPort {
		return fmt.Errorf("node %q at %v:%d is none of ours", n.Name, n.Addr, n.Port)
	}
	if !g.p.n.cfg.Trust(id) {
		return fmt.Errorf("node %s is not in the node list", id)
	}
	return nil
}

// gossipTransport carries gossip over the node's socket and its TLS connections.
// Nodes are addressed by id; where they are is the address book's business.
type gossipTransport struct {
	n       *Node
	packets chan *memberlist.Packet
}

var _ memberlist.NodeAwareTransport = (*gossipTransport)(nil)

func (t *gossipTransport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	ip, ok := t.n.self.virtualIP()
	if !ok {
		return nil, 0, fmt.Errorf("own id %q", t.n.self)
	}
	return ip.AsSlice(), virtualPort, nil
}

// peerOf finds the node an address of the gossip library means.
func (t *gossipTransport) peerOf(a memberlist.Address) (NodeID, error) {
	if a.Name != "" {
		return ParseNodeID(a.Name)
	}
	ap, err := netip.ParseAddrPort(a.Addr)
	if err != nil {
		return "", err
	}
	for _, id := range t.n.book.ids() {
		if ip, ok := id.virtualIP(); ok && ip == ap.Addr() {
			return id, nil
		}
	}
	return "", fmt.Errorf("%s: %w", a.Addr, ErrNoAddress)
}

func (t *gossipTransport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	id, err := t.peerOf(a)
	if err != nil {
		return time.Time{}, err
	}
	to, ok := t.n.book.packetAddr(id)
	if !ok {
		return time.Time{}, fmt.Errorf("node %s: %w", id, ErrNoAddress)
	}
	now := time.Now()
	_, err = t.n.udp.WriteToUDPAddrPort(b, to)
	return now, err
}

func (t *gossipTransport) WriteTo(b []byte, addr string) (time.Time, error) {
	return t.WriteToAddress(b, memberlist.Address{Addr: addr})
}

func (t *gossipTransport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	id, err := t.peerOf(a)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(t.n.ctx, timeout)
	defer cancel()
	return t.n.dialPeer(ctx, id, ALPNGossip)
}

func (t *gossipTransport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	return t.DialAddressTimeout(memberlist.Address{Addr: addr}, timeout)
}

func (t *gossipTransport) PacketCh() <-chan *memberlist.Packet { return t.packets }
func (t *gossipTransport) StreamCh() <-chan net.Conn           { return t.n.gossip.ch }

// Shutdown has nothing to do: the sockets are the mesh's.
func (t *gossipTransport) Shutdown() error { return nil }

// readPackets reads the UDP socket until it is closed. What arrives faster than
// gossip takes it is lost, as packets are.
func (p *presence) readPackets() error {
	buf := make([]byte, 64<<10)
	for {
		n, from, err := p.n.udp.ReadFromUDPAddrPort(buf)
		if err != nil {
			if p.n.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			continue // an ICMP error of an earlier packet
		}
		if n > packetMax {
			continue // none of ours; unpacked, a large one may be a thousand times as much
		}
		pkt := &memberlist.Packet{Buf: bytes.Clone(buf[:n]), From: net.UDPAddrFromAddrPort(from), Timestamp: time.Now()}
		select {
		case p.in <- pkt:
		default:
		}
	}
}
