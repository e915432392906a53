package board

import (
	"strings"
	"testing"
	"time"
)

// WFL-08: an event that nothing takes is refused with commands that a person can type, for this card.
func TestRefusalNamesCommands(t *testing.T) {
	f := newFleet(t)
	id := f.must(f.person(VCardAdd), CardAdd{CardFields: CardFields{Title: new("x"), StartAfter: new(f.now + time.Hour.Milliseconds())}})["id"].(string)
	err := f.do(f.person(VEvent), FireEvent{Card: id, Event: "unblock"}).Err
	if err == nil || err.Check != NoTransition {
		t.Fatalf("unblock of a card that is not blocked: %v", err)
	}
	for _, want := range []string{"muster cancel " + id, "muster comment " + id + " TEXT", "muster block " + id + " TEXT --kind KIND"} {
		if !strings.Contains(err.Hint, want) {
			t.Errorf("the hint %q does not name %q", err.Hint, want)
		}
	}
	for _, not := range []string{"unblock", "exited", "heartbeat"} {
		if strings.Contains(err.Hint, not) {
			t.Errorf("the hint %q names %q", err.Hint, not)
		}
	}
}

// M-14: a forced start goes past validators, not past a status that starts nothing; the refusal says what does.
func TestRefusedStartSaysWhatHelps(t *testing.T) {
	f := newFleet(t)
	add := func(c CardAdd) string {
		c.Title, c.Assignee = new("x"), new("sh")
		return f.must(f.person(VCardAdd), c)["id"].(string)
	}
	later := add(CardAdd{CardFields: CardFields{StartAfter: new(f.now + time.Hour.Milliseconds())}})
	first := add(CardAdd{})
	waits := add(CardAdd{After: []string{first}})
	over := add(CardAdd{})
	f.must(f.person(VEvent), FireEvent{Card: over, Event: "cancel"})
	held := add(CardAdd{})
	f.must(f.person(VEvent), FireEvent{Card: held, Event: "block", Payload: map[string]any{"kind": "needs_input", "reason": "?"}})
	for card, want := range map[string]string{
		later: "muster card edit " + later + " --start-after +0s",
		waits: "muster card unlink " + waits + " --after " + first,
		over:  "muster reopen " + over,
		held:  "muster unblock " + held,
	} {
		r := f.person(VStart)
		r.Place = atlas
		err := f.do(r, Start{Card: card, Force: true, Why: "now"}).Err
		if err == nil || !strings.Contains(err.Hint, want) {
			t.Errorf("start of %s: %+v, want the hint %q", card, err, want)
		}
	}
}

// BRD-10: unlinking is refused for a card that it does not wait for, and without one; all or nothing.
func TestUnlinkIsAllOrNothing(t *testing.T) {
	f := newFleet(t)
	var ids []string
	for range 3 {
		ids = append(ids, f.must(f.person(VCardAdd), CardAdd{CardFields: CardFields{Title: new("x")}})["id"].(string))
	}
	f.must(f.person(VCardLink), CardLink{Card: ids[0], After: ids[1:2]})
	for _, after := range [][]string{{ids[1], ids[2]}, {}} {
		if err := f.do(f.person(VCardUnlink), CardLink{Card: ids[0], After: after}).Err; err == nil {
			t.Errorf("unlink after %v was taken", after)
		}
		if got := Parents(f.v, ids[0]); len(got) != 1 {
			t.Errorf("after a refusal it waits for %v", got)
		}
	}
	f.must(f.person(VCardUnlink), CardLink{Card: ids[0], After: ids[1:2]})
	if got := Parents(f.v, ids[0]); len(got) != 0 {
		t.Errorf("it still waits for %v", got)
	}
}
