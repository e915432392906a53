package lease

import "time"

// What nodes, keepers, sessions, faults and time do in the model.

// leaseOf is the lease of a run that has one, or none.
func (w *world) leaseOf(has bool) time.Duration {
	if has {
		return time.Duration(w.sc.leaseTicks())
	}
	return 0
}

func (w *world) nodeSteps(s *mState, n int, emit emitFn) {
	nd := &s.n[n]
	faulty := !(w.sc.asym && n == 1)
	if nd.asleep {
		t := *s
		t.n[n].asleep = false
		for x := range t.se {
			e := &t.se[x]
			if t.run[x].node != int8(n) {
				continue
			}
			switch { // timers that count sleep fire at once
			case e.k == kLive && e.dead <= 0:
				t.end(x)
			case e.k == kHeld && t.run[x].lease && e.by <= 0:
				e.execs, e.cur, e.had = e.execs+1, int8(x), 1<<x
				t.end(x)
			}
		}
		emit(aWake, n, 0, t)
		return
	}
	if faulty {
		w.machineFaults(s, n, emit)
	}
	for x := range w.sc.runs {
		if int(s.run[x].node) == n {
			w.keeperSteps(s, n, x, faulty, emit)
		}
	}
	if nd.st != nUp {
		t := *s
		t.n[n].st = nUp
		if nd.st == nDown {
			emit(aRestart, n, 0, t)
		} else {
			emit(aCont, n, 0, t)
		}
		return
	}
	if faulty && s.bud.Crash > 0 {
		t := *s
		t.bud.Crash--
		t.crash(n)
		emit(aCrash, n, 0, t)
	}
	if faulty && s.bud.Stop > 0 {
		t := *s
		t.bud.Stop--
		t.n[n].st = nStopped
		emit(aStop, n, 0, t)
	}
	w.contact(s, n, emit)
	for r := range w.sc.runs {
		if int(s.run[r].node) == n && (s.run[r].ex || s.run[r].startTerm > 0) {
			w.decide(s, n, r, false, emit)
			w.decide(s, n, r, true, emit)
			w.session(s, n, r, emit)
		}
	}
}

func (w *world) machineFaults(s *mState, n int, emit emitFn) {
	if s.bud.Sleep > 0 {
		t := *s
		t.bud.Sleep--
		t.n[n].asleep = true
		emit(aSleep, n, 0, t)
	}
	if s.bud.Reboot > 0 {
		t := *s
		t.bud.Reboot--
		t.crash(n)
		for x := range t.se {
			if int(t.run[x].node) != n {
				continue
			}
			t.se[x].fly = 0
			switch t.se[x].k {
			case kHeld:
				t.se[x].k = kNone
			case kLive, kOrph:
				t.end(x)
			}
		}
		emit(aReboot, n, 0, t)
	}
	if s.n[n].estop {
		t := *s
		t.n[n].estop = false
		emit(aEstopOff, n, 0, t)
	} else if s.bud.Estop > 0 {
		t := *s
		t.bud.Estop--
		t.n[n].estop = true
		emit(aEstopOn, n, 0, t)
	}
}

// keeperSteps is what a run's keepers and session do whatever their node does.
func (w *world) keeperSteps(s *mState, n, x int, faulty bool, emit emitFn) {
	e := &s.se[x]
	if e.fly > 0 {
		t := *s
		k := &t.se[x]
		k.fly--
		ok := false
		if e.k != kHeld && e.k != kLive { // the lock is free
			ok, _ = w.m.mayExec(LastCheck{Void: e.void, Estop: s.n[n].estop, By: Instant(e.by), Now: 0})
		}
		if ok {
			k.k = kHeld
			if s.n[n].estop {
				t.bad = bEstop
			}
			emit(aLockOK, x, 0, t)
		} else {
			if k.fly == 0 && t.n[n].stage[x] == StageSpawned && k.k != kHeld && k.k != kLive {
				t.n[n].stage[x] = StageOver // its node sees its child end
			}
			emit(aLockNo, x, 0, t)
		}
	}
	switch e.k {
	case kHeld:
		w.exec(s, n, x, emit)
	case kLive:
		if e.dead <= 0 {
			t := *s
			t.end(x)
			emit(aDeadline, x, 0, t)
		}
		if faulty && s.bud.Exit > 0 {
			t := *s
			t.bud.Exit--
			t.end(x)
			emit(aExit, x, 0, t)
		}
		if faulty && s.bud.Keeper > 0 {
			t := *s
			t.bud.Keeper--
			t.end(x)
			t.se[x].k = kOrph
			emit(aKeeper, x, 0, t)
		}
		w.talk(s, x, emit)
	}
}

func (w *world) exec(s *mState, n, x int, emit emitFn) {
	t := *s
	k := &t.se[x]
	k.k, k.dead = kLive, mNever
	if s.run[x].lease {
		k.dead = k.by
	}
	k.execs++
	k.cur, k.turn, k.had = int8(x), int8(x), 1<<x
	switch {
	case k.execs > 1:
		t.bad = bTwice
	case !s.run[x].ex:
		t.bad = bNoRun
	case k.barred:
		t.bad = bAfterVoid
	}
	emit(aExec, x, 0, t)
}

