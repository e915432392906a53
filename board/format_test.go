package board

import "testing"

// architecture.md §7: the format rises when every voter in contact, and every node seen within 30 days, knows it.
func TestNextFormat(t *testing.T) {
	const day = 24 * 3600 * 1000
	v := func(id string, format uint64) Node {
		return Node{ID: id, Role: RoleVoter, State: NodeOnline, Format: format}
	}
	away := func(format uint64, since int64) Node {
		return Node{ID: "away", Role: RoleReplica, State: NodeOffline, OfflineSince: since, Format: format}
	}
	now := int64(100 * day)
	for name, tc := range map[string]struct {
		nodes []Node
		want  uint64
	}{
		"all know it":                     {[]Node{v("a", 2), v("b", 2), v("c", 3)}, 2},
		"one voter does not":              {[]Node{v("a", 2), v("b", 1), v("c", 2)}, 1},
		"one voter has not said":          {[]Node{v("a", 2), v("b", 0), v("c", 2)}, 1},
		"a voter is away":                 {[]Node{v("a", 2), {ID: "gone", Role: RoleVoter, State: NodeOffline, Format: 2}}, 1},
		"a replica of yesterday does not": {[]Node{v("a", 2), away(1, now-day)}, 1},
		"a replica of long ago does not":  {[]Node{v("a", 2), away(1, now-31*day)}, 2},
	} {
		got := NextFormat(1, 2, tc.nodes, now, func(id string) bool { return id != "gone" && id != "away" })
		if got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

// A format only rises, and never beyond what the leader knows; a build below it says so.
func TestRaiseFormat(t *testing.T) {
	f := newFleet(t)
	if res := f.do(Request{Actor: Platform(), Verb: VFormat}, FormatRaise{Format: Format + 1}); res.Err == nil {
		t.Error("a leader raises the format beyond what it knows")
	}
	if e := TooNew(f.v); e != nil {
		t.Errorf("its own format is too new: %v", e)
	}
	fl := GetFleet(f.v)
	fl.Format = Format + 1
	f.v.Apply(&Txn{Ops: []Op{{Table: TFleet, Key: FleetKey, Val: marshal(fl)}}})
	if e := TooNew(f.v); e == nil || e.Check != "format" || e.Hint == "" {
		t.Errorf("a later format: %v", e)
	}
	f.must(Request{Actor: Platform(), Verb: VFormat}, FormatRaise{Format: 1})
	if got := GetFleet(f.v).Format; got != Format+1 {
		t.Errorf("the format fell to %d", got)
	}
}
