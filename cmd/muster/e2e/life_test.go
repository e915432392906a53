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

// move is what a machine's silence did to its sessions.
type moved struct {
	card     string
	old, new began
	died     time.Time
	start    time.Time
}

// movesOver waits until each card's second session has begun, and checks that
// the first was dead before.
func (f *fleet) movesOver(t *testing.T, s *stage, m *machine, deaths map[string]*death) []moved {
	t.Helper()
	var cards []string
	for id := range deaths {
		cards = append(cards, id)
	}
	s.awaitStarts(m, 2, cards...)
	var list []moved
	for _, id := range cards {
		x := s.of(id)
		v := moved{card: id, old: x[0], new: x[1], died: deaths[id].wait(t, 5*time.Second), start: startOf(t, x[1].pid)}
		list = append(list, v)
		beat := s.lastBeat(v.old.run)
		t.Logf("card %s: run %s on %s dead at %s (last beat %s); run %s on %s began at %s, %s later", id, v.old.run, v.old.node,
			v.died.Format("15:04:05.000"), beat.Format("05.000"), v.new.run, v.new.node, v.start.Format("15:04:05.000"), v.start.Sub(v.died).Round(time.Millisecond))
		if !v.died.Before(v.start) || !beat.Before(v.start) {
			t.Errorf("card %s: run %s began while run %s still lived", id, v.new.run, v.old.run)
		}
		if v.old.node == v.new.node {
			t.Errorf("card %s began again on the machine that is away", id)
		}
	}
	return list
}

// sessionsOn files n cards and gives those whose session began on the victim,
// with a watch on each.
func (f *fleet) sessionsOn(t *testing.T, s *stage, victim, via *machine, n int) (all []string, deaths map[string]*death) {
	t.Helper()
	for i := range n {
		all = append(all, f.add(via, fmt.Sprintf("card %d", i), s.script("gate", 0), nil))
	}
	s.awaitStarts(via, 1, all...)
	deaths = map[string]*death{}
	for _, x := range s.starts() {
		if x.node == victim.name {
			deaths[x.card] = watch(t, x.pid)
		}
	}
	if len(deaths) == 0 {
		t.Fatalf("no session began on %s: %v", victim.name, s.starts())
	}
	return all, deaths
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
			f := newFleet(t, 3, 4)
			f.workflow("6")
			victim := f.leader()
			if who == "follower" {
				victim = f.other(victim)
			}
			s := f.stage(who)
			all, deaths := f.sessionsOn(t, s, victim, f.other(victim), 6)
			t.Logf("%s is killed at %s, lease 6 s", victim.name, time.Now().Format("15:04:05.000"))
			victim.kill()
			f.movesOver(t, s, f.other(victim), deaths)
			s.open("gate")
			f.await(f.other(victim), "done", all...)
			for _, id := range all {
				want := 1
				if deaths[id] != nil {
					want = 2
				}
				if got := len(s.of(id)); got != want || s.ended(id) != 1 {
					t.Errorf("card %s: %d starts, %d ends, want %d and 1", id, got, s.ended(id), want)
				}
			}
			s.neverTwo()
			victim.start()
			t.Log("state", f.sameState())
		})
	}
}

// Invariants 2 and 3: a node is stopped (SIGSTOP) for three leases and goes on.
// Its keepers end the sessions in time; what it says late moves nothing.
func TestNodeStoppedForThreeLeases(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, 4)
	f.workflow("6")
	lead := f.leader()
	victim := f.other(lead)
	s := f.stage("stop")
	all, deaths := f.sessionsOn(t, s, victim, lead, 6)
	stopped := time.Now()
	victim.signal(syscall.SIGSTOP)
	f.movesOver(t, s, lead, deaths)
	waitUntil(stopped.Add(18 * time.Second))
	victim.signal(syscall.SIGCONT)
	t.Logf("%s was stopped for %s", victim.name, time.Since(stopped).Round(time.Second))
	// The old runs' exits come now, and only mark them gone: no card moves.
	f.allOnline(lead)
	for id := range deaths {
		c, err := lead.card(id)
		if err != nil || c.Status != "running" || c.Run == nil || *c.Run != s.of(id)[1].run {
			t.Errorf("card %s after the return: %s, run %v (%v), want its second run", id, c.Status, c.Run, err)
		}
	}
	s.open("gate")
	f.await(lead, "done", all...)
	for _, id := range all {
		if s.ended(id) != 1 {
			t.Errorf("card %s was finished %d times", id, s.ended(id))
		}
	}
	s.neverTwo()
	t.Log("state", f.sameState())
}

// waitUntil waits for a moment.
func waitUntil(at time.Time) { <-time.After(time.Until(at)) }
