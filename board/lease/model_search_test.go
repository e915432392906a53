package lease

import (
	"fmt"
	"hash/maphash"
	"math/rand"
	"strings"
)

// Steps of the model.
const (
	aDo      actCode = iota // + Do: what Next decided
	aForward actCode = iota + 10
	aPrompt
	aSend
	aHear
	aApply
	aMail
	aAnswer
	aTakeWord
	aLockOK
	aLockNo
	aExec
	aDeadline
	aSay
	aIdle
	aClaim
	aRestart
	aCont
	aWake
	aEstopOff
	aDoom
	aLease
	aTick // last: in a drain, time passes when nothing else happens
	// What may happen but need not: not part of a drain.
	aGiveUp
	aVerdict
	aClose
	aForce
	aChange
	aDeposed
	aEarly
	aExit
	aKeeper
	aCrash
	aStop
	aSleep
	aReboot
	aEstopOn
	aEnd
)

var actText = map[actCode]string{
	aDo + actCode(DoRecord): "node records for run %[1]d, files %[2]s",
	aDo + actCode(DoSpawn):  "node spawns the keeper of run %[1]d",
	aDo + actCode(DoAdopt):  "node gives the kept session the identity of run %[1]d",
	aDo + actCode(DoKill):   "node has the session of run %[1]d killed",
	aDo + actCode(DoReap):   "node ends the tree of run %[1]d, whose keeper is dead",
	aDo + actCode(DoForget): "node forgets the key of run %[1]d",
	aForward:                "node forwards the word of run %[1]d",
	aPrompt:                 "node gives the prompt of run %[1]d to the session",
	aSend:                   "node %[1]d sends a contact",
	aHear:                   "node %[1]d hears the answer",
	aApply:                  "node %[1]d applies an entry",
	aMail:                   "leader takes the head of the outbox of node %[1]d: %[3]s",
	aAnswer:                 "leader, confirmed, answers node %[1]d",
	aTakeWord:               "leader takes the word of run %[1]d",
	aLockOK:                 "keeper of run %[1]d: lock, last check passed",
	aLockNo:                 "keeper of run %[1]d: ends without exec",
	aExec:                   "keeper of run %[1]d: exec",
	aDeadline:               "keeper of session %[1]d: deadline, kill",
	aSay:                    "session %[1]d says its terminal word",
	aIdle:                   "session %[1]d ends its turn",
	aClaim:                  "leader claims run %[1]d on node %[4]d, pushed",
	aTick:                   "time passes",
	aRestart:                "node %[1]d restarts",
	aCont:                   "node %[1]d is continued",
	aWake:                   "machine %[1]d wakes",
	aEstopOff:               "ESTOP removed from node %[1]d",
	aGiveUp:                 "the verb of run %[1]d gives up, its word is in the folder",
	aVerdict:                "leader: verdict from outside on run %[1]d",
	aClose:                  "leader: the session of run %[1]d is to be closed",
	aDoom:                   "leader: lease and margin of run %[1]d have passed, its end is on its way",
	aLease:                  "leader: run %[1]d is gone by its lease",
	aForce:                  "manager: the session of run %[1]d is dead",
	aChange:                 "the leader changes",
	aDeposed:                "the DEPOSED leader answers node %[1]d",
	aEarly:                  "leader pushes run %[1]d before it is committed",
	aExit:                   "session %[1]d exits by itself",
	aKeeper:                 "FAULT keeper of session %[1]d killed",
	aCrash:                  "FAULT node %[1]d killed",
	aStop:                   "FAULT node %[1]d stopped",
	aSleep:                  "FAULT machine %[1]d falls asleep",
	aReboot:                 "FAULT machine %[1]d reboots",
	aEstopOn:                "ESTOP set on node %[1]d",
}

var reportText = map[Act]string{ActTaken: "taken", ActLaunched: "launched", ActRefused: "refused",
	ActFailed: "failed", ActExited: "exited", ActGone: "gone", ActWord: "word"}

func (a act) String() string {
	mail := fmt.Sprintf("%s of run %d", reportText[Act(a.b>>2)], a.b&3)
	s := fmt.Sprintf(actText[a.c]+"\x00%[1]v%[2]v%[3]v%[4]v", a.a, reportText[Act(a.b&15)], mail, a.b)
	return s[:strings.IndexByte(s, 0)]
}

// succ emits every successor of a state.
func (w *world) succ(s *mState, emit func(act, *mState)) {
	out := func(c actCode, a, b int, t mState) {
		w.settle(&t)
		if !t.full {
			emit(act{c, uint8(a), uint8(b)}, &t)
		}
	}
	w.leaderSteps(s, out)
	for n := range w.sc.nodes {
		w.nodeSteps(s, n, out)
	}
	w.tick(s, out)
}

