package board

import (
	"encoding/json"
	"fmt"
	"testing"
)

// dues does what is due, again and again, and holds every transaction against a number of records.
func (f *fleet) dues(most int) (steps int) {
	f.t.Helper()
	f.now++
	for ; steps < 1000; steps++ {
		var keys []string
		EachDue(f.v, f.now, func(key string, _ *Due) bool { keys = append(keys, key); return len(keys) < 1 })
		if len(keys) == 0 {
			return steps
		}
		r := Request{Actor: Platform(), Verb: VDue, Args: jsonOf(DueArgs{Keys: keys})}
		txn, res := Exec(f.v, &r, &Env{Now: f.now, Seq: f.v.Seq() + 1, Workflows: f.ws, Nodes: func(string) Reading { return Reading{State: NodeOnline} }})
		if res.Err != nil || txn.Empty() {
			f.t.Fatalf("due %v: %v", keys, res.Err)
		}
		if len(txn.Ops) > most {
			f.t.Fatalf("due %v: %d records in one transaction, at most %d", keys, len(txn.Ops), most)
		}
		f.v.Apply(&txn)
		f.now++
	}
	f.t.Fatal("it never ends")
	return 0
}

// left is how many events and attempts a card has, with its chain held against what is stored.
func (f *fleet) left(card string) (events, said, runs int) {
	f.t.Helper()
	stored := 0
	EachEvent(f.v, "", func(_ string, e *Event) bool {
		if e.Card == card {
			stored++
		}
		return true
	})
	c, before := GetCard(f.v, card), int64(1<<62)
	comments := 0
	CardEvents(f.v, c, func(e *Event) bool {
		if events++; e.Said {
			comments++
		}
		if e.At > before {
			f.t.Fatalf("event %s of card %s is out of order", e.ID, card)
		}
		before = e.At
		return true
	})
	EachComment(f.v, c, func(*Comment) bool { said++; return true })
	if stored != events || said != comments {
		f.t.Fatalf("card %s: %d events are stored and %d in its chain; %d comments, %d in its thread", card, stored, events, comments, said)
	}
	EachRun(f.v, card, func(*Run) bool { runs++; return true })
	return events, said, runs
}

func (f *fleet) say(card, event string, p map[string]any) {
	f.t.Helper()
	f.must(f.person(VEvent), FireEvent{Card: card, Event: event, Payload: p})
}

// much is a card about which a lot was said, with attempts; it is done.
func (f *fleet) much(words, runs int) string {
	f.t.Helper()
	id := f.card("old")
	for i := range words {
		f.now += 1000
		f.say(id, "comment", map[string]any{"text": fmt.Sprint("word ", i)})
	}
	x := newTx(f.v, &Request{Actor: Platform()}, &Env{Now: f.now, Seq: f.v.Seq() + 1, Workflows: f.ws})
	c := GetCard(x, id)
	c.Runs = uint64(runs)
	for n := uint64(1); n <= c.Runs; n++ {
		x.putRun(&Run{ID: RunID(id, n), Card: id, Board: c.Board, N: n, State: RunEnded, Gone: GoneReport, Ended: f.now})
	}
	x.putSlot(&SlotRec{Card: id, Slot: "worker", Run: RunID(id, 2), SessionID: "s"})
	x.putCard(c)
	txn := x.txn()
	f.v.Apply(&txn)
	f.say(id, "complete", map[string]any{"summary": "done"})
	return id
}

// M-37: events and attempts of a finished card leave after the board's `keep`, never many in one transaction; the
// newest 20 stay, and so does the attempt whose session a slot goes on with. What is left is one chain.
func TestKeep(t *testing.T) {
	const days = 24 * 3600 * 1000
	f := newFleet(t)
	id := f.much(450, 60)
	all, _, _ := f.left(id)
	f.now += 90*days - 60_000
	f.dues(keepPerStep + 10)
	if events, said, runs := f.left(id); events != all || said != 451 || runs != 60 {
		t.Fatalf("before its time: %d of %d events, %d comments, %d attempts", events, all, said, runs)
	}
	f.say(id, "comment", map[string]any{"text": "much later"})
	f.now += 120_000
	steps := f.dues(keepPerStep + 10)
	events, said, runs := f.left(id)
	if events != keptAlways || runs != keptAlways+1 || GetRun(f.v, RunID(id, 2)) == nil || steps < 3 {
		t.Fatalf("%d events, %d comments, %d attempts, in %d steps", events, said, runs, steps)
	}
	var last string
	EachComment(f.v, GetCard(f.v, id), func(m *Comment) bool { last = m.Body; return true })
	if last != "much later" {
		t.Fatalf("the newest comment is %q", last)
	}
	if c := GetCard(f.v, id); c.Status != "done" || GetBody(f.v, id) != "" || c.Runs != 60 {
		t.Fatalf("%+v", c)
	}
}

