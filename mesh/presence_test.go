package mesh

import (
	"bytes"
	"encoding/json"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
)

var gossipKey = bytes.Repeat([]byte{7}, 32)

func gossiping(c *Config) {
	c.GossipKeys = func() [][]byte { return [][]byte{gossipKey} }
	id := c.Identity.ID
	c.About = func() About { return About{Name: "node-" + string(id[:4]), API: "api:1", Generation: 3} }
}

func sees(m *member, id NodeID, want State) func() bool {
	return func() bool { return m.Presence()[id].State == want }
}

// Invariant 13: three nodes find each other from one address each; one that is
// killed is seen dead, and back when it comes again at another address and with
// only the peers it kept on disk.
func TestPresence(t *testing.T) {
	f := newFleet(t)
	a, b, c := f.start(gossiping), f.start(gossiping), f.start(gossiping)
	b.SetPeer(a.Self(), a.Addr().String())
	c.SetPeer(a.Self(), a.Addr().String())
	b.Kick()
	c.Kick()
	all := []*member{a, b, c}
	for _, x := range all {
		for _, y := range all {
			if x != y {
				eventually(t, "all see each other", sees(x, y.Self(), StateAlive))
			}
		}
	}
	got := b.Presence()[c.Self()]
	if got.Name != "node-"+string(c.Self()[:4]) || got.API != "api:1" || got.Generation != 3 || got.Addr != c.Addr().String() || got.Since.IsZero() {
		t.Errorf("b sees %+v of c", got)
	}
	// b has only ever been told of a, and reaches c by what gossip says.
	if _, err := b.Call(ctxFor(t, 5*time.Second), c.Self(), "m", nil); err != nil {
		t.Errorf("b to c: %v", err)
	}
	kill(c.Node)
	drain(a.Changed())
	eventually(t, "a is told of a change", signalled(a.Changed()))
	eventually(t, "a sees c dead", sees(a, c.Self(), StateDead))
	eventually(t, "b sees c dead", sees(b, c.Self(), StateDead))

	was := c.Addr().String()
	f.open(c) // on a new port, knowing what is in its folder
	if c.Addr().String() == was {
		t.Fatal("the port did not change")
	}
	for _, x := range []*member{a, b} {
		eventually(t, "c is seen again", sees(x, c.Self(), StateAlive))
		eventually(t, "at its new address", func() bool { return x.Presence()[c.Self()].Addr == c.Addr().String() })
		if _, err := x.Call(ctxFor(t, 10*time.Second), c.Self(), "m", nil); err != nil {
			t.Errorf("to c at its new address: %v", err)
		}
	}

	// A node that stops says so.
	_ = b.Close()
	eventually(t, "a sees that b left", sees(a, b.Self(), StateLeft))
	f.open(b)
	eventually(t, "b is back after leaving", sees(a, b.Self(), StateAlive))
}

// kill ends a node without a good-bye, as kill -9 does.
func kill(n *Node) {
	n.pres.listMu.Lock()
	if n.pres.list != nil {
		_ = n.pres.list.Shutdown()
	}
	n.pres.list, n.pres.left = nil, true
	n.pres.listMu.Unlock()
	_ = n.Close()
}

func drain(ch <-chan struct{}) {
	select {
	case <-ch:
	default:
	}
}

func signalled(ch <-chan struct{}) func() bool {
	return func() bool {
		select {
		case <-ch:
			return true
		default:
			return false
		}
	}
}

// A change of what a node tells of itself reaches the others; so does a new
// gossip key, first as a second one, then alone.
func TestPresenceFollowsChanges(t *testing.T) {
	f := newFleet(t)
	var generation atomic.Uint64
	var phase atomic.Int32
	newKey := bytes.Repeat([]byte{9}, 32)
	keys := func() [][]byte {
		return [][][]byte{{gossipKey}, {gossipKey, newKey}, {newKey, gossipKey}, {newKey}}[phase.Load()]
	}
	conf := func(c *Config) {
		gossiping(c)
		c.GossipKeys = keys
		c.About = func() About { return About{Generation: generation.Load()} }
	}
	a, b := f.start(conf), f.start(conf)
	know(a, b)
	a.Kick()
	eventually(t, "they see each other", sees(b, a.Self(), StateAlive))
	for p := range int32(4) {
		phase.Store(p)
		a.Kick()
		b.Kick()
		eventually(t, "both have the keys", func() bool { return hasKeys(a.Node, keys()) && hasKeys(b.Node, keys()) })
		generation.Add(1)
		a.Kick()
		eventually(t, "b hears of the new generation", func() bool {
			return b.Presence()[a.Self()].Generation == generation.Load()
		})
	}
}

func hasKeys(n *Node, want [][]byte) bool {
	n.pres.listMu.Lock()
	defer n.pres.listMu.Unlock()
	if n.pres.ring == nil {
		return false
	}
	have := n.pres.ring.GetKeys()
	return len(have) == len(want) && bytes.Equal(have[0], want[0])
}

