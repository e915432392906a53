package rule

import (
	"reflect"
	"testing"
	"time"
)

// next is pure: it reads now and the board's zone, follows changes of the clock, and is always later than now.
func TestNext(t *testing.T) {
	at := func(s string) int64 {
		v, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return v.Unix()
	}
	for _, c := range []struct{ source, now, want string }{
		{`next("02:00")`, "2026-03-10T00:30:00Z", "2026-03-10T01:00:00Z"},                // board.zone: Berlin
		{`next("02:00", "UTC")`, "2026-03-10T00:30:00Z", "2026-03-10T02:00:00Z"},         // named zone
		{`next("02:00")`, "2026-03-10T01:00:00Z", "2026-03-11T01:00:00Z"},                // strictly after
		{`next("12:00")`, "2026-03-28T12:00:00Z", "2026-03-29T10:00:00Z"},                // a day of 23 hours
		{`next("12:00")`, "2026-10-24T11:00:00Z", "2026-10-25T11:00:00Z"},                // a day of 25 hours
		{`next("00:00")`, "2026-12-31T22:59:59Z", "2026-12-31T23:00:00Z"},                // over the year
		{`next(params.at, params.zone)`, "2026-06-01T00:00:00Z", "2026-06-01T06:30:00Z"}, // computed
	} {
		scope := Scope{"now": at(c.now), "board": map[string]any{"zone": "Europe/Berlin"}, "params": map[string]any{"at": "12:00", "zone": "Asia/Kolkata"}}
		if got := eval(t, c.source, scope); got != float64(at(c.want)) {
			t.Errorf("%s at %s gives %v, want %s", c.source, c.now, time.Unix(int64(got.(float64)), 0).UTC(), c.want)
		}
	}
	if got := eval(t, `next("02:00")`, Scope{}); got != nil {
		t.Errorf("without now: %v, want nil", got)
	}
	if got := eval(t, `next("01:00")`, Scope{"now": at("2026-03-10T00:30:00Z")}); got != float64(at("2026-03-10T01:00:00Z")) {
		t.Errorf("without a zone: %v, want UTC", got)
	}
}

// Due times (architecture.md §8) come from comparisons of payload.seconds and now with what stands still.
func TestThresholds(t *testing.T) {
	for source, want := range map[string][]Threshold{
		`machine.always_on && payload.seconds > params.lease`:     {{"payload.seconds", 600, true}},
		`600 <= payload.seconds`:                                  {{"payload.seconds", 600, false}},
		`not (payload.seconds <= 30)`:                             {{"payload.seconds", 30, true}},
		`now - run.started_at > params.lease * 2`:                 {{"now", 1200 + 50, true}},
		`card.start_after <= now`:                                 {{"now", 70, false}},
		`payload.seconds > params.none`:                           nil,
		`payload.seconds > payload.seconds`:                       nil,
		`payload.code > 3`:                                        nil,
		`payload.seconds > 5 || payload.seconds > 9 && now >= 70`: {{"now", 70, false}, {"payload.seconds", 5, true}, {"payload.seconds", 9, true}},
	} {
		e, err := Compile(source, Truth)
		if err != nil {
			t.Fatal(err)
		}
		got := e.Thresholds(Scope{
			"params": map[string]any{"lease": int64(600)}, "run": map[string]any{"started_at": int64(50)}, "card": map[string]any{"start_after": int64(70)},
		})
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", source, got, want)
		}
		if source != `payload.code > 3` != e.Timed() {
			t.Errorf("%s: Timed is %v", source, e.Timed())
		}
	}
	e, err := Compile(`machine.age > 5`, Truth)
	if err != nil || !e.Timed() {
		t.Errorf("an age changes by itself: %v", err)
	}
}

// A scope may be filled by what is read: the zone that next and written times use by default is among it.
func TestZoneIsRead(t *testing.T) {
	for source, want := range map[string][]string{`next("02:00")`: {"board.zone", "now"}, `next("02:00", "UTC")`: {"now"}} {
		e, err := Compile(source, Time)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Names(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s reads %v, want %v", source, got, want)
		}
	}
	for source, want := range map[string][]string{`at {{ card.start_after }}`: {"board.zone", "card.start_after"}, `at {{ card.priority }}`: {"card.priority"}} {
		text, err := CompileText(source)
		if err != nil {
			t.Fatal(err)
		}
		if got := text.Names(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s reads %v, want %v", source, got, want)
		}
	}
}
