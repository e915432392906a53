package lease

import "fmt"

// drainAll lets the faults stop and the fleet run on, once with every node and
// once without node 0 for ever; it says what is stuck or wrong then.
func (w *world) drainAll(s *mState) (bad uint8, trace []act, why string) {
	for _, absent := range []int{-1, 0} {
		if bad, trace, why = w.drain(*s, absent); bad != bOK {
			if absent >= 0 {
				why += fmt.Sprintf(" (node %d never comes back)", absent)
			}
			return bad, trace, why
		}
	}
	return bOK, nil, ""
}

func (w *world) drain(s mState, absent int) (bad uint8, trace []act, why string) {
	calm := *w
	s.bud = mBud{}
	calm.sc.words = false
	for r := range s.run { // pushes are lost: the state alone must do
		s.run[r].startTerm, s.run[r].stopTerm = 0, 0
	}
	ticks := 0
	var picked mState
	for range 600 {
		best := act{c: aEnd}
		calm.succ(&s, func(a act, t *mState) {
			if calm.drains(&s, a, absent) && a.c < best.c {
				best, picked = a, *t
			}
		})
		if best.c == aTick || best.c == aEnd {
			ticks++
			if ticks == 6 {
				for r := range s.run { // the claim's own expiry (RUN-06)
					calm.commit(&s, r, ActExpire)
				}
				calm.settle(&s)
				continue
			}
			if ticks > 15 {
				break
			}
		}
		if best.c == aEnd {
			continue
		}
		trace = append(trace, best)
		s = picked
		if s.bad != bOK {
			return s.bad, trace, ""
		}
	}
	if why = calm.stuck(&s, absent); why != "" {
		return bStuck, trace, why
	}
	return bOK, nil, ""
}

// drains tells whether a step belongs to a drain: nothing new, no fault, nothing
// of an absent node.
func (w *world) drains(s *mState, a act, absent int) bool {
	if a.c >= aGiveUp || a.c == aClaim || a.c == aSay {
		return false
	}
	if absent < 0 || a.c == aTick || a.c == aTakeWord || a.c == aDoom || a.c == aLease {
		return true
	}
	switch a.c {
	case aSend, aHear, aApply, aMail, aAnswer, aRestart, aCont, aWake, aEstopOff:
		return int(a.a) != absent
	case aDeadline, aIdle, aLockOK, aLockNo, aExec: // of a session, whose keeper lives on
		return true
	}
	return int(s.run[a.a].node) != absent
}

// stuck says what is wrong with a fleet that has come to rest.
func (w *world) stuck(s *mState, absent int) string {
	for n := range w.sc.nodes {
		if n == absent {
			continue
		}
		if s.n[n].boxN > 0 {
			return fmt.Sprintf("the outbox of node %d is not empty", n)
		}
		for r := range s.run {
			if s.run[r].ex && s.n[n].e[r].mark != MarkNone && s.run[r].r.Stands() == StandsNone {
				return fmt.Sprintf("node %d keeps the key of run %d, whose order has left the state", n, r)
			}
		}
	}
	for r := range s.run {
		ru := &s.run[r]
		away := absent >= 0 && int(ru.node) == absent
		if !ru.ex || away && !ru.lease {
			continue
		}
		x := s.carrier(r)
		live := x >= 0 && s.se[x].k == kLive
		idle := ru.r.Verdict == VerdictOwn && ru.r.Order == OrderNone && !w.sc.headless && live
		switch {
		case ru.r.Verdict == VerdictNone && !live:
			return fmt.Sprintf("run %d has no verdict and no session", r)
		case ru.r.Verdict == VerdictNone && ru.r.Order != OrderLaunched && !away:
			return fmt.Sprintf("run %d lives, and its order is %s", r, ru.r.Order)
		case ru.r.Verdict != VerdictNone && ru.r.Held() && !idle:
			return fmt.Sprintf("run %d has its verdict, and its slot is never freed", r)
		case live && !away && ru.r.Gone != GoneNot && ru.r.Gone != GonePassed:
			return fmt.Sprintf("the session of run %d lives, and the run is gone", r)
		case live && !away && ru.r.Gone == GonePassed:
			return fmt.Sprintf("the session of run %d lives and belongs to nobody", r)
		case live && !away && ru.r.Closed:
			return fmt.Sprintf("the session of run %d lives, and was to be closed", r)
		case ru.r.Closed && ru.kept >= 0 && s.se[ru.kept].k == kLive && !away:
			return fmt.Sprintf("run %d was closed, and the session it was to keep lives", r)
		case ru.r.Order == OrderVoid && !away:
			return fmt.Sprintf("the stop of run %d is never answered", r)
		}
	}
	return ""
}