// Without a key there is no gossip at all, and it begins when there is one.
func TestNoGossipWithoutAKey(t *testing.T) {
	f := newFleet(t)
	var ready atomic.Bool
	late := func(c *Config) {
		c.GossipKeys = func() [][]byte {
			if ready.Load() {
				return [][]byte{gossipKey}
			}
			return nil
		}
	}
	a, b := f.start(late), f.start(late)
	know(a, b)
	a.Kick()
	a.pres.listMu.Lock()
	if a.pres.list != nil {
		t.Error("gossip began without a key")
	}
	a.pres.listMu.Unlock()
	ready.Store(true)
	a.Kick()
	b.Kick()
	eventually(t, "they see each other", sees(a, b.Self(), StateAlive))
}

// T3: who has the gossip key but is not in the node list appears nowhere; nor
// does a listed name under an address that is not made of it.
func TestGossipOnlyOfListedNodes(t *testing.T) {
	f := newFleet(t)
	a := f.start(gossiping)
	g := gossipCalls{a.pres}
	alive := func(id NodeID, as NodeID) error {
		ip, _ := as.virtualIP()
		return g.NotifyAlive(&memberlist.Node{Name: string(id), Addr: net.IP(ip.AsSlice()), Port: virtualPort})
	}
	listed := ID("listed")
	f.set(listed, true)
	if err := alive(listed, listed); err != nil {
		t.Error(err)
	}
	if alive(ID("stranger"), ID("stranger")) == nil {
		t.Error("a stranger was let in")
	}
	if alive(listed, ID("stranger")) == nil {
		t.Error("a listed name under another address was let in")
	}
	// A removed node disappears.
	g.NotifyJoin(&memberlist.Node{Name: string(listed), Meta: []byte(`{"n":"x"}`)})
	if a.Presence()[listed].Name != "x" {
		t.Fatal("not seen")
	}
	f.set(listed, false)
	a.Recheck()
	if len(a.Presence()) != 0 {
		t.Error("a removed node is still seen")
	}
}

// A node that gossip has alive but that is not heard is shown as suspect, and
// any sign of life ends that.
func TestSuspect(t *testing.T) {
	f := newFleet(t)
	a := f.start(nil)
	x := ID("x")
	a.pres.up(x, nil)
	now := time.Now()
	late := now.Add(a.pres.patience() + time.Second)
	if got := a.pres.snapshot(now)[x].State; got != StateAlive {
		t.Errorf("at first %s", got)
	}
	if got := a.pres.snapshot(late)[x]; got.State != StateSuspect || !got.Since.Equal(late) {
		t.Errorf("then %+v", got)
	}
	a.pres.heard(x, late)
	if got := a.pres.snapshot(late)[x].State; got != StateAlive {
		t.Errorf("after a sign of life %s", got)
	}
	a.pres.down(x)
	a.pres.heard(x, late)
	if got := a.pres.snapshot(late)[x].State; got != StateDead {
		t.Errorf("a sign of life made a dead node %s", got)
	}
}

// Meta always fits, and nonsense of others does no harm.
func TestMeta(t *testing.T) {
	long := strings.Repeat("é", 300)
	var many []string
	for range ownAddrsMax {
		many = append(many, strings.Repeat("a", 200)+":1")
	}
	text := encodeMeta(meta{Name: long, API: long, Addrs: many, Generation: 1 << 63}, memberlist.MetaMaxSize)
	var m meta
	if len(text) > memberlist.MetaMaxSize || json.Unmarshal(text, &m) != nil || m.Generation != 1<<63 {
		t.Errorf("%d bytes: %s", len(text), text)
	}
	f := newFleet(t)
	a := f.start(nil)
	for _, text := range []string{"", "{", `{"a":["x","1.2.3.4:99999"],"n":5}`, `{"left":5}`, strings.Repeat("[", 10000)} {
		a.pres.up(ID("x"), []byte(text))
		a.pres.noted([]byte(text))
	}
	if got := a.Presence()[ID("x")]; got.State != StateAlive || got.Addr != "" {
		t.Errorf("got %+v", got)
	}
}

// Garbage on the UDP port neither stops gossip nor fills the log.
func TestGarbagePackets(t *testing.T) {
	f := newFleet(t)
	a, b := f.start(gossiping), f.start(gossiping)
	know(a, b)
	c, err := net.Dial("udp", a.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i := range 200 {
		if _, err := c.Write(bytes.Repeat([]byte{byte(i)}, 1+i*7)); err != nil {
			t.Fatal(err)
		}
	}
	a.Kick()
	eventually(t, "they see each other", sees(a, b.Self(), StateAlive))
	if n := a.log.count("msg=gossip"); n > 20 {
		t.Errorf("%d lines about garbage", n)
	}
}
