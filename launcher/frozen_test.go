package launcher

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"muster/board/lease"
)

// frozen is a Runner whose keepers of chosen folders do not read: what is told to
// them waits until the test ends.
type frozen struct {
	Runner
	end chan struct{}

	mu   sync.Mutex
	dirs map[string]*frozenSession
	ice  map[string]bool
}

type frozenSession struct {
	Session
	f        *frozen
	dir      string
	extended atomic.Int64
}

func (f *frozen) Start(dir string) (Session, error) {
	s, err := f.Runner.Start(dir)
	if err != nil {
		return nil, err
	}
	x := &frozenSession{Session: s, f: f, dir: dir}
	f.mu.Lock()
	f.dirs[dir] = x
	f.mu.Unlock()
	return x, nil
}

func (s *frozenSession) wait() {
	s.f.mu.Lock()
	ice := s.f.ice[s.dir]
	s.f.mu.Unlock()
	if ice {
		<-s.f.end
	}
}

func (s *frozenSession) Extend(at lease.Instant) error {
	s.wait()
	s.extended.Add(1)
	return s.Session.Extend(at)
}

func (s *frozenSession) Stop(kill time.Duration, why string) error {
	s.wait()
	return s.Session.Stop(kill, why)
}

// A keeper that is frozen holds up nobody else: deadlines of the other sessions
// move with the contact, others are stopped, others start.
func TestFrozenKeeperHoldsUpNobody(t *testing.T) {
	t.Parallel()
	f := &frozen{Runner: testKeepers(t), end: make(chan struct{}), dirs: map[string]*frozenSession{}, ice: map[string]bool{}}
	n := newNode(t, func(c *Config) { c.Runner = f })
	t.Cleanup(func() { close(f.end) }) // before the launcher is closed
	stuck, other := n.start("sh", "sleep 300"), n.start("sh", "sleep 300")
	n.launched(stuck)
	n.launched(other)
	dir := func(run string) string { return filepath.Join(n.cfg.Dir, "runs", run) }
	f.mu.Lock()
	f.ice[dir(stuck)] = true
	s := f.dirs[dir(other)]
	f.mu.Unlock()
	for range 3 {
		was := s.extended.Load()
		n.fleet.set(func() { n.fleet.contact -= 2 * time.Minute }) // more than a keeper is told at once
		n.Contact()
		eventually(t, "a deadline that moves", func() bool { return s.extended.Load() > was })
	}
	if err := n.event(n.fleet.run(stuck).Card, "cancel"); err != nil {
		t.Fatal(err)
	}
	if err := n.event(n.fleet.run(other).Card, "cancel"); err != nil {
		t.Fatal(err)
	}
	n.gone(other)
	n.gone(n.start("sh", "exit 0"))
	if r := n.fleet.run(stuck); r.Gone != "" {
		t.Errorf("the frozen session is told gone: %q", r.Gone)
	}
	if s, err := f.Adopt(context.Background(), dir(stuck)); err != nil || s == nil {
		t.Errorf("the session behind the frozen keeper: %v, %v", s, err)
	} else {
		s.Close()
	}
}
