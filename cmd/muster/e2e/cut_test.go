package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// network is a machine room of its own: a namespace for each node and one for
// the switch between them. Nothing of it is seen outside.
type network struct {
	t    *testing.T
	name string
}

var networks atomic.Int64

// newNetwork needs root, ip and nsenter.
func newNetwork(t *testing.T, n int) *network {
	t.Helper()
	if os.Getuid() != 0 || exec.Command("unshare", "--net", "true").Run() != nil {
		t.Skip("needs root and a network namespace: to cut one way between machines")
	}
	for _, tool := range []string{"ip", "nsenter"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("needs iproute2 and unshare: to cut one way between machines")
		}
	}
	w := &network{t, fmt.Sprintf("mu%d-%d", os.Getpid(), networks.Add(1))}
	t.Cleanup(func() {
		for i := range n {
			_ = exec.Command("ip", "netns", "del", w.ns(i)).Run()
		}
		_ = exec.Command("ip", "netns", "del", w.ns(-1)).Run()
	})
	w.ip("netns add " + w.ns(-1))
	w.in(-1, "link add br0 type bridge")
	w.in(-1, "link set br0 up")
	for i := range n {
		w.ip("netns add " + w.ns(i))
		w.in(-1, fmt.Sprintf("link add p%d type veth peer name eth0 netns %s", i, w.ns(i)))
		w.in(-1, fmt.Sprintf("link set p%d master br0", i))
		w.in(-1, fmt.Sprintf("link set p%d up", i))
		w.in(i, "link set lo up")
		w.in(i, fmt.Sprintf("addr add %s/24 dev eth0", w.addr(i)))
		w.in(i, "link set eth0 up")
	}
	return w
}

// ns is the namespace of a machine, or of the switch (-1).
func (w *network) ns(i int) string { return fmt.Sprintf("%s-%d", w.name, i+1) }

func (w *network) addr(i int) string { return fmt.Sprintf("10.77.0.%d", i+1) }

func (w *network) ip(args string) {
	w.t.Helper()
	if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
		w.t.Fatalf("ip %s: %v %s", args, err, out)
	}
}

func (w *network) in(i int, args string) {
	w.t.Helper()
	w.ip("-n " + w.ns(i) + " " + args)
}

// place puts a machine into its namespace.
func (w *network) place(i int, m *machine) {
	m.listen = w.addr(i) + ":7100"
	m.prefix = []string{"nsenter", "--net=/run/netns/" + w.ns(i)}
}

// cut lets nothing through from one machine to another; heal undoes it. The
// other direction is as it was.
func (w *network) cut(from, to int)  { w.in(from, "route add blackhole "+w.addr(to)+"/32") }
func (w *network) heal(from, to int) { w.in(from, "route del blackhole "+w.addr(to)+"/32") }

// wires are what machines are connected by, each way of which can be cut.
type wires interface {
	place(i int, m *machine)
	cut(from, to int)
	heal(from, to int)
}

// Invariants 2 and 7, architecture.md §5: a machine that hears the others and
// cannot answer, and one that speaks and hears nothing. Its sessions are dead
// before they begin elsewhere, and when the cut is healed nothing of it counts.
// Once with packets that are lost, once with all that was said coming late.
func TestOneWayCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		make func(*testing.T) wires
	}{
		{"lost", func(t *testing.T) wires { return newNetwork(t, 3) }},
		{"late", func(t *testing.T) wires { return newProxies(t, 3) }},
	} {
		t.Run(c.name+", hears and cannot answer", func(t *testing.T) {
			t.Parallel()
			w := c.make(t)
			cutOff(t, w, func(victim, other int, do func(from, to int)) { do(victim, other) })
		})
		t.Run(c.name+", speaks and hears nothing", func(t *testing.T) {
			t.Parallel()
			w := c.make(t)
			cutOff(t, w, func(victim, other int, do func(from, to int)) { do(other, victim) })
		})
	}
}

func cutOff(t *testing.T, w wires, apply func(victim, other int, do func(from, to int))) {
	f := newFleetAt(t, 3, 4, w.place, steady...)
	f.workflow(shortLease)
	lead := f.leader()
	victim := f.other(lead)
	v := indexOf(f.machines, victim)
	s := f.stage("cut")
	all, losses := f.sessionsOn(t, s, victim, lead, 6)
	t.Logf("%s is cut off at %s", victim.name, time.Now().Format("15:04:05.000"))
	each := func(do func(from, to int)) {
		for i := range f.machines {
			if i != v {
				apply(v, i, do)
			}
		}
	}
	each(w.cut)
	witness := f.leaderBeside(victim)
	f.movesOver(t, s, witness, losses)
	each(w.heal)
	f.allOnline(f.leaderBeside(nil))
	f.stillElsewhere(t, s, witness, losses)
	f.onceDone(t, s, witness, all)
	t.Log("state", f.sameState())
}

// leaderBeside is the leader as one of the machines sees it that are not cut off.
func (f *fleet) leaderBeside(cut *machine) *machine {
	f.t.Helper()
	if cut != nil {
		cut.stopped = true // it is not asked
		defer func() { cut.stopped = false }()
	}
	return f.leader()
}
