package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/board"
)

// Invariant 18, SUP-10, SUP-12: a node is killed -9 while it runs sessions, and
// restarted. The sessions go on meanwhile, some end, the rest are adopted; exit
// codes and logs are complete, and nothing was started twice. Once for a node
// that follows and once for the one that leads.
func TestNodeKilledSessionsGoOn(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, 8)
	f.workflow("600")
	lead := f.leader()
	t.Run("follower", func(t *testing.T) { f.killAndAdopt(t, f.other(lead), lead) })
	t.Run("leader", func(t *testing.T) {
		lead := f.leader()
		f.killAndAdopt(t, lead, f.other(lead))
	})
	if !t.Failed() {
		t.Log("state", f.sameState())
	}
}

func (f *fleet) killAndAdopt(t *testing.T, victim, witness *machine) {
	s := f.stage("adopt-" + victim.name)
	once := func(a *board.CardAdd) { on(victim)(a); n := int64(1); a.MaxRetries = &n }
	// Two end while their node is dead, two after it is back; one of each fails.
	during := []string{f.add(witness, "ends well meanwhile", s.script("meanwhile", 0), once), f.add(witness, "fails meanwhile", s.script("meanwhile", 7), once)}
	after := []string{f.add(witness, "ends well later", s.script("later", 0), once), f.add(witness, "fails later", s.script("later", 9), once)}
	all := append(append([]string{}, during...), after...)
	s.awaitStarts(witness, 1, all...)

	victim.kill()
	ends := map[string]*death{}
	for _, x := range s.starts() {
		if !alive(x.pid) {
			t.Fatalf("session of %s died with its node", x.card)
		}
		ends[x.card] = watch(t, x.pid)
	}
	s.open("meanwhile")
	for _, id := range during {
		ends[id].wait(t, 20*time.Second)
	}
	victim.start()
	for _, id := range after {
		x := s.of(id)[0]
		if !alive(x.pid) {
			t.Fatalf("session of %s did not outlive the restart", id)
		}
		was := s.lastBeat(x.run)
		f.eventually(10*time.Second, "beating on", func() (bool, string) { return s.lastBeat(x.run).After(was), x.run })
	}
	s.open("later")
	f.await(witness, "done", during[0], after[0])
	f.await(witness, "blocked", during[1], after[1])
	for i, id := range all {
		f.wholeRun(t, s, witness, id, int64([]int{0, 7, 0, 9}[i]))
	}
	s.neverTwo()
}

// wholeRun checks that a card's only run is known completely: its exit code, its
// process, its log byte for byte, one start and one end.
func (f *fleet) wholeRun(t *testing.T, s *stage, m *machine, id string, code int64) {
	t.Helper()
	starts := s.of(id)
	if len(starts) != 1 || s.ended(id) != 1 {
		t.Errorf("card %s: %d starts and %d ends, want one of each", id, len(starts), s.ended(id))
		return
	}
	runs, err := m.runs(id)
	if err != nil || len(runs) != 1 {
		t.Errorf("card %s has %d runs (%v), want 1", id, len(runs), err)
		return
	}
	if runs[0].ExitCode == nil || *runs[0].ExitCode != code {
		t.Errorf("run %s: exit code %v, want %d", runs[0].ID, runs[0].ExitCode, code)
	}
	if runs[0].Gone == "" {
		t.Errorf("run %s is not gone", runs[0].ID)
	}
	beats, _ := os.ReadFile(filepath.Join(s.dir, "beat."+starts[0].run))
	n := strings.Count(string(beats), "\n")
	var want strings.Builder
	for i := range n {
		fmt.Fprintf(&want, "beat %d\n", i)
	}
	fmt.Fprintf(&want, "%d beats, the end\n", n)
	if got, err := m.log(starts[0].run); err != nil || got != want.String() {
		t.Errorf("log of run %s (%v): %d bytes, want the %d that it wrote\n%q", starts[0].run, err, len(got), want.Len(), got)
	}
}

// lost is a session that a machine will lose: its successor must begin after its death.
type lost struct {
	began
	*death
}

// movesOver waits until each lost session has a successor, and checks that it was
// dead before that began, on another machine. It prints both times.
func (f *fleet) movesOver(t *testing.T, s *stage, m *machine, losses map[string]lost) {
	t.Helper()
	for id, old := range losses {
		var next began
		f.eventually(120*time.Second, "begun elsewhere", func() (bool, string) {
			for i, x := range s.of(id) {
				if x.run == old.run && i+1 < len(s.of(id)) {
					next = s.of(id)[i+1]
					return true, ""
				}
			}
			return false, id + ": " + f.whyNot(m, id)
		})
		died := old.wait(t, 5*time.Second)
		start, beat := s.startOf(t, next), s.lastBeat(old.run)
		t.Logf("card %s: run %s on %s dead at %s (last beat %s); run %s on %s began at %s, %s later", id, old.run, old.node,
			died.Format("15:04:05.000"), beat.Format("05.000"), next.run, next.node, start.Format("15:04:05.000"), start.Sub(died).Round(time.Millisecond))
		if !died.Before(start) || !beat.Before(start) {
			t.Errorf("card %s: run %s began while run %s still lived", id, next.run, old.run)
		}
		if old.node == next.node {
			t.Errorf("card %s began again on the machine that is away", id)
		}
	}
}

