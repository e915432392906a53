package logstore

import (
	"fmt"
	"hash/crc32"
	"maps"
	"slices"

	"github.com/hashicorp/raft"
)

// word is what a child says about itself: before and after each operation, and once what it found when it opened.
type word struct {
	What string // open, append, back, front, stable, fail
	Done bool
	At   uint64   // append: first index; back: first removed; front: last removed; stable: the value
	Sums []uint32 // append: of each entry
	Seen *snapshot
	Err  string
}

// snapshot is the whole content of a log store.
type snapshot struct {
	First, Last uint64
	Sums        []uint32 // from First to Last
	Stable      uint64
}

func sumOf(e *raft.Log) uint32 { return crc32.ChecksumIEEE(appendEntry(nil, e)) }

const stableKey = "term"

// look reads everything in an open store.
func look(l *Log) (*snapshot, error) {
	var s snapshot
	var err error
	if s.First, err = l.FirstIndex(); err != nil {
		return nil, err
	}
	if s.Last, err = l.LastIndex(); err != nil {
		return nil, err
	}
	for i := s.First; i <= s.Last && s.Last > 0; i++ {
		var e raft.Log
		if err := l.GetLog(i, &e); err != nil {
			return nil, fmt.Errorf("entry %d of %d to %d: %w", i, s.First, s.Last, err)
		}
		s.Sums = append(s.Sums, sumOf(&e))
	}
	s.Stable, err = l.GetUint64([]byte(stableKey))
	return &s, err
}

// ledger is what the store must hold: what was acknowledged, and one operation that was on its way.
type ledger struct {
	opened  bool
	sums    map[uint64]uint32
	stable  uint64
	pending *word
	acks    int
}

func newLedger() *ledger { return &ledger{sums: map[uint64]uint32{}} }

// hear takes one word of the child.
func (g *ledger) hear(w word) error {
	switch {
	case w.What == "fail":
		return fmt.Errorf("child: %s", w.Err)
	case w.What == "open":
		g.opened = true
		return g.check(w.Seen)
	case !w.Done:
		g.pending = &w
	default:
		if g.pending == nil || g.pending.What != w.What || g.pending.At != w.At {
			return fmt.Errorf("child: done with %s %d which it has not begun", w.What, w.At)
		}
		g.sums, g.stable = g.after()
		g.pending = nil
		g.acks++
	}
	return nil
}

// after is the content when the operation on its way has happened.
func (g *ledger) after() (map[uint64]uint32, uint64) {
	sums, stable := maps.Clone(g.sums), g.stable
	if w := g.pending; w != nil {
		switch w.What {
		case "append":
			for i, s := range w.Sums {
				sums[w.At+uint64(i)] = s
			}
		case "back":
			maps.DeleteFunc(sums, func(i uint64, _ uint32) bool { return i >= w.At })
		case "front":
			maps.DeleteFunc(sums, func(i uint64, _ uint32) bool { return i <= w.At })
		case "stable":
			stable = w.At
		}
	}
	return sums, stable
}

// check compares what was found with what must be there, the operation on its way either done or not, and goes on
// from what was found.
func (g *ledger) check(s *snapshot) error {
	found := map[uint64]uint32{}
	for i, sum := range s.Sums {
		found[s.First+uint64(i)] = sum
	}
	sums, stable := g.after()
	before := maps.Equal(found, g.sums) && s.Stable == g.stable
	if !before && !(maps.Equal(found, sums) && s.Stable == stable) {
		return fmt.Errorf("the store holds %s, term %d; acknowledged was %s, term %d; then on its way: %s",
			span(found), s.Stable, span(g.sums), g.stable, g.onItsWay())
	}
	g.sums, g.stable, g.pending = found, s.Stable, nil
	return nil
}

func (g *ledger) onItsWay() string {
	if g.pending == nil {
		return "nothing"
	}
	sums, stable := g.after()
	return fmt.Sprintf("%s %d, giving %s, term %d", g.pending.What, g.pending.At, span(sums), stable)
}

func span(sums map[uint64]uint32) string {
	if len(sums) == 0 {
		return "nothing"
	}
	keys := slices.Sorted(maps.Keys(sums))
	all := crc32.NewIEEE()
	for _, k := range keys {
		fmt.Fprint(all, k, sums[k])
	}
	return fmt.Sprintf("%d to %d (%d entries, %08x)", keys[0], keys[len(keys)-1], len(keys), all.Sum32())
}
