package demo

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// sound is the evidence of a show in which everything held: three cards, the
// second with two runs.
func sound() Evidence {
	e := Evidence{States: []StateAt{{"atlas", "aa", 40}, {"borea", "aa", 40}, {"cleo", "aa", 40}}}
	seq := uint64(10)
	for i := range 3 {
		card := Ack{fmt.Sprintf("p-%d", i+1), fmt.Sprintf("card %d", i+1)}
		e.Acked, e.Cards = append(e.Acked, card), append(e.Cards, card)
		runs := 1
		if i == 1 {
			runs = 2
		}
		for n := range runs {
			run := fmt.Sprintf("%s.%d", card.ID, n+1)
			seq++
			e.Claims = append(e.Claims, Claim{run, "atlas", seq})
			if i == 1 && n == 0 {
				continue // refused by its machine: claimed, never started
			}
			e.Started = append(e.Started, Started{run, "atlas", run + "/start", seq})
			e.Words = append(e.Words, Word{"start", card.ID, run}, Word{"end", card.ID, run})
		}
	}
	return e
}

// Invariants 1, 2, 4, 7: the check of the demo finds each way to break one, and
// nothing in evidence that is sound.
func TestCheckCanFail(t *testing.T) {
	if err := (&show{screen: &screen{out: io.Discard}}).verdict(sound()); err != nil {
		t.Fatalf("sound evidence: %v", err)
	}
	for _, c := range []struct {
		name      string
		invariant int
		tamper    func(*Evidence)
	}{
		{"a session without a run", 1, func(e *Evidence) { e.Claims = e.Claims[1:] }},
		{"a session on another machine", 1, func(e *Evidence) { e.Started[0].Node = "borea" }},
		{"a session for another claim", 1, func(e *Evidence) { e.Started[0].Seq++ }},
		{"a session under another key", 1, func(e *Evidence) { e.Started[0].Key = "p-1.1/again" }},
		{"no folder at all", 1, func(e *Evidence) { e.Started = nil }},
		{"a run started twice", 2, func(e *Evidence) { e.Words = append(e.Words, e.Words[:2]...) }},
		{"two sessions of a card", 2, func(e *Evidence) {
			e.Words = slices.Insert(e.Words, 1, Word{"start", "p-1", "p-1.2"})
		}},
		{"a session that ended for another", 2, func(e *Evidence) { e.Words[1].Run = "p-1.2" }},
		{"a card worked twice", 2, func(e *Evidence) {
			e.Words = append(e.Words, Word{"start", "p-1", "p-1.2"}, Word{"end", "p-1", "p-1.2"})
		}},
		{"a card nobody worked", 2, func(e *Evidence) { e.Words = e.Words[2:] }},
		{"a card lost", 4, func(e *Evidence) { e.Cards = e.Cards[1:] }},
		{"a card under another title", 4, func(e *Evidence) { e.Cards[0].Title = "?" }},
		{"a card twice", 4, func(e *Evidence) { e.Cards = append(e.Cards, Ack{"p-9", e.Cards[0].Title}) }},
		{"a card from nowhere", 4, func(e *Evidence) { e.Cards = append(e.Cards, Ack{"p-9", "other"}) }},
		{"another hash", 7, func(e *Evidence) { e.States[2].Hash = "ab" }},
		{"a node behind", 7, func(e *Evidence) { e.States[1].Seq-- }},
		{"no state", 7, func(e *Evidence) { e.States = nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := sound()
			c.tamper(&e)
			bad := Check(e)
			if len(bad) == 0 {
				t.Fatal("nothing was found")
			}
			var out bytes.Buffer
			err := (&show{screen: &screen{out: &out}}).verdict(e)
			if err == nil || !strings.Contains(out.String(), fmt.Sprintf("NO   invariant %d", c.invariant)) {
				t.Errorf("the demo ends with %v and says\n%s", err, out.String())
			}
			if !slices.ContainsFunc(bad, func(v Violation) bool { return v.Invariant == c.invariant }) {
				t.Errorf("want a violation of invariant %d: %v", c.invariant, bad)
			}
		})
	}
}
