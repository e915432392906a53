package sim

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"muster/board/lease"
	"muster/launcher/launchertest"
	"muster/mesh"
	"muster/raftstore/raftstoretest"
)

// Machine is what outlives the processes of a node: its disk, clocks and sessions.
type Machine struct {
	f     *Fleet
	Name  string
	dir   string
	slots int64
	disk  *raftstoretest.Disk
	keeps *launchertest.Runner

	mu       sync.Mutex
	id       mesh.NodeID   // of its node, once it has one
	wall     time.Duration // how wrong its clock is
	slept    time.Duration // in all
	sleeping time.Time     // since; zero: it is awake
	boots    int
	slow     time.Duration // what each write of its disk takes
	full     bool
	estop    bool
	now      *process
	rng      *rand.Rand
}

func (m *Machine) with(fn func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	fn()
}

// node is the id of its node, "" before it has one.
func (m *Machine) node() (id mesh.NodeID) {
	m.with(func() { id = m.id })
	return id
}

// up is the process that runs here, nil when none does.
func (m *Machine) up() *process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

func (m *Machine) boot() time.Duration { return time.Since(m.f.begun) + time.Hour }

func (m *Machine) bootNow() lease.Instant { return lease.Instant(m.boot()) }

// awake stands still while the machine sleeps.
func (m *Machine) awake() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.boot() - m.slept
	if !m.sleeping.IsZero() {
		d -= time.Since(m.sleeping)
	}
	return d
}

func (m *Machine) wallNow() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Now().Add(m.wall)
}

func (m *Machine) free() (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.full {
		return 1 << 20, nil
	}
	return 100 << 20, nil // no ballast is taken: it would be real
}

// sleep freezes the machine and all that runs on it, for a while.
func (m *Machine) sleep(d time.Duration) {
	m.with(func() { m.sleeping = time.Now() })
	m.f.net.freeze(m.node(), true)
	_ = pass(context.Background(), d)
	m.with(func() {
		m.slept += time.Since(m.sleeping)
		m.sleeping = time.Time{}
	})
	m.f.net.freeze(m.node(), false)
}

// kill ends the process as kill -9 does; with power the machine goes down, and takes its sessions and what was not
// synced with it. It returns when another process may start. It is called by one goroutine of the fleet at a time.
func (m *Machine) kill(power bool) {
	p := m.up()
	if p == nil {
		return
	}
	p.die()
	m.f.settle() // what was in a write has come out of it: the files are what the process left
	m.swap(filepath.Join(m.dir, "raft", "state.db"), power)
	m.swap(filepath.Join(m.dir, "journal.db"), false)
	if power {
		m.endSessions()
		m.with(func() { m.boots++ })
	}
	p.close()
	m.with(func() {
		if m.now == p {
			m.now = nil
		}
	})
}

// halt stops the process in order, as a service manager does; its sessions go on.
func (m *Machine) halt() {
	p := m.up()
	if p == nil {
		return
	}
	p.fuse.Store(0)
	p.close()
	p.cancel()
	if err := p.node.Close(); err != nil { // its end lets go of what it could not close
		m.f.count("stop that was not in order")
		m.f.note("%s could not put everything away: %v", m.Name, err)
		m.swap(filepath.Join(m.dir, "raft", "state.db"), false)
		m.swap(filepath.Join(m.dir, "journal.db"), false)
	}
	m.with(func() {
		if m.now == p {
			m.now = nil
		}
	})
}

// swap gives the next process a file of its own with the same bytes: what the dead one still does to it is nobody's
// affair. harm is what a machine without power makes of what was never synced.
func (m *Machine) swap(path string, harm bool) {
	in, err := os.Open(path)
	if err != nil {
		return
	}
	defer in.Close()
	out, err := os.Create(path + ".sim")
	if err != nil {
		m.f.bug("swap: %v", err)
		return
	}
	n, err := io.Copy(out, in)
	if harm && n > 0 {
		m.f.count("state torn")
		at := m.rng.Int64N(n) &^ 511
		if m.rng.IntN(2) == 0 {
			err = out.Truncate(at)
		} else {
			_, err = out.WriteAt(make([]byte, 512), at)
		}
	}
	if e := out.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(path+".sim", path)
	}
	if err != nil {
		m.f.bug("swap: %v", err)
	}
}

func (m *Machine) endSessions() {
	dirs, _ := filepath.Glob(filepath.Join(m.dir, "runs", "*"))
	for _, d := range dirs {
		if m.keeps.KillKeeper(d) {
			m.f.count("session killed with its machine")
		}
	}
}

// vanish kills the keeper of one session, and its session with it.
func (m *Machine) vanish() bool {
	dirs, _ := filepath.Glob(filepath.Join(m.dir, "runs", "*"))
	m.rng.Shuffle(len(dirs), func(i, j int) { dirs[i], dirs[j] = dirs[j], dirs[i] })
	for _, d := range dirs {
		if m.keeps.KillKeeper(d) {
			return true
		}
	}
	return false
}

func (m *Machine) stopAll(on bool) {
	path := filepath.Join(m.dir, "ESTOP")
	if !on {
		_ = os.Remove(path)
	} else if err := os.WriteFile(path, []byte("sim\n"), 0o600); err != nil {
		m.f.bug("estop: %v", err)
	}
	m.with(func() { m.estop = on })
}

// gate is what each write of a process passes: it waits while the machine is frozen or slow, and fails on a full disk
// and for a process that is dead. keep is how much of entries reaches the disk.
func (p *process) gate(op string, entries int) (keep int, err error) {
	m := p.m
	if err := m.f.net.thawed(p.ctx, p.id()); err != nil {
		return 0, errDead
	}
	m.mu.Lock()
	slow, full := m.slow, m.full
	m.mu.Unlock()
	if slow > 0 {
		_ = pass(p.ctx, m.f.upTo(slow))
	}
	switch {
	case p.ctx.Err() != nil:
		return 0, errDead
	case p.dies():
		m.f.count("killed in " + op)
		if entries > 0 {
			keep = m.f.rand(entries + 1)
			if keep < entries {
				m.f.count("log write torn")
			}
		}
		p.die()
		m.f.died(m)
		return keep, errDead
	case full && (op == "log-append" || op == "state-commit" || op == "log-term"):
		m.f.count("write on a full disk")
		return 0, fmt.Errorf("sim: %w", syscall.ENOSPC)
	}
	return entries, nil
}