// settle checks a state and brings it into its one form: what nobody can see any
// more is dropped, so that equal states are equal bytes.
func (w *world) settle(s *mState) {
	if w.sc.asym && w.sc.nodes > 1 {
		nd := &s.n[1]
		for nd.pos < s.logN {
			s.apply(1)
		}
		nd.told, nd.age, nd.cterm, nd.need = true, 0, s.term, 0
		s.told[1], s.ans[1] = true, 0
		for x := range s.se {
			if s.run[x].ex && s.run[x].node == 1 && s.se[x].dead != mNever {
				s.se[x].dead = w.sc.leaseTicks()
			}
		}
	}
	s.shift(w.sc.nodes)
	if !w.sc.lease && !w.sc.mix {
		s.began, s.told, s.ans = 0, [mNodes]bool{}, [mNodes]int8{}
	}
	for n := range s.n {
		nd := &s.n[n]
		if nd.need <= nd.pos {
			nd.need = 0
		}
	}
	live, held := 0, 0
	for x := range s.se {
		e, ru := &s.se[x], &s.run[x]
		if e.fly == 0 && e.k != kHeld {
			e.by = mNever
		}
		if !w.m.pushLate && ru.startTerm > 0 && ru.ex && s.n[ru.node].seen&(1<<x) != 0 {
			ru.startTerm = 0
		}
		if ru.stopTerm > 0 && s.logAt(x, StandsStop) < int(s.n[ru.node].pos) {
			ru.stopTerm = 0
		}
		if e.k == kLive && !s.n[ru.node].asleep && s.taint&(1<<x) == 0 {
			live++
		}
		if ru.ex && ru.r.Held() {
			held++
		} else {
			s.doom &^= 1 << x // refused, it has its outcome
		}
	}
	switch {
	case s.bad != bOK:
	case live > 1:
		s.bad = bTwoLive
	case held > 1:
		s.bad = bTwoHeld
	}
}

// shift drops what every node has applied from the log.
func (s *mState) shift(nodes int) {
	d := s.logN
	for n := range nodes {
		d = min(d, s.n[n].pos)
	}
	if d == 0 {
		return
	}
	copy(s.log[:], s.log[d:s.logN])
	for i := s.logN - d; i < s.logN; i++ {
		s.log[i] = 0
	}
	s.logN -= d
	for n := range nodes {
		nd := &s.n[n]
		nd.pos -= d
		nd.need -= min(nd.need, d)
		nd.ansIdx -= min(nd.ansIdx, d)
	}
}

var hashSeed = maphash.MakeSeed()

// result is what a search has found.
type result struct {
	states, depth int
	complete      bool
	drained       int
	bad           uint8
	trace         []act
	why           string // of a drain
	steps         [aEnd]int
}

type link struct {
	parent int32
	a      act
}

// bfs explores up to limit states, shortest histories first, and drains every
// drainEvery-th. It stops at the first violation: its trace is a shortest one.
func (w *world) bfs(limit, drainEvery int) result {
	res := result{complete: true}
	links := []link{{-1, act{}}}
	type item struct {
		s  mState
		id int32
	}
	first := newState(&w.sc)
	w.settle(&first)
	seen := map[uint64]struct{}{maphash.Comparable(hashSeed, first): {}}
	level := []item{{first, 0}}
	var next []item
	found := func(id int32, bad uint8) {
		res.bad = bad
		for ; id > 0; id = links[id].parent {
			res.trace = append([]act{links[id].a}, res.trace...)
		}
	}
	for len(level) > 0 && res.bad == bOK && len(links) < limit {
		next = next[:0:0]
		for _, it := range level {
			if drainEvery > 0 && int(it.id)%drainEvery == 0 {
				res.drained++
				if bad, tail, why := w.drainAll(&it.s); bad != bOK {
					found(it.id, bad)
					res.why = why
					res.trace = append(append(res.trace, act{c: aEnd}), tail...)
					return w.done(res, len(links))
				}
			}
			w.succ(&it.s, func(a act, t *mState) {
				res.steps[a.c]++
				h := maphash.Comparable(hashSeed, *t)
				if _, ok := seen[h]; ok || res.bad != bOK {
					return
				}
				seen[h] = struct{}{}
				id := int32(len(links))
				links = append(links, link{it.id, a})
				if t.bad != bOK {
					found(id, t.bad)
					return
				}
				next = append(next, item{*t, id})
			})
			if res.bad != bOK || len(links) >= limit {
				res.complete = false
				return w.done(res, len(links))
			}
		}
		level = next
		res.depth++
	}
	return w.done(res, len(links))
}

func (w *world) done(res result, states int) result {
	res.states = states
	return res
}

// walk takes random walks, each with its own taste for faults and for time, and
// drains each at its end.
func (w *world) walk(rng *rand.Rand, walks, steps int) result {
	res := result{}
	seen := map[uint64]struct{}{}
	var acts []act
	var states []mState
	for range walks {
		s := newState(&w.sc)
		w.settle(&s)
		weight := taste(rng)
		var trace []act
		for range steps {
			acts, states = acts[:0], states[:0]
			total := 0.0
			w.succ(&s, func(a act, t *mState) {
				acts, states = append(acts, a), append(states, *t)
				total += weight[a.c]
			})
			if len(acts) == 0 {
				break
			}
			x, k := rng.Float64()*total, 0
			for ; k < len(acts)-1 && x > weight[acts[k].c]; k++ {
				x -= weight[acts[k].c]
			}
			s = states[k]
			trace = append(trace, acts[k])
			res.steps[acts[k].c]++
			seen[maphash.Comparable(hashSeed, s)] = struct{}{}
			if s.bad != bOK {
				res.bad, res.trace = s.bad, trace
				return w.done(res, len(seen))
			}
		}
		res.drained++
		if bad, tail, why := w.drainAll(&s); bad != bOK {
			res.bad, res.why = bad, why
			res.trace = append(append(trace, act{c: aEnd}), tail...)
			return w.done(res, len(seen))
		}
	}
	return w.done(res, len(seen))
}

func taste(rng *rand.Rand) (weight [aEnd]float64) {
	pick := func() float64 { return []float64{0.3, 1, 4}[rng.Intn(3)] }
	fault := []float64{0.03, 0.1, 0.4}[rng.Intn(3)]
	for c := range weight {
		weight[c] = pick()
		if actCode(c) >= aGiveUp {
			weight[c] *= fault
		}
	}
	weight[aTick] = []float64{0.05, 0.2, 1}[rng.Intn(3)]
	weight[aClaim] = 3
	return weight
}
