package board

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// txn executes a request and returns what it writes, applied.
func (f *fleet) txn(r Request, args any) Txn {
	f.t.Helper()
	b, err := json.Marshal(args)
	if err != nil {
		f.t.Fatal(err)
	}
	r.Args = b
	txn, res := Exec(f.v, &r, &Env{Now: f.now, Seq: f.v.Seq() + 1, Workflows: f.ws, Nodes: func(string) Reading { return Reading{} }})
	if res.Err != nil {
		f.t.Fatal(res.Err)
	}
	f.v.Apply(&txn)
	return txn
}

func (f *fleet) named(verb string) Request {
	r := f.person(verb)
	r.ID = f.id()
	return r
}

// ids is how many ids the table holds, counted.
func (f *fleet) ids() (n int64) {
	f.v.Scan(TRequest, "", "", func(string, []byte) bool { n++; return true })
	return n
}

// §2, P1: an event writes its card, itself and its request id, and no row that every event writes; what it says is stored once.
func TestAnEventWritesThreeKeys(t *testing.T) {
	f := newFleet(t)
	card := f.card("x")
	text := strings.Repeat("so it is ", 20)
	say := FireEvent{Card: card, Event: "comment", Payload: map[string]any{"text": text}}
	f.txn(f.named(VEvent), say) // the first id of all begins the table
	txn := f.txn(f.named(VEvent), say)
	tables, said := map[Table]int{}, 0
	for _, op := range txn.Ops {
		tables[op.Table]++
		said += bytes.Count(op.Val, []byte(text))
	}
	if len(txn.Ops) != 3 || tables[TCard] != 1 || tables[TEvent] != 1 || tables[TRequest] != 1 || said != 1 {
		t.Fatalf("%d keys %v, the text %d times; want card, event and id, the text once", len(txn.Ops), tables, said)
	}
	n := 0
	EachComment(f.v, GetCard(f.v, card), func(c *Comment) bool {
		n++
		if c.Body != text || c.Author.Name != "ann@atlas" || c.At != f.now {
			t.Errorf("comment %+v", c)
		}
		return true
	})
	if n != 2 {
		t.Errorf("%d comments are read, want 2", n)
	}
}

// §2: the table's number of ids is exact, whatever else is written between.
func TestIDTableCountsIDsOnly(t *testing.T) {
	f := newFleet(t)
	check := func(when string) {
		t.Helper()
		if n := GetIDs(f.v).Count(f.v.Seq()); n != f.ids() {
			t.Fatalf("%s: the table says %d ids, it holds %d", when, n, f.ids())
		}
	}
	title := "x"
	for i := range 40 {
		f.must(f.named(VCardAdd), CardAdd{CardFields: CardFields{Title: &title}})
		if i%3 == 0 {
			f.must(Request{Actor: Platform(), Verb: VNodeState}, NodeState{Node: atlas, State: [2]string{NodeOffline, NodeOnline}[i%2]})
		}
		retry := f.named(VCardEdit) // a refusal that is remembered has no event that carries its id
		retry.Retry = true
		if res := f.do(retry, CardEdit{Card: "default-999"}); code(res) != NotFound {
			t.Fatal(res.Err)
		}
		f.now += RequestIDTime / 50
		check("filled")
	}
	for range 60 {
		f.now += RequestIDTime / 50
		f.must(f.named(VCardAdd), CardAdd{CardFields: CardFields{Title: &title}})
		check("dropping")
	}
	if n := f.ids(); n > 60 {
		t.Errorf("%d ids are left of a time with 50", n)
	}
}

// §2: beyond 200,000 the oldest ids go, some at once; the newest stay, and what goes is below the horizon.
func TestIDTableDropsTheOldestBeyondItsNumber(t *testing.T) {
	f := newFleet(t)
	title := "x"
	add := func() string {
		r := f.named(VCardAdd)
		f.must(r, CardAdd{CardFields: CardFields{Title: &title}})
		return r.ID
	}
	oldest, next := add(), add()
	f.v.seq += MaxRequestIDs // as if so many had come since
	for range evictAtOnce - 3 {
		add()
	}
	if GetDone(f.v, oldest) == nil {
		t.Fatal("an id went before the table was full")
	}
	for range 5 {
		add()
	}
	last := add()
	if GetDone(f.v, oldest) != nil || GetDone(f.v, next) != nil || GetDone(f.v, last) == nil || GetIDs(f.v).Horizon == 0 {
		t.Fatalf("the oldest ids are still there, or the newest is not: %+v", *GetIDs(f.v))
	}
}

// reads counts the events that are read.
type reads struct {
	*MemView
	events int
}

func (r *reads) Scan(t Table, prefix, from string, fn func(string, []byte) bool) {
	r.MemView.Scan(t, prefix, from, func(k string, v []byte) bool {
		if t == TEvent {
			r.events++
		}
		return fn(k, v)
	})
}

// §2: however long a stretch without ids is, one request reads a bounded part of it.
func TestEvictionReadsALittle(t *testing.T) {
	f := newFleet(t)
	title := "x"
	for i := range 700 {
		f.must(Request{Actor: Platform(), Verb: VNodeState}, NodeState{Node: atlas, State: [2]string{NodeOffline, NodeOnline}[i%2]})
	}
	f.must(f.named(VCardAdd), CardAdd{CardFields: CardFields{Title: &title}})
	f.now += RequestIDTime + 1
	r := f.named(VCardAdd)
	r.Args, _ = json.Marshal(CardAdd{CardFields: CardFields{Title: &title}})
	v := &reads{MemView: f.v}
	if _, res := Exec(v, &r, &Env{Now: f.now, Seq: v.Seq() + 1, Workflows: f.ws, Nodes: func(string) Reading { return Reading{} }}); res.Err != nil {
		t.Fatal(res.Err)
	}
	if v.events > walkAtOnce+1 {
		t.Errorf("one request read %d events to find old ids", v.events)
	}
}
