package mesh

import (
	"bytes"
	"compress/lzw"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"net"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// tap is a UDP socket between a node and one of its peers: it keeps what passes.
type tap struct {
	*net.UDPConn
	to   *net.UDPAddr
	mu   sync.Mutex
	seen [][]byte
}

func newTap(t *testing.T, b *member) (p *tap, addr string) {
	t.Helper()
	front := newProxy(t, b.Addr().String())
	at, err := net.ResolveUDPAddr("udp", front.addr)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.ListenUDP("udp", at)
	if err != nil {
		t.Fatal(err)
	}
	to, err := net.ResolveUDPAddr("udp", b.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	p = &tap{UDPConn: c, to: to}
	t.Cleanup(func() { _ = c.Close() })
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			p.mu.Lock()
			p.seen = append(p.seen, bytes.Clone(buf[:n]))
			p.mu.Unlock()
			_, _ = c.WriteToUDP(buf[:n], p.to)
		}
	}()
	return p, front.addr
}

func (p *tap) packets() [][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.seen)
}

// T2, T3: what gossip sends fits into a packet of any network (1,200 bytes), and of
// names, ids and addresses nothing is readable in it.
func TestPacketsAreSmallAndSealed(t *testing.T) {
	f := newFleet(t)
	long := func(c *Config) {
		gossiping(c)
		c.About = func() About {
			return About{Name: "name-of-the-machine-" + string(bytes.Repeat([]byte("n"), 40)), API: string(bytes.Repeat([]byte("a"), 128))}
		}
	}
	var ms []*member
	for range 8 {
		ms = append(ms, f.start(long))
	}
	a := ms[0]
	var taps []*tap
	for _, b := range ms[1:] {
		p, addr := newTap(t, b)
		taps = append(taps, p)
		if err := b.SetAdvertise(addr); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range ms[1:] {
		a.SetPeer(b.Self(), b.Advertised()[0])
		b.SetPeer(a.Self(), a.Addr().String())
		b.Kick()
	}
	a.Kick()
	eventually(t, "all see each other", func() bool {
		for _, b := range ms[1:] {
			if !sees(a, b.Self(), StateAlive)() {
				return false
			}
		}
		return true
	})
	n := 0
	eventually(t, "packets pass", func() bool {
		n = 0
		for _, p := range taps {
			n += len(p.packets())
		}
		return n > 50
	})
	for _, p := range taps {
		for _, b := range p.packets() {
			if len(b) > 1200 {
				t.Errorf("a packet of %d bytes", len(b))
			}
			if !bytes.Contains(b[:min(len(b), 40)], []byte("test-fleet")) { // the label, bound to what is sealed
				t.Error("a packet without its fleet's label")
			}
			for _, word := range []string{"name-of-the-machine", string(a.Self()), string(ms[1].Self())} {
				if bytes.Contains(b, []byte(word)) {
					t.Errorf("a packet holds %q as it is", word)
				}
			}
		}
	}
}

// bomb is a packet of gossip as who holds its key can make one: some KB that unpack to tens of MB.
func bomb(t *testing.T, label string) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := lzw.NewWriter(&packed, lzw.LSB, 8)
	zeros := make([]byte, 1<<20)
	for packed.Len() < 50<<10 {
		if _, err := w.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if packed.Len() > 64_000 {
		t.Fatalf("%d bytes are no packet", packed.Len())
	}
	const labelled, compressed = 244, 9                                                     // memberlist's numbers of messages
	msg := []byte{compressed, 0x82, 0xa4, 'A', 'l', 'g', 'o', 0, 0xa3, 'B', 'u', 'f', 0xda} // msgpack
	msg = append(binary.BigEndian.AppendUint16(msg, uint16(packed.Len())), packed.Bytes()...)
	block, err := aes.NewCipher(gossipKey)
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	nonce := make([]byte, gcm.NonceSize())
	packet := append(append([]byte{labelled, byte(len(label))}, label...), 1)
	return gcm.Seal(append(packet, nonce...), nonce, msg, []byte(label))
}

// T4: who has the key of gossip sends packets that unpack to a thousand times their size: they are not unpacked.
func TestBombOfGossip(t *testing.T) {
	f := newFleet(t)
	a := f.start(gossiping)
	c, err := net.Dial("udp", a.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	packet := bomb(t, a.cfg.FleetID)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 20 {
		if _, err := c.Write(packet); err != nil {
			t.Fatal(err)
		}
	}
	b := f.start(gossiping) // what it says comes behind them
	know(a, b)
	b.Kick()
	eventually(t, "b is heard", func() bool { return sees(a, b.Self(), StateAlive)() && len(a.pres.in) == 0 })
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
		t.Errorf("20 packets of %d bytes made a node take %d MB", len(packet), grown>>20)
	}
}

// Keys are changed under way: with the one before beside it nobody is lost; a node
// that was away with an old key hears the others when it has the new one.
func TestGossipKeysAreChanged(t *testing.T) {
	f := newFleet(t)
	var mu sync.Mutex
	keys := map[int][][]byte{}
	key := func(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }
	set := func(i int, ks ...[]byte) { mu.Lock(); defer mu.Unlock(); keys[i] = ks }
	var ms []*member
	for i := range 3 {
		set(i, key(1))
		ms = append(ms, f.start(func(c *Config) {
			c.GossipKeys = func() [][]byte { mu.Lock(); defer mu.Unlock(); return keys[i] }
		}))
	}
	know(ms...)
	all := func(list ...*member) func() bool {
		return func() bool {
			for _, a := range list {
				for _, b := range list {
					if a != b && !sees(a, b.Self(), StateAlive)() {
						return false
					}
				}
			}
			return true
		}
	}
	kick := func() {
		for _, m := range ms {
			m.Kick()
		}
	}
	kick()
	eventually(t, "all see each other", all(ms...))
	for k := byte(2); k < 8; k++ { // the third is away: it does not hear of six keys
		set(0, key(k), key(k-1))
		kick()
		set(1, key(k), key(k-1))
		kick()
	}
	for _, m := range ms[:2] {
		eventually(t, "it seals with the seventh key, and opens with that and the one before", func() bool {
			m.pres.listMu.Lock()
			defer m.pres.listMu.Unlock()
			return bytes.Equal(m.pres.ring.GetPrimaryKey(), key(7)) && len(m.pres.ring.GetKeys()) == 2
		})
	}
	eventually(t, "the two see each other", all(ms[0], ms[1]))
	eventually(t, "the third is not heard", func() bool { return !sees(ms[0], ms[2].Self(), StateAlive)() })
	if c, err := ms[2].Dial(ctxFor(t, 10*time.Second), ms[0].Self(), ALPNRaft); err != nil { // and yet it comes to the state, which has the key
		t.Fatal(err)
	} else {
		_ = c.Close()
	}
	set(2, key(7), key(6))
	kick()
	eventually(t, "the third is back", all(ms...))
}
