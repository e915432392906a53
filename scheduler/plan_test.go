package scheduler

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"muster/board"
)

// DSP-01, DSP-17, EXP-12: priority first, then age; ties keep the order of filing.
func TestPlanOrder(t *testing.T) {
	r := newRig(t, shell, "atlas", "borea")
	low, high, mid := r.add("sh"), r.add("sh", priority(9)), r.add("sh", priority(5))
	late := r.add("sh")
	got, waits := Plan(r.input())
	var order []string
	for _, s := range got {
		order = append(order, s.Card)
	}
	if want := strings.Join([]string{high, mid, low, late}, " "); strings.Join(order, " ") != want {
		t.Fatalf("started %v, want %s (waits %+v)", order, want, waits)
	}
}

// CAP-12, M-05: slots of each machine bound the plan, within one round too; the rest waits and says for what.
func TestPlanFillsSlots(t *testing.T) {
	r := newRig(t, shell, "atlas", "borea")
	for range 6 {
		r.add("sh")
	}
	got, waits := Plan(r.input())
	n := map[string]int{}
	for _, s := range got {
		n[s.Node]++
	}
	if len(got) != 4 || n["n-atlas"] != 2 || n["n-borea"] != 2 || len(waits) != 2 {
		t.Fatalf("started %s, %d wait; want two on each machine and two waiting", starts(got), len(waits))
	}
	if w := waits[0]; w.Check != "cap" || !strings.Contains(w.Text, "2 of 2") || strings.Contains(w.Text, w.Card) {
		t.Fatalf("a waiting card says %q: %q; which card it is, is known where it stands", w.Check, w.Text)
	}
}

// DSP-06, DSP-07: who has no profile, or one that is not there, waits with a reason and is no failure; caps of a profile, zero is one (EXP-11).
func TestPlanReasons(t *testing.T) {
	r := newRig(t, shell, "atlas")
	for name, tc := range map[string]struct{ profile, check, says string }{
		"nobody":        {"", "unassigned", "no profile"},
		"cap of zero":   {"none", "cap", "0 of 0"},
		"needs a tool":  {"git", "requires", "git"},
		"names no host": {"named", "machine", "names none"},
	} {
		t.Run(name, func(t *testing.T) {
			id := r.add(tc.profile)
			got, waits := Plan(r.input())
			for _, s := range got {
				if s.Card == id {
					t.Fatalf("%s was started", id)
				}
			}
			for _, w := range waits {
				if w.Card == id && (w.Check != tc.check || !strings.Contains(w.Text, tc.says)) {
					t.Fatalf("waits for %s: %q; want %s with %q", w.Check, w.Text, tc.check, tc.says)
				}
			}
		})
	}
}

// M-05, INV-01: placement by the card's machine, by contact, by drain and ESTOP, by prefer, then by free slots, then by id.
func TestPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		profile string
		card    []func(*board.CardAdd)
		set     func(r *rig)
		want    string // node, or part of the reason
	}{
		"a tie goes to the lower id": {"sh", nil, nil, "n-atlas"},
		"more free slots":            {"sh", nil, func(r *rig) { r.add("sh", machine("atlas")); r.startAll() }, "n-borea"},
		"prefer":                     {"east", nil, nil, "n-borea"},
		"the card's machine":         {"sh", []func(*board.CardAdd){machine("borea")}, nil, "n-borea"},
		"its machine is offline": {"sh", []func(*board.CardAdd){machine("borea")}, func(r *rig) {
			r.set("n-borea", board.Reading{State: board.NodeOffline})
		}, "borea is offline"},
		"one is offline": {"sh", nil, func(r *rig) { r.set("n-atlas", board.Reading{State: board.NodeOffline}) }, "n-borea"},
		"one is unknown": {"sh", nil, func(r *rig) { r.set("n-atlas", board.Reading{State: board.NodeUnknown}) }, "n-borea"},
		"ESTOP": {"sh", nil, func(r *rig) {
			r.set("n-atlas", board.Reading{State: board.NodeOnline, Slots: 2, Estop: true})
		}, "n-borea"},
		"critical memory": {"sh", nil, func(r *rig) {
			for id := range r.states {
				r.set(id, board.Reading{State: board.NodeOnline, Slots: 2, Pressure: "critical"})
			}
		}, "not eligible"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, shell, "atlas", "borea")
			if tc.set != nil {
				tc.set(r)
			}
			id := r.add(tc.profile, tc.card...)
			got, waits := Plan(r.input())
			for _, s := range got {
				if s.Card == id {
					if s.Node != tc.want {
						t.Fatalf("placed on %s, want %s", s.Node, tc.want)
					}
					return
				}
			}
			for _, w := range waits {
				if w.Card == id && strings.Contains(w.Text, tc.want) {
					return
				}
			}
			t.Fatalf("not placed; waits %+v, want %s", waits, tc.want)
		})
	}
}

