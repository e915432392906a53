package node

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"muster/board"
	"muster/cmd/muster/tty"
)

// A look that is lost and found again is one, and no machine floods the record.
func TestLooksAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var words []string
		var more, typed int64
		k := newLooks(func(run string, l board.Look) {
			words = append(words, l.Word)
			more += l.More
			typed += l.Typed
		})
		ask := func(id string) *tty.Ask { return &tty.Ask{ID: id} }
		o := tty.Opened{Who: "ann@atlas"}
		l := k.began("n-1", ask("one"), "d-1.1", o)
		k.typed(l)
		k.ended(l, tty.Left{Typed: 3, Why: "lost"})
		time.Sleep(lookBack / 2)
		synctest.Wait()
		l = k.began("n-1", ask("one"), "d-1.1", o)
		k.typed(l)
		k.ended(l, tty.Left{Typed: 4, Why: "left"})
		if want := []string{board.LookBegan, board.LookTyped, board.LookEnded}; !slices.Equal(words, want) || typed != 7 {
			t.Errorf("told %q, %d bytes typed; want %q, 7", words, typed, want)
		}
		words = nil
		k.ended(k.began("n-1", ask("two"), "d-1.1", o), tty.Left{Why: "silent"})
		time.Sleep(2 * lookBack)
		synctest.Wait()
		if want := []string{board.LookBegan, board.LookEnded}; !slices.Equal(words, want) || len(k.open) != 0 {
			t.Errorf("told %q of a look that was lost, %d stay open", words, len(k.open))
		}
		words = nil
		for range 1000 {
			k.ended(k.began("n-1", ask("many"), "d-1.1", o), tty.Left{Why: "left"})
		}
		if len(words) > looksAtOnce {
			t.Errorf("%d words at once", len(words))
		}
		told := int64(len(words))
		time.Sleep(2 * lookEvery)
		synctest.Wait()
		k.began("n-1", ask("last"), "d-1.1", o)
		if told+more != 2000 {
			t.Errorf("told %d, and that there were %d more; there were 2000", told, more)
		}
	})
}

// Who asks says which look it is: another person with the same word is recorded as themselves, and so is one
// who may type where somebody only looked.
func TestALookIsOnePersons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var who []string
		k := newLooks(func(_ string, l board.Look) {
			if l.Word == board.LookBegan {
				who = append(who, l.Who)
			}
		})
		for _, o := range []tty.Opened{{Who: "ann@atlas", ReadOnly: true}, {Who: "bob@atlas", ReadOnly: true}, {Who: "ann@atlas"}} {
			k.ended(k.began("n-1", &tty.Ask{ID: "one"}, "d-1.1", o), tty.Left{Why: "lost"})
		}
		if want := []string{"ann@atlas", "bob@atlas", "ann@atlas"}; !slices.Equal(who, want) {
			t.Errorf("recorded looks of %q, want %q", who, want)
		}
		time.Sleep(2 * lookBack)
	})
}