// sessionsOn files n cards and gives those whose session runs on the victim now.
// On a machine that is far too loaded a short lease may end one before its time;
// it then begins anew, which is no concern of these tests.
func (f *fleet) sessionsOn(t *testing.T, s *stage, victim, via *machine, n int) (all []string, losses map[string]lost) {
	t.Helper()
	for i := range n {
		all = append(all, f.add(via, fmt.Sprintf("card %d", i), s.script("gate", 0), nil))
	}
	s.awaitStarts(via, 1, all...)
	losses = map[string]lost{}
	f.eventually(60*time.Second, "running on "+victim.name, func() (bool, string) {
		for _, id := range all {
			list := s.of(id)
			x := list[len(list)-1]
			if c, err := via.card(id); err != nil || x.node != victim.name || c.Run == nil || *c.Run != x.run {
				continue
			}
			if d, err := watchFor(x.pid); err == nil {
				losses[id] = lost{x, d}
			}
		}
		return len(losses) > 0, fmt.Sprint(s.starts())
	})
	return all, losses
}

// onceDone opens the gate, and checks that each card is finished by one session,
// that no two of a card ever met, and that the states are the same.
func (f *fleet) onceDone(t *testing.T, s *stage, m *machine, all []string) {
	t.Helper()
	s.open("gate")
	f.await(m, "done", all...)
	for _, id := range all {
		if s.ended(id) != 1 {
			t.Errorf("card %s was finished %d times", id, s.ended(id))
		}
	}
	s.neverTwo()
}

// stillElsewhere checks that what comes late from a machine that was away moves
// no card: each is worked by the session that followed.
func (f *fleet) stillElsewhere(t *testing.T, s *stage, m *machine, losses map[string]lost) {
	t.Helper()
	for id, old := range losses {
		c, err := m.card(id)
		if err != nil || c.Status != "running" || c.Run == nil || *c.Run == old.run {
			t.Errorf("card %s after the return: %s, run %v (%v), want a later run than %s", id, c.Status, c.Run, err, old.run)
		}
		runs, err := m.runs(id)
		if err != nil {
			t.Error(err)
		}
		for _, r := range runs {
			if r.ID == old.run && r.Gone == "" {
				t.Errorf("run %s is not gone", r.ID)
			}
		}
	}
}

// Invariant 2, M-35, SUP-16: a node is killed -9 and not restarted. Its keepers
// end the sessions at the lease's deadline; only then they begin elsewhere. Once
// for a node that follows, once for the leader, whose successor counts from the
// start of its term.
func TestNodeGoneForGood(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"follower", "leader"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			var args []string
			if who == "follower" {
				args = steady
			}
			f := newFleet(t, 3, 4, args...)
			f.workflow(shortLease)
			victim := f.leader()
			if who == "follower" {
				victim = f.other(victim)
			}
			s := f.stage(who)
			all, losses := f.sessionsOn(t, s, victim, f.other(victim), 6)
			t.Logf("%s is killed at %s, lease %s s", victim.name, time.Now().Format("15:04:05.000"), shortLease)
			victim.kill()
			f.movesOver(t, s, f.other(victim), losses)
			f.onceDone(t, s, f.other(victim), all)
			victim.start()
			t.Log("state", f.sameState())
		})
	}
}

// Invariants 2 and 3: a node is stopped (SIGSTOP) for three leases and goes on.
// Its keepers end the sessions in time; what it says late moves nothing.
func TestNodeStoppedForThreeLeases(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, 4, steady...)
	f.workflow(shortLease)
	lead := f.leader()
	victim := f.other(lead)
	s := f.stage("stop")
	all, losses := f.sessionsOn(t, s, victim, lead, 6)
	stopped := time.Now()
	victim.signal(syscall.SIGSTOP)
	f.movesOver(t, s, lead, losses)
	waitUntil(stopped.Add(3 * 8 * time.Second))
	victim.signal(syscall.SIGCONT)
	t.Logf("%s was stopped for %s", victim.name, time.Since(stopped).Round(time.Second))
	f.allOnline(lead)
	f.stillElsewhere(t, s, lead, losses)
	f.onceDone(t, s, lead, all)
	t.Log("state", f.sameState())
}

// waitUntil waits for a moment.
func waitUntil(at time.Time) { <-time.After(time.Until(at)) }
