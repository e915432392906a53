package board

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

const crowded = `
version: 1
name: web
extends: default
params: {reviewer: rev}
profiles:
  sh: {harness: command, capacity: 2, args: [true]}
  py: {harness: command, args: [true], memory: 1G}
  rev: {harness: command, verdict: explicit, args: [true]}
dispatch:
  capacity:
    - {description: m, counts: sessions, scope: machine, max: host.slots, reserve: {for: {status: reviewing}, slots: 1}}
    - {description: d, counts: sessions, scope: board, where: {dispatch: true, machine: [atlas, borea]}, max: 9}
    - {description: r, counts: runs, scope: assignee, max: profile.capacity}
    - {description: c, counts: cards, scope: fleet, max: 9}
    - {description: s, counts: starts, scope: machine, max: 5}
`

// The room that follows the state key by key, in the executor's table and by
// itself, counts what one counts that is made from nothing, whatever happens: held
// places are derived from the state (invariant 20, architecture.md §8). What was
// tried and taken back leaves nothing.
func TestRoomIsTheStates(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, crowded)
		w.board("ops", crowded)
		w.node("borea", 4)
		table := &HeldTable{}
		own := NewRoom(w.v, w.ws)
		own.Index(w.v)
		var cards []string
		for i := range rapid.IntRange(1, 10).Draw(rt, "batches") {
			batch := NewOverlay(w.v)
			var txns []Txn
			for range rapid.IntRange(1, 3).Draw(rt, "requests") {
				env := w.env()
				env.Seq, env.Term, env.Held = batch.Seq()+1, 1, table
				txn, _ := Exec(batch, w.draw(rt, batch, &cards), env)
				same(rt, "the executor's table", table.room, batch, w.ws)
				if !txn.Empty() && rapid.IntRange(0, 9).Draw(rt, "did not fit") > 0 {
					batch.Apply(&txn)
					txns = append(txns, txn)
				}
			}
			if rapid.IntRange(0, 5).Draw(rt, "dropped") == 0 {
				continue
			}
			for k := range txns {
				w.v.Apply(&txns[k])
			}
			own.Try() // what a round has decided is not there yet, and is taken back
			own.Take(&Candidate{Card: fmt.Sprint("web-", i), Board: "web", Node: "n-borea", Slot: "worker", Profile: "sh"}, w.now)
			own.Undo()
			for k := range txns {
				for _, op := range txns[k].Ops {
					own.Change(w.v, op.Table, op.Key)
				}
			}
			same(rt, "a room that follows", own, w.v, w.ws)
			w.after(float64(rapid.IntRange(0, 40).Draw(rt, "seconds")))
		}
	})
}

func same(rt *rapid.T, what string, got *Room, v View, ws *Workflows) {
	want := NewRoom(v, ws)
	if got.waits.loaded { // the executor's is read by its first claim
		want.Index(v)
	}
	if g, w := got.dump(), want.dump(); !reflect.DeepEqual(g, w) {
		rt.Fatalf("%s counts\n%v\nand one from nothing\n%v", what, g, w)
	}
}

// draw is a request of any kind that changes what caps count.
func (w *world) draw(rt *rapid.T, v View, cards *[]string) *Request {
	of := func(verb string, a Actor, args any) *Request {
		b, err := json.Marshal(args)
		if err != nil {
			rt.Fatal(err)
		}
		return &Request{Verb: verb, Actor: a, Args: b}
	}
	fleet, ann := Platform(), Actor{Kind: ActorPerson, Name: "ann", Node: "n-atlas"}
	node := rapid.SampledFrom([]string{"n-atlas", "n-borea"}).Draw(rt, "node")
	pick := func() string {
		if len(*cards) == 0 {
			return "web-1"
		}
		return rapid.SampledFrom(*cards).Draw(rt, "card")
	}
	switch rapid.IntRange(0, 19).Draw(rt, "what") {
	case 0, 1:
		slug := rapid.SampledFrom([]string{"web", "ops"}).Draw(rt, "board")
		title, who := "x", rapid.SampledFrom([]string{"sh", "py", "rev"}).Draw(rt, "profile")
		*cards = append(*cards, fmt.Sprintf("%s-%d", slug, GetBoard(v, slug).NextCard+1))
		return of(VCardAdd, ann, CardAdd{Board: slug, CardFields: CardFields{Title: &title, Assignee: &who}})
	case 2, 3, 4, 5, 14, 15, 16, 17:
		return of(VStart, fleet, Start{Card: pick(), Node: node})
	case 6:
		return of(VEvent, ann, FireEvent{Card: pick(), Event: rapid.SampledFrom([]string{"cancel", "complete", "request_review", "reopen"}).Draw(rt, "event")})
	case 7, 8, 12, 13:
		if c := GetCard(v, pick()); c != nil && c.Runs > 0 {
			code := int64(0)
			run := GetRun(v, RunID(c.ID, c.Runs))
			req := of(VReport, Actor{Kind: ActorNode, Node: run.Node}, Report{Kind: rapid.SampledFrom([]string{ReportTaken, ReportRefused, ReportExited, ReportGone}).Draw(rt, "report"), Run: run.ID, Code: &code})
			return req
		}
	case 9:
		return of(VBoardSet, ann, BoardSet{Board: "ops", Set: map[string]json.RawMessage{"params.round": json.RawMessage(fmt.Sprint(rapid.IntRange(10, 90).Draw(rt, "round")))}})
	case 10:
		return of(VBoardApply, ann, BoardApply{Board: "ops", YAML: rapid.SampledFrom([]string{crowded, fmt.Sprintf(capped, "[]")}).Draw(rt, "workflow")})
	}
	return of(VBarrier, ann, nil)
}

// What places may be kept for is read by the first claim of a term, not by the
// first request: a node that starts does not wait until every card is read. A
// claim that comes first counts a card that was there before it (CAP-15).
func TestFirstClaimReadsWhatWaits(t *testing.T) {
	w := newWorld(t, crowded)
	w.edit("atlas", func(n *Node) { n.Slots = 1 })
	r := w.nodes["n-atlas"]
	r.Slots = 1
	w.nodes["n-atlas"] = r
	waits := w.add("to review", nil)
	w.set(waits, func(c *Card) { c.Status, c.Stored = "review", "review" })
	card := w.add("to do", func(c *Card) { c.Assignee = "sh" })
	table := &HeldTable{}
	exec := func(verb string, by Actor, args any) *Error {
		b, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		env := w.env()
		env.Term, env.Held = 1, table
		_, res := Exec(w.v, &Request{Verb: verb, Actor: by, Args: b}, env)
		return res.Err
	}
	if err := exec(VBarrier, Platform(), nil); err != nil || table.room.waits.loaded {
		t.Fatalf("a request that claims nothing: %v; every card was read: %v", err, table.room.waits.loaded)
	}
	if err := exec(VStart, Platform(), Start{Card: card, Node: "n-atlas"}); err == nil || err.Check != "cap" || !table.room.waits.loaded {
		t.Fatalf("a start in the place that is kept for %s: %v", waits, err)
	}
	anew := NewRoom(w.v, w.ws)
	anew.Index(w.v)
	if got, want := table.room.dump(), anew.dump(); !reflect.DeepEqual(got, want) {
		t.Fatalf("the table counts\n%v\nand a room from nothing\n%v", got, want)
	}
}
