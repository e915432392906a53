package lease

// Time, and how things end, in the model.

// crash ends the node's process: what it had in memory is gone.
func (s *mState) crash(n int) {
	nd := &s.n[n]
	nd.st, nd.told, nd.age, nd.cterm, nd.need = nDown, false, 0, 0, 0
	nd.req, nd.ans, nd.ansTerm, nd.ansIdx, nd.known = 0, 0, 0, 0, 0
	nd.stage = [mRuns]Stage{}
}

// end is the death of a session's whole tree.
func (s *mState) end(x int) {
	e := &s.se[x]
	e.k, e.dead = kEnded, mNever
	if c := e.cur; c >= 0 && s.w[c].st == wIssued {
		s.w[c].st = wFolder // the verb had written its word there before it asked
	}
}

// tick is one unit of time. A keeper that holds the lock executes before it; a
// lease's kill takes effect within one.
func (w *world) tick(s *mState, emit emitFn) {
	t := *s
	old, moved := w.sc.old(), false
	step := func(v *int8, limit int8) {
		if *v < limit {
			*v++
			moved = true
		}
	}
	for n := range w.sc.nodes {
		nd := &t.n[n]
		if nd.told {
			step(&nd.age, old)
		}
		if nd.req > 0 {
			step(&nd.req, old+1)
		}
		if nd.ans > 0 {
			step(&nd.ans, old+1)
		}
		if t.told[n] {
			step(&t.ans[n], old)
		}
	}
	step(&t.began, old)
	for x := range t.se {
		e := &t.se[x]
		asleep := t.n[t.run[x].node].asleep
		if e.k == kHeld && !asleep {
			return
		}
		if e.k == kLive && !asleep && e.dead <= 0 {
			t.end(x)
			moved = true
		}
		for _, d := range []*int8{&e.by, &e.dead} {
			if *d != mNever && *d > -1 {
				*d--
				moved = true
			}
		}
	}
	if moved {
		emit(aTick, 0, 0, t)
	}
}
