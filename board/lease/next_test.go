package lease

import (
	"strings"
	"testing"
)

// byPush is a start that has arrived by a push, its claim not applied yet, on a
// node in fresh contact.
func byPush() Facts {
	return Facts{
		Epoch: Epoch{1, 50}, Applied: Epoch{1, 40}, StartTerm: 3, Term: 3,
		MayStart: true,
	}
}

// byState is a start that stands in the applied state.
func byState() Facts {
	f := byPush()
	f.Applied, f.Stands, f.StartTerm = Epoch{1, 60}, StandsStart, 0
	return f
}

func with(f Facts, change func(*Facts)) Facts { change(&f); return f }

func reports(rs ...Report) (s Reports) {
	for _, r := range rs {
		s = s.With(r)
	}
	return s
}

func entry(m Mark, filed ...Report) Entry {
	return Entry{Epoch: Epoch{1, 50}, Mark: m, Filed: reports(filed...)}
}

func wantRecord(t *testing.T, name string, d Decision, m Mark, r Report) {
	t.Helper()
	if d.Do != DoRecord || d.Entry.Mark != m || !d.Files || d.File != r || !d.Entry.Filed.Has(r) {
		t.Errorf("%s: %+v, want a record with mark %d and report %d", name, d, m, r)
	}
}

func wantWait(t *testing.T, name string, d Decision, why string) {
	t.Helper()
	if d.Do != DoWait || !strings.Contains(d.Why, why) {
		t.Errorf("%s: %+v, want to wait: %q", name, d, why)
	}
}

// M-12: taken is journalled and filed before anything is done.
func TestTake(t *testing.T) {
	d := Next(Entry{}, byPush())
	wantRecord(t, "a push that is not applied yet", d, MarkTaken, ActTaken)
	if d.Entry.Epoch != byPush().Epoch {
		t.Errorf("epoch %v", d.Entry.Epoch)
	}
	wantRecord(t, "an order of the state", Next(Entry{}, byState()), MarkTaken, ActTaken)
	wantWait(t, "no fresh contact", Next(Entry{}, with(byPush(), func(f *Facts) { f.MayStart, f.Why = false, "old contact" })), "old contact")
	d = Next(Entry{}, with(byPush(), func(f *Facts) { f.Refuse = "ESTOP" }))
	wantRecord(t, "refused", d, MarkVoid, ActRefused)
	if d.Why != "ESTOP" {
		t.Errorf("why %q", d.Why)
	}
}

// Architecture.md §3: a push of a lower term is dropped; a push whose claim the
// state has seen counts only as the state says.
func TestPushThatDoesNotCount(t *testing.T) {
	wantWait(t, "a lower term", Next(Entry{}, with(byPush(), func(f *Facts) { f.Term = 4 })), "")
	for stands, name := range map[Stands]string{StandsNone: "it has left the state", StandsOwn: "its run has ended"} {
		f := with(byState(), func(f *Facts) { f.Stands, f.StartTerm = stands, 3 })
		wantWait(t, name, Next(Entry{}, f), "")
	}
	f := with(byPush(), func(f *Facts) { f.Applied = Epoch{2, 1} })
	wantWait(t, "a claim of an era before", Next(Entry{}, f), "")
	f = with(byState(), func(f *Facts) { f.Stands, f.StopTerm, f.Stop = StandsNone, 3, Epoch{1, 55} })
	wantWait(t, "a late stop whose order has left the state", Next(Entry{}, f), "")
}

// M-04, invariant 3: per card and slot, no epoch below the highest in the journal.
func TestLowerEpoch(t *testing.T) {
	for high, take := range map[Epoch]bool{{1, 49}: true, {1, 50}: true, {1, 51}: false, {2, 1}: false} {
		d := Next(Entry{}, with(byState(), func(f *Facts) { f.High = high }))
		if (d.Do == DoRecord) != take {
			t.Errorf("claim %v with highest %v: %+v", byState().Epoch, high, d)
		}
	}
}

// Invariant 3: a void beats its start in any order of arrival.
func TestVoidBeatsStart(t *testing.T) {
	stop := func(f *Facts) { f.StopTerm, f.Stop = 3, Epoch{1, 55} }
	d := Next(Entry{}, with(byPush(), func(f *Facts) { f.StartTerm = 0; stop(f) }))
	if d.Do != DoRecord || d.Entry.Mark != MarkVoid || d.Files || d.Bar {
		t.Errorf("the stop came first: %+v", d)
	}
	d = Next(d.Entry, byPush())
	wantRecord(t, "then the start", d, MarkVoid, ActGone)
	wantWait(t, "and again", Next(d.Entry, byPush()), "")
	// The start first: taken, then the stop by push or state bars the folder.
	for name, f := range map[string]Facts{
		"by push":  with(byPush(), stop),
		"by state": with(byState(), func(f *Facts) { f.Stands = StandsStop }),
	} {
		f.Stage = StageReady
		d := Next(entry(MarkTaken, ActTaken), f)
		if d.Do != DoRecord || d.Entry.Mark != MarkVoid || !d.Bar {
			t.Errorf("%s: %+v", name, d)
		}
	}
	d = Next(Entry{}, with(byPush(), func(f *Facts) { stop(f); f.StopTerm = 2 }))
	wantRecord(t, "a stop of a lower term is dropped", d, MarkTaken, ActTaken)
}

