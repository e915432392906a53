package mesh

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

// fleet is some nodes on loopback that trust each other by a list.
type fleet struct {
	t    *testing.T
	mu   sync.Mutex
	list map[NodeID]bool
}

func newFleet(t *testing.T) *fleet { return &fleet{t: t, list: make(map[NodeID]bool)} }

func (f *fleet) trust(id NodeID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.list[id]
}

func (f *fleet) set(id NodeID, in bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list[id] = in
}

// member is a node that can be started again on its folder.
type member struct {
	*Node
	cfg Config
	log *lines
}

func echo(_ context.Context, peer NodeID, method string, body []byte) ([]byte, error) {
	return append([]byte(method+" "), body...), nil
}

// start makes a node and puts it on the list; change may alter its config.
func (f *fleet) start(change func(*Config)) *member {
	f.t.Helper()
	dir := f.t.TempDir()
	id, err := LoadOrCreateIdentity(dir)
	if err != nil {
		f.t.Fatal(err)
	}
	f.set(id.ID, true)
	m := &member{log: &lines{}}
	c := DefaultConfig()
	c.Dir, c.Identity, c.FleetID, c.Trust, c.Handler = dir, id, "test-fleet", f.trust, echo
	c.Listen = "127.0.0.1:0"
	c.ProbeInterval = 100 * time.Millisecond
	c.Logger = slog.New(slog.NewTextHandler(m.log, nil))
	if change != nil {
		change(&c)
	}
	m.cfg = c
	f.open(m)
	return m
}

func (f *fleet) open(m *member) {
	f.t.Helper()
	n, err := New(m.cfg)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := n.Open(); err != nil {
		f.t.Fatal(err)
	}
	m.Node = n
	f.t.Cleanup(func() { _ = n.Close() })
}

// know tells every node of every other's address.
func know(ms ...*member) {
	for _, a := range ms {
		for _, b := range ms {
			if a != b {
				a.SetPeer(b.Self(), b.Addr().String())
			}
		}
	}
}

// lines is a log to look at.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), what)
}

// patience is the least that anything is waited for: it ends a hang, and claims nothing of how fast a busy machine is.
const patience = time.Minute

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	within(t, patience, what, ok)
}

func within(t *testing.T, d time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(d)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("not within %v: %s", d, what)
		case <-tick.C:
		}
	}
}

func ctxFor(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), max(d, patience))
	t.Cleanup(cancel)
	return ctx
}
