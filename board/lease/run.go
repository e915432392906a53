package lease

import "time"

// OrderState is the state of a run's order in the replicated state (M-12).
type OrderState uint8

// The states. None: there never was one, or it has left the state. A start is
// pending, taken or launched; with its run's verdict it leaves. Void stands for
// a stop order: it voids a start that was not launched and stops a session that
// was, and stays until its node has answered (M-37). Refused has left the state
// and says how.
const (
	OrderNone OrderState = iota
	OrderPending
	OrderTaken
	OrderLaunched
	OrderRefused
	OrderVoid
)

func (s OrderState) String() string {
	return [...]string{"none", "pending", "taken", "launched", "refused", "void"}[s]
}

// Verdict is who ended a run: the first of its two ends (M-35).
type Verdict uint8

// The verdicts.
const (
	VerdictNone    Verdict = iota // the run is current
	VerdictOwn                    // its own terminal word
	VerdictOutside                // anybody else: timed out, reclaim, cancel, refused, not started
	VerdictExit                   // its process ended without a terminal word
)

// Gone is how a run's session came to be gone: the second of its two ends.
type Gone uint8

// The ways. Only GoneNot holds the card's slot and a place in the caps.
const (
	GoneNot     Gone = iota
	GoneReport       // its node has seen the whole tree dead, or voided it with no process
	GoneRefused      // its node has refused it and started nothing
	GoneLease        // lease and margin have passed
	GoneManager      // a manager said so (reclaim --force)
	GonePassed       // its session goes on under a later run, which holds the slot instead
)

// Run is what ends and starts of one run are decided by. The zero value is no
// run; see [Claim].
type Run struct {
	Order    OrderState
	Verdict  Verdict
	Gone     Gone
	Keeps    bool // it was claimed to take over the session of an earlier run
	Launched bool // its node has reported a process, or the take-over, under its id
	Over     bool // GonePassed, and its node has since reported the session's end under its id
	Closed   bool // the session is to end, whoever has it
}

// Claim is a new run: its start order is pending. Keeps: it takes over the
// session of an earlier run, to which [ActKept] is applied in the same
// transaction; [Run.MayKeep] and [Inherit] say when and with which lease.
func Claim(keeps bool) Run { return Run{Order: OrderPending, Keeps: keeps} }

// Inherit is the lease of a run that takes over a session: that session's,
// none included, as it is; the keeper goes on holding it (architecture.md §5).
func Inherit(wanted, kept time.Duration, keeps bool) time.Duration {
	if keeps {
		return kept
	}
	return wanted
}

// Held tells whether the run's session may live: the next start in its card
// and slot waits, and every cap that counts it goes on counting (M-35).
func (r Run) Held() bool { return r.Gone == GoneNot }

// MayKeep tells whether a next run may take over this run's session: it ended
// by its own word, is not gone, and stands under no stop or close order.
func (r Run) MayKeep() bool {
	return r.Held() && r.Verdict == VerdictOwn && r.Order != OrderVoid && !r.Closed
}

// MayExpire tells whether the claim's own expiry still counts: once its node
// has taken the order, the node's contact counts instead (M-12, RUN-06).
func (r Run) MayExpire() bool { return r.Verdict == VerdictNone && r.Order == OrderPending }

// Stands is what a node sees of a run in the applied state.
type Stands uint8

// What may stand. StandsNone: nothing (any more, when the claim is applied).
const (
	StandsNone  Stands = iota
	StandsStart        // the start order
	StandsStop         // a stop or void
	StandsOwn          // no order: the run ended by its own word, its session is not known gone
)

// Stands is what stands for the run.
func (r Run) Stands() Stands {
	switch {
	case r.Order == OrderVoid:
		return StandsStop
	case r.Order == OrderPending, r.Order == OrderTaken, r.Order == OrderLaunched:
		return StandsStart
	case r.Verdict == VerdictOwn && (r.Gone == GoneNot || r.Gone == GonePassed):
		return StandsOwn
	}
	return StandsNone
}

// Act is something that happens to a run in the state.
type Act uint8

// The first seven are what its node reports, in the order of the node's outbox;
// the others are what the leader decides.
const (
	ActTaken    Act = iota // the node has journalled the start
	ActLaunched            // the session carries the run (a process, or taken over)
	ActRefused             // the node will not start it: ESTOP, no harness, no room; journalled as a void
	ActFailed              // the node declares the launch dead: nothing was ever started, nothing will be
	ActExited              // the whole tree of the session that carried the run is dead
	ActGone                // stopped or voided, and nothing carries the run
	ActWord                // the session's own terminal word, under the run's secret
	ActVerdict             // a verdict from outside
	ActExpire              // the claim expired with its order pending: orphaned
	ActClose               // move, forget_session or close_session: the session must end
	ActLease               // lease and margin have passed ([Table.GoneAt])
	ActManager             // reclaim --force: a manager says the session is dead
	ActKept                // a next run was claimed to take over the session
	ActBack                // that run never took it over: the session is this run's again
	ActBackStop            // the same, and it is to end
)

// Effect says what else the transaction of an act must do.
type Effect uint16

