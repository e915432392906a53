package board

import "testing"

// A board that was put aside can be read and taken back; until then nobody changes it or files cards there.
func TestArchivedBoardRests(t *testing.T) {
	f := newFleet(t)
	f.must(f.person(VBoardCreate), BoardCreate{Slug: "old"})
	title := "left over"
	id := f.must(f.person(VCardAdd), CardAdd{Board: "old", CardFields: CardFields{Title: &title}})["id"].(string)
	c := GetCard(f.v, id)
	c.Attention = Reason{Check: "stuck", Text: "by hand"}
	x := newTx(f.v, &Request{}, &Env{})
	x.putCard(c)
	txn := x.txn()
	f.v.Apply(&txn)
	needs := func() (n int) {
		for _, b := range []*Board{nil, GetBoard(f.v, "old")} {
			EachNeed(f.v, b, func(*Need) bool { n++; return true })
		}
		return n
	}
	if needs() != 2 {
		t.Fatal("the card needs nobody")
	}
	f.must(f.person(VBoardArchive), BoardArchive{Board: "old"})
	f.must(f.person(VBoardArchive), BoardArchive{Board: "old"}) // again: nothing is wrong
	if needs() != 0 {
		t.Error("a person is asked to do what is refused")
	}
	for name, res := range map[string]Result{
		"file a card":      f.do(f.person(VCardAdd), CardAdd{Board: "old", CardFields: CardFields{Title: &title}}),
		"comment":          f.do(f.person(VEvent), FireEvent{Card: id, Event: "comment", Payload: map[string]any{"text": "hello"}}),
		"edit a card":      f.do(f.person(VCardEdit), CardEdit{Card: id, CardFields: CardFields{Title: &title}}),
		"apply a workflow": f.do(f.person(VBoardApply), BoardApply{Board: "old"}),
		"its slug again":   f.do(f.person(VBoardCreate), BoardCreate{Slug: "old", Prefix: "o"}),
	} {
		if res.Err == nil || res.Err.Check != "archived" && res.Err.Code != Conflict {
			t.Errorf("%s: %v", name, res.Err)
		}
	}
	if GetCard(f.v, id) == nil {
		t.Error("its card is gone")
	}
	f.must(f.person(VBoardArchive), BoardArchive{Board: "old", Undo: true})
	if needs() != 2 {
		t.Error("what was needed before is forgotten")
	}
	f.must(f.person(VEvent), FireEvent{Card: id, Event: "comment", Payload: map[string]any{"text": "hello"}})
	if res := f.do(f.person(VBoardArchive), BoardArchive{Board: "default"}); res.Err == nil || res.Err.Code != Refused {
		t.Errorf("default: %v", res.Err)
	}
	if res := f.do(f.person(VBoardArchive), BoardArchive{Board: "none"}); res.Err == nil || res.Err.Code != NotFound {
		t.Errorf("none: %v", res.Err)
	}
}

// A board on which a session lives is not put aside: its words would be refused.
func TestBoardWithSessionsStays(t *testing.T) {
	f, _, busy, _ := underWay(t)
	res := f.do(f.person(VBoardArchive), BoardArchive{Board: "x"})
	if res.Err == nil || res.Err.Check != "running" || GetBoard(f.v, "x").Archived {
		t.Fatalf("%v; %s works", res.Err, busy)
	}
}
