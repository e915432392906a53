package raftstore

import (
	"sync/atomic"
	"testing"
	"time"

	"muster/board"
)

// Invariant 12, goal P5c: while the leader's disk does not answer, the others elect one of themselves and take what is asked,
// long before the watchdog gives the process up. A disk that answers after all makes the old leader a follower, with
// everything that was acknowledged. Fake time: what is told of times holds for any machine.
func TestLeaderYieldsWhileItsDiskIsLate(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"log-sync", "state-commit"} {
		t.Run(op, func(t *testing.T) { bubble(t, func(t *testing.T) { yields(t, op) }) })
	}
}

func yields(t *testing.T, op string) {
	hold := make(chan struct{})
	var hang atomic.Bool
	_, nodes := three(t, nil)
	victim := nodes[0]
	victim.breaks(func(at string) error {
		if at == op && hang.Load() {
			<-hold
		}
		return nil
	})
	hang.Store(true)
	asked := make(chan board.Result, 1)
	go func() { asked <- victim.s.Do(ctx(t), withID(toy(verbAdd, "a"), "x")) }()
	begun := time.Now()
	rest := nodes[1:]
	l := leader(t, rest)
	waitFor(t, "the others go on", func() bool { return l.s.Do(ctx(t), withID(toy(verbAdd, "a"), "x")).Err == nil })
	took, election := time.Since(begun), LAN().Election
	if took > 20*election { // goal P5c; an election may have to be held twice
		t.Errorf("the others went on after %v, %.1f election timeouts", took, float64(took)/float64(election))
	}
	t.Logf("%.1f election timeouts", float64(took)/float64(election))
	if err := victim.s.Err(); err != nil {
		t.Fatalf("the old leader has given up already: %v", err)
	}
	hang.Store(false)
	close(hold)
	if res := <-asked; res.Err != nil && res.Err.Code != board.UnknownOutcome { // the others may have had it from him
		t.Errorf("the old leader answered %+v", res)
	}
	same(t, nodes)
	if got := counter(t, victim.s, "a"); got != 1 {
		t.Errorf("a = %d after one request and its retry", got)
	}
	if err := victim.s.Err(); err != nil {
		t.Errorf("a disk that was late only has ended the node: %v", err)
	}
}
