package rule

import (
	"math"
	"time"
	_ "time/tzdata" // zones by name on machines that have no zone files: a board's zone means the same everywhere

	"github.com/expr-lang/expr/ast"
)

// next("02:00", zone) is the next moment, strictly after the scope's now, at which clocks of the zone show
// that time; the zone defaults to board.zone, and to UTC. On a day whose clocks skip the time, it is the
// moment an hour beside it.
func (l *lowering) next(args []ast.Node, pos int) *code {
	if len(args) < 1 || len(args) > 2 {
		return l.fail(pos, `next takes a time and a zone: next("02:00", "Europe/Berlin")`)
	}
	clock := l.lower(args[0])
	l.wantText(clock, args[0], "next")
	zone := newCode(String, pos, boardZone)
	if len(args) == 2 {
		zone = l.lower(args[1])
		l.wantText(zone, args[1], "next")
	}
	if l.err != nil {
		return clock
	}
	l.reads = append(l.reads, Read{Name: "now", Offset: pos})
	if len(args) == 1 {
		l.reads = append(l.reads, Read{Name: "board.zone", Offset: pos})
	}
	if s, ok := clock.value.(string); ok && clock.constant {
		if _, _, ok := clockTime(s); !ok {
			return l.fail(clock.pos, "%s is no time of day: write it as \"02:00\"", named(s))
		}
	}
	if s, ok := zone.value.(string); ok && zone.constant {
		if _, err := location(s); err != nil {
			return l.fail(zone.pos, "%s is no time zone: write one such as \"Europe/Berlin\" or \"UTC\"", named(s))
		}
	}
	return numberCode(Time, pos, func(f *frame) (float64, bool) {
		text, ok := f.asText(clock.pos, clock.val(f))
		now, ok2 := f.asNumber(pos, f.read(pos, f.scope["now"]))
		if !ok || !ok2 {
			return 0, false
		}
		hour, minute, ok := clockTime(text)
		if !ok {
			f.fail(clock.pos, "%s is no time of day: write it as \"02:00\"", named(text))
			return 0, false
		}
		name, _ := f.asText(zone.pos, zone.val(f))
		where, err := location(name)
		if err != nil {
			f.fail(zone.pos, "%s is no time zone: write one such as \"Europe/Berlin\" or \"UTC\"", named(name))
			return 0, false
		}
		return nextClock(f, pos, now, hour, minute, where)
	})
}

func nextClock(f *frame, pos int, now float64, hour, minute int, where *time.Location) (float64, bool) {
	if math.Abs(now) > 1<<40 {
		f.fail(pos, "now is out of range")
		return 0, false
	}
	today := time.Unix(int64(math.Floor(now)), 0).In(where)
	for day := range 4 {
		at := time.Date(today.Year(), today.Month(), today.Day()+day, hour, minute, 0, 0, where)
		if s := float64(at.Unix()); s > now {
			return s, true
		}
	}
	f.fail(pos, "there is no such time within four days")
	return 0, false
}

func boardZone(f *frame) any {
	board, _ := f.scope["board"].(map[string]any)
	zone, _ := board["zone"].(string)
	return zone
}

func clockTime(s string) (hour, minute int, ok bool) {
	t, err := time.Parse("15:04", s)
	return t.Hour(), t.Minute(), err == nil
}

// location finds a zone by name; empty is UTC, never the machine's own zone.
func location(name string) (*time.Location, error) {
	if name == "" || name == "Local" {
		return time.UTC, nil
	}
	return time.LoadLocation(name)
}
