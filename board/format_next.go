//go:build nextformat

package board

// This file is in no release: it plays the next version of muster, with a format
// that is one higher, a field more and a request more. The test of a rolling
// upgrade builds a second binary with it (the tag nextformat).

// Format is the highest format of the state that this build knows.
const Format uint64 = 4

type nextFleet struct {
	Motto string
}

func (f *nextFleet) fields(w *wire) { str(w, 63, &f.Motto) }

// verbMotto is the request that only the next version knows.
const verbMotto = "fleet.motto"

// Motto is what it says.
type Motto struct {
	Text string `json:"text"`
}

// SpokenNext tells a verb that comes through a door in the next version only.
func SpokenNext(name string) bool { return name == verbMotto }

func nextVerb(name string) (verb, bool) {
	if name == verbMotto {
		return verb{byManager, setMotto}, true
	}
	return verb{}, false
}

// setMotto is refused until every node can store it.
func setMotto(t *tx) (any, *Error) {
	a, err := args[Motto](t)
	if err != nil {
		return nil, err
	}
	f := GetFleet(t)
	if f == nil || f.Format < Format {
		return nil, Errorf(Refused, "the fleet's state has no mottos yet: not all of its nodes know them").WithCheck("format")
	}
	f.Motto = a.Text
	t.putFleet(f)
	t.event(nil, Event{Kind: "paused", Payload: jsonOf(map[string]any{"motto": a.Text})})
	return map[string]any{"motto": f.Motto}, nil
}
