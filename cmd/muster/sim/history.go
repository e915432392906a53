package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"muster/board"
)

// Report is what came of a history.
type Report struct {
	Seed      uint64
	Nodes     int
	Violation []string
	Counts    map[string]int
	Notes     []string
	Length    time.Duration // of fake time
	Ops       []op
	Most      map[string]int
}

// Run plays one history in a bubble.
func Run(cfg Config) *Report {
	f := New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := f.assemble(ctx, Workflow); err != nil {
		f.bug("the fleet does not come up: %v", err)
		f.stop()
		return f.report()
	}
	f.note("the fleet is up: %d nodes", cfg.Nodes)
	f.play(60 * time.Second)
	f.calm(ctx)
	f.settleDown(ctx)
	f.final(ctx)
	if cfg.Wide {
		f.monthLater(ctx)
		f.backup(ctx)
	}
	f.stop()
	return f.report()
}

func (f *Fleet) report() *Report {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &Report{Seed: f.cfg.Seed, Nodes: f.cfg.Nodes, Violation: f.bugs, Counts: f.counts, Notes: f.notes, Length: f.at(), Ops: f.ops, Most: f.caps}
}

// play lets users and faults loose.
func (f *Fleet) play(length time.Duration) {
	end := time.Now().Add(length)
	all := &cards{}
	var over atomic.Bool
	var users sync.WaitGroup
	for n := range 4 {
		users.Go(func() { f.user(n, all).life(&over) })
	}
	h := &harm{f: f, rng: rand.New(rand.NewPCG(f.cfg.Seed, 3))}
	look := time.NewTicker(250 * time.Millisecond)
	defer look.Stop()
	next := time.NewTimer(2 * time.Second)
	defer next.Stop()
	last := end.Add(9 * length)
	for {
		// A fault may take seconds: how late it is must not decide whether the history goes on.
		if time.Until(end) < time.Second && end.Before(last) && f.lacks() {
			end = time.Now().Add(5 * time.Second)
		}
		if !time.Now().Before(end) {
			break
		}
		select {
		case m := <-f.dead:
			h.bury(m)
		case <-look.C:
			f.compare()
		case <-next.C:
			h.strike()
			next.Reset(time.Duration(200+h.rng.IntN(1600)) * time.Millisecond)
		}
	}
	over.Store(true)
	done := make(chan struct{})
	go func() { users.Wait(); close(done) }()
	for waiting := true; waiting; {
		select {
		case m := <-f.dead:
			h.bury(m)
		case <-done:
			waiting = false
		}
	}
}

// What a history has at least, besides its length.
const (
	leastRequests = 200
	leastFinished = 20
)

// lacks tells that not enough has happened yet.
func (f *Fleet) lacks() bool {
	f.mu.Lock()
	requests := f.counts["request"]
	f.mu.Unlock()
	if requests < leastRequests {
		return true
	}
	for _, m := range f.machines {
		if p := m.up(); p != nil && p.ready.Load() {
			return finished(p.node.Store()) < leastFinished
		}
	}
	return true
}

func finished(s interface {
	View(func(board.View) error) error
}) (n int) {
	_ = s.View(func(v board.View) error {
		board.EachCard(v, nil, func(c *board.Card) bool {
			if board.Finished(c.Stored) {
				n++
			}
			return true
		})
		return nil
	})
	return n
}

// compare holds the states of the nodes against each other: at one Seq all have one hash.
func (f *Fleet) compare() {
	for _, m := range f.machines {
		p := m.up()
		if p == nil || !p.ready.Load() {
			continue
		}
		f.sameState(m.Name, p.node.Store().SeqHash)
	}
}

// sameState holds the state of one node against what others had at its Seq.
func (f *Fleet) sameState(name string, state func() (uint64, [16]byte)) {
	seq, hash := state()
	f.mu.Lock()
	was, known := f.hashes[seq]
	f.hashes[seq] = hash
	f.mu.Unlock()
	if known && was != hash {
		f.bug("%s has another state than others had at Seq %d", name, seq)
	}
}

// calm ends every fault and starts what is down.
func (f *Fleet) calm(ctx context.Context) {
	f.note("calm: every fault ends")
	f.net.calm()
	for _, m := range f.machines {
		m.with(func() { m.wall, m.slow, m.full = 0, 0, false })
		m.stopAll(false)
		if p := m.up(); p != nil {
			p.fuse.Store(0)
		}
	}
	for len(f.dead) > 0 {
		m := <-f.dead
		m.kill(false)
	}
	for _, m := range f.machines {
		for wait := time.Now().Add(time.Minute); ; _ = pass(ctx, 200*time.Millisecond) {
			p := m.up()
			if p == nil {
				p = m.start("", nil)
			}
			if p != nil && p.acts() {
				break
			}
			if time.Now().After(wait) {
				f.bug("%s does not come up after everything was healed", m.Name)
				break
			}
		}
	}
	u := f.user(9, &cards{})
	for _, slug := range []string{"", "web", "lab"} {
		u.must(board.VResume, board.Pause{Board: slug})
	}
	for _, m := range f.machines {
		u.must(board.VDrain, board.Drain{Node: m.Name, End: true})
	}
}