// M-37: a card that is taken up again keeps all; once it is finished again, its time begins anew.
func TestKeepOfACardThatIsReopened(t *testing.T) {
	f := newFleet(t)
	id := f.much(50, 30)
	f.say(id, "reopen", map[string]any{"why": "no"})
	if c := GetCard(f.v, id); c.KeepAt != 0 {
		t.Fatalf("an open card is to lose something at %d", c.KeepAt)
	}
	all, _, _ := f.left(id)
	f.now += 200 * dayMS
	f.dues(keepPerStep + 10)
	if events, _, runs := f.left(id); events < all || runs != 30 {
		t.Fatalf("an open card lost something: %d of %d events, %d attempts", events, all, runs)
	}
	f.say(id, "complete", map[string]any{"summary": "done"})
	f.now += 89 * dayMS
	f.dues(keepPerStep + 10)
	if events, _, _ := f.left(id); events < all {
		t.Fatalf("its time began with the first end: %d events", events)
	}
	f.now += 2 * dayMS
	f.dues(keepPerStep + 10)
	if events, _, _ := f.left(id); events != keptAlways {
		t.Fatalf("%d events stay", events)
	}
}

// M-37: a shorter `keep` counts at once, for all cards of the board, in slices; a longer one for what is still there.
func TestKeepIsSet(t *testing.T) {
	f := newFleet(t)
	ids := []string{f.much(60, 0), f.much(60, 0), f.much(60, 0), f.much(60, 0), f.much(60, 0)}
	open := f.card("open")
	for range 30 {
		f.say(open, "comment", map[string]any{"text": "x"})
	}
	f.now += 10 * dayMS
	f.must(f.person(VBoardSet), BoardSet{Board: "default", Set: map[string]json.RawMessage{"keep": json.RawMessage("400")}})
	f.dues(keepPerStep + 10)
	if events, _, _ := f.left(ids[0]); events < 60 {
		t.Fatalf("a longer keep took something: %d", events)
	}
	f.must(f.person(VBoardSet), BoardSet{Board: "default", Set: map[string]json.RawMessage{"keep": json.RawMessage("5")}})
	f.dues(2*keepPerStep + 40)
	for _, id := range ids {
		if events, _, _ := f.left(id); events != keptAlways {
			t.Fatalf("card %s has %d events", id, events)
		}
	}
	if events, _, _ := f.left(open); events < 30 {
		t.Fatalf("the open card has %d events", events)
	}
	if b := GetBoard(f.v, "default"); b.Sweep != "" {
		t.Fatalf("the sweep stands at %q", b.Sweep)
	}
}

// M-37: an event that leaves before its request's id does leaves that behind, so that the id leaves in its turn, and
// a late copy of the request is still known.
func TestKeepLeavesRequestIDs(t *testing.T) {
	f := newFleet(t)
	f.must(f.person(VBoardSet), BoardSet{Board: "default", Set: map[string]json.RawMessage{"keep": json.RawMessage("1")}})
	id := f.card("c")
	req := f.person(VEvent)
	req.ID = f.id()
	word := FireEvent{Card: id, Event: "comment", Payload: map[string]any{"text": "once"}}
	f.must(req, word)
	for range 25 {
		f.say(id, "comment", map[string]any{"text": "x"})
	}
	f.say(id, "complete", map[string]any{"summary": "done"})
	f.now += dayMS + 1000
	f.dues(keepPerStep + 10)
	if events, _, _ := f.left(id); events != keptAlways {
		t.Fatalf("%d events", events)
	}
	found := false
	f.v.Scan(TReqLog, "", "", func(_ string, v []byte) bool { found = found || string(v) == req.ID; return true })
	if !found {
		t.Fatal("the request's id stands nowhere any more: it never leaves")
	}
	seq := f.v.Seq()
	if res := f.do(req, word); res.Err != nil || f.v.Seq() != seq {
		t.Fatalf("a late copy: %v, %d transactions", res.Err, f.v.Seq()-seq)
	}
}
