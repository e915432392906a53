package raftstore

import (
	"fmt"
	"testing"

	"muster/board"
)

func TestFeedTellsWhatChanged(t *testing.T) {
	t.Parallel()
	_, s := single(t, nil)
	sub := s.Subscribe(func(tab board.Table, key string) bool { return tab == board.TText })
	other := s.Subscribe(func(tab board.Table, key string) bool { return tab == board.TCard })
	for _, x := range []*Sub{sub, other} {
		<-x.C
		if keys, all := x.Take(); !all || len(keys) > 0 {
			t.Fatalf("a new subscription begins with %v, %t, want all", keys, all)
		}
	}
	must(t, s.Do(ctx(t), withID(toy(verbAdd, "a"), "r1")))
	must(t, s.Do(ctx(t), toy(verbAdd, "b")))
	must(t, s.Do(ctx(t), toy(verbAdd, "a")))
	<-sub.C
	if got := counter(t, s, "a"); got != 2 {
		t.Fatalf("the signal came before the change could be read: a = %d", got)
	}
	keys, all := sub.Take()
	if all || len(keys) != 2 {
		t.Fatalf("told %v, %t, want a and b", keys, all)
	}
	select {
	case <-other.C:
		t.Fatal("a subscriber was woken by what its filter leaves out")
	default:
	}
	must(t, s.Do(ctx(t), toy(verbDelete, "a")))
	<-sub.C
	if keys, _ := sub.Take(); len(keys) != 1 || keys[0] != (Key{board.TText, "a"}) {
		t.Fatalf("a delete told %v", keys)
	}
	sub.Close()
	must(t, s.Do(ctx(t), toy(verbAdd, "a")))
	if keys, all := sub.Take(); len(keys) > 0 || all {
		t.Fatal("told after Close")
	}
}

// A slow reader is told to read again; it holds up nobody and its memory is bounded.
func TestSlowFeedReaderReadsAgain(t *testing.T) {
	t.Parallel()
	_, s := single(t, nil)
	sub := s.Subscribe(nil)
	<-sub.C
	sub.Take()
	for i := range feedLimit/900 + 2 {
		must(t, s.Do(ctx(t), toyN(verbFill, fmt.Sprint("k", i), 900, 10)))
	}
	if n := len(sub.keys); n > feedLimit {
		t.Fatalf("%d keys wait", n)
	}
	<-sub.C
	if keys, all := sub.Take(); !all || len(keys) > 0 {
		t.Fatalf("told %d keys, all %t", len(keys), all)
	}
	must(t, s.Do(ctx(t), toy(verbAdd, "a")))
	<-sub.C
	if keys, all := sub.Take(); all || len(keys) != 1 {
		t.Fatalf("after reading again: %v, %t", keys, all)
	}
}

// Whoever subscribes while a write is under way is told to read again: its keys were not collected.
func TestSubscribingDuringAWriteMissesNothing(t *testing.T) {
	t.Parallel()
	n, s := single(t, nil)
	var sub *Sub
	n.breaks(func(op string) error {
		if op == "state-commit" && sub == nil {
			sub = s.Subscribe(nil)
			<-sub.C
			sub.Take() // and reads the state, which the write is not in yet
		}
		return nil
	})
	must(t, s.Do(ctx(t), toy(verbAdd, "a")))
	<-sub.C
	if _, all := sub.Take(); !all {
		t.Fatal("the write that was under way was missed")
	}
}
