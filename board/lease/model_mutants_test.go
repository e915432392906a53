package lease

import (
	"math/rand"
	"testing"
	"time"
)

// mutant is the product with one rule broken, and the faults under which the
// search must find that out. It proves that the search can fail.
type mutant struct {
	name string
	rule string // what is broken
	want []uint8
	mut  func(*machine)
	sc   scenario
}

// onNext breaks what goes into Next or what comes out of it.
func onNext(f func(Entry, Facts) Decision) func(*machine) {
	return func(m *machine) { m.next = f }
}

// onStep breaks the state's side.
func onStep(f func(r Run, a Act) (Run, Effect)) func(*machine) {
	return func(m *machine) { m.step = f }
}

func solo(bud mBud) scenario   { return scenario{runs: 2, nodes: 1, bud: bud} }
func leased(bud mBud) scenario { return scenario{runs: 2, nodes: 2, asym: true, lease: true, bud: bud} }
func kept(bud mBud) scenario {
	return scenario{runs: 2, nodes: 1, keep: true, words: true, bud: bud}
}
func spoken(bud mBud) scenario { return scenario{runs: 2, nodes: 1, words: true, bud: bud} }

// The rules of contact and time.
var timeMutants = []mutant{
	{"unverified answer", "a leader answers without asking the voters", []uint8{bTwoLive, bEarly}, func(m *machine) {
		m.answer = func(_ term, r row, _ ask, _ Round, _ uint64, at Instant) (row, bool) {
			return row{told: true, answered: at}, true
		}
	}, leased(mBud{Change: 1})},
	{"round before the contact", "a round answers contacts that came in after it was opened", []uint8{bTwoLive, bEarly}, func(m *machine) {
		m.answer = func(t term, r row, a ask, round Round, confirmed uint64, at Instant) (row, bool) {
			a.n = 0
			return t.answer(r, a, round, confirmed, at)
		}
	}, leased(mBud{Change: 1})},
	{"count from the receipt", "the node counts from the answer's receipt", []uint8{bTwoLive, bEarly}, func(m *machine) {
		m.answered = func(c Clock, _ Token, term, index uint64, now Instant) Clock {
			return c.Answered(Token{now}, term, index, now)
		}
	}, leased(mBud{})},
	{"no start of term", "a new leader does not count from the start of its term", []uint8{bTwoLive, bEarly}, func(m *machine) {
		m.begin = func(n uint64, now Instant) term { return beginTerm(n, now-100) }
	}, leased(mBud{Change: 1})},
	{"no lapse", "a node acts after a lapse without applying the answer's index", []uint8{bTwoLive, bEarly}, func(m *machine) {
		m.answered = func(c Clock, t Token, term, index uint64, now Instant) Clock {
			c = c.Answered(t, term, index, now)
			c.need = 0
			return c
		}
	}, leased(mBud{})},
	{"no margin", "the leader counts a session gone at the lease, without the margin", []uint8{bTwoLive, bEarly}, func(m *machine) {
		m.goneAt = func(t term, r row, lease time.Duration, cfg Config) (Instant, bool) {
			at, ok := t.goneAt(r, lease, cfg)
			return at - Instant(cfg.Margin(lease)), ok
		}
	}, leased(mBud{})},
	{"answered while condemned", "a contact is answered while an end by lease is being recorded", []uint8{bTwoLive, bEarly}, func(m *machine) {
		m.answer = func(t term, r row, a ask, round Round, confirmed uint64, at Instant) (row, bool) {
			r.condemned = 0
			return t.answer(r, a, round, confirmed, at)
		}
	}, leased(mBud{})},
	{"gone within a fresh contact", "a lease so short that it is over while the contact is fresh", []uint8{bTwoLive, bEarly}, func(m *machine) {
		m.goneAt = func(t term, r row, lease time.Duration, cfg Config) (Instant, bool) {
			cfg.Fresh = 0
			return t.goneAt(r, lease, cfg)
		}
	}, scenario{runs: 2, nodes: 2, asym: true, lease: true, hasty: true}},
	{"late keeper", "the keeper does not look at its start deadline", []uint8{bTwoLive, bEarly}, func(m *machine) {
		m.mayExec = func(c LastCheck) (bool, string) { c.By = mNever; return KeeperMayExec(c) }
	}, leased(mBud{})},
	{"lease not taken over", "a run that keeps a session has a lease of its own", []uint8{bTwoLive, bEarly}, func(m *machine) {
		m.inherit = func(wanted, _ time.Duration, _ bool) time.Duration { return wanted }
	}, scenario{runs: 2, nodes: 1, keep: true, words: true, lease: true, mix: true}},
}