// M-35: a voided run is answered once, under the folder's lock, when nothing
// carries it; a refusal was its answer already.
func TestAnswerOfAVoid(t *testing.T) {
	stop := with(byState(), func(f *Facts) { f.Stands = StandsStop })
	d := Next(entry(MarkVoid, ActTaken), stop)
	wantRecord(t, "nothing there", d, MarkVoid, ActGone)
	if !d.Lock || !d.Bar {
		t.Errorf("gone is filed without lock and void: %+v", d)
	}
	held := with(stop, func(f *Facts) { f.Session = SessionHeld })
	wantWait(t, "a keeper holds the lock", Next(entry(MarkVoid, ActTaken), held), "keeper")
	live := with(stop, func(f *Facts) { f.Session = SessionLive })
	if d := Next(entry(MarkVoid, ActTaken, ActLaunched), live); d.Do != DoKill {
		t.Errorf("a live session: %+v", d)
	}
	for _, r := range []Report{ActGone, ActFailed, ActRefused} {
		wantWait(t, "answered", Next(entry(MarkVoid, r), stop), "")
	}
	// RUN-10: the session it once had carries a later run, and is not touched.
	passed := with(stop, func(f *Facts) { f.Passed = true })
	d = Next(entry(MarkVoid, ActTaken, ActLaunched), passed)
	wantRecord(t, "passed on", d, MarkVoid, ActGone)
	if d.Lock || d.Bar {
		t.Errorf("the lock is its heir's: %+v", d)
	}
}

// Architecture.md §3: the last check, directly before the keeper is spawned.
func TestLastCheck(t *testing.T) {
	taken := entry(MarkTaken, ActTaken)
	ready := with(byState(), func(f *Facts) { f.Stage = StageReady })
	if d := Next(taken, ready); d.Do != DoSpawn {
		t.Errorf("all well: %+v", d)
	}
	if d := Next(taken, with(byPush(), func(f *Facts) { f.Stage = StageReady })); d.Do != DoSpawn {
		t.Errorf("not applied yet, by push: %+v", d)
	}
	wantWait(t, "lapsed", Next(taken, with(ready, func(f *Facts) { f.MayStart, f.Why = false, "old contact" })), "old contact")
	wantWait(t, "its order has ended", Next(taken, with(ready, func(f *Facts) { f.Stands = StandsOwn })), "does not stand")
	d := Next(taken, with(ready, func(f *Facts) { f.Refuse = "ESTOP" }))
	wantRecord(t, "M-16 ESTOP since it was taken", d, MarkVoid, ActRefused)
	if !d.Bar {
		t.Error("a refusal of a taken start bars its folder")
	}
	if d := Next(taken, with(ready, func(f *Facts) { f.Kept = KeptIdle })); d.Do != DoAdopt {
		t.Errorf("an idle session to keep: %+v", d)
	}
	wantWait(t, "a session to keep, in a turn", Next(taken, with(ready, func(f *Facts) { f.Kept = KeptBusy })), "turn")
	for stage, why := range map[Stage]string{StagePreparing: "workspace", StageSpawned: "spawned"} {
		wantWait(t, why, Next(taken, with(ready, func(f *Facts) { f.Stage = stage })), why)
	}
}

// DSP-12, architecture.md §3: what an earlier life of the node had taken, or
// whose keeper ended without exec, is declared dead, not launched again.
func TestLaunchWithoutHolder(t *testing.T) {
	for _, stage := range []Stage{StageNone, StageOver} {
		f := with(byState(), func(f *Facts) { f.Stage = stage })
		d := Next(entry(MarkTaken, ActTaken), f)
		wantRecord(t, "no holder", d, MarkVoid, ActFailed)
		if !d.Lock || !d.Bar {
			t.Errorf("declared dead without lock and void: %+v", d)
		}
		wantWait(t, "a keeper still holds the lock", Next(entry(MarkTaken, ActTaken), with(f, func(f *Facts) { f.Session = SessionHeld })), "about to")
	}
	// A folder that is lost: the leader knows a session, which has ended.
	wantRecord(t, "launched, and no folder", Next(entry(MarkTaken, ActTaken, ActLaunched), byState()), MarkVoid, ActExited)
	f := with(byState(), func(f *Facts) { f.Stands, f.Passed = StandsOwn, true })
	if d := Next(Entry{Mark: MarkTaken, Filed: reports(ActTaken, ActLaunched)}, f); d.Do != DoWait {
		t.Errorf("a run whose session was passed on is not dead: %+v", d)
	}
}

