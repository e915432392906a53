package mesh

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func testBook(t *testing.T, dir string) *book {
	b := newBook(dir, ID("self"), slog.New(slog.DiscardHandler))
	if err := b.load(); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBookOrder(t *testing.T) {
	b := testBook(t, t.TempDir())
	x := ID("x")
	b.setPeer(x, []string{"10.0.0.1:7600", "host.example:7600"})
	b.learn(x, "10.0.0.2:7600")
	b.gossiped(x, []string{"10.0.0.9:7600", "10.0.0.1:7600"})
	want := []string{"10.0.0.2:7600", "10.0.0.1:7600", "host.example:7600", "10.0.0.9:7600"}
	if got := b.candidates(x); !slices.Equal(got, want) {
		t.Errorf("got %q, want newest first and gossip last: %q", got, want)
	}
	// The same node list again is no news, a changed one is.
	b.setPeer(x, []string{"10.0.0.1:7600", "host.example:7600"})
	if got := b.candidates(x)[0]; got != "10.0.0.2:7600" {
		t.Errorf("an unchanged list moved %s to the front", got)
	}
	b.setPeer(x, []string{"10.0.0.3:7600"})
	if got := b.candidates(x)[0]; got != "10.0.0.3:7600" {
		t.Errorf("a changed list did not come first, but %s", got)
	}
	// What answered comes first; packets go there.
	at := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 7600}
	b.reachedAt(x, "host.example:7600", at, time.Now())
	if got := b.candidates(x)[0]; got != "host.example:7600" {
		t.Errorf("what answered did not come first, but %s", got)
	}
	if ap, _ := b.packetAddr(x); ap.String() != "10.0.0.1:7600" {
		t.Errorf("packets go to %s", ap)
	}
	// Bounded, itself left out, nonsense left out.
	for i := range 20 {
		b.learn(x, net.JoinHostPort("10.1.0.1", string(rune('1'+i%9))))
	}
	b.learn(x, "", "nonsense", "host:", ":7600", "h:99999")
	b.learn(ID("self"), "10.0.0.1:7600")
	if got := len(b.peers[x].addrs); got != addrsPerPeer {
		t.Errorf("%d addresses are kept", got)
	}
	if slices.Contains(b.ids(), ID("self")) {
		t.Error("it lists itself")
	}
}

// Peers and their order outlive the process; gossip's word does not.
func TestBookIsKept(t *testing.T) {
	dir := t.TempDir()
	b := testBook(t, dir)
	x, y, z := ID("x"), ID("y"), ID("z")
	b.learn(x, "10.0.0.1:1")
	b.learn(y, "10.0.0.2:2")
	b.gossiped(z, []string{"10.0.0.3:3"})
	b.reachedAt(y, "10.0.0.2:2", &net.TCPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 2}, time.Now())
	if err := b.flush(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(b.path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	c := testBook(t, dir)
	if got := c.ids(); !slices.Equal(got, []NodeID{y, x}) {
		t.Errorf("got %v, want the last reached first", got)
	}
	if got := c.candidates(x); !slices.Equal(got, []string{"10.0.0.1:1"}) {
		t.Errorf("got %v", got)
	}
	c.forget(x)
	if err := c.flush(); err != nil {
		t.Fatal(err)
	}
	if got := testBook(t, dir).ids(); !slices.Equal(got, []NodeID{y}) {
		t.Errorf("after forget: %v", got)
	}
}

// A damaged file is set aside and does not keep the node from starting.
func TestBookDamaged(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, peersFile)
	if err := os.WriteFile(path, []byte(`{"format":1,"peers":[{"id":"x`), 0o600); err != nil {
		t.Fatal(err)
	}
	log := &lines{}
	b := newBook(dir, ID("self"), slog.New(slog.NewTextHandler(log, nil)))
	if err := b.load(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + ".damaged"); err != nil || log.count(path) == 0 {
		t.Errorf("not set aside or not said: %v", err)
	}
	// A strange entry in a whole file costs that entry only.
	text := `{"format":1,"peers":[{"id":"nonsense","addrs":["1.2.3.4:5"]},{"id":"` + string(ID("x")) + `","addrs":["1.2.3.4:5","?"]}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b = testBook(t, dir)
	if got := b.candidates(ID("x")); !slices.Equal(got, []string{"1.2.3.4:5"}) || len(b.ids()) != 1 {
		t.Errorf("got %v of %v", got, b.ids())
	}
}

// News wake whoever waits for an address, old tales do not.
func TestBookNews(t *testing.T) {
	b := testBook(t, t.TempDir())
	woken := func(f func()) bool {
		ch := b.changed()
		f()
		select {
		case <-ch:
			return true
		default:
			return false
		}
	}
	x := ID("x")
	if !woken(func() { b.learn(x, "10.0.0.1:1") }) {
		t.Error("a new address is no news")
	}
	if woken(func() { b.learn(x, "10.0.0.1:1") }) {
		t.Error("a known address is news")
	}
	if !woken(func() { b.gossiped(x, []string{"10.0.0.2:1"}) }) {
		t.Error("a new address by gossip is no news")
	}
}

func TestOwnAddrs(t *testing.T) {
	f := newFleet(t)
	a := f.start(nil)
	if got := a.Advertised(); !slices.Equal(got, []string{a.Addr().String()}) {
		t.Errorf("got %v", got)
	}
	if err := a.SetAdvertise("10.9.8.7:7600"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-a.Moved():
	default:
		t.Error("a change of address is not told")
	}
	if err := a.SetAdvertise("nonsense"); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("got %v", err)
	}
	all := f.start(func(c *Config) { c.Listen = "0.0.0.0:0" })
	for _, s := range all.Advertised() {
		if strings.HasPrefix(s, "0.0.0.0") || checkAddr(s) != nil {
			t.Errorf("told of itself: %q", s)
		}
	}
}