// The effects. None and not refused: accepted, with nothing to do but to store
// the run.
const (
	EffectStale    Effect = 1 << iota // the act is refused: it came too late or does not apply; the run is as it was
	EffectVerdict                     // the run got its verdict: tell the workflow
	EffectStop                        // write the stop order (or keep the one that stands), push it after the commit
	EffectLeft                        // remove the run's order from the state
	EffectFree                        // the session is gone, or was never the run's: its held row goes
	EffectHold                        // the session is the run's again: write its held row
	EffectBack                        // apply ActBack to the run the session came from
	EffectBackStop                    // apply ActBackStop to it
	EffectFrom                        // apply the same act to it: its session is gone with this run's
)

// Has tells whether e contains all of f.
func (e Effect) Has(f Effect) bool { return e&f == f }

// Step is the run after an act, and what else that means. It never fails: what
// does not apply has EffectStale and changes nothing.
func (r Run) Step(a Act) (Run, Effect) {
	switch a {
	case ActTaken:
		if r.Verdict == VerdictNone && r.Order == OrderPending {
			r.Order = OrderTaken
			return r, 0
		}
	case ActLaunched:
		if r.Verdict == VerdictNone && (r.Order == OrderPending || r.Order == OrderTaken) {
			r.Order, r.Launched = OrderLaunched, true
			return r, 0
		}
	case ActWord:
		if r.Verdict == VerdictNone && r.Launched {
			r.Order, r.Verdict = OrderNone, VerdictOwn
			return r, EffectVerdict | EffectLeft
		}
	case ActVerdict, ActExpire:
		if r.Verdict == VerdictNone && (a == ActVerdict || r.Order == OrderPending) {
			r.Order, r.Verdict = OrderVoid, VerdictOutside
			return r, EffectVerdict | EffectStop
		}
	case ActRefused, ActFailed, ActExited, ActGone:
		return r.reported(a)
	case ActClose:
		return r.close()
	case ActLease, ActManager:
		return r.declared(a)
	case ActKept:
		if r.MayKeep() {
			r.Gone = GonePassed
			return r, 0
		}
	case ActBack, ActBackStop:
		return r.back(a == ActBackStop)
	}
	return r, EffectStale
}

// reported is the node's word that nothing of the run lives. It is the only
// answer that ends a stop order, also when lease or a manager's word has freed
// the slot long before.
func (r Run) reported(a Act) (Run, Effect) {
	if a == ActRefused && r.Launched {
		return r, EffectStale // a node that launched cannot have refused
	}
	if r.Gone == GonePassed {
		if a != ActExited && a != ActGone || r.Over {
			return r, EffectStale
		}
		r.Over = true
		return r, 0
	}
	e := r.left()
	if r.Gone != GoneNot && e == 0 {
		return r, EffectStale
	}
	r.Order = OrderNone
	if r.Gone != GoneNot {
		return r, e
	}
	if r.Verdict == VerdictNone {
		r.Verdict = VerdictOutside
		if a == ActExited {
			r.Verdict = VerdictExit
		}
		e |= EffectVerdict
	}
	r.Gone = GoneReport
	if a == ActRefused {
		r.Gone, r.Order = GoneRefused, OrderRefused
	}
	if r.Keeps && !r.Launched && a != ActExited {
		// Refusal and void free nothing here: the session was never this run's.
		if r.Closed {
			return r, e | EffectFree | EffectBackStop
		}
		return r, e | EffectFree | EffectBack
	}
	return r, e | EffectFree
}

func (r Run) left() Effect {
	if r.Order == OrderNone || r.Order == OrderRefused {
		return 0
	}
	return EffectLeft
}

// close ends the session whoever has it; a run that still is current gets its
// verdict by what the workflow does, so it is ended here as well.
func (r Run) close() (Run, Effect) {
	if !r.Held() || r.Closed && r.Order == OrderVoid {
		return r, EffectStale
	}
	e := EffectStop
	if r.Verdict == VerdictNone {
		r.Verdict = VerdictOutside
		e |= EffectVerdict
	}
	r.Order, r.Closed = OrderVoid, true
	return r, e
}

// declared is the end without the node's word. The stop order stands until the
// node answers it: a session that lives against all promises is stopped when
// its node is back. A run that has not reported its take-over speaks for the
// session it was to keep as well.
func (r Run) declared(a Act) (Run, Effect) {
	passed := r.Gone == GonePassed && !r.Over
	if r.Gone != GoneNot && !passed {
		return r, EffectStale
	}
	e := EffectStop | EffectFree
	if passed {
		e = EffectStop // its slot was the later run's
	}
	if r.Verdict == VerdictNone {
		r.Verdict = VerdictOutside
		e |= EffectVerdict
	}
	if r.Keeps && !r.Launched {
		e |= EffectFrom
	}
	r.Order = OrderVoid
	r.Gone = GoneLease
	if a == ActManager {
		r.Gone = GoneManager
	}
	return r, e
}

// back gives the session back to the run it came from: kept again, or gone if
// its end was reported meanwhile.
func (r Run) back(stop bool) (Run, Effect) {
	if r.Gone != GonePassed {
		return r, EffectStale
	}
	if r.Over {
		r.Gone, r.Over = GoneReport, false
		return r, 0
	}
	r.Gone = GoneNot
	if stop {
		r.Order, r.Closed = OrderVoid, true
		return r, EffectHold | EffectStop
	}
	return r, EffectHold
}