// The rules of a node's journal and its keepers.
var nodeMutants = []mutant{
	{"start beats void", "a voided key may be taken again", []uint8{bAfterVoid, bTwoLive}, onNext(func(e Entry, f Facts) Decision {
		if e.Mark == MarkVoid && e.Filed.Has(ActGone) && f.startCounts() {
			e.Mark, f.StopTerm = MarkNone, 0
		}
		return Next(e, f)
	}), solo(mBud{Out: 1})},
	{"refusal not journalled", "a refusal is filed without a void", []uint8{bAfterVoid, bTwoLive}, onNext(func(e Entry, f Facts) Decision {
		d := Next(e, f)
		if d.Files && d.File == ActRefused {
			d.Entry.Mark = e.Mark
		}
		return d
	}), solo(mBud{Estop: 1})},
	{"keeper ignores ESTOP", "the keeper does not look for ESTOP", []uint8{bEstop}, func(m *machine) {
		m.mayExec = func(c LastCheck) (bool, string) { c.Estop = false; return KeeperMayExec(c) }
	}, solo(mBud{Estop: 1})},
	{"keeper ignores void", "the keeper does not look for the file void", []uint8{bAfterVoid}, func(m *machine) {
		m.mayExec = func(c LastCheck) (bool, string) { c.Void = false; return KeeperMayExec(c) }
	}, solo(mBud{Out: 1})},
	{"no bar", "a launch is declared dead without the file void", []uint8{bAfterVoid}, onNext(func(e Entry, f Facts) Decision {
		d := Next(e, f)
		d.Bar = false
		return d
	}), solo(mBud{Out: 1})},
	{"no lock", "a launch is declared dead while a keeper holds the lock", []uint8{bAfterVoid}, func(m *machine) {
		m.noLock = true
		m.next = func(e Entry, f Facts) Decision {
			if f.Session == SessionHeld {
				f.Session = SessionNone
			}
			return Next(e, f)
		}
	}, solo(mBud{Crash: 1})},
	{"launch again", "a node that restarts launches again what it had taken", []uint8{bTwice}, onNext(func(e Entry, f Facts) Decision {
		if e.Mark == MarkTaken && f.Stage == StageNone {
			f.Stage = StageReady
		}
		return Next(e, f)
	}), solo(mBud{Crash: 1, Exit: 1})},
	{"push against the state", "a push counts against a state that has seen its order", []uint8{bTwice, bAfterVoid, bTwoLive}, func(m *machine) {
		m.pushLate = true
		m.next = func(e Entry, f Facts) Decision {
			if f.StartTerm > 0 && e.Mark != MarkVoid {
				f.Applied = Epoch{}
			}
			return Next(e, f)
		}
	}, solo(mBud{Out: 1})},
	{"state not looked at", "the last check does not look at the applied state", []uint8{bAfterVoid, bTwoLive, bStuck}, onNext(func(e Entry, f Facts) Decision {
		if f.seen() && e.Mark == MarkTaken {
			f.Stands = StandsStart
		}
		return Next(e, f)
	}), leased(mBud{})},
	{"no epoch", "a lower epoch is taken after a higher one", []uint8{bEpoch}, onNext(func(e Entry, f Facts) Decision {
		f.High = Epoch{}
		return Next(e, f)
	}), solo(mBud{Force: 1})},
	{"orphan left", "the tree of a dead keeper is left alone", []uint8{bStuck}, onNext(func(e Entry, f Facts) Decision {
		if f.Session == SessionOrphan {
			return Decision{}
		}
		return Next(e, f)
	}), solo(mBud{Keeper: 1})},
	{"launched only of the living", "launched is not filed from the folder of a dead process", []uint8{bStuck}, onNext(func(e Entry, f Facts) Decision {
		if f.Session == SessionEnded && !e.Filed.Has(ActLaunched) {
			return Decision{}
		}
		return Next(e, f)
	}), solo(mBud{Exit: 1})},
	{"pushed before commit", "a start is pushed before it is committed", []uint8{bNoRun}, func(m *machine) {
		m.pushEarly = true
	}, solo(mBud{})},
	{"key kept", "a key is not forgotten when its order has left", []uint8{bStuck}, onNext(func(e Entry, f Facts) Decision {
		d := Next(e, f)
		if d.Do == DoForget {
			return Decision{}
		}
		return d
	}), solo(mBud{Exit: 1})},
}

