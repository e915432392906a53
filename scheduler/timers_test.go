package scheduler

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// What is due comes once, in order, at the moment last set, and next is the earliest that stands.
func TestTimers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ts, model := newTimers(), map[string]int64{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			key := fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "key"))
			at := int64(rapid.IntRange(1, 20).Draw(t, "at"))
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				ts.set(key, at)
				model[key] = at
			case 2:
				ts.remove(key)
				delete(model, key)
			case 3:
				got := ts.due(at)
				var want []string
				for k, m := range model {
					if m <= at {
						want = append(want, k)
					}
				}
				if !slices.IsSortedFunc(got, func(a, b string) int { return int(model[a] - model[b]) }) {
					t.Fatalf("due out of order: %v of %v", got, model)
				}
				for _, k := range got {
					if !slices.Contains(want, k) {
						t.Fatalf("%s is due at %d, but stands at %d", k, at, model[k])
					}
					delete(model, k)
				}
				if len(got) != len(want) {
					t.Fatalf("due at %d: %v, want %v", at, got, want)
				}
			}
			next := int64(0)
			for _, m := range model {
				if next == 0 || m < next {
					next = m
				}
			}
			if got := ts.next(); got != next {
				t.Fatalf("next %d, want %d", got, next)
			}
			if len(ts.queue) > 2*len(model)+65 {
				t.Fatalf("%d entries for %d timers", len(ts.queue), len(model))
			}
		}
	})
}
