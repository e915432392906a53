package lease

import "time"

// What the leader and the replicated state do in the model.

// act is one step of the model; a and b are a run, node or session, as its text says.
type act struct {
	c    actCode
	a, b uint8
}

type actCode uint8

type emitFn func(c actCode, a, b int, s mState)

// commit writes an act on a run into the state with all it entails.
func (w *world) commit(s *mState, r int, a Act) Effect {
	before := s.run[r].r.Stands()
	next, eff := w.m.step(s.run[r].r, a)
	if eff.Has(EffectStale) {
		return eff
	}
	s.run[r].r = next
	if eff.Has(EffectStop) {
		s.run[r].stopTerm = s.term
	}
	if after := next.Stands(); after != before {
		s.append(r, after)
	}
	if from := int(s.run[r].from); from >= 0 {
		switch {
		case eff.Has(EffectBack):
			w.commit(s, from, ActBack)
		case eff.Has(EffectBackStop):
			w.commit(s, from, ActBackStop)
		case eff.Has(EffectFrom):
			w.commit(s, from, a)
		}
	}
	return eff
}

func (s *mState) append(r int, st Stands) {
	if s.logN == mLog {
		s.full = true
		return
	}
	s.log[s.logN] = uint8(r)<<2 | uint8(st)
	s.logN++
}

func (w *world) leaderSteps(s *mState, emit emitFn) {
	nx := 0
	for nx < w.sc.runs && s.run[nx].ex {
		nx++
	}
	if nx < w.sc.runs {
		w.claims(s, nx, emit)
	}
	for r := range nx {
		w.judge(s, r, emit)
		if s.w[r].st == wFlight {
			t := *s
			w.word(&t, r)
			emit(aTakeWord, r, 0, t)
		}
	}
	if s.bud.Change > 0 {
		t := *s
		t.bud.Change--
		t.term++
		t.began, t.told, t.ans, t.doom = 0, [mNodes]bool{}, [mNodes]int8{}, 0
		for r := range nx {
			if t.run[r].r.Order == OrderPending {
				t.run[r].startTerm = t.term
			}
			if t.run[r].r.Order == OrderVoid {
				t.run[r].stopTerm = t.term
			}
		}
		emit(aChange, 0, 0, t)
	}
	for n := range w.sc.nodes {
		w.mail(s, n, emit)
	}
}

// claims is the next run of the card and slot: on any node when nothing is held,
// or as the one that keeps the session of the run before.
func (w *world) claims(s *mState, nx int, emit emitFn) {
	free := true
	for r := range nx {
		if s.run[r].r.Verdict == VerdictNone {
			return
		}
		free = free && !s.run[r].r.Held()
	}
	claim := func(n int, from int, lease bool) {
		t := *s
		ru := &t.run[nx]
		*ru = mRun{r: Claim(from >= 0), ex: true, node: int8(n), from: int8(from), kept: -1, lease: lease, startTerm: s.term}
		if from >= 0 {
			x := s.carrier(from)
			if x < 0 { // its session is there by the state's word only
				x = from
				for s.run[x].kept >= 0 {
					x = int(s.run[x].kept)
				}
			}
			ru.kept = int8(x)
			ru.lease = w.m.inherit(w.leaseOf(lease), w.leaseOf(s.run[from].lease), true) > 0
			if _, eff := w.m.step(s.run[from].r, ActKept); eff.Has(EffectStale) {
				t.run[from].r.Gone = GonePassed // a mutant keeps what it must not
			} else {
				w.commit(&t, from, ActKept)
			}
		}
		t.append(nx, StandsStart)
		emit(aClaim, nx, n, t)
	}
	leases := []bool{w.sc.lease}
	if w.sc.mix {
		leases = []bool{true, false}
	}
	for n := range w.sc.nodes {
		if w.sc.asym && nx == 0 && n == 1 {
			continue // the interesting machine comes first
		}
		for _, lease := range leases {
			if free {
				claim(n, -1, lease)
				continue
			}
			if p := s.holder(nx); w.sc.keep && p >= 0 && int(s.run[p].node) == n && w.m.mayKeep(s.run[p].r) {
				claim(n, p, lease)
			}
		}
		if w.m.pushEarly && free {
			t := *s
			t.run[nx] = mRun{node: int8(n), from: -1, kept: -1, startTerm: s.term}
			emit(aEarly, nx, n, t)
		}
	}
}

func (s *mState) holder(nx int) int {
	for r := nx - 1; r >= 0; r-- {
		if s.run[r].r.Held() {
			return r
		}
	}
	return -1
}

