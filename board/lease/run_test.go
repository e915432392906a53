package lease

import (
	"testing"
	"time"
)

// after applies acts to a run and returns the effects of the last.
func after(r Run, acts ...Act) (Run, Effect) {
	var e Effect
	for _, a := range acts {
		r, e = r.Step(a)
	}
	return r, e
}

func claimed(acts ...Act) Run { r, _ := after(Claim(false), acts...); return r }
func keeping(acts ...Act) Run { r, _ := after(Claim(true), acts...); return r }

// M-12, M-35, M-37: what every act does to a run, and what it entails.
func TestRunSteps(t *testing.T) {
	launched := claimed(ActTaken, ActLaunched)
	own := claimed(ActTaken, ActLaunched, ActWord)
	for _, c := range []struct {
		name string
		from Run
		act  Act
		want Run
		eff  Effect
	}{
		{"M-12 taken", claimed(), ActTaken, Run{Order: OrderTaken}, 0},
		{"M-12 launched", claimed(ActTaken), ActLaunched, Run{Order: OrderLaunched, Launched: true}, 0},
		{"M-12 a refusal withdraws the run", claimed(), ActRefused,
			Run{Order: OrderRefused, Verdict: VerdictOutside, Gone: GoneRefused}, EffectVerdict | EffectLeft | EffectFree},
		{"M-12 spawn failed", claimed(ActTaken), ActFailed,
			Run{Verdict: VerdictOutside, Gone: GoneReport}, EffectVerdict | EffectLeft | EffectFree},
		{"M-12 refused is nothing of a run that was launched", launched, ActRefused, launched, EffectStale},
		{"RUN-06 a pending claim expires, with an order to void it", claimed(), ActExpire,
			Run{Order: OrderVoid, Verdict: VerdictOutside}, EffectVerdict | EffectStop},
		{"M-12 taken ends the claim's own expiry", claimed(ActTaken), ActExpire, claimed(ActTaken), EffectStale},
		{"RUN-07 a launched run does not expire", launched, ActExpire, launched, EffectStale},
		{"M-37 a start order leaves with the run's own verdict", launched, ActWord,
			Run{Verdict: VerdictOwn, Launched: true}, EffectVerdict | EffectLeft},
		{"M-25 no word before launched", claimed(ActTaken), ActWord, claimed(ActTaken), EffectStale},
		{"invariant 3: a word after the verdict is refused", claimed(ActTaken, ActLaunched, ActVerdict), ActWord,
			claimed(ActTaken, ActLaunched, ActVerdict), EffectStale},
		{"M-35 a verdict from outside stops the session", launched, ActVerdict,
			Run{Order: OrderVoid, Verdict: VerdictOutside, Launched: true}, EffectVerdict | EffectStop},
		{"RUN-09 a launch is stored only while the run is current", claimed(ActTaken, ActVerdict), ActLaunched,
			claimed(ActTaken, ActVerdict), EffectStale},
		{"M-12 taken after the verdict", claimed(ActVerdict), ActTaken, claimed(ActVerdict), EffectStale},
		{"M-35 the commit of a void frees nothing, its answer does", claimed(ActVerdict), ActGone,
			Run{Verdict: VerdictOutside, Gone: GoneReport}, EffectLeft | EffectFree},
		{"M-35 a refusal answers a void too", claimed(ActVerdict), ActRefused,
			Run{Order: OrderRefused, Verdict: VerdictOutside, Gone: GoneRefused}, EffectLeft | EffectFree},
		{"SUP-10 an exit without a word is a verdict", launched, ActExited,
			Run{Verdict: VerdictExit, Gone: GoneReport, Launched: true}, EffectVerdict | EffectLeft | EffectFree},
		{"M-35 an exit after the verdict only marks it gone", own, ActExited,
			Run{Verdict: VerdictOwn, Gone: GoneReport, Launched: true}, EffectFree},
		{"M-35 a second exit is nothing", claimed(ActTaken, ActLaunched, ActExited), ActExited,
			claimed(ActTaken, ActLaunched, ActExited), EffectStale},
		{"M-35 gone by lease, the stop stands", launched, ActLease,
			Run{Order: OrderVoid, Verdict: VerdictOutside, Gone: GoneLease, Launched: true}, EffectVerdict | EffectStop | EffectFree},
		{"M-35 gone by a manager's word, run or no run", own, ActManager,
			Run{Order: OrderVoid, Verdict: VerdictOwn, Gone: GoneManager, Launched: true}, EffectStop | EffectFree},
		{"M-37 the stop stays until its node answers", claimed(ActTaken, ActLaunched, ActLease), ActExited,
			Run{Verdict: VerdictOutside, Gone: GoneLease, Launched: true}, EffectLeft},
		{"M-35 gone is gone", claimed(ActTaken, ActLaunched, ActLease), ActManager,
			claimed(ActTaken, ActLaunched, ActLease), EffectStale},
		{"M-35 close of a session that is not gone writes a stop", own, ActClose,
			Run{Order: OrderVoid, Verdict: VerdictOwn, Launched: true, Closed: true}, EffectStop},
		{"M-35 close of a current run ends it", launched, ActClose,
			Run{Order: OrderVoid, Verdict: VerdictOutside, Launched: true, Closed: true}, EffectVerdict | EffectStop},
		{"nothing to close", claimed(ActRefused), ActClose, claimed(ActRefused), EffectStale},
	} {
		got, eff := c.from.Step(c.act)
		if got != c.want || eff != c.eff {
			t.Errorf("%s:\n got %+v %b\nwant %+v %b", c.name, got, eff, c.want, c.eff)
		}
	}
}

