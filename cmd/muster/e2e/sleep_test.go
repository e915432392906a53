package e2e

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// asleep is a prefix that lets a node run with the boot clock three hours ahead,
// as after a sleep of which its keepers, outside, know nothing.
var asleep = []string{"unshare", "--time", "--boottime", "10800", "--fork", "--kill-child=KILL"}

// Invariants 2, 14 and 18: a node is killed and comes up with its boot clock
// hours ahead. Under a lease that still holds its sessions are adopted and end
// once, with code and log; what a lease has ended is dead before it begins
// elsewhere, is reported late, and moves nothing.
func TestNodeWakesHoursLater(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: to give a node another boot clock")
	}
	if exec.Command("unshare", "--time", "--boottime", "1", "true").Run() != nil {
		t.Skip("needs unshare and a time namespace: to give a node another boot clock")
	}
	t.Parallel()
	f := newFleet(t, 3, 4, steady...)
	f.workflow("600")
	lead := f.leader()
	victim := f.other(lead)

	s := f.stage("kept")
	kept := []string{f.add(lead, "kept", s.script("gate", 0), on(victim)), f.add(lead, "kept too", s.script("gate", 0), on(victim))}
	s.awaitStarts(lead, 1, kept...)
	victim.kill()
	victim.prefix = asleep
	victim.start()
	for _, id := range kept {
		x := s.of(id)[0]
		was := s.lastBeat(x.run)
		f.eventually(10*time.Second, "beating on", func() (bool, string) { return alive(x.pid) && s.lastBeat(x.run).After(was), x.run })
	}
	s.open("gate")
	fresh := f.add(lead, "started hours later", s.script("gate", 0), on(victim))
	f.await(lead, "done", append(kept, fresh)...)
	for _, id := range append(kept, fresh) {
		f.wholeRun(t, s, lead, id, 0)
	}
	s.neverTwo()

	f.workflow(shortLease)
	victim = f.other(lead, victim)
	s = f.stage("lost")
	all, losses := f.sessionsOn(t, s, victim, lead, 6)
	victim.kill()
	f.movesOver(t, s, lead, losses)
	victim.prefix = asleep
	victim.start()
	f.allOnline(lead)
	f.stillElsewhere(t, s, lead, losses)
	f.onceDone(t, s, lead, all)
	t.Log("state", f.sameState())
}
