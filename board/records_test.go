package board

import (
	"reflect"
	"strings"
	"testing"
)

// fill sets every exported field of a record to something that is not zero.
func fill(v reflect.Value, seed *int64) {
	switch v.Kind() {
	case reflect.String:
		*seed++
		v.SetString("v" + strings.Repeat("x", int(*seed%7)))
	case reflect.Int64:
		*seed++
		v.SetInt(*seed)
	case reflect.Uint64:
		*seed++
		v.SetUint(uint64(*seed))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte{1, byte(*seed)})
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), seed)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		e := reflect.New(v.Type().Elem()).Elem()
		fill(e, seed)
		v.SetMapIndex(reflect.ValueOf("k"), e)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), seed)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), seed)
			}
		}
	}
}

// BRD-03, BRD-04, BRD-06, M-02: every field of every record is stored and read again; one that a record gains and the
// codec forgets would be lost in silence.
func TestEveryFieldIsStored(t *testing.T) {
	for _, r := range []record{new(Fleet), new(IDTable), new(Board), new(WorkflowDoc), new(Card), new(Run), new(Session), new(Held), new(SlotRec), new(Event),
		new(Link), new(Order), new(Node), new(Token), new(Done), new(Outbox), new(Due), new(Reason), new(Actor), new(Sub), new(Notice), new(Mailbox), new(Delivery), new(Webhook), new(Import), new(Cooldown), new(Need),
		new(Agent), new(Head), new(Assignment), new(RunAgent), new(MemoryRef)} {
		seed := int64(0)
		fill(reflect.ValueOf(r).Elem(), &seed)
		back := reflect.New(reflect.TypeOf(r).Elem()).Interface().(record)
		if err := unmarshal(marshal(r), back); err != nil {
			t.Fatalf("%T: %v", r, err)
		}
		if !reflect.DeepEqual(r, back) { // the values, not their bytes: a field that is neither written nor read has none
			t.Errorf("%T is not what was stored:\n%+v\n%+v", r, r, back)
		}
	}
}

// Broken bytes are an error, never a panic (invariant 27).
func FuzzDecode(f *testing.F) {
	seed := int64(0)
	c := new(Card)
	fill(reflect.ValueOf(c).Elem(), &seed)
	f.Add(marshal(c))
	f.Add([]byte{})
	f.Add([]byte{1, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		got := new(Card)
		if unmarshal(b, got) == nil {
			if err := unmarshal(marshal(got), new(Card)); err != nil {
				t.Fatalf("what was read cannot be written and read again: %v", err)
			}
		}
	})
}

// BRD-01, M-01: many boards in one state, each with its prefix; `default` is meant when none is named; one sequence of
// transactions counts for all.
func TestManyBoardsOneState(t *testing.T) {
	f := newFleet(t)
	title := "t"
	f.must(f.person(VBoardCreate), BoardCreate{Slug: "web-site", Label: "Web Site"})
	seq := f.v.Seq()
	a := f.must(f.person(VCardAdd), CardAdd{Board: "web-site", CardFields: CardFields{Title: &title}})["id"].(string)
	b := f.must(f.person(VCardAdd), CardAdd{CardFields: CardFields{Title: &title}})["id"].(string)
	if PrefixOfCard(a) != "website" || BoardOfCard(f.v, a).Slug != "web-site" || BoardOfCard(f.v, b).Slug != "default" {
		t.Fatalf("cards %s and %s are on %s and %s", a, b, BoardOfCard(f.v, a).Slug, BoardOfCard(f.v, b).Slug)
	}
	if f.v.Seq() != seq+2 {
		t.Fatalf("two transactions on two boards count %d", f.v.Seq()-seq)
	}
	n := 0
	EachCard(f.v, GetBoard(f.v, "web-site"), func(*Card) bool { n++; return true })
	if n != 1 {
		t.Fatalf("board web-site has %d cards", n)
	}
}