// must asks until it is done or refused.
func (u *user) must(verb string, args any) {
	for range 20 {
		if out := u.ask(verb, args); !out.open && !out.none {
			return
		}
	}
	u.f.bug("%s has no outcome after everything was healed", verb)
}

// settleDown waits until nothing is under way any more.
func (f *Fleet) settleDown(ctx context.Context) {
	var stuck []string
	begun := time.Now()
	for end := begun.Add(3 * time.Minute); time.Now().Before(end); _ = pass(ctx, time.Second) {
		f.compare()
		if time.Since(begun) >= 30*time.Second { // no session works for so long
			f.endHanging()
		}
		stuck = nil
		p := f.machines[0].up()
		if p == nil || !p.ready.Load() {
			continue
		}
		if err := p.node.Store().View(func(v board.View) error { stuck = Stuck(v); return nil }); err != nil {
			stuck = []string{err.Error()}
		}
		if len(stuck) == 0 {
			return
		}
	}
	f.bug("stuck after everything was healed: %s", strings.Join(stuck, "; "))
}

// endHanging is a person who looks at what goes on and does not end.
func (f *Fleet) endHanging() {
	var old []string
	p := f.machines[0].up()
	if p == nil || !p.ready.Load() {
		return
	}
	_ = p.node.Store().View(func(v board.View) error {
		board.EachCard(v, nil, func(c *board.Card) bool {
			if c.Run != "" {
				old = append(old, c.ID)
			}
			return true
		})
		return nil
	})
	u := f.user(9, &cards{})
	for _, id := range old {
		f.count("run ended by a person, because it hangs")
		u.fire(id, "stop_run", map[string]any{"why": "it hangs"})
	}
}

// drained waits until no machine has a report that nobody took.
func (f *Fleet) drained(ctx context.Context) {
	for _, m := range f.machines {
		for p := m.up(); p != nil && p.ready.Load() && p.node.Unsent() > 0; {
			if pass(ctx, 100*time.Millisecond) != nil {
				f.bug("%s has %d reports that nobody took", m.Name, p.node.Unsent())
				break
			}
		}
	}
}

// describe adds to the history how each node sees the fleet.
func (f *Fleet) describe() {
	names := map[string]string{}
	for _, m := range f.machines {
		names[string(m.node())] = m.Name
	}
	for _, m := range f.machines {
		p := m.up()
		if p == nil || !p.ready.Load() {
			f.note("%s is not up", m.Name)
			continue
		}
		s := p.node.Store()
		leader, term := s.Leader()
		index, seq := s.Applied()
		var list []string
		for _, x := range s.Servers() {
			node, store, _ := strings.Cut(x.ID, "/")
			list = append(list, fmt.Sprintf("%s/%s votes=%t", names[node], store, x.Voter))
		}
		at, _, _ := strings.Cut(leader, "/")
		f.note("%s: leader %s in term %d, entry %d, Seq %d, acts %t; %s", m.Name, names[at], term, index, seq, p.acts(), strings.Join(list, ", "))
	}
}

// final holds the end of a history against the invariants.
func (f *Fleet) final(ctx context.Context) {
	var most uint64
	for _, m := range f.machines {
		if p := m.up(); p != nil && p.ready.Load() {
			_, seq := p.node.Store().Applied()
			most = max(most, seq)
		}
	}
	wait, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for _, m := range f.machines {
		p := m.up()
		if p == nil || !p.ready.Load() {
			f.bug("%s is not up at the end", m.Name)
			continue
		}
		if err := p.node.Store().WaitSeq(wait, most); err != nil {
			f.bug("%s does not catch up with Seq %d: %v", m.Name, most, err)
			f.describe()
		}
	}
	f.compare()
	f.drained(wait)
	u := f.user(9, &cards{})
	for _, a := range slices.Clone(f.asked) {
		if a.open || !a.none && a.req.Retry || a.code == "" && !a.none && u.rng.IntN(4) == 0 {
			u.again(&a)
		}
	}
	seen := map[string]bool{}
	for _, o := range slices.Clone(f.ops) {
		if o.Kind != "copy" && !seen[o.Card] {
			seen[o.Card] = true
			for tries := 0; !u.read(o.Card); tries++ {
				if tries == 10 {
					f.bug("no consistent read of %s after everything was healed", o.Card)
					break
				}
			}
		}
	}
	p := f.machines[0].up()
	if p == nil {
		return
	}
	_ = p.node.Store().View(func(v board.View) error {
		for _, text := range CheckState(v, nil) {
			f.bug("at the end: %s", text)
		}
		board.EachCard(v, nil, func(c *board.Card) bool { f.count("card ends " + c.Stored); return true })
		return nil
	})
}
