package sim

import (
	"context"
	"math/rand/v2"
	"time"

	"muster/mesh"
)

// harm is what goes wrong, by the seed alone.
type harm struct {
	f   *Fleet
	rng *rand.Rand
}

func (h *harm) ms(from, to int) time.Duration {
	return time.Duration(from+h.rng.IntN(to-from)) * time.Millisecond
}

// later ends a fault after a while, unless the history ends first.
func (h *harm) later(d time.Duration, fn func()) {
	h.f.wg.Go(func() {
		_ = pass(context.Background(), d)
		if !h.f.over() {
			fn()
		}
	})
}

// victim is some machine; rather the one that leads.
func (h *harm) victim() *Machine {
	v := h.f.machines[h.rng.IntN(len(h.f.machines))]
	if h.rng.IntN(2) == 0 {
		return v
	}
	for _, m := range h.f.machines {
		if p := m.up(); p != nil && p.ready.Load() {
			if _, leads := p.node.Store().LeaderTerm(); leads {
				return m
			}
		}
	}
	return v
}

// spare tells that one more machine may fail without the fleet standing still for long.
func (h *harm) spare() bool {
	down := 0
	for _, m := range h.f.machines {
		if p := m.up(); p == nil || !p.ready.Load() {
			down++
		}
	}
	return down == 0 || (down+1)*2 < min(len(h.f.machines), 5) || h.rng.IntN(6) == 0
}

// strike does one harm.
func (h *harm) strike() {
	if h.f.cfg.Wide && h.rng.IntN(20) == 0 {
		h.halt()
	} else {
		h.fault()
	}
}

func (h *harm) fault() {
	f, v := h.f, h.victim()
	say := func(what string) { f.count("fault: " + what); f.note("%s: %s", v.Name, what) }
	switch h.rng.IntN(20) {
	case 0, 1, 2:
		if h.spare() {
			say("kill -9")
			v.kill(false)
			h.again(v)
		}
	case 3:
		if h.spare() {
			say("power cut")
			v.kill(true)
			h.again(v)
		}
	case 4, 5, 6:
		if p := v.up(); p != nil && p.ready.Load() && h.spare() {
			say("kill at a write")
			p.fuse.Store(int64(1 + h.rng.IntN(12)))
		}
	case 7:
		say("cut off, both ways")
		h.cut(v, true, true)
	case 8:
		say("cut off, one way")
		out := h.rng.IntN(2) == 0
		h.cut(v, out, !out)
	case 9:
		say("partition")
		h.partition()
	case 10:
		say("sleep")
		d := h.ms(500, 22000)
		if v.node() != "" && v.up() != nil && v.awakeNow() {
			f.wg.Go(func() { v.sleep(d) })
		}
	case 11:
		step := []time.Duration{time.Hour, -time.Hour, 10 * time.Second, -10 * time.Second}[h.rng.IntN(4)]
		say("clock step")
		v = f.machines[len(f.machines)-1] // one clock at a time: of two wrong ones nobody is right
		v.with(func() { v.wall = step })
		h.later(h.ms(2000, 20000), func() { v.with(func() { v.wall = 0 }) })
	case 12:
		if h.spare() {
			say("disk full")
			v.with(func() { v.full = true })
			h.later(h.ms(2000, 9000), func() { v.with(func() { v.full = false }) })
		}
	case 13, 14:
		d := h.ms(20, 600)
		say("disk slow")
		v.countSlow()
		v.with(func() { v.slow = d })
		h.later(h.ms(1000, 6000), func() { v.with(func() { v.slow = 0 }) })
	case 15:
		if v.vanish() {
			say("session vanishes")
		}
	case 16:
		say("starts refused (ESTOP)")
		v.stopAll(true)
		h.later(h.ms(1000, 6000), func() { v.stopAll(false) })
	case 17, 18:
		say("bad network")
		f.net.set(func() { f.net.risk = Risk{Slow: 0.02, LostReq: 0.03, LostAns: 0.05, LateReq: 0.05, Twice: 0.3} })
		h.later(h.ms(2000, 8000), func() { f.net.set(func() { f.net.risk = Risk{} }) })
	case 19:
		if p := v.up(); p != nil && p.ready.Load() {
			say("leadership handed over")
			h.later(0, func() {
				ctx, cancel := context.WithTimeout(p.ctx, 5*time.Second)
				defer cancel()
				_ = p.node.Store().Transfer(ctx)
			})
		}
	}
}

// halt stops a node in order.
func (h *harm) halt() {
	v := h.victim()
	if p := v.up(); p != nil && p.acts() && v.awakeNow() && h.spare() {
		h.f.count("fault: stopped in order")
		h.f.note("%s: stopped in order", v.Name)
		v.halt()
		h.again(v)
	}
}

// countSlow counts a slow disk of one that follows.
func (m *Machine) countSlow() {
	if p := m.up(); p != nil && p.ready.Load() {
		if _, leads := p.node.Store().LeaderTerm(); !leads {
			m.f.count("fault: slow follower")
		}
	}
}

func (m *Machine) awakeNow() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sleeping.IsZero()
}

// again starts a machine's node after a while.
func (h *harm) again(m *Machine) {
	h.later(h.ms(100, 7000), func() { m.start("", nil) })
}

// bury makes a death by a fuse complete.
func (h *harm) bury(m *Machine) {
	h.f.note("%s died at a write", m.Name)
	h.f.count("fault: died at a write")
	m.kill(h.rng.IntN(3) == 0)
	h.again(m)
}

// cut separates a machine from all others for a while: sometimes for longer than its lease.
func (h *harm) cut(v *Machine, out, in bool) {
	for _, o := range h.f.machines {
		if o != v {
			if out {
				h.f.net.cut(v.node(), o.node())
			}
			if in {
				h.f.net.cut(o.node(), v.node())
			}
		}
	}
	h.mend()
}

// partition makes two halves.
func (h *harm) partition() {
	side := map[mesh.NodeID]bool{}
	for _, m := range h.f.machines {
		side[m.node()] = h.rng.IntN(2) == 0
	}
	for _, a := range h.f.machines {
		for _, b := range h.f.machines {
			if side[a.node()] != side[b.node()] {
				h.f.net.cut(a.node(), b.node())
			}
		}
	}
	h.mend()
}

func (h *harm) mend() {
	d := h.ms(300, 6000)
	if h.rng.IntN(4) == 0 {
		d = h.ms(15000, 25000)
	}
	h.later(d, h.f.net.heal)
}