// BRD-02/M-20: a board has an address derived from its label; it is no mailbox, because every node is a door.
func TestBoardAddress(t *testing.T) {
	for label, want := range map[string]string{"Web Site": "board:web-site", "Größe & Co": "board:gr-e-co", "--": "board:d"} {
		if got := (&Board{Slug: "d", Label: label}).Address(); got != want {
			t.Errorf("label %q: %s, want %s", label, got, want)
		}
	}
}

// BRD-05: setting a card's machine changes the machine alone.
func TestSettingTheMachineKeepsTheRest(t *testing.T) {
	f := newFleet(t)
	arc := f.card("arc")
	title, body, at := "part", "text", "atlas"
	id := f.must(f.person(VCardAdd), CardAdd{SubtaskOf: arc, CardFields: CardFields{Title: &title, Body: &body, Labels: map[string]string{"a": "b"}}})["id"].(string)
	before := GetCard(f.v, id)
	f.must(f.person(VCardEdit), CardEdit{Card: id, CardFields: CardFields{Machine: &at}})
	after := GetCard(f.v, id)
	if after.Machine != "atlas" || after.SubtaskOf != arc || GetBody(f.v, id) != body {
		t.Fatalf("after the edit: %+v", after)
	}
	after.Machine, after.Updated, after.LastEvent = before.Machine, before.Updated, before.LastEvent
	if string(marshal(after)) != string(marshal(before)) {
		t.Fatalf("more than the machine changed:\n%+v\n%+v", before, after)
	}
}

// DSP-12, M-17, INV-05: a start's effect is an order in the state, in the same transaction as the move; nothing else leaves Exec.
func TestOrdersComeWithTheirTransaction(t *testing.T) {
	f := newFleet(t)
	card := f.card("x")
	env := &Env{Now: f.now, Seq: f.v.Seq() + 1, Workflows: f.ws, Nodes: func(string) Reading { return Reading{State: NodeOnline, Slots: 4} }}
	txn, res := Exec(f.v, &Request{Actor: Platform(), Verb: VStart, Args: jsonOf(Start{Card: card, Node: atlas})}, env)
	if res.Err != nil {
		t.Fatal(res.Err)
	}
	tables := map[Table]int{}
	for _, op := range txn.Ops {
		tables[op.Table]++
	}
	if tables[TOrder] != 1 || tables[TRun] != 1 || tables[TCard] != 1 || tables[THeld] != 1 {
		t.Fatalf("the transaction of a start changes %v", tables)
	}
}

// M-06: a bare claim holds a place on the machine that the start stored, before anything is launched there.
func TestABareClaimHoldsAPlaceOnItsMachine(t *testing.T) {
	f := newFleet(t)
	run := f.start(f.card("x"), atlas)
	if h := GetHeld(f.v, run); h == nil || h.Node != atlas || h.Profile != "sh" || GetRun(f.v, run).Node != atlas {
		t.Fatalf("a claim holds %+v", h)
	}
}

// M-07: only the executing node judges its processes.
func TestOnlyTheExecutingNodeReports(t *testing.T) {
	f := newFleet(t)
	run := f.launched(f.card("x"))
	if res := f.report(borea, Report{Kind: ReportExited, Run: run}); code(res) != Refused || GetRun(f.v, run).Gone != "" {
		t.Fatalf("another node ended the run: %v", res.Err)
	}
}

// EXP-06: without a profile its members are nil, no error.
func TestProfileIsEmptyWhenThereIsNone(t *testing.T) {
	f := newFleet(t)
	title := "x"
	id := f.must(f.person(VCardAdd), CardAdd{CardFields: CardFields{Title: &title}})["id"].(string)
	s, err := NewScope(f.v, f.ws, GetBoard(f.v, "default"), GetCard(f.v, id), f.now, nil)
	if err != nil {
		t.Fatal(err)
	}
	for src, want := range map[string]any{"profile.name": nil, `profile.capacity ?? 7`: 7.0} {
		if got, err := s.Eval(compiled(t, src)); err != nil || got != want {
			t.Errorf("%s is %v (%v), want %v", src, got, err, want)
		}
	}
}
