package lease

import (
	"testing"
	"time"
)

func leading(term uint64, began float64) *Table {
	t := NewTable(DefaultConfig())
	t.Begin(term, at(began))
	return t
}

// contact is one contact of the node, asked, confirmed and answered.
func contact(t *testing.T, tb *Table, node string, when float64) {
	t.Helper()
	a := tb.Asked(node, at(when))
	if !tb.Answer(a, tb.Round(), tb.Term(), at(when)) {
		t.Fatalf("contact of %s at %v s not answered", node, when)
	}
}

// M-35: lease + margin after the leader's own last answer or the start of its
// term, whichever is later; the margin is 5 s or a fiftieth of the lease.
func TestGoneAt(t *testing.T) {
	tb := leading(1, 0)
	gone := func(lease time.Duration, want float64) {
		t.Helper()
		if got, ok := tb.GoneAt("a", lease); !ok || got != at(want) {
			t.Errorf("gone at %v, %v; want %v", got.Sub(at(0)), ok, want)
		}
	}
	gone(60*time.Second, 65) // from the start of the term
	a := tb.Asked("a", at(10))
	gone(60*time.Second, 65) // a contact that is not answered moves nothing
	tb.Answer(a, tb.Round(), 1, at(12))
	gone(60*time.Second, 77)   // 12 + 60 + 5
	gone(600*time.Second, 624) // 12 + 600 + 12
	gone(250*time.Second, 267) // the margin is never below 5 s
	gone(2*time.Second, 22.2)  // not while the node's contact may be fresh: 12 + 10 + 0.2
	if _, ok := tb.GoneAt("a", 0); ok {
		t.Error("without a lease no session is ever gone by time")
	}
	tb.Begin(2, at(100)) // M-09: a new leader counts from the start of its term
	gone(60*time.Second, 165)
}

// A deposed leader answers nothing and judges nobody.
func TestDeposedTable(t *testing.T) {
	tb := leading(3, 0)
	a := tb.Asked("a", at(1))
	r := tb.Round()
	tb.End()
	if tb.Answer(a, r, 3, at(2)) {
		t.Error("a deposed table answered")
	}
	if b := tb.Asked("a", at(2)); tb.Answer(b, tb.Round(), 0, at(2)) {
		t.Error("a table that does not lead answered")
	}
	if _, ok := tb.GoneAt("a", time.Second); ok || tb.State("a", at(999)) != Unknown || tb.Term() != 0 {
		t.Error("a deposed table judges")
	}
	if _, ok := tb.Next([]string{"a"}, at(2)); ok {
		t.Error("a deposed table wants to be woken")
	}
}

// Architecture.md §5: answered only after leadership was confirmed, in this
// term, by a question sent after the contact came in.
func TestAnswerNeedsAConfirmedRound(t *testing.T) {
	tb := leading(3, 0)
	before := tb.Round()
	a := tb.Asked("a", at(1))
	if tb.Answer(a, before, 3, at(2)) {
		t.Error("a round that was under way before the contact came in confirmed it")
	}
	after := tb.Round()
	if tb.Answer(a, after, 4, at(2)) || tb.Answer(a, after, 0, at(2)) {
		t.Error("answered although the voters are in another term")
	}
	b := tb.Asked("b", at(2))
	if !tb.Answer(a, after, 3, at(3)) {
		t.Error("a round after the contact confirms it")
	}
	if tb.Answer(b, after, 3, at(3)) {
		t.Error("b came in after the round was opened")
	}
	both := tb.Round()
	c := tb.Asked("c", at(3))
	if !tb.Answer(b, both, 3, at(4)) || tb.Answer(c, both, 3, at(4)) {
		t.Error("one round serves all that wait, and no other")
	}
	tb.Begin(4, at(5))
	if tb.Answer(b, tb.Round(), 4, at(6)) || tb.Answer(c, both, 3, at(6)) {
		t.Error("a contact or round of an earlier term was answered in this one")
	}
}

// M-35: while an end by lease is being recorded its node gets no answer, which
// would carry a commit index from before that end.
func TestCondemn(t *testing.T) {
	tb := leading(3, 0)
	contact(t, tb, "a", 10)
	if tb.Condemn("a", time.Minute, at(74.9)) || tb.Condemn("a", 0, at(9999)) {
		t.Fatal("condemned before lease and margin have passed, or without a lease")
	}
	contact(t, tb, "a", 20)
	for range 2 { // two sessions
		if !tb.Condemn("a", time.Minute, at(85)) {
			t.Fatal("lease and margin have passed")
		}
	}
	for range 2 {
		if a := tb.Asked("a", at(86)); tb.Answer(a, tb.Round(), 3, at(86)) {
			t.Error("answered while condemned")
		}
		contact(t, tb, "b", 86)
		tb.Acquit("a")
	}
	contact(t, tb, "a", 87)
	tb.Acquit("a") // once too often: nothing
	if tb.Condemn("a", time.Minute, at(90)) {
		t.Error("answered again, and counted gone")
	}
	tb.Condemn("a", time.Minute, at(500))
	tb.Begin(4, at(501))
	contact(t, tb, "a", 502)
}