// The rules of a run's words.
var wordMutants = []mutant{
	{"exit before the word", "the exit does not wait for the run's own word", []uint8{bExitFirst}, onNext(func(e Entry, f Facts) Decision {
		f.Word = WordNone
		return Next(e, f)
	}), spoken(mBud{Exit: 1})},
	{"word before launched", "words go on before launched has its outcome", []uint8{bSecret}, func(m *machine) {
		m.forward = func(e Entry) bool { return e.Filed.Has(ActLaunched) }
	}, spoken(mBud{})},
	{"identity changed in a turn", "a kept session gets its next identity while it works", []uint8{bForeignTurn}, onNext(func(e Entry, f Facts) Decision {
		if f.Kept == KeptBusy {
			f.Kept = KeptIdle
		}
		return Next(e, f)
	}), scenario{runs: 2, nodes: 1, keep: true, words: true}},
	{"late word counts", "the word of an ended run is accepted", []uint8{bSuperseded}, onStep(func(r Run, a Act) (Run, Effect) {
		if a == ActWord && r.Launched {
			return r, EffectVerdict
		}
		return r.Step(a)
	}), spoken(mBud{Out: 1})},
}

// The rules of the state.
var stateMutants = []mutant{
	{"stop ends with a word", "a manager's word ends the stop order, and a node leaves sessions without order alone", []uint8{bStuck}, func(m *machine) {
		m.step = func(r Run, a Act) (Run, Effect) {
			n, e := r.Step(a)
			if a == ActManager && !e.Has(EffectStale) {
				n.Order, e = OrderNone, e&^EffectStop
			}
			return n, e
		}
		m.next = func(e Entry, f Facts) Decision {
			d := Next(e, f)
			if d.Do == DoKill && f.Stands == StandsNone {
				return Decision{}
			}
			return d
		}
	}, solo(mBud{Force: 1})},
	{"void frees at its commit", "the commit of a void frees the slot", []uint8{bTwoLive}, onStep(func(r Run, a Act) (Run, Effect) {
		n, e := r.Step(a)
		if a == ActVerdict && e.Has(EffectStop) {
			n.Gone = GoneReport
		}
		return n, e
	}), solo(mBud{Out: 1})},
	{"row not given back", "a refused or voided run that was to keep a session ends it for the state", []uint8{bStuck, bTwoLive}, onStep(func(r Run, a Act) (Run, Effect) {
		n, e := r.Step(a)
		return n, e &^ (EffectBack | EffectBackStop)
	}), kept(mBud{Out: 1})},
	{"row given back alive", "a session that ended meanwhile is given back as living", []uint8{bStuck}, onStep(func(r Run, a Act) (Run, Effect) {
		r.Over = false
		return r.Step(a)
	}), kept(mBud{Estop: 1, Exit: 1})},
	{"kept under a stop", "a session under a stop or close order is kept", []uint8{bStuck, bTwoLive}, func(m *machine) {
		m.mayKeep = func(r Run) bool { return r.Held() && r.Verdict != VerdictNone }
	}, kept(mBud{Out: 1})},
	{"close without a stop", "closing a session writes no stop order", []uint8{bStuck}, onStep(func(r Run, a Act) (Run, Effect) {
		n, e := r.Step(a)
		if a == ActClose && r.Verdict != VerdictNone && !e.Has(EffectStale) {
			n.Order = r.Order
		}
		return n, e
	}), kept(mBud{Close: 1})},
	{"close forgotten on the way back", "a close of the keeping run does not reach the session given back", []uint8{bStuck}, onStep(func(r Run, a Act) (Run, Effect) {
		if a == ActBackStop {
			a = ActBack
		}
		return r.Step(a)
	}), kept(mBud{Close: 1})},
	{"force forgets the kept session", "a manager's word on a keeping run leaves the session it was to keep", []uint8{bStuck}, onStep(func(r Run, a Act) (Run, Effect) {
		n, e := r.Step(a)
		return n, e &^ EffectFrom
	}), kept(mBud{Force: 1})},
}

// TestModelMutants breaks one rule at a time; each must be found.
func TestModelMutants(t *testing.T) {
	for _, group := range [][]mutant{timeMutants, nodeMutants, wordMutants, stateMutants} {
		for _, mu := range group {
			t.Run(mu.name, func(t *testing.T) {
				w := &world{product(), mu.sc}
				mu.mut(&w.m)
				at := time.Now()
				res := w.bfs(mutantStates, 16)
				if res.bad == bOK {
					res = w.walk(rand.New(rand.NewSource(1)), 400, 120)
				}
				t.Logf("%s: found after %d states, %d steps, %.2f s: %s %s", mu.rule, res.states, len(res.trace), time.Since(at).Seconds(), badText[res.bad], res.why)
				for _, b := range mu.want {
					if res.bad == b {
						return
					}
				}
				t.Errorf("rule broken (%s), and the search does not see it: %q %s", mu.rule, badText[res.bad], res.why)
			})
		}
	}
}

const mutantStates = 150000