// judge is what the leader and people decide about a run.
func (w *world) judge(s *mState, r int, emit emitFn) {
	ru := &s.run[r]
	try := func(c actCode, a Act, t mState) {
		if eff := w.commit(&t, r, a); !eff.Has(EffectStale) {
			emit(c, r, 0, t)
		}
	}
	if s.bud.Out > 0 && ru.r.Verdict == VerdictNone {
		t := *s
		t.bud.Out--
		try(aVerdict, ActVerdict, t)
	}
	if s.bud.Close > 0 && ru.r.Held() {
		t := *s
		t.bud.Close--
		try(aClose, ActClose, t)
	}
	if !ru.r.Held() {
		return
	}
	if ru.lease && s.doom&(1<<r) == 0 {
		if at, ok := w.m.goneAt(w.leader(s), s.row(int(ru.node)), time.Duration(w.sc.leaseTicks()), w.sc.cfg()); ok && at <= 0 {
			t := *s
			t.doom |= 1 << r
			emit(aDoom, r, 0, t)
		}
	}
	if s.doom&(1<<r) != 0 {
		t := *s
		t.doom &^= 1 << r
		for _, x := range []int{s.carrier(r), int(ru.kept)} {
			if x >= 0 && s.se[x].k == kLive && !s.n[ru.node].asleep {
				t.bad = bEarly
			}
		}
		try(aLease, ActLease, t)
	}
	if s.bud.Force > 0 {
		t := *s
		t.bud.Force--
		x := s.carrier(r)
		if x < 0 {
			x = r
		}
		t.taint |= 1 << x
		if ru.kept >= 0 {
			t.taint |= 1 << ru.kept
		}
		try(aForce, ActManager, t)
	}
}

// mail is what reaches the leader from a node: the head of its outbox (which may
// be on its way while the node is dead), and its contact.
func (w *world) mail(s *mState, n int, emit emitFn) {
	nd := &s.n[n]
	awake := nd.st == nUp && !nd.asleep
	if nd.boxN > 0 && (!nd.boxSent || awake) {
		t := *s
		if !nd.boxSent {
			w.take(&t, nd.box[0])
			t.n[n].boxSent = true
		}
		if awake {
			t.n[n].acked()
		}
		emit(aMail, n, int(nd.box[0]), t)
	}
	if nd.req == 0 {
		return
	}
	t := *s
	ld := w.leader(s)
	a := ask{ld.n, ld.asks}
	if next, ok := w.m.answer(ld, s.row(n), a, ld.round(), ld.n, 0); ok {
		t.told[n], t.ans[n] = next.told, int8(-next.answered)
		t.n[n].ans, t.n[n].ansTerm, t.n[n].ansIdx, t.n[n].req = nd.req, s.term, s.logN, 0
		emit(aAnswer, n, 0, t)
	}
	if s.term > 1 { // the same contact may have gone to the leader before, deposed by now
		w.deposed(s, n, emit)
	}
}

// deposed is a leader that does not know of the next term. The voters confirmed
// its last round before they elected the next leader; that round was opened
// before this contact came in. A new round comes back with the new term.
func (w *world) deposed(s *mState, n int, emit emitFn) {
	old := beginTerm(uint64(s.term-1), 0)
	before := old.round()
	_, r, a := old.asked(row{}, 0, w.sc.cfg())
	old.asks++
	_, ok := w.m.answer(old, r, a, before, old.n, 0)
	if !ok {
		_, ok = w.m.answer(old, r, a, old.round(), uint64(s.term), 0)
	}
	if ok {
		t := *s
		t.n[n].ans, t.n[n].ansTerm, t.n[n].ansIdx, t.n[n].req = s.n[n].req, s.term-1, 0, 0
		emit(aDeposed, n, 0, t)
	}
}

func (nd *mNode) acked() {
	k, r := Act(nd.box[0]>>2), nd.box[0]&3
	nd.e[r].done = nd.e[r].done.With(k)
	copy(nd.box[:], nd.box[1:])
	nd.boxN--
	nd.box[nd.boxN] = 0
	nd.boxSent = false
}

// take is an outbox item at the leader.
func (w *world) take(s *mState, item uint8) {
	k, r := Act(item>>2), int(item&3)
	if k == ActWord {
		w.word(s, r)
		return
	}
	current := s.run[r].r.Verdict == VerdictNone
	w.commit(s, r, k)
	if st := s.w[r].st; k == ActExited && current && (st == wIssued || st == wFlight || st == wFolder || st == wOutbox) {
		s.bad = bExitFirst
	}
}

// word is a session's terminal word at the leader.
func (w *world) word(s *mState, r int) {
	current := s.run[r].r.Verdict == VerdictNone
	eff := w.commit(s, r, ActWord)
	if eff.Has(EffectStale) {
		s.w[r].st = wRefused
		if current {
			s.bad = bSecret
		}
		return
	}
	s.w[r].st = wOK
	if int(s.w[r].turn) != r {
		s.bad = bForeignTurn
	}
	if !current {
		s.bad = bSuperseded
	}
}