// startAll asks for all that a plan from nothing starts.
func (r *rig) startAll() {
	r.t.Helper()
	list, _ := Plan(r.input())
	for _, s := range list {
		r.must(board.Platform(), board.VStart, board.Start{Card: s.Card, Node: s.Node, Status: s.Status, Profile: s.Profile})
	}
}

// M-03, DSP-09: a plan made on an older state is looked at again: the second is claimed elsewhere, and that is no failure.
func TestClaimedElsewhere(t *testing.T) {
	r := newRig(t, shell, "atlas", "borea")
	id := r.add("sh")
	plan, _ := Plan(r.input())
	r.must(board.Platform(), board.VStart, board.Start{Card: id, Node: plan[0].Node, Status: plan[0].Status})
	for _, status := range []string{plan[0].Status, r.card(id).Status} { // as the plan saw the card, and as it is
		b, _ := json.Marshal(board.Start{Card: id, Node: "n-borea", Status: status})
		res := r.Do(t.Context(), &board.Request{Actor: board.Platform(), Verb: board.VStart, Args: b})
		if res.Err == nil || res.Err.Check != "claimed_elsewhere" || res.Err.Code != board.Conflict {
			t.Fatalf("the second start, of a card in %s: %v", status, res.Err)
		}
	}
	if c := r.card(id); c.Failures != 0 || c.Runs != 1 {
		t.Fatalf("%d failures, %d runs", c.Failures, c.Runs)
	}
}

// M-14: order and eligibility hold every start that the loop plans, however the
// card came to wait; a person's start passes both (see board's TestWaysIn for the rest).
func TestPlanWaysIn(t *testing.T) {
	r := newRig(t, shell+"  ag: {harness: agent}\nharnesses: {agent: {headless: {fresh: [agent], resume: [agent, again]}, session: minted}}\n", "atlas", "borea")
	ended := func(profile string) string {
		id := r.add(profile)
		r.must(board.Platform(), board.VStart, board.Start{Card: id, Node: "n-atlas"})
		run := r.run(r.card(id).Run)
		r.launch(run)
		r.person(board.VEvent, board.FireEvent{Card: id, Event: "reclaim"})
		r.report(run.Node, board.Report{Kind: board.ReportGone, Run: run.ID})
		return id
	}
	ways := map[string]string{"requeued": ended("sh"), "resumed": ended("ag"), "planner": r.add("sh")}
	ways["deferred"] = r.add("sh")
	r.person(board.VPause, board.Pause{Why: "x"})
	if list, waits := Plan(r.input()); len(list) != 0 || len(waits) != 4 {
		t.Fatalf("paused: started %s, %d wait", starts(list), len(waits))
	}
	r.person(board.VResume, board.Pause{})
	for i, way := range []string{"deferred", "resumed", "requeued", "planner"} {
		p := int64(9 - i)
		r.person(board.VCardEdit, board.CardEdit{Card: ways[way], CardFields: board.CardFields{Priority: &p}})
	}
	pressure := func(level string) {
		for _, id := range []string{"n-atlas", "n-borea"} {
			r.set(id, board.Reading{State: board.NodeOnline, Slots: 2, Pressure: level})
		}
	}
	pressure("critical")
	list, waits := Plan(r.input())
	for _, w := range waits {
		if w.Check != "eligible" {
			t.Errorf("%s waits for %s: %s", w.Card, w.Check, w.Text)
		}
	}
	b, _ := json.Marshal(board.Start{Card: ways["planner"]})
	manual := &board.Request{Actor: board.Actor{Kind: board.ActorPerson, Name: "ann", Node: "n-atlas"}, Verb: board.VStart, Args: b}
	if err := Prepare(r.v, r.ws, r.state, r.now(), manual); len(list) != 0 || err != nil {
		t.Fatalf("under critical pressure: started %s; a person's start: %v", starts(list), err)
	}
	pressure("normal")
	list, _ = Plan(r.input())
	var order []string
	for _, s := range list {
		order = append(order, s.Card)
	}
	if want := []string{ways["deferred"], ways["resumed"], ways["requeued"], ways["planner"]}; !slices.Equal(order, want) {
		t.Fatalf("started %v, want %v", order, want)
	}
}

