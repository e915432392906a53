package board

import (
	"reflect"
	"testing"
)

// P8, P10: what is read of all cards when a term begins is what their records say,
// of a card with every field and of one with none.
func TestGlanceIsTheCard(t *testing.T) {
	full, seed := new(Card), int64(0)
	fill(reflect.ValueOf(full).Elem(), &seed)
	for _, c := range []*Card{full, {ID: "d-2", Board: "default", Status: "ready", Stored: "todo"}, {ID: "d-3"}} {
		var g Glance
		if !g.read(c.ID, marshal(c), map[string]string{}) || !reflect.DeepEqual(&g, c.glance()) {
			t.Errorf("card %s\nread  %+v\nhas   %+v", c.ID, g, *c.glance())
		}
	}
	if new(Glance).read("d-4", marshal(full)[:9], map[string]string{}) {
		t.Error("a record that is cut off was read")
	}
}

// A glance at every card allocates for none of them.
func TestGlanceAllocatesNothing(t *testing.T) {
	val, names := marshal(&Card{ID: "d-2", Board: "default", Status: "ready", Stored: "todo", Title: "count"}), map[string]string{}
	var g Glance
	if n := testing.AllocsPerRun(100, func() { g.read("d-2", val, names) }); n != 0 {
		t.Errorf("%v allocations a card", n)
	}
}
