package history

import (
	"testing"
	"time"
)

// at is a moment of the histories below, in seconds.
func at(s int) time.Time { return time.Unix(int64(s), 0) }

// Each model finds what it is there for: a history with one wrong answer, beside the same one with the right one.
func TestModelsFindWrongAnswers(t *testing.T) {
	said := Op{Kind: "comment", Card: "c", Text: "u1", Call: at(1), Ret: at(2)}
	high := Op{Kind: "priority", Card: "c", Prio: 7, Call: at(3), Ret: at(4)}
	for _, c := range []struct {
		name string
		ops  []Op
		ok   bool
	}{
		{"all seen", []Op{said, high, {Kind: "read", Card: "c", Text: "u1", Prio: 7, Call: at(5), Ret: at(6)}}, true},
		{"acknowledged and lost", []Op{said, {Kind: "read", Card: "c", Call: at(5), Ret: at(6)}}, false},
		{"done twice", []Op{said, {Kind: "read", Card: "c", Text: "u1 u1", Call: at(5), Ret: at(6)}}, false},
		{"an old value is read", []Op{said, high, {Kind: "read", Card: "c", Text: "u1", Prio: 0, Call: at(5), Ret: at(6)}}, false},
		{"refused and there", []Op{{Kind: "comment", Card: "c", Text: "u1", Refused: true, Call: at(1), Ret: at(2)}, {Kind: "read", Card: "c", Text: "u1", Call: at(5), Ret: at(6)}}, false},
		{"unknown and there", []Op{{Kind: "comment", Card: "c", Text: "u1", Open: true, Call: at(1), Ret: at(2)}, {Kind: "read", Card: "c", Text: "u1", Call: at(5), Ret: at(6)}}, true},
		{"unknown and not there", []Op{{Kind: "comment", Card: "c", Text: "u1", Open: true, Call: at(1), Ret: at(2)}, {Kind: "read", Card: "c", Call: at(5), Ret: at(6)}}, true},
		{"read before it was asked", []Op{{Kind: "read", Card: "c", Text: "u1", Call: at(0), Ret: at(0)}, said}, false},
		{"two reads go back", []Op{{Kind: "comment", Card: "c", Text: "u1", Call: at(1), Ret: at(9)}, {Kind: "read", Card: "c", Text: "u1", Call: at(2), Ret: at(3)}, {Kind: "read", Card: "c", Call: at(4), Ret: at(5)}}, false},
		{"copies with one answer", []Op{{Kind: "copy", Card: "id", Text: "done 1", Call: at(1), Ret: at(2)}, {Kind: "copy", Card: "id", Text: "done 1", Call: at(3), Ret: at(4)}}, true},
		{"copies with two answers", []Op{{Kind: "copy", Card: "id", Text: "done 1", Call: at(1), Ret: at(2)}, {Kind: "copy", Card: "id", Text: "done 2", Call: at(3), Ret: at(4)}}, false},
	} {
		if wrong := Linear(c.ops, time.Minute); (len(wrong) == 0) != c.ok {
			t.Errorf("%s: %q, want ok = %t", c.name, wrong, c.ok)
		}
	}
}
