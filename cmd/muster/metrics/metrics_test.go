package metrics

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"muster/board"
	"muster/cmd/muster/api/apitest"
	"muster/raftstore"
)

type fixed struct {
	f   *Facts
	err error
}

func (x fixed) Facts(context.Context) (*Facts, error) { return x.f, x.err }

func scrape(t *testing.T, src Source) (code int, text string) {
	t.Helper()
	w := httptest.NewRecorder()
	Handler(src).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Code, w.Body.String()
}

// full has something of every kind.
func full() *Facts {
	r := board.Reading{State: board.NodeOnline, Pressure: "normal", FreeMB: 2048, DiskMB: 10, Load: 0.5, ClockMS: -1500, Workspaces: 3, WorkMB: 7}
	return &Facts{Version: "v1", Node: "a", Fleet: "f", Started: time.UnixMilli(1500), Leader: true, Quorum: true, Live: true, Term: 3, Last: 12, Applied: 9, Heard: 11, Seq: 8,
		Age: 250 * time.Millisecond, Denied: map[string]uint64{"token": 2}, Starts: map[[2]string]uint64{{"default", "sh"}: 4}, Outbox: 1, Alarms: 2,
		Store: raftstore.Stats{Commit: raftstore.Times{Count: 3, Sum: 2 * time.Second, Under: [14]uint64{0, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 3}}},
		State: &State{Voters: 3, Cards: map[[2]string]int{{"default", "ready"}: 5}, Waits: map[[2]string]int{{"default", "cap"}: 4}, Needs: map[[2]string]int{{"default", "question"}: 1},
			Sessions: map[[3]string]int{{"default", "a", "sh"}: 1}, Paused: map[[2]string]int{{"board", "default"}: 1}, Hooks: map[[2]string]int{{"default", "w1"}: 3},
			Caps:     []board.CapUse{{Board: "default", Cap: "runs", Counts: "runs", Scope: "board", Group: "default", Used: 1, Max: 4, Bound: true}},
			Machines: []Machine{{ID: "1", Name: "a", Slots: 4, Reading: r}}}}
}

// TestEveryNameIsShown: what the table of names promises is what a scrape shows,
// by the conventions of Prometheus, and nothing else.
func TestEveryNameIsShown(t *testing.T) {
	code, text := scrape(t, fixed{f: full()})
	if code != http.StatusOK {
		t.Fatalf("%d: %s", code, text)
	}
	shown := map[string]bool{}
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "# TYPE muster_"); ok {
			shown["muster_"+strings.Fields(rest)[0]] = true
		}
	}
	if got, want := slices.Sorted(maps.Keys(shown)), slices.Sorted(maps.Keys(Names())); !slices.Equal(got, want) {
		t.Errorf("shown: %q\nwant:  %q", got, want)
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	for _, want := range []string{
		"muster_raft_lag_entries 2\n", "muster_contact_age_seconds 0.25\n", `muster_denials_total{kind="token"} 2`, `muster_starts_total{board="default",profile="sh"} 4`,
		`muster_commit_duration_seconds_bucket{le="0.25"} 2`, `muster_commit_duration_seconds_bucket{le="+Inf"} 3`, "muster_commit_duration_seconds_sum 2\n",
		`muster_cap_used{board="default",cap="runs",counts="runs",group="default",scope="board"} 1`, `muster_cap_max{board="default",cap="runs",counts="runs",group="default",scope="board"} 4`,
		`muster_node_online{node="a"} 1`, `muster_node_memory_available_bytes{node="a"} 2.147483648e+09`, `muster_node_clock_offset_seconds{node="a"} -1.5`, `muster_paused{name="default",of="board"} 1`,
		"\ngo_goroutines ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestWithoutALeader: of other machines nothing is claimed while nobody leads.
func TestWithoutALeader(t *testing.T) {
	f := full()
	f.Live, f.Quorum, f.Leader, f.Age = false, false, false, -1
	_, text := scrape(t, fixed{f: f})
	for _, not := range []string{"muster_node_online{", "muster_contact_age_seconds "} {
		if strings.Contains(text, not) {
			t.Errorf("%s is shown", not)
		}
	}
	if !strings.Contains(text, "muster_quorum 0\n") {
		t.Error("no muster_quorum 0")
	}
}

// TestOddLabelsDoNotBreakAScrape: names are what people wrote, and two caps may say the same.
func TestOddLabelsDoNotBreakAScrape(t *testing.T) {
	f := full()
	f.State.Caps = append(f.State.Caps, f.State.Caps[0])
	f.State.Machines = append(f.State.Machines, f.State.Machines[0])
	f.State.Cards[[2]string{"a\"b\\\n", "ready"}] = 1
	if code, text := scrape(t, fixed{f: f}); code != http.StatusOK || !strings.Contains(text, `board="a\"b\\\n"`) {
		t.Errorf("%d: %s", code, text)
	}
	if code, text := scrape(t, fixed{err: errors.New("the state cannot be read")}); code != http.StatusInternalServerError || !strings.Contains(text, "cannot be read") {
		t.Errorf("%d: %s", code, text)
	}
}

// TestCount counts a small fleet.
func TestCount(t *testing.T) {
	f := apitest.New()
	f.Must(apitest.Manager(), board.VBoardApply, board.BoardApply{Board: "default", YAML: "version: 1\nname: default\nextends: default\nprofiles:\n  sh: {harness: command, args: [true]}\n"})
	add := func(title string, after ...string) string {
		who := "sh"
		id, _ := f.Must(apitest.Manager(), board.VCardAdd, board.CardAdd{Board: "default", After: after, CardFields: board.CardFields{Title: &title, Assignee: &who}})["id"].(string)
		return id
	}
	one := add("one")
	two := add("two", one)
	f.Must(board.Platform(), board.VReasons, board.Reasons{Cards: []board.CardReason{{Card: two, Check: "links", Text: "waits"}}})
	f.Run(one, "secret")
	f.Must(apitest.Manager(), board.VPause, board.Pause{Board: "default", Why: "lunch"})
	var s *State
	now := f.Now().UnixMilli()
	if _, err := f.Read(t.Context(), false, func(v board.View) error {
		s = Count(v, board.NewWorkflows(), func(string) board.Reading { return board.Reading{Slots: 4} }, now)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := s.Cards[[2]string{"default", "running"}]; got != 1 {
		t.Errorf("cards: %v", s.Cards)
	}
	if got := s.Waits; got[[2]string{"default", "links"}] != 1 {
		t.Errorf("waits: %v", got)
	}
	if got := s.Sessions[[3]string{"default", "atlas", "sh"}]; got != 1 {
		t.Errorf("sessions: %v", s.Sessions)
	}
	if s.Paused[[2]string{"board", "default"}] != 1 || s.Voters != 1 || len(s.Machines) != 1 {
		t.Errorf("%+v", s)
	}
	for _, u := range s.Caps {
		if u.Scope == "machine" && u.Counts == "sessions" {
			if u.Used != 1 || u.Max != 4 || !u.Bound || u.Group != "atlas" {
				t.Errorf("%+v", u)
			}
			return
		}
	}
	t.Errorf("no cap of sessions: %+v", s.Caps)
}
