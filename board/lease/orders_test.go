package lease

import (
	"slices"
	"testing"
)

// Invariant 3 across the journal in memory: pushes late, twice and of an old
// term; the highest epoch outlives the key.
func TestOrders(t *testing.T) {
	c := heard(0, 1, 3, 1)
	o := NewOrders()
	push := Push{Term: 3, Key: "web-1.1/start", Slot: "web-1/main", Epoch: Epoch{1, 50}}
	old := push
	old.Term = 2
	if o.Push(old, c) {
		t.Error("a push of a lower term than the last contact's was kept")
	}
	for range 2 {
		if !o.Push(push, c) {
			t.Error("a push, or the same again, was not kept")
		}
	}
	f := Facts{Applied: Epoch{1, 40}, Term: 3, MayStart: true}
	d := o.Decide(push.Key, push.Slot, f)
	if d.Do != DoRecord || d.File != ActTaken || d.Entry.Epoch != push.Epoch {
		t.Fatalf("pushed: %+v", d)
	}
	if o.Entry(push.Key) != (Entry{}) || o.High(push.Slot) != (Epoch{}) {
		t.Error("decided is not written: only Commit changes the journal")
	}
	o.Commit(push.Key, push.Slot, d)
	if o.High(push.Slot) != push.Epoch {
		t.Errorf("highest epoch %v", o.High(push.Slot))
	}
	if !slices.Equal(o.Keys(), []string{push.Key}) {
		t.Errorf("keys %v", o.Keys())
	}
	// A stop by push, then everything leaves the state, the push comes again.
	stop := push
	stop.Stop = Epoch{1, 55}
	o.Push(stop, c)
	for _, want := range []Mark{MarkVoid, MarkVoid} {
		if d = o.Decide(push.Key, push.Slot, f); d.Do != DoRecord || d.Entry.Mark != want {
			t.Fatalf("stopped: %+v", d)
		}
		o.Commit(push.Key, push.Slot, d)
	}
	for _, r := range []Report{ActTaken, ActGone} {
		if e, ok := o.Outcome(push.Key, r); !ok || !e.Done.Has(r) {
			t.Errorf("outcome of %d: %+v, %v", r, e, ok)
		}
	}
	f.Applied, f.Stands = Epoch{1, 60}, StandsNone
	if d = o.Decide(push.Key, push.Slot, f); d.Do != DoForget {
		t.Fatalf("left: %+v", d)
	}
	o.Commit(push.Key, push.Slot, d)
	if _, ok := o.Outcome(push.Key, ActGone); ok || len(o.Keys()) != 0 {
		t.Errorf("forgotten, and known: %v", o.Keys())
	}
	o.Push(push, c)
	if d = o.Decide(push.Key, push.Slot, f); d.Do != DoWait {
		t.Errorf("a late push of what the state has seen: %+v", d)
	}
	if len(o.Keys()) != 0 {
		t.Error("a push that the state has overtaken is remembered")
	}
	// M-04: an earlier claim of the same card and slot.
	early := Push{Term: 3, Key: "web-1.0/start", Slot: push.Slot, Epoch: Epoch{1, 45}}
	o.Push(early, c)
	if d = o.Decide(early.Key, early.Slot, Facts{Applied: Epoch{1, 40}, Term: 3, MayStart: true}); d.Do != DoWait || d.Why == "" {
		t.Errorf("an epoch below the highest: %+v", d)
	}
	other := Push{Term: 3, Key: "web-2.1/start", Slot: "web-2/main", Epoch: Epoch{1, 45}}
	o.Push(other, c)
	if d = o.Decide(other.Key, other.Slot, Facts{Applied: Epoch{1, 40}, Term: 3, MayStart: true}); d.Do != DoRecord {
		t.Errorf("the epoch is compared per card and slot, never node-wide: %+v", d)
	}
}

// A stop pushed ahead of the state stays known until the state has it, also when
// the start has been seen.
func TestOrdersStopAheadOfTheState(t *testing.T) {
	c := heard(0, 1, 3, 1)
	o := NewOrders()
	o.Load("k", Entry{Epoch: Epoch{1, 50}, Mark: MarkTaken, Filed: reports(ActTaken)})
	o.LoadHigh("s", Epoch{1, 50})
	o.Push(Push{Term: 3, Key: "k", Slot: "s", Epoch: Epoch{1, 50}, Stop: Epoch{1, 70}}, c)
	f := Facts{Applied: Epoch{1, 60}, Stands: StandsStart, Term: 3, MayStart: true, Stage: StageReady}
	if d := o.Decide("k", "s", f); d.Do != DoRecord || d.Entry.Mark != MarkVoid {
		t.Errorf("stopped ahead of the state: %+v", d)
	}
	f.Applied, f.Stands = Epoch{1, 80}, StandsStart
	if d := o.Decide("k", "s", f); d.Do != DoSpawn {
		t.Errorf("the state is past the stop and knows better: %+v", d)
	}
}