// talk is what the session itself does: it says its word, gives up waiting for
// its node (the word is in its folder), ends its turn.
func (w *world) talk(s *mState, x int, emit emitFn) {
	e := &s.se[x]
	c := int(e.cur)
	if w.sc.words && e.turn >= 0 && s.w[c].st == wNone {
		t := *s
		t.w[c] = mWord{wIssued, e.turn}
		emit(aSay, x, c, t)
	}
	if w.sc.words && s.w[c].st == wIssued && s.n[s.run[x].node].st != nUp {
		t := *s
		t.w[c].st = wFolder
		emit(aGiveUp, c, 0, t)
	}
	if w.sc.keep && e.turn >= 0 {
		t := *s
		t.se[x].turn = -1
		emit(aIdle, x, 0, t)
	}
}

// contact is the node's side of it, and its copy of the log.
func (w *world) contact(s *mState, n int, emit emitFn) {
	nd := &s.n[n]
	if w.sc.asym && n == 1 {
		return
	}
	if nd.req == 0 && nd.ans == 0 && (!nd.told || nd.age > 0) || nd.req > 1 || nd.ans > 1 {
		t := *s
		t.n[n].req, t.n[n].ans, t.n[n].ansTerm, t.n[n].ansIdx = 1, 0, 0, 0
		emit(aSend, n, 0, t)
	}
	if nd.ans > 0 {
		t := *s
		m := &t.n[n]
		c := w.m.answered(w.clock(nd), Token{Instant(-int(nd.ans - 1))}, uint64(nd.ansTerm), uint64(nd.ansIdx), 0)
		m.told, m.age, m.cterm, m.need = c.told, int8(-c.sent), uint8(c.term), uint8(c.need)
		m.ans, m.ansTerm, m.ansIdx = 0, 0, 0
		for x := range t.se {
			e := &t.se[x]
			if at, ok := c.Deadline(w.leaseOf(true)); ok && int(t.run[x].node) == n && e.k == kLive && e.dead != mNever {
				e.dead = int8(Extend(Instant(e.dead), at))
			}
		}
		emit(aHear, n, 0, t)
	}
	if nd.pos < s.logN {
		t := *s
		t.apply(n)
		emit(aApply, n, int(s.log[nd.pos]), t)
	}
}

func (s *mState) apply(n int) {
	nd := &s.n[n]
	r := s.log[nd.pos] >> 2
	nd.base[r] = Stands(s.log[nd.pos] & 3)
	nd.seen |= 1 << r
	nd.pos++
}

// decide asks the product what the node does next about a run, and does it. A
// crash between the bar of a folder and its record is a case of its own.
func (w *world) decide(s *mState, n, r int, push bool, emit emitFn) {
	if push && (s.run[r].stopTerm == 0 || s.logAt(r, StandsStop) < int(s.n[n].pos)) {
		return
	}
	e, f := w.facts(s, n, r, push)
	d := w.m.next(e, f)
	t := *s
	nd := &t.n[n]
	switch d.Do {
	case DoWait:
		return
	case DoRecord:
		if d.Lock && !w.m.noLock && (s.se[r].k == kHeld || s.se[r].k == kLive) {
			return
		}
		if d.Bar && e.Filed.Has(ActTaken) { // else there is no folder
			t.se[r].void = true
			if s.bud.Crash > 0 && !s.se[r].void {
				u := t
				u.bud.Crash--
				u.crash(n)
				emit(aCrash, n, 0, u)
			}
		}
		if nd.e[r].mark != MarkTaken && d.Entry.Mark == MarkTaken {
			nd.stage[r] = StageReady
			if int(nd.high) > r {
				t.bad = bEpoch
			}
		}
		nd.high = max(nd.high, int8(r))
		nd.e[r] = mEntry{d.Entry.Mark, d.Entry.Filed, d.Entry.Done}
		if d.Files {
			t.file(n, r, d.File)
		}
	case DoSpawn:
		t.se[r].fly++
		t.se[r].by = int8(max(w.clock(nd).StartBy(w.leaseOf(s.run[r].lease)), -1))
		nd.stage[r] = StageSpawned
	case DoAdopt:
		k := &t.se[s.run[r].kept]
		k.cur, k.had = int8(r), k.had|1<<r
		nd.stage[r] = StageOver
	case DoKill:
		t.end(s.carrier(r))
	case DoReap:
		t.se[s.carrier(r)].k = kEnded
	case DoForget:
		nd.e[r], nd.stage[r] = mEntry{}, StageNone
	}
	emit(aDo+actCode(d.Do), r, n<<4|int(d.File), t)
}

func (s *mState) file(n, r int, k Act) {
	nd := &s.n[n]
	if nd.boxN == mBox {
		s.full = true
		return
	}
	nd.box[nd.boxN] = uint8(k)<<2 | uint8(r)
	nd.boxN++
	switch k {
	case ActWord:
		s.w[r].st = wOutbox
	case ActGone, ActFailed, ActRefused:
		s.se[r].barred = s.carrier(r) < 0
	}
}

// session is what the node does for a session besides Next: it passes its word
// on, and gives a kept one its prompt.
func (w *world) session(s *mState, n, r int, emit emitFn) {
	x := s.carrier(r)
	if x < 0 || s.se[x].k != kLive {
		return
	}
	nd := &s.n[n]
	e := Entry{Filed: nd.e[r].filed, Done: nd.e[r].done}
	if s.w[r].st == wIssued && w.m.forward(e) {
		t := *s
		t.w[r].st = wFlight
		t.n[n].known |= 1 << r
		emit(aForward, r, 0, t)
	}
	if x != r && s.se[x].turn < 0 && s.w[r].st == wNone && e.Filed.Has(ActLaunched) && s.run[r].r.Verdict == VerdictNone {
		t := *s
		t.se[x].turn = int8(r)
		emit(aPrompt, r, x, t)
	}
}