// M-35: for a run that was to keep a session, refusal and void free nothing.
func TestKeepingRuns(t *testing.T) {
	own := claimed(ActTaken, ActLaunched, ActWord)
	passed, eff := own.Step(ActKept)
	if eff != 0 || passed.Gone != GonePassed || passed.Held() {
		t.Fatalf("kept: %+v %b", passed, eff)
	}
	for _, a := range []Act{ActRefused, ActFailed} {
		if r, eff := keeping().Step(a); !eff.Has(EffectBack) || r.Held() {
			t.Errorf("act %d of a run that never took over: %+v %b", a, r, eff)
		}
	}
	if _, eff := keeping(ActVerdict).Step(ActGone); !eff.Has(EffectBack) {
		t.Errorf("voided before it took over: %b", eff)
	}
	if _, eff := keeping(ActTaken, ActLaunched, ActVerdict).Step(ActGone); eff.Has(EffectBack) {
		t.Error("it had taken over: nothing goes back")
	}
	// Taken over, stopped before `launched` arrived: the exit is the session's.
	if _, eff := keeping(ActVerdict).Step(ActExited); eff.Has(EffectBack) || !eff.Has(EffectFree) {
		t.Errorf("an exit under the keeping run's id is the session's end: %b", eff)
	}
	// Back: kept again, or gone if its exit is known.
	if r, eff := passed.Step(ActBack); r != own || eff != EffectHold {
		t.Errorf("back: %+v %b", r, eff)
	}
	over, eff := passed.Step(ActExited)
	if eff != 0 || over.Held() {
		t.Errorf("exit while passed: %+v %b", over, eff)
	}
	if r, eff := over.Step(ActBack); r.Gone != GoneReport || eff != 0 {
		t.Errorf("back after its exit: %+v %b", r, eff)
	}
	if _, eff := own.Step(ActBack); eff != EffectStale {
		t.Error("a session that was not passed on cannot come back")
	}
}

// M-35: whoever closes the keeping run's session means the session, wherever
// it is; and lease or a manager's word speak for it as well.
func TestEndsOfAKeptSession(t *testing.T) {
	own := claimed(ActTaken, ActLaunched, ActWord)
	passed, _ := own.Step(ActKept)
	closed := keeping(ActTaken, ActClose)
	if _, eff := closed.Step(ActGone); !eff.Has(EffectBackStop) || eff.Has(EffectBack) {
		t.Errorf("closed before it took over: %b", eff)
	}
	back, eff := passed.Step(ActBackStop)
	if !eff.Has(EffectHold|EffectStop) || back.Order != OrderVoid || back.MayKeep() {
		t.Errorf("back to be stopped: %+v %b", back, eff)
	}
	for a, gone := range map[Act]Gone{ActLease: GoneLease, ActManager: GoneManager} {
		r, eff := keeping(ActTaken).Step(a)
		if !eff.Has(EffectFrom|EffectStop|EffectFree) || r.Gone != gone {
			t.Errorf("act %d before the take-over: %+v %b", a, r, eff)
		}
		p, eff := passed.Step(a)
		if eff != EffectStop || p.Gone != gone || p.Order != OrderVoid {
			t.Errorf("act %d on the session it was to keep: %+v %b", a, p, eff)
		}
		if p, eff = p.Step(ActGone); eff != EffectLeft {
			t.Errorf("answered: %+v %b", p, eff)
		}
		if _, eff = keeping(ActTaken, ActLaunched).Step(a); eff.Has(EffectFrom) {
			t.Errorf("act %d after the take-over: the session was this run's: %b", a, eff)
		}
	}
}

// M-35, SES-06: only a session that is the run's, ended by its own word, and
// under no stop or close order is kept.
func TestMayKeep(t *testing.T) {
	for name, r := range map[string]Run{
		"current":        claimed(ActTaken, ActLaunched),
		"stopped":        claimed(ActTaken, ActLaunched, ActVerdict),
		"exited":         claimed(ActTaken, ActLaunched, ActExited),
		"closed":         claimed(ActTaken, ActLaunched, ActWord, ActClose),
		"gone":           claimed(ActTaken, ActLaunched, ActWord, ActExited),
		"passed already": claimed(ActTaken, ActLaunched, ActWord, ActKept),
	} {
		if _, eff := r.Step(ActKept); r.MayKeep() || eff != EffectStale {
			t.Errorf("%s: kept", name)
		}
	}
	if !claimed(ActTaken, ActLaunched, ActWord).MayKeep() {
		t.Error("a session whose run ended by its own word may be kept")
	}
	if Inherit(time.Minute, time.Hour, true) != time.Hour || Inherit(time.Minute, 0, true) != 0 || Inherit(time.Minute, time.Hour, false) != time.Minute {
		t.Error("a kept session's lease, or none, is taken over as it is")
	}
}