// M-09, M-10, INV-01: no reading, no verdict; after the threshold, offline.
func TestState(t *testing.T) {
	tb := leading(1, 0)
	tb.Asked("self", at(0))
	is := func(node string, when float64, want Liveness) {
		t.Helper()
		if got := tb.State(node, at(when)); got != want {
			t.Errorf("%s at %v s: %s, want %s", node, when, got, want)
		}
	}
	tb.Asked("a", at(1))
	is("a", 2, Online)
	is("b", 2, Unknown) // not heard in this term yet
	for s := 3.0; s <= 12; s += 3 {
		tb.Asked("self", at(s))
	}
	is("a", 10.9, Online)
	is("a", 11, Offline)
	is("b", 9.9, Unknown)
	is("b", 12, Offline) // the threshold has passed since the start of the term
	tb.Asked("b", at(12))
	is("b", 12, Online)
	tb.Begin(2, at(13))
	is("a", 14, Unknown) // a leader change declares nobody offline
	if age, ok := tb.Age("a", at(14)); ok {
		t.Errorf("heard in a term before: %v", age)
	}
	tb.Asked("a", at(15))
	if age, ok := tb.Age("a", at(18)); !ok || age != 3*time.Second {
		t.Errorf("age %v, %v", age, ok)
	}
	tb.Forget("a")
	if _, ok := tb.Age("a", at(18)); ok {
		t.Error("a node that has left is remembered")
	}
}

// INV-01: a leader that was asleep or stopped itself has no readings of that
// time, so it concludes nothing from the silence in it.
func TestStateAfterTheLeaderSlept(t *testing.T) {
	tb := leading(1, 0)
	contact(t, tb, "a", 1)
	if got := tb.State("a", at(3600)); got != Unknown {
		t.Errorf("the leader has read nothing for an hour and says a is %s", got)
	}
	tb.Asked("self", at(3600)) // it wakes: its own contact is the first
	if got := tb.State("a", at(3601)); got != Unknown {
		t.Errorf("right after waking a is %s", got)
	}
	for s := 3603.0; s <= 3609; s += 3 {
		tb.Asked("self", at(s))
	}
	if got := tb.State("a", at(3609.9)); got != Unknown {
		t.Errorf("9.9 s after waking a is %s", got)
	}
	if got := tb.State("a", at(3610)); got != Offline {
		t.Errorf("10 s after waking, unheard, a is %s", got)
	}
	// A lease is another matter: a's keepers have counted the hour too.
	if g, _ := tb.GoneAt("a", time.Minute); g != at(66) {
		t.Errorf("gone at %v", g.Sub(at(0)))
	}
}

func TestNextWake(t *testing.T) {
	tb := leading(1, 0)
	tb.Asked("a", at(2))
	nodes := []string{"a", "b"}
	for _, c := range []struct{ now, want float64 }{{3, 10}, {10, 12}} {
		if got, ok := tb.Next(nodes, at(c.now)); !ok || got != at(c.want) {
			t.Errorf("at %v s: wake at %v, %v; want %v", c.now, got.Sub(at(0)), ok, c.want)
		}
	}
	if _, ok := tb.Next(nodes, at(12)); ok {
		t.Error("everybody is offline: there is nothing to wake for")
	}
}

// A node that said that it stops is given nothing more; no verdict comes sooner for it, and its next contact ends that.
func TestBye(t *testing.T) {
	tb := leading(1, 0)
	tb.Bye("stranger")
	contact(t, tb, "a", 1)
	contact(t, tb, "leader", 2)
	gone, _ := tb.GoneAt("a", time.Minute)
	tb.Bye("a")
	if got := tb.State("a", at(2)); got != Unknown {
		t.Errorf("after its word: %v", got)
	}
	if at2, ok := tb.GoneAt("a", time.Minute); !ok || at2 != gone {
		t.Error("its leases count from elsewhere")
	}
	contact(t, tb, "leader", 7)
	if got := tb.State("a", at(10.9)); got != Unknown {
		t.Errorf("before its silence is one: %v", got)
	}
	if got := tb.State("a", at(11)); got != Offline {
		t.Errorf("after ten seconds of silence: %v", got)
	}
	contact(t, tb, "a", 11.5)
	if got := tb.State("a", at(11.5)); got != Online {
		t.Errorf("after its next contact: %v", got)
	}
	if got := tb.State("stranger", at(2)); got != Unknown {
		t.Errorf("who was never heard: %v", got)
	}
}
