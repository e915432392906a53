package node

import (
	"encoding/json"
	"testing"
	"time"

	"muster/board"
)

// architecture.md §2: while space is low nothing new is taken, and the alarm is shown; what ends things passes, and
// with space back all is taken again.
func TestNoSpace(t *testing.T) {
	n := open(t, testConfig(t, "atlas"))
	n.testDo(t, board.VBoardApply, board.BoardApply{Board: "default", YAML: shell})
	free := int64(spaceLow)
	n.space.mu.Lock()
	n.space.look, n.space.at = func(string) (int64, error) { return free, nil }, time.Time{}
	n.space.mu.Unlock()
	card := n.testAdd(t, "before", "true")
	n.waitStatus(t, card, "done")
	n.space.mu.Lock()
	free, n.space.at = spaceLow-1, time.Time{}
	n.space.mu.Unlock()
	title := "after"
	ask := func(verb string, args any) board.Result {
		b, _ := json.Marshal(args)
		return n.Do(t.Context(), board.Request{ID: n.MintID(), Actor: board.Actor{Kind: board.ActorPerson, Name: "ann", Node: string(n.ident.ID)}, Verb: verb, Args: b})
	}
	if res := ask(board.VCardAdd, board.CardAdd{CardFields: board.CardFields{Title: &title}}); res.Err == nil || res.Err.Check != "nospace" {
		t.Fatalf("a card was taken on a full disk: %+v", res)
	}
	if res := ask(board.VEvent, board.FireEvent{Card: card, Event: "comment", Payload: map[string]any{"text": "x"}}); res.Err != nil {
		t.Fatalf("an event was refused: %v", res.Err)
	}
	if r := (backend{n}).Readings(t.Context()).Nodes[string(n.ident.ID)]; !r.NoSpace || r.DiskMB != (spaceLow-1)>>20 {
		t.Fatalf("its reading is %+v, want NOSPACE", r)
	}
	n.space.mu.Lock()
	free, n.space.at = spaceLow, time.Time{}
	n.space.mu.Unlock()
	if res := ask(board.VCardAdd, board.CardAdd{CardFields: board.CardFields{Title: &title}}); res.Err != nil {
		t.Fatalf("with space again: %v", res.Err)
	}
}