// Architecture.md §4: launched, the session's own word, the exit; in this order,
// also when the process is dead before the first is filed.
func TestWordsInOrder(t *testing.T) {
	dead := with(byState(), func(f *Facts) { f.Session, f.Word = SessionEnded, WordAsking })
	e := entry(MarkTaken, ActTaken)
	d := Next(e, dead)
	wantRecord(t, "from the folder of a dead process", d, MarkTaken, ActLaunched)
	wantWait(t, "a verb still asks", Next(d.Entry, dead), "on its way")
	dead.Word = WordOpen
	d = Next(d.Entry, dead)
	wantRecord(t, "a word without outcome", d, MarkTaken, ActWord)
	dead.Word = WordFiled
	d = Next(d.Entry, dead)
	wantRecord(t, "the exit last", d, MarkTaken, ActExited)
	wantWait(t, "once", Next(d.Entry, dead), "")

	live := with(dead, func(f *Facts) { f.Session, f.Word = SessionLive, WordOpen })
	wantRecord(t, "a verb has given up, its session lives", Next(entry(MarkTaken, ActTaken, ActLaunched), live), MarkTaken, ActWord)
	done := Entry{Filed: reports(ActLaunched), Done: reports(ActLaunched)}
	if (Entry{Filed: done.Filed}).MayForward() || !done.MayForward() {
		t.Error("M-25: a session's words wait for the outcome of launched")
	}
	again := Entry{Mark: MarkTaken, Filed: reports(ActTaken, ActLaunched, ActWord), Done: reports(ActTaken, ActLaunched, ActWord)}
	if d := Next(again, live); d.Entry.Done.Has(ActWord) {
		t.Error("a second word counts as answered before it is")
	}
}

// The ends of a live session: stop, leave, a run that is not current any more;
// and a tree whose keeper is dead.
func TestEndsOfALiveSession(t *testing.T) {
	live := with(byState(), func(f *Facts) { f.Session = SessionLive })
	e := entry(MarkTaken, ActTaken, ActLaunched)
	wantWait(t, "all well", Next(e, live), "")
	own := with(live, func(f *Facts) { f.Stands = StandsOwn })
	wantWait(t, "it has said its word", Next(e, own), "")
	if d := Next(e, with(own, func(f *Facts) { f.LeaveOver = true })); d.Do != DoKill {
		t.Errorf("M-35 leave has passed: %+v", d)
	}
	if d := Next(e, with(live, func(f *Facts) { f.Stands = StandsNone })); d.Do != DoKill {
		t.Errorf("RUN-09 its run is not current: %+v", d)
	}
	if d := Next(Entry{}, with(live, func(f *Facts) { f.Session = SessionOrphan })); d.Do != DoReap {
		t.Errorf("its keeper is dead: %+v", d)
	}
}

// Architecture.md §4: a key is forgotten when its order has left the applied
// state, and not before everything about it was filed and answered.
func TestForget(t *testing.T) {
	left := with(byState(), func(f *Facts) { f.Stands = StandsNone })
	all := reports(ActTaken, ActLaunched, ActExited)
	e := Entry{Mark: MarkTaken, Filed: all, Done: all}
	ended := with(left, func(f *Facts) { f.Session = SessionEnded })
	for name, c := range map[string]struct {
		e    Entry
		f    Facts
		want bool
	}{
		"over":                       {e, ended, true},
		"voided, never there":        {Entry{Mark: MarkVoid, Filed: reports(ActGone), Done: reports(ActGone)}, left, true},
		"an answer is missing":       {Entry{Mark: MarkTaken, Filed: all, Done: reports(ActTaken)}, ended, false},
		"its exit is not filed":      {Entry{Mark: MarkTaken, Filed: reports(ActTaken, ActLaunched), Done: all}, ended, false},
		"its order stands":           {e, with(ended, func(f *Facts) { f.Stands = StandsStart }), false},
		"a stop stands":              {Entry{Mark: MarkVoid, Filed: all, Done: all}, with(ended, func(f *Facts) { f.Stands = StandsStop }), false},
		"its claim is not applied":   {e, with(ended, func(f *Facts) { f.Applied = Epoch{1, 49} }), false},
		"its session lives":          {e, with(left, func(f *Facts) { f.Session = SessionLive }), false},
		"its keeper is on the way":   {Entry{Mark: MarkTaken}, with(left, func(f *Facts) { f.Stage = StageSpawned }), false},
		"kept, under a later run":    {e, with(left, func(f *Facts) { f.Stands, f.Passed = StandsOwn, true }), true},
		"kept, and still its own":    {e, with(left, func(f *Facts) { f.Stands, f.Session = StandsOwn, SessionLive }), false},
		"an exit the state has late": {e, with(ended, func(f *Facts) { f.Stands = StandsOwn }), false},
	} {
		if d := Next(c.e, c.f); (d.Do == DoForget) != c.want {
			t.Errorf("%s: %+v", name, d)
		}
	}
	wantWait(t, "forgotten, its folder is still there", Next(Entry{}, ended), "")
}
