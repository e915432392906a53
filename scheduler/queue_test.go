package scheduler

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The lines of the queue are read as one queue in the order of DSP-01, whatever
// was added, one by one or many at once, and removed, also while it is read;
// and a line that is done is left at once (goal P7).
func TestQueueIsOneOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, model := newQueue(), map[string]*Candidate{}
		made := 0
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "add") {
				var list []*Candidate
				for range rapid.SampledFrom([]int{1, 3, 40, 150}).Draw(t, "many") {
					made++
					c := &Candidate{Card: fmt.Sprint("c-", made), sig: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "sig"), board: "x",
						keys: []any{float64(rapid.IntRange(0, 3).Draw(t, "priority"))}, desc: []bool{true}, since: int64(rapid.IntRange(0, 3).Draw(t, "since"))}
					if c.sig == "c" {
						c.board = "y"
					}
					list = append(list, c)
					model[c.Card] = c
				}
				q.add(list)
				continue
			}
			gone := fmt.Sprint("c-", rapid.IntRange(1, made+1).Draw(t, "gone"))
			q.remove(gone)
			delete(model, gone)
		}
		var want []*Candidate
		for _, c := range model {
			want = append(want, c)
		}
		slices.SortFunc(want, before)
		ranks := map[string]int{} // of each board, c being another's
		for _, c := range want {
			if ranks[c.board]++; q.rank(c) != ranks[c.board] {
				t.Fatalf("%s has rank %d, want %d", c.Card, q.rank(c), ranks[c.board])
			}
		}
		if out := (&Candidate{Card: "d", keys: []any{-1.0}, desc: []bool{true}, board: "x"}); q.rank(out) != ranks["x"]+1 {
			t.Fatalf("who is not in the queue has rank %d behind %d", q.rank(out), ranks["x"])
		}
		taken := rapid.IntRange(1, 5).Draw(t, "taken")
		limit := rapid.IntRange(0, len(want)+1).Draw(t, "limit of line a")
		var expect, got []string
		a := 0
		for _, c := range want {
			if c.sig == "a" {
				if a++; a > limit {
					continue
				}
			}
			expect = append(expect, c.Card)
		}
		a = 0
		q.all(func(sig string) bool { return sig == "a" && a >= limit }, func(c *Candidate) bool {
			got = append(got, c.Card)
			if c.sig == "a" {
				a++
			}
			if len(got)%taken == 0 {
				q.remove(c.Card)
				delete(model, c.Card)
			}
			return true
		})
		if !slices.Equal(got, expect) {
			t.Fatalf("read %v, want %v", got, expect)
		}
		if len(q.cards) != len(model) {
			t.Fatalf("%d cards are left, want %d", len(q.cards), len(model))
		}
	})
}

// Goal P7b: a hundred changed cards are put in their places in a line of
// thousands, which is not sorted for them; a line that is filled is sorted once.
func TestQueueIsNotSortedForFew(t *testing.T) {
	q := newQueue()
	add := func(from, n int) {
		var list []*Candidate
		for i := range n {
			list = append(list, &Candidate{Card: fmt.Sprintf("d-%05d", from+7*i), sig: "s"})
		}
		q.add(list)
	}
	add(0, 5000)
	l := q.lines["s"]
	if l.sorted {
		t.Fatal("5000 cards were put into an empty line one by one")
	}
	l.sort()
	add(3, 100)
	if !l.sorted || !slices.IsSortedFunc(l.cards, before) || len(l.cards) != 5100 {
		t.Fatalf("after 100 more: sorted %v (said to be %v), %d cards", slices.IsSortedFunc(l.cards, before), l.sorted, len(l.cards))
	}
}
