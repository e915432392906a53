package e2e

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
)

// fault is one thing that is done to a fleet. Which machine it hits is said by an
// ordinal: the leader, if it is a leader's fault, else the next that is not hit yet.
type fault struct {
	kind string
	wait time.Duration // before it, since the one before
	hold time.Duration // how long it lasts
	pick int
	dice uint64 // where a file is damaged
}

// faultKinds are what happens in the short form too, each with the longest time that it lasts there.
var faultKinds = []string{"kill", "kill the leader", "stop", "stop the leader", "restart", "cut", "mute", "deaf", "damage the state", "fill the disk"}

// longKinds happen in the long form besides: a machine away for longer than a lease,
// a journal and a log damaged, all machines killed at once.
var longKinds = []string{"kill for long", "kill for long", "cut for long", "damage the journal", "damage the log", "kill all", "kill the leader", "kill"}

// planOf makes the faults of a lane by a seed: decks of all kinds, each shuffled, so
// that every kind comes. Of length 0 is one deck of short faults.
func planOf(seed uint64, lane int, length time.Duration) (plan []fault) {
	rng := rand.New(rand.NewPCG(seed, uint64(100+lane)))
	ms := func(least, most int) time.Duration {
		return time.Duration(least+rng.IntN(most-least+1)) * time.Millisecond
	}
	for spent := time.Duration(0); len(plan) == 0 || spent < length; {
		deck := slices.Clone(faultKinds)
		if length > 0 {
			deck = append(deck, longKinds...)
		}
		rng.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		for _, kind := range deck {
			f := fault{kind: kind, wait: ms(300, 1200), hold: ms(200, 2000), pick: rng.IntN(1000), dice: rng.Uint64()}
			switch {
			case kind == "kill for long" || kind == "cut for long":
				f.hold = ms(20_000, 24_000)
			case length > 0 && kind != "kill" && kind != "kill the leader" && kind != "kill all":
				f.hold = ms(500, 8000)
			}
			if spent += f.wait + f.hold; length > 0 && spent > length && len(plan) > 0 {
				return plan
			}
			plan = append(plan, f)
		}
	}
	return plan
}

func (f fault) String() string { return fmt.Sprintf("%s for %s", f.kind, f.hold) }

// The same seed gives the same faults, another one others; the short form has each
// kind of its own once, the long form every kind.
func TestChaosPlan(t *testing.T) {
	if a, b := planOf(7, 0, time.Minute), planOf(7, 0, time.Minute); !reflect.DeepEqual(a, b) {
		t.Errorf("seed 7 gives %v and %v", a, b)
	}
	if a, b := planOf(7, 0, time.Minute), planOf(8, 0, time.Minute); reflect.DeepEqual(a, b) {
		t.Errorf("seeds 7 and 8 both give %v", a)
	}
	kinds := func(plan []fault) (list []string) {
		for _, f := range plan {
			list = append(list, f.kind)
		}
		slices.Sort(list)
		return list
	}
	want := slices.Sorted(slices.Values(faultKinds))
	if got := kinds(planOf(3, 0, 0)); !slices.Equal(got, want) {
		t.Errorf("the short form has %v, want %v", got, want)
	}
	long := kinds(planOf(3, 0, 20*time.Minute))
	for _, kind := range slices.Concat(faultKinds, longKinds) {
		if !slices.Contains(long, kind) {
			t.Errorf("twenty minutes have no %q", kind)
		}
	}
}
