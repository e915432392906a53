package api

import (
	"strings"
	"testing"

	"muster/board"
)

// M-02: a clock more than 5 s off board time is shown, one more than 60 s off is an alarm, each with its machine; when
// everybody is behind it is board time that is ahead, and nobody is blamed.
func TestClocksAreToldByMachine(t *testing.T) {
	for name, tc := range map[string]struct {
		off         []float64
		alarm, note string
	}{
		"all right":           {[]float64{0, 4, -4}, "", ""},
		"one ahead":           {[]float64{0, 6, 0}, "", "the clock of b is 6s ahead of board time"},
		"one far behind":      {[]float64{0, -61, 0}, "CLOCK: the clock of b is 1m1s behind board time", ""},
		"board time is ahead": {[]float64{-31, -40, -30}, "", "board time is at least 30s ahead of every machine's clock"},
	} {
		var nodes []Node
		for i, off := range tc.off {
			nodes = append(nodes, Node{Name: string(rune('a' + i)), State: board.NodeOnline, ClockOffS: off})
		}
		alarms, notes := machines(nodes)
		for what, x := range map[string]struct {
			got  []string
			want string
		}{"alarms": {alarms, tc.alarm}, "notes": {notes, tc.note}} {
			if got := strings.Join(x.got, "|"); (got == "") != (x.want == "") || !strings.Contains(got, x.want) || strings.Contains(got, "|") {
				t.Errorf("%s: %s %q, want %q", name, what, got, x.want)
			}
		}
	}
}

// NOSPACE says on which machine, and what it means there: on the leader's nothing new is taken.
func TestFullDisksAreToldByMachine(t *testing.T) {
	alarms, _ := machines([]Node{{Name: "a", Leader: true, NoSpace: true, DiskFreeMB: 3}, {Name: "b", NoSpace: true, DiskFreeMB: 9}, {Name: "c"}})
	want := []string{"NOSPACE: 3 MB are left on a, which leads: nothing new is taken, running work goes on", "NOSPACE: 9 MB are left on b: it starts nothing new"}
	if strings.Join(alarms, "|") != strings.Join(want, "|") {
		t.Errorf("alarms %q", alarms)
	}
}

// M-16: a node that starts nothing says by whose hand, since when and why.
func TestEstopIsExplained(t *testing.T) {
	v := board.NewMemView()
	r := board.Reading{State: board.NodeOnline, Estop: true, EstopBy: "ann", EstopWhy: "it smokes"}
	x := NodeOf(v, &board.Node{ID: "n-a", Name: "a"}, r, "")
	if e := x.EstopBy; e == nil || e.By != "ann" || e.Why != "it smokes" || e.Of != "estop" {
		t.Errorf("%+v", e)
	}
	if x := NodeOf(v, &board.Node{ID: "n-a", Name: "a"}, board.Reading{}, ""); x.EstopBy != nil {
		t.Errorf("without the file: %+v", x.EstopBy)
	}
}

// Of voters that are away people hear how many more may fail, and what brings the votes back.
func TestAbsentVoters(t *testing.T) {
	fleet := func(quorum bool, states ...string) *Status { // "-" before it: a replica
		s := &Status{Quorum: quorum}
		for i, st := range states {
			n := Node{Name: string(rune('a' + i)), Role: board.RoleVoter, State: st, AlwaysOn: true}
			if rest, ok := strings.CutPrefix(st, "-"); ok {
				n.Role, n.State = board.RoleReplica, rest
			} else {
				s.Voters++
			}
			s.Nodes = append(s.Nodes, n)
		}
		return s
	}
	const on, off = board.NodeOnline, board.NodeOffline
	for _, tc := range []struct {
		s    *Status
		want []string
	}{
		{fleet(true, on, on, on), nil},
		{fleet(true, on, on, off), []string{"1 of 3 voters are away (c): if one more fails, nothing can be written", "no replica could take a vote"}},
		{fleet(true, on, on, off, "-"+on), []string{"a replica takes the vote"}},
		{fleet(true, on, on, on, on, off), []string{"1 of 5", "1 more may fail"}},
		{fleet(true, on, on, on, "-"+off), nil},
		{fleet(false, on, off, off), nil}, // that is an alarm of its own
	} {
		got := absentVoters(tc.s)
		if len(tc.want) == 0 && got != "" {
			t.Errorf("%+v: %s", tc.s.Nodes, got)
		}
		for _, w := range tc.want {
			if !strings.Contains(got, w) {
				t.Errorf("%q is not in %q", w, got)
			}
		}
	}
}