// A card that waits for others is not started, and `why` names them (BRD-10).
func TestWhy(t *testing.T) {
	r := newRig(t, shell, "atlas")
	first := r.add("sh")
	second := r.add("sh", after(first))
	lone := r.add("")
	a, err := Why(r.input(), second, true)
	if err != nil || a.Check != "parents" || !strings.Contains(a.Text, first) {
		t.Fatalf("why %s: %+v (%v)", second, a, err)
	}
	if a, _ := Why(r.input(), lone, true); a.Check != "unassigned" || a.Fix == "" {
		t.Fatalf("why %s: %+v", lone, a)
	}
	if a, _ := Why(r.input(), first, false); !strings.Contains(a.Text, "without live readings") {
		t.Fatalf("without a leader why %s says %q", first, a.Text)
	}
	r.startAll()
	full := r.input()
	nodes := full.Nodes
	full.Nodes = func(id string) board.Reading { x := nodes(id); x.NoSpace, x.DiskMB = true, 7; return x }
	if a, _ := Why(full, first, true); a.Check != "running" || !strings.Contains(a.Text, "NOSPACE: 7 MB are left on atlas's disk") {
		t.Errorf("a run on a full disk: %+v", a)
	}
	if a, _ := Why(r.input(), first, true); a.Check != "running" || !strings.Contains(a.Text, "atlas") || strings.Contains(a.Text, "NOSPACE") {
		t.Fatalf("why %s: %+v", first, a)
	}
	late := r.add("sh", func(a *board.CardAdd) { at := r.input().Now + 90_000; a.StartAfter = &at })
	if a, _ := Why(r.input(), late, true); a.Check != "start_after" || !strings.Contains(a.Text, "1m30s") || !strings.Contains(a.Fix, "--start-after") {
		t.Fatalf("why %s: %+v", late, a)
	}
	for try := range 2 { // the default workflow's failure_limit
		if try > 0 {
			r.startAll()
		}
		run := r.current()[0]
		r.launch(run)
		r.exit(run, 3)
	}
	if a, _ := Why(r.input(), first, true); a.Check != "blocked" || !strings.Contains(a.Fix, "muster log "+first) || !strings.Contains(a.Fix, "muster unblock "+first) {
		t.Fatalf("why %s, which failed: %+v", first, a)
	}
	if _, err := Why(r.input(), "d-99", true); board.CodeOf(err) != board.NotFound {
		t.Fatalf("why of no card: %v", err)
	}
}

// A person's start may name the profile: it is placed as that one wants, also where nobody plays the role.
func TestPrepareWithAProfile(t *testing.T) {
	r := newRig(t, shell, "atlas", "borea")
	b, _ := json.Marshal(board.Start{Card: r.add(""), Profile: "east"})
	req := &board.Request{Actor: board.Actor{Kind: board.ActorPerson, Name: "ann", Node: "n-atlas"}, Verb: board.VStart, Args: b}
	if err := Prepare(r.v, r.ws, r.state, r.now(), req); err != nil || req.Place != "n-borea" {
		t.Fatalf("placed on %q, want where profile east prefers it (%v)", req.Place, err)
	}
	if res := r.Do(t.Context(), req); res.Err != nil || r.current()[0].Profile != "east" {
		t.Fatalf("started as %+v (%v)", r.current(), res.Err)
	}
}

// M-14: a person's start is placed by the leader; a full machine refuses it by name, --force passes the cap but not ESTOP.
func TestPrepare(t *testing.T) {
	r := newRig(t, shell, "atlas")
	r.add("sh")
	r.add("sh")
	r.startAll()
	id := r.add("sh")
	ask := func(force bool) (*board.Request, *board.Error) {
		b, _ := json.Marshal(board.Start{Card: id, Force: force, Why: "x"})
		req := &board.Request{Actor: board.Actor{Kind: board.ActorPerson, Name: "ann", Node: "n-atlas"}, Verb: board.VStart, Args: b}
		err := Prepare(r.v, r.ws, r.state, r.now(), req)
		return req, err
	}
	if _, err := ask(false); err == nil || err.Check != "cap" {
		t.Fatalf("a start on a full machine: %v", err)
	}
	req, err := ask(true)
	if err != nil || req.Place != "n-atlas" {
		t.Fatalf("a forced start: %q, %v", req.Place, err)
	}
	if res := r.Do(t.Context(), req); res.Err != nil {
		t.Fatal(res.Err)
	}
	if run := board.GetRun(r.v, r.card(id).Run); run == nil || !run.Forced {
		t.Fatalf("the forced run is not marked: %+v", run)
	}
	id = r.add("sh")
	r.set("n-atlas", board.Reading{State: board.NodeOnline, Slots: 2, Estop: true})
	if _, err := ask(true); err == nil || err.Check != "estop" {
		t.Fatalf("a forced start past an ESTOP: %v", err)
	}
}
