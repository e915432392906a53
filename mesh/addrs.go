package mesh

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// ownAddrsMax bounds what is told of this machine's addresses: they travel in
// gossip's 512 bytes.
const ownAddrsMax = 4

// ownAddrs are the addresses this node tells of itself.
type ownAddrs struct {
	moved chan struct{} // one slot
	find  func() []netip.Addr

	mu    sync.Mutex
	given []string
	now   []string
}

func newOwnAddrs(cfg Config) *ownAddrs {
	return &ownAddrs{moved: make(chan struct{}, 1), find: machineAddrs, given: slices.Clone(cfg.Advertise)}
}

func (o *ownAddrs) list() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.now)
}

func (o *ownAddrs) set(given []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.given = slices.Clone(given)
}

// update finds the addresses out anew and reports whether they have changed.
func (o *ownAddrs) update(listening net.Addr) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	next := o.given
	if len(next) == 0 {
		next = o.listenAddrs(listening)
	}
	if slices.Equal(next, o.now) {
		return false
	}
	first := o.now == nil
	o.now = slices.Clone(next)
	if !first {
		select {
		case o.moved <- struct{}{}:
		default:
		}
	}
	return !first
}

func (o *ownAddrs) listenAddrs(listening net.Addr) []string {
	ap, err := netip.ParseAddrPort(listening.String())
	if err != nil {
		return []string{listening.String()}
	}
	if !ap.Addr().IsUnspecified() {
		return []string{ap.String()}
	}
	var out []string
	for _, ip := range o.find() {
		if ip.Is6() && ap.Addr().Is4() {
			continue // we do not listen there
		}
		out = append(out, netip.AddrPortFrom(ip, ap.Port()).String())
	}
	if len(out) == 0 {
		out = append(out, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), ap.Port()).String())
	}
	return out[:min(len(out), ownAddrsMax)]
}

// machineAddrs are this machine's addresses that others may reach, that of the
// default route first. Addresses of container and bridge networks are the same
// on many machines and are left out.
func machineAddrs() []netip.Addr {
	var out []netip.Addr
	add := func(ip netip.Addr) {
		ip = ip.Unmap()
		if ip.IsGlobalUnicast() && !slices.Contains(out, ip) {
			out = append(out, ip)
		}
	}
	// Connecting a UDP socket sends nothing; it asks which address would.
	for _, to := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} {
		if c, err := net.Dial("udp", to); err == nil {
			if ap, err := netip.ParseAddrPort(c.LocalAddr().String()); err == nil {
				add(ap.Addr())
			}
			_ = c.Close()
		}
	}
	ifaces, err := net.Interfaces()
	if err != nil {
		return out
	}
	for _, i := range ifaces {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 || localBridge(i.Name) {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				add(p.Addr())
			}
		}
	}
	return out
}

func localBridge(name string) bool {
	return slices.ContainsFunc([]string{"docker", "br-", "veth", "virbr", "cni", "lxc", "podman"},
		func(p string) bool { return strings.HasPrefix(name, p) })
}