// What a node sees, and what still holds the slot.
func TestStandsAndHeld(t *testing.T) {
	for _, c := range []struct {
		run    Run
		stands Stands
		held   bool
	}{
		{claimed(), StandsStart, true},
		{claimed(ActTaken), StandsStart, true},
		{claimed(ActTaken, ActLaunched), StandsStart, true},
		{claimed(ActVerdict), StandsStop, true},
		{claimed(ActTaken, ActLaunched, ActWord), StandsOwn, true},
		{claimed(ActTaken, ActLaunched, ActWord, ActKept), StandsOwn, false},
		{claimed(ActTaken, ActLaunched, ActWord, ActExited), StandsNone, false},
		{claimed(ActRefused), StandsNone, false},
		{claimed(ActTaken, ActLease), StandsStop, false},
		{claimed(ActTaken, ActLease, ActGone), StandsNone, false},
	} {
		if c.run.Stands() != c.stands || c.run.Held() != c.held {
			t.Errorf("%+v: stands %d, held %v; want %d, %v", c.run, c.run.Stands(), c.run.Held(), c.stands, c.held)
		}
	}
	if !claimed().MayExpire() || claimed(ActTaken).MayExpire() || claimed(ActVerdict).MayExpire() {
		t.Error("only a pending claim of a current run expires by itself (M-12)")
	}
}

// Every run that any sequence of acts can make, about a hundred, keeps these
// promises; no act can be sent at the wrong moment and break one (M-12, M-35, M-37).
func TestRunReachable(t *testing.T) {
	reached := map[Run]bool{Claim(false): true, Claim(true): true}
	queue := []Run{Claim(false), Claim(true)}
	ends := map[Run][]Run{}
	for len(queue) > 0 {
		r := queue[0]
		queue = queue[1:]
		for a := ActTaken; a <= ActBackStop; a++ {
			n, e := r.Step(a)
			checkStep(t, r, a, n, e)
			ends[n] = append(ends[n], r)
			if !reached[n] {
				reached[n] = true
				queue = append(queue, n)
			}
		}
	}
	// Invariant 20: from every one of them the session can become gone and the
	// order leave the state.
	over := map[Run]bool{}
	var back func(Run)
	back = func(r Run) {
		if !over[r] {
			over[r] = true
			for _, p := range ends[r] {
				back(p)
			}
		}
	}
	for r := range reached {
		if !r.Held() && r.Stands() == StandsNone {
			back(r)
		}
	}
	for r := range reached {
		if !over[r] {
			t.Errorf("no way out of %+v", r)
		}
	}
	if len(reached) < 50 {
		t.Errorf("only %d runs reached", len(reached))
	}
	t.Logf("%d runs", len(reached))
}

func checkStep(t *testing.T, r Run, a Act, n Run, e Effect) {
	t.Helper()
	live := n.Order == OrderPending || n.Order == OrderTaken || n.Order == OrderLaunched
	for broken, is := range map[string]bool{
		"a stale act changes nothing":                    e.Has(EffectStale) && (n != r || e != EffectStale),
		"a verdict is final":                             r.Verdict != VerdictNone && n.Verdict != r.Verdict,
		"EffectVerdict is the first verdict":             e.Has(EffectVerdict) != (r.Verdict == VerdictNone && n.Verdict != VerdictNone),
		"a start order leaves with the verdict":          live && n.Verdict != VerdictNone,
		"an outside verdict has a stop until it is gone": n.Held() && n.Verdict == VerdictOutside && n.Order != OrderVoid,
		"a closed session has a stop until it is gone":   n.Held() && n.Closed && n.Order != OrderVoid,
		"EffectStop is a stop that stands":               e.Has(EffectStop) && n.Order != OrderVoid,
		"a stop is never without EffectStop":             n.Order == OrderVoid && r.Order != OrderVoid && !e.Has(EffectStop),
		"only a node's answer ends a stop":               r.Order == OrderVoid && n.Order != OrderVoid && a != ActExited && a != ActGone && a != ActFailed && a != ActRefused,
		"EffectLeft is an order that has left":           e.Has(EffectLeft) && (n.Order != OrderNone && n.Order != OrderRefused || r.Order == OrderNone),
		"EffectFree frees":                               e.Has(EffectFree) != (r.Held() && !n.Held() && a != ActKept),
		"EffectHold holds again":                         e.Has(EffectHold) != (!r.Held() && n.Held()),
		"gone only comes back by ActBack":                !r.Held() && n.Held() && a != ActBack && a != ActBackStop,
		"launched is never taken back":                   r.Launched && !n.Launched,
	} {
		if is {
			t.Errorf("%s: act %d on %+v gives %+v, effect %b", broken, a, r, n, e)
		}
	}
}
